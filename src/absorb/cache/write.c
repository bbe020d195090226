/* Write-through: a plain SET of a cached key stores its value in the cache.
 *
 * The stage sends the SET on a tracking connection, so that the server reports later changes of the key as it does
 * for a fetched value. The value is cached only if no other write of the key (or of a key with the same version
 * counter) was in flight at the same time, because the order of the two writes would be unknown. A SET is written
 * through only if its session has no other request that is delayed, or in flight for the same slot or partition
 * bucket; otherwise the SET is sent as usual and its value is not cached. With an engine that has shared
 * connections the written-through SET is detached: later commands of the session wait until it is answered
 * (hs_versions_session.detached_writes). */
#include "absorb/cache/stage.h"

#include "absorb/plain_set.h"
#include "wire/reply.h"

enum {
	/* After this many written-through values in a row that no client read, write-through stops for the key. */
	UNUSED_WRITES_MAX = 2
};

static bool is_plain_set(const struct hs_call *call, int64_t *expire_ms)
{
	return call->command->id == HS_CMD_ID_SET &&
	       hs_plain_set(call->argc, call->argv, expire_ms);
}

static void write_through(struct hs_cache_stage *stage, struct hs_request *request,
			  const struct hs_part *part)
{
	const struct hs_op *op = &part->op;
	struct hs_bytes answer = op->answer.len > 0 ? op->answer : hs_buf_bytes(&part->out);
	struct hs_reply value = {.out = &stage->scratch, .resp = 3};
	struct hs_bytes words[2];
	struct hs_cache_key *cached;
	struct hs_cache_entry *entry;
	struct hs_version before;
	struct hs_cache_query query;
	int64_t expire_ms;

	if (stage->mitigate != HS_MITIGATE_ON || !hs_bytes_equal(answer, HS_LIT("+OK\r\n")) ||
	    !op->tracking_session || !is_plain_set(&request->call, &expire_ms))
		return;
	hs_cache_query_get(&query,
			   hs_call_hash(&request->call, op->argv[1], hs_shared_seed(stage->shared)),
			   op->argv[1], words);
	if (!hs_versions_had_no_other_write(&stage->versions, stage->shared, request,
					    query.key_hash, &before))
		return;
	cached = hs_cache_find(stage->cache, query.key_hash, query.key);
	if (!cached || !cached->rule)
		return;
	hs_buf_clear(&stage->scratch, HS_IDLE_BUFFER_BYTES);
	hs_reply_bulk(&value, op->argv[2]);
	entry = hs_cache_entry_create(&query, hs_buf_bytes(&stage->scratch));
	if (!entry)
		return;
	entry->worker = stage->core->world.worker;
	entry->done = before.done + 1; /* the key's version after this write */
	entry->tracking_session = op->tracking_session;
	entry->tracking_epoch = op->tracking_epoch;
	entry->read_us = op->received.mono_us;
	entry->cost_us = stage->core->now.mono_us - op->received.mono_us;
	entry->until_us =
		hs_cache_entry_until(&stage->core->prng, cached->rule, false, entry->read_us);
	atomic_init(&entry->expires_us,
		    expire_ms > 0 ? entry->read_us + (uint64_t)expire_ms * 1000 : UINT64_MAX);
	cached->unused_writes++;
	if (hs_cache_put(stage->cache, cached, entry)) {
		hs_shared_put(stage->shared, entry);
		hs_counter_add(&hs_cache_key_stats(stage, cached)->write_through, 1);
	}
	hs_cache_entry_unref(&entry);
}

/* Whether write-through pays: clients read the key, and have read one of the last written values. If another write
 * of the key is in flight, the value could not be cached, and folding combines the writes instead. */
static bool is_worth_it(struct hs_cache_stage *stage, struct hs_call *call)
{
	uint64_t hash = hs_call_hash(call, call->argv[1], hs_shared_seed(stage->shared));
	struct hs_cache_key *cached = hs_cache_find(stage->cache, hash, call->argv[1]);
	struct hs_version version = hs_shared_version(stage->shared, hash);

	return version.begun == version.done && cached && cached->rule &&
	       cached->entries_count > 0 && cached->unused_writes < UNUSED_WRITES_MAX;
}

/* Whether the session has a request for the slot in flight, in any partition bucket. The counts in
 * session->in_bucket are not enough: a request may have been sent when another partition owned the slot, and may
 * wait there for a redirect. */
static bool has_in_flight(const struct hs_session *session, uint16_t slot)
{
	hs_list_each(const struct hs_request, request, &session->requests, link) {
		for (uint32_t i = 0; !request->done && i < request->parts_count; i++) {
			if (request->parts[i].op.slot == slot)
				return true;
		}
	}
	return false;
}

bool hs_cache_write_through(struct hs_cache_stage *stage, struct hs_session *session,
			    struct hs_call *call)
{
	uint16_t partition = hs_core_partition(stage->core, call->slot);
	struct hs_cache_request *state;
	struct hs_request *request;
	int64_t expire_ms;

	if (stage->mitigate != HS_MITIGATE_ON || session->tracks ||
	    session->in_bucket[partition % HS_PARTITION_BUCKETS] > 0 || session->delayed > 0 ||
	    !is_plain_set(call, &expire_ms) || !is_worth_it(stage, call))
		return false;
	if (stage->core->world.shared_connections && has_in_flight(session, call->slot))
		return false;
	request = hs_request_single(stage->core, session, call, call->slot);
	request->resp = 3;
	request->parts[0].op.track = true;
	request->parts[0].marked |= UINT32_C(1) << stage->index;
	state = hs_cache_request(stage, request);
	state->detached = stage->core->world.shared_connections;
	hs_versions_session(&stage->versions, session)->detached_writes += state->detached;
	hs_stage_send(stage->core, stage->index, request, &request->parts[0]);
	return true;
}

/* The core calls this when a written-through SET is answered. The versions stage has already counted the write as
 * done (`done`). This order matters: if the entry were stored first, a write of another worker could end in
 * between and raise `done` to the value in the entry. The entry would then count as valid, and the client of that
 * write would read the older value. */
void hs_cache_arrive(void *self, struct hs_request *request, struct hs_part *part)
{
	struct hs_cache_stage *stage = self;
	struct hs_cache_request *state = hs_cache_request(stage, request);

	write_through(stage, request, part);
	if (state->detached)
		hs_versions_session(&stage->versions, request->session)->detached_writes--;
}
