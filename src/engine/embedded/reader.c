#include "engine/embedded/reader.h"

#include "base/err.h"
#include "base/mem.h"
#include "wire/reply.h"

#include <string.h>

void hs_reader_init(struct hs_reader *reader, struct hs_database *database,
		    const struct hs_engine_host *host, uint32_t worker)
{
	memset(reader, 0, sizeof *reader);
	reader->host = host;
	reader->database = database;
	reader->count = database->partitions;
	reader->stores = hs_mem_zalloc(reader->count * sizeof *reader->stores);
	reader->batch = 1;
	hs_prng_init(&reader->prng, database->seed ^ database->redo.lsn ^ (worker + 1));
	for (uint16_t id = 0; id < reader->count; id++) {
		struct hs_reader_store *store = &reader->stores[id];

		hs_store_read_init(&store->read, &database->stores[id]);
		store->ks.kv = &store->read.kv;
		store->ks.hash_seed = database->seed;
		store->ks.prng = &reader->prng;
		store->ks.counts = &reader->counts;
	}
}

void hs_reader_deinit(struct hs_reader *reader)
{
	for (uint16_t id = 0; reader->stores && id < reader->count; id++)
		hs_store_read_deinit(&reader->stores[id].read);
	hs_mem_free(&reader->stores);
}

/* Makes sure that the store's snapshot is not older than the last refresh. */
static int look(struct hs_reader *reader, struct hs_reader_store *store)
{
	uint64_t commits;
	int rc;

	store->used = true;
	if (store->batch == reader->batch && store->read.open)
		return 0;
	commits = atomic_load_explicit(&store->read.store->commits, memory_order_acquire);
	if (!store->read.open || store->read.commits != commits) {
		rc = hs_store_read_renew(&store->read, commits);
		if (rc != 0)
			return rc;
	}
	store->batch = reader->batch;
	return 0;
}

/* Handles a read that failed with `rc`, whose reply is too large, or that met a damaged record. The reply begins
 * at `mark`. */
static void explain(struct hs_reader *reader, struct hs_keyspace *ks, const struct hs_store *store,
		    int rc, struct hs_reply *reply, size_t mark)
{
	if (rc != 0) {
		reply->out->len = mark;
		hs_reply_errorf(reply, "ERR cannot read '%s': %s", store->path, hs_err_text(rc));
	} else if (reply->over) {
		reply->out->len = mark;
		reply->out_max = 0;
		hs_reply_errorf(
			reply,
			"ERR the reply would be larger than %zu MiB; ask for fewer keys at a time",
			HS_REPLY_BYTES_MAX / HS_MIB);
	}
	if (ks->damaged)
		hs_database_report_damaged(reader->database, store->id, ks,
					   &reader->counters.damaged);
}

static inline void finish(struct hs_reader *reader, struct hs_keyspace *ks,
			  const struct hs_store *store, int rc, struct hs_reply *reply, size_t mark)
{
	if (__builtin_expect(rc != 0 || reply->over || ks->damaged, 0))
		explain(reader, ks, store, rc, reply, mark);
	hs_engine_show_counts(&reader->counters, &reader->counts);
}

/* The clock of the read, see reader.h. If the snapshot is newer than the time of receipt, either this thread was
 * suspended in between, or the clock was wrong for a while. The clock is read again to find out which. */
static int64_t date_of(const struct hs_reader *reader, const struct hs_store_read *read,
		       const struct hs_op *op)
{
	int64_t now_ms = hs_now_wall_ms(op->received), fresh_ms;

	if (__builtin_expect(now_ms >= read->visible_ms, 1))
		return now_ms;
	fresh_ms = hs_now_wall_ms(reader->host->now(reader->host->context));
	if (fresh_ms > read->visible_ms)
		fresh_ms = read->visible_ms;
	return fresh_ms > now_ms ? fresh_ms : now_ms;
}

bool hs_reader_run(struct hs_reader *reader, struct hs_op *op)
{
	struct hs_reader_store *store = &reader->stores[op->partition];
	struct hs_reply reply = {
		.out = op->out, .resp = op->resp, .out_max = op->out->len + HS_REPLY_BYTES_MAX};
	struct hs_keyspace_counts counts = reader->counts;
	size_t mark = op->out->len;
	int rc = look(reader, store);

	store->ks.now_ms = date_of(reader, &store->read, op);
	store->ks.frequency = op->frequency;
	if (rc == 0)
		rc = hs_keyspace_run(&store->ks, op->command, op->slot, op->argc, op->argv, &reply);
	if (rc == HS_EBUSY || (rc == 0 && __builtin_expect(store->ks.met_expired, 0))) {
		store->ks.met_expired = false;
		op->out->len = mark;
		reader->counts = counts;
		return false;
	}
	op->missed = rc == 0 && hs_keyspace_missed(&counts, &reader->counts);
	finish(reader, &store->ks, store->read.store, rc, &reply, mark);
	return true;
}

void hs_reader_run_loan(struct hs_reader *reader, struct hs_snapshot_loan *loan, struct hs_op *op)
{
	struct hs_keyspace ks = reader->stores[op->partition].ks;
	struct hs_keyspace_counts counts = reader->counts;
	struct hs_reply reply = {
		.out = op->out, .resp = op->resp, .out_max = op->out->len + HS_REPLY_BYTES_MAX};
	size_t mark = op->out->len;
	int rc;

	ks.kv = &loan->read.kv;
	ks.now_ms = (int64_t)op->engine_mark;
	ks.frequency = op->frequency;
	if (op->kind == HS_OP_EXEC) {
		rc = hs_engine_run_exec(&ks, op, &reply);
	} else {
		rc = hs_keyspace_run(&ks, op->command, op->slot, op->argc, op->argv, &reply);
		op->missed = rc == 0 && hs_keyspace_missed(&counts, &reader->counts);
	}
	finish(reader, &ks, loan->read.store, rc, &reply, mark);
}

void hs_reader_idle(struct hs_reader *reader)
{
	for (uint16_t id = 0; id < reader->count; id++) {
		struct hs_reader_store *store = &reader->stores[id];

		if (!store->used)
			hs_store_read_release(&store->read);
		store->used = false;
	}
}
