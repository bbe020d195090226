/* The embedded engine keeps the data itself, on this machine, in LMDB.
 *
 *     worker ── read ──► reader: a snapshot per store, answered on the spot
 *        │
 *        └─ write ──► its own chain ── flush ──► queue ──► committer
 *        ▲                                                    │ 1 runs the group in each store's
 *        │                                                    │   write transaction
 *        │                                                    │ 2 one record to the redo log
 *        └──────────────── host->done ◄── syncer ◄────────────┤ 3 one sync for all of it
 *                                                             │ 4 commits the stores, later
 *                                     checkpoint thread ◄─────┘ now and then: syncs the stores,
 *                                                               so that the log can start over
 *
 * Why a log in front of a database that can commit by itself: for each store, a synced LMDB commit writes every
 * page that the group touched, all over the file, and waits for them. The log needs one short write to a file
 * whose blocks are already allocated, whatever the number of stores.
 *
 * Why one committer for all stores: a sync costs the same for one operation or a thousand. One
 * thread makes the largest groups and needs one sync for all of them.
 *
 * Words of this folder:
 *   postponed   logged and answered, but not committed: readers do not see it in the store
 *   redirected  a read that only the writer can answer, sent to its queue
 *   pinned      a snapshot held open so that LMDB does not overwrite the pages of a checkpoint
 *   churn       pages written since the last pin: the file may grow by this much
 *   void        a redo entry that a newer entry of the same key replaced
 *   lent        a snapshot that the committer gives to a worker for one large reply
 *   given up    a store that is not written until a restart; reads use its last commit
 *
 * Where to read on: group.h for a write, reader.h for a read, redo.h and checkpoint.h for what is
 * on disk, database.h for the recovery, group_disk.c for a disk that fails. */

#include "engine/embedded/embedded.h"

#include "base/err.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/num.h"
#include "engine/embedded/committer.h"
#include "engine/embedded/database.h"
#include "engine/embedded/reader.h"
#include "route/slot_map.h"
#include "wire/reply.h"

#include <string.h>

#define STORE_BYTES_MIN HS_MIB
#define LOG_BYTES_MIN (64 * HS_KIB)

/* The state of one worker. The padding puts the states of two workers on different cache lines. */
struct worker {
	struct hs_reader reader;
	struct hs_op *newest, *oldest; /* the chain of operations submitted and not yet flushed */
	size_t count;		       /* operations in the chain */
	char apart[64];
};

struct embedded {
	struct hs_engine engine;
	struct hs_engine_host host;
	struct hs_database database;
	struct hs_committer committer;
	struct worker *workers;
	/* the session never ends: every change of the data passes through this engine */
	struct hs_tracking_session tracking_session;
};

static struct embedded *of(const struct hs_engine *engine)
{
	return (struct embedded *)(uintptr_t)engine;
}

/* Sets op->ttl_ms, the time to live of a value that was just read. The PTTL sees the same snapshot as the read,
 * because no refresh comes between them. */
static void ask_expiry(struct worker *worker, struct hs_op *op)
{
	const struct hs_bytes argv[] = {HS_LIT("PTTL"), op->argv[1]};
	struct hs_buf out = {0};
	struct hs_op pttl = {
		.kind = HS_OP_COMMAND,
		.command = hs_command_by_id(HS_CMD_ID_PTTL),
		.resp = 3,
		.slot = op->slot,
		.partition = op->partition,
		.argv = argv,
		.argc = 2,
		.received = op->received,
		.out = &out,
	};
	int64_t ttl_ms;

	if (hs_reader_run(&worker->reader, &pttl) && out.len > 3 &&
	    hs_num_parse_int((struct hs_bytes){out.data + 1, out.len - 3}, &ttl_ms))
		op->ttl_ms = ttl_ms >= 0 ? ttl_ms + 1 : ttl_ms == -1 ? -1 : 0;
	hs_buf_deinit(&out);
}

static enum hs_submit submit(struct hs_engine *engine, struct hs_op *op)
{
	struct embedded *embedded = of(engine);
	struct worker *worker = &embedded->workers[op->worker];

	if (op->kind == HS_OP_SUBSCRIBE || op->kind == HS_OP_UNSUBSCRIBE) {
		struct hs_reply reply = {.out = op->out, .resp = op->resp};

		/* the workers' cores deliver published messages without the engine */
		hs_reply_ok(&reply);
		return HS_SUBMIT_DONE;
	}
	if (op->track) {
		op->tracking_session = &embedded->tracking_session;
		op->tracking_epoch = 0;
		/* The cache serves this reply until the next write. So the read must see the newest commit, which
		 * may be newer than the begin of this round of events. */
		hs_reader_refresh(&worker->reader);
	}
	if (op->kind == HS_OP_COMMAND && !op->ordered && op->command->flags & HS_CMD_READONLY) {
		if (!hs_reader_run(&worker->reader, op))
			return HS_SUBMIT_REFUSED;
		if (op->track)
			ask_expiry(worker, op);
		return HS_SUBMIT_DONE;
	}
	atomic_fetch_add_explicit(&embedded->database.stores[op->partition].queued, 1,
				  memory_order_relaxed);
	op->next = worker->newest;
	worker->newest = op;
	if (!worker->oldest)
		worker->oldest = op;
	worker->count++;
	return HS_SUBMIT_QUEUED;
}

static void write_reply(struct hs_engine *engine, struct hs_op *op, bool wanted)
{
	struct hs_snapshot_loan *loan = op->engine_data;

	if (wanted)
		hs_reader_run_loan(&of(engine)->workers[op->worker].reader, loan, op);
	op->reply_unwritten = false;
	op->engine_data = NULL;
	hs_snapshot_loan_put(loan);
}

static void flush(struct hs_engine *engine, uint32_t id)
{
	struct embedded *embedded = of(engine);
	struct worker *worker = &embedded->workers[id];
	struct hs_op *newest = worker->newest, *oldest = worker->oldest;
	size_t count = worker->count;

	if (!newest)
		return;
	worker->newest = NULL;
	worker->oldest = NULL;
	worker->count = 0;
	hs_committer_push(&embedded->committer, newest, oldest, count);
}

static void refresh(struct hs_engine *engine, uint32_t id)
{
	hs_reader_refresh(&of(engine)->workers[id].reader);
}

static void idle(struct hs_engine *engine, uint32_t id)
{
	hs_reader_idle(&of(engine)->workers[id].reader);
}

static uint16_t partitions(const struct hs_engine *engine)
{
	return of(engine)->database.partitions;
}

static void partition_state(struct embedded *embedded, const struct hs_store *store,
			    struct hs_engine_partition *stats)
{
	const struct hs_group *group = &embedded->committer.group;

	if (atomic_load(&group->last_error) == group->failure) {
		stats->state = HS_PARTITION_READONLY;
		hs_bytes_escape(hs_bytes_of(group->failure), stats->unavailable_reason,
				sizeof stats->unavailable_reason);
	} else if (atomic_load_explicit(&store->full, memory_order_relaxed)) {
		stats->state = HS_PARTITION_FULL;
		snprintf(stats->unavailable_reason, sizeof stats->unavailable_reason,
			 "the last write was refused: %s", HS_GROUP_FULL_TEXT);
	}
}

static void partition_stats(struct hs_engine *engine, uint16_t id,
			    struct hs_engine_partition *stats)
{
	struct embedded *embedded = of(engine);
	uint16_t count = embedded->database.partitions;
	struct hs_store *store = &embedded->database.stores[id];

	*stats = (struct hs_engine_partition){
		.keys = hs_counter_get(&store->keys),
		.expires = hs_counter_get(&store->expires),
		.bytes_used = hs_counter_get(&store->bytes_used),
		.bytes_max = store->bytes_max,
		.queued = atomic_load_explicit(&store->queued, memory_order_relaxed),
	};
	snprintf(stats->slots, sizeof stats->slots, "%u-%u", (unsigned)hs_slot_first(id, count),
		 (unsigned)hs_slot_first((uint16_t)(id + 1), count) - 1);
	/* Reports the file's name without the folder: the folder's path may be long and hold any bytes. */
	hs_store_name(stats->address, sizeof stats->address, id);
	partition_state(embedded, store, stats);
	for (uint32_t step = 0; step < HS_COARSE_HISTOGRAM_BUCKETS; step++)
		stats->commit_histogram[step] = hs_counter_get(&store->commit_histogram[step]);
}

static void stats(struct hs_engine *engine, struct hs_engine_stats *stats)
{
	struct embedded *embedded = of(engine);
	struct hs_group *group = &embedded->committer.group;

	*stats = (struct hs_engine_stats){
		.last_error = atomic_load(&group->last_error),
		.unavailable_reason = "",
		.servers = {.maxmemory_policy = "noeviction", .aof_enabled = 1},
	};
	hs_engine_stats_add(stats, &embedded->database.redo.counters);
	hs_engine_stats_add(stats, &embedded->database.checkpoint.counters);
	hs_engine_stats_add(stats, &group->counters);
	for (uint32_t id = 0; id < embedded->host.workers; id++)
		hs_engine_stats_add(stats, &embedded->workers[id].reader.counters);
}

static void destroy(struct hs_engine **engine)
{
	struct embedded *embedded = of(*engine);

	for (uint32_t id = 0; id < embedded->host.workers; id++)
		flush(&embedded->engine, id);
	hs_committer_stop(&embedded->committer);
	for (uint32_t id = 0; id < embedded->host.workers; id++)
		hs_reader_deinit(&embedded->workers[id].reader);
	hs_database_close(&embedded->database);
	hs_mem_free(&embedded->workers);
	hs_mem_free(&embedded);
	*engine = NULL;
}

static const struct hs_engine_calls calls = {
	.name = "embedded",
	.submit = submit,
	.write_reply = write_reply,
	.flush = flush,
	.refresh = refresh,
	.idle = idle,
	.partitions = partitions,
	.partition_stats = partition_stats,
	.stats = stats,
	.destroy = destroy,
};

static int check_options(const struct hs_embedded_options *options, struct hs_fault *fault)
{
	if (options->partitions < 1 || options->partitions > HS_PARTITIONS_MAX)
		return hs_fault_set(fault, HS_EINVAL, "partitions must be 1 to %d",
				    (int)HS_PARTITIONS_MAX);
	if (options->store_bytes_max < STORE_BYTES_MIN)
		return hs_fault_set(fault, HS_EINVAL, "a store needs at least %zu bytes",
				    STORE_BYTES_MIN);
	if (options->log_bytes < LOG_BYTES_MIN)
		return hs_fault_set(fault, HS_EINVAL, "a log file needs at least %zu bytes",
				    LOG_BYTES_MIN);
	return 0;
}

int hs_embedded_create(const struct hs_embedded_options *options, const struct hs_engine_host *host,
		       struct hs_engine **engine, char *error, size_t error_size)
{
	struct hs_fault fault = {error, error_size};
	struct embedded *embedded;
	int rc = check_options(options, &fault);

	if (rc != 0)
		return rc;
	embedded = hs_mem_zalloc(sizeof *embedded);
	embedded->engine.calls = &calls;
	embedded->engine.reads_at_once = true;
	embedded->engine.op_scope = HS_OP_SCOPE_PARTITION;
	embedded->host = *host;
	atomic_init(&embedded->tracking_session.caught_up_us, UINT64_MAX);
	rc = hs_database_open(&embedded->database, options, host->workers, host->log, &fault);
	if (rc != 0) {
		hs_mem_free(&embedded);
		return rc;
	}
	embedded->workers = hs_mem_zalloc(host->workers * sizeof *embedded->workers);
	for (uint32_t id = 0; id < host->workers; id++)
		hs_reader_init(&embedded->workers[id].reader, &embedded->database, &embedded->host,
			       id);
	hs_committer_start(&embedded->committer, &embedded->database, &embedded->host);
	*engine = &embedded->engine;
	return 0;
}
