#include "engine/redis/vouches.h"

#include "base/mem.h"

struct entry {
	struct hs_vouch vouch; /* first: a vouch is its entry */
	struct entry *next;    /* of all there ever were */
	bool taken;
};

struct hs_vouches {
	struct entry *all;
};

struct hs_vouches *hs_vouches_create(void)
{
	return hs_mem_zalloc(sizeof(struct hs_vouches));
}

void hs_vouches_destroy(struct hs_vouches **pointer)
{
	struct hs_vouches *vouches = *pointer;
	struct entry *entry;

	while (vouches && (entry = vouches->all)) {
		vouches->all = entry->next;
		hs_mem_free(&entry);
	}
	hs_mem_free(pointer);
}

struct hs_vouch *hs_vouches_get(struct hs_vouches *vouches)
{
	struct entry *entry = vouches->all;

	while (entry && entry->taken)
		entry = entry->next;
	if (!entry) {
		entry = hs_mem_zalloc(sizeof *entry);
		entry->next = vouches->all;
		vouches->all = entry;
	}
	entry->taken = true;
	return &entry->vouch;
}

void hs_vouches_put(struct hs_vouch **vouch)
{
	hs_vouches_void(*vouch);
	((struct entry *)*vouch)->taken = false;
	*vouch = NULL;
}

void hs_vouches_void(struct hs_vouch *vouch)
{
	atomic_store_explicit(&vouch->epoch, hs_vouch_epoch(vouch) + 1, memory_order_release);
}

void hs_vouches_prove(struct hs_vouch *vouch, uint64_t us)
{
	if (us > hs_vouch_proved_us(vouch))
		atomic_store_explicit(&vouch->proved_us, us, memory_order_release);
}
