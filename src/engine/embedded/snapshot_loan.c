#include "engine/embedded/snapshot_loan.h"

#include "base/check.h"
#include "base/mem.h"

void hs_snapshot_loans_init(struct hs_snapshot_loans *loans, struct hs_database *database)
{
	loans->stores = database->partitions;
	loans->loans = hs_mem_zalloc((size_t)loans->stores * HS_STORE_LOANS * sizeof *loans->loans);
	for (uint32_t i = 0; i < (uint32_t)loans->stores * HS_STORE_LOANS; i++)
		hs_store_read_init(&loans->loans[i].read, &database->stores[i / HS_STORE_LOANS]);
}

void hs_snapshot_loans_deinit(struct hs_snapshot_loans *loans)
{
	for (uint32_t i = 0; loans->loans && i < (uint32_t)loans->stores * HS_STORE_LOANS; i++)
		hs_store_read_deinit(&loans->loans[i].read);
	hs_mem_free(&loans->loans);
}

struct hs_snapshot_loan *hs_snapshot_loan_get(struct hs_snapshot_loans *loans, uint16_t store,
					      uint32_t worker, uint64_t group)
{
	struct hs_snapshot_loan *spare = NULL;

	hs_check(loans->loans && store < loans->stores);
	for (uint32_t i = 0; i < HS_STORE_LOANS; i++) {
		struct hs_snapshot_loan *loan = &loans->loans[(uint32_t)store * HS_STORE_LOANS + i];

		if (!atomic_load_explicit(&loan->lent, memory_order_acquire)) {
			spare = spare ? spare : loan;
		} else if (loan->group == group && loan->worker == worker) {
			/* The worker cannot give the loan back meanwhile, because the group is not answered
			 * yet. */
			atomic_fetch_add_explicit(&loan->users, 1, memory_order_relaxed);
			return loan;
		}
	}
	/* UINT64_MAX: no key counts as changed after this snapshot. The snapshot is complete, because everything
	 * before the read is committed, and the read must not see changes that are postponed later. */
	if (!spare || hs_store_read_renew(&spare->read, UINT64_MAX) != 0)
		return NULL;
	spare->group = group;
	spare->worker = worker;
	atomic_store_explicit(&spare->users, 1, memory_order_relaxed);
	atomic_store_explicit(&spare->lent, true, memory_order_relaxed);
	return spare;
}

void hs_snapshot_loan_put(struct hs_snapshot_loan *loan)
{
	if (atomic_fetch_sub_explicit(&loan->users, 1, memory_order_relaxed) > 1)
		return;
	hs_store_read_release(&loan->read);
	atomic_store_explicit(&loan->lent, false, memory_order_release);
}
