/* Sets of users. A change copies the set; the users are shared between the copies. */
#include "acl/internal.h"

#include "base/mem.h"

static struct hs_acl *make(size_t count)
{
	struct hs_acl *acl = hs_mem_zalloc(sizeof *acl + count * sizeof *acl->users);

	acl->refs = 1;
	acl->count = count;
	return acl;
}

struct hs_acl *hs_acl_create(void)
{
	return make(0);
}

struct hs_acl *hs_acl_create_open(const char *password)
{
	const struct hs_bytes words[] = {HS_LIT("on"), HS_LIT("~*"), HS_LIT("&*"), HS_LIT("+@all")};
	const struct hs_acl_rules rules = {.count = sizeof words / sizeof *words, .words = words};
	struct hs_acl_error error;
	struct hs_acl *acl = make(1);
	struct hs_acl_user *open = hs_acl_user_change(NULL, HS_LIT("default"), &rules, &error);

	hs_check(open != NULL);
	acl->users[0] = hs_acl_user_with_password(open, password);
	hs_acl_user_unref(&open);
	return acl;
}

struct hs_acl *hs_acl_ref(const struct hs_acl *acl)
{
	struct hs_acl *held = (struct hs_acl *)(uintptr_t)acl;

	atomic_fetch_add_explicit(&held->refs, 1, memory_order_relaxed);
	return held;
}

void hs_acl_unref(struct hs_acl **pointer)
{
	struct hs_acl *acl = *pointer;

	*pointer = NULL;
	if (!acl || atomic_fetch_sub_explicit(&acl->refs, 1, memory_order_acq_rel) > 1)
		return;
	for (size_t i = 0; i < acl->count; i++)
		hs_acl_user_unref(&acl->users[i]);
	hs_mem_free(&acl);
}

/* The index of the user with this name, or the index where it belongs (binary search). */
static size_t place_of(const struct hs_acl *acl, struct hs_bytes name, bool *there)
{
	size_t low = 0, high = acl->count;

	*there = false;
	while (low < high) {
		size_t middle = (low + high) / 2;
		int order = hs_bytes_compare(hs_bytes_of(acl->users[middle]->name), name);

		if (order == 0) {
			*there = true;
			return middle;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct hs_acl_user *hs_acl_find(const struct hs_acl *acl, struct hs_bytes name)
{
	bool there;
	size_t at = place_of(acl, name, &there);

	return there ? acl->users[at] : NULL;
}

struct hs_acl *hs_acl_with(const struct hs_acl *acl, struct hs_acl_user *user)
{
	bool there;
	size_t at = place_of(acl, hs_bytes_of(user->name), &there);
	struct hs_acl *changed = make(acl->count + !there);

	for (size_t i = 0; i < changed->count; i++) {
		if (i == at)
			changed->users[i] = user;
		else
			changed->users[i] =
				hs_acl_user_ref(acl->users[i > at && !there ? i - 1 : i]);
	}
	return changed;
}

void hs_acl_add(struct hs_acl **pointer, struct hs_acl_user *user)
{
	bool there;
	size_t at = place_of(*pointer, hs_bytes_of(user->name), &there);
	struct hs_acl *acl;

	hs_check(!there);
	hs_check((*pointer)->refs == 1);
	acl = hs_mem_realloc(*pointer, sizeof *acl + ((*pointer)->count + 1) * sizeof *acl->users);
	memmove(&acl->users[at + 1], &acl->users[at], (acl->count - at) * sizeof *acl->users);
	acl->users[at] = user;
	acl->count++;
	*pointer = acl;
}

struct hs_acl *hs_acl_without(const struct hs_acl *acl, struct hs_bytes name)
{
	bool there;
	size_t at = place_of(acl, name, &there);
	struct hs_acl *changed = make(acl->count - there);

	for (size_t i = 0; i < changed->count; i++)
		changed->users[i] = hs_acl_user_ref(acl->users[there && i >= at ? i + 1 : i]);
	return changed;
}

bool hs_acl_same(const struct hs_acl *a, const struct hs_acl *b)
{
	struct hs_buf one = {0}, other = {0};
	bool same = a->count == b->count;

	for (size_t i = 0; i < a->count && same; i++) {
		one.len = 0;
		other.len = 0;
		hs_acl_user_describe(a->users[i], &one);
		hs_acl_user_describe(b->users[i], &other);
		same = hs_bytes_equal(hs_buf_bytes(&one), hs_buf_bytes(&other));
	}
	hs_buf_deinit(&one);
	hs_buf_deinit(&other);
	return same;
}

size_t hs_acl_count(const struct hs_acl *acl)
{
	return acl->count;
}

const struct hs_acl_user *hs_acl_at(const struct hs_acl *acl, size_t index)
{
	return acl->users[index];
}
