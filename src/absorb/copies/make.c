/* Makes a set of copies, renews its lease and deletes it, with internal calls.
 *
 *     DUMP k, tracked ─ RESTORE name …, to each place ─ in use
 *           │
 *           └─ from here on every change of k is reported and ends the set, finished or not
 *
 * A copy's TTL is a lease: copies of a process that died expire by themselves. The lease is never longer than
 * the original's remaining TTL, which a tracked read returns.
 *
 * Several workers may want copies of one key at the same time. The first one announces itself in the shared
 * cache with a set that has no names; the others look there again later. */
#include "absorb/copies/stage.h"

#include "base/num.h"
#include "wire/parse_reply.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	LOOK_AGAIN_US = 20000, /* another worker is making the set: look again after this */
	/* an announcement older than this is ignored: the worker may have failed */
	ANNOUNCED_US_MAX = 1000000,
	SHORT_PAUSE_US = 1000000, /* the cause may have gone by then */
	LONG_PAUSE_US = 10000000, /* the same attempt would most likely fail again */
	TTL_US_MIN = 100000,	  /* a value that expires sooner is not copied */
};

/* --- internal calls --- */

static struct hs_internal call_of(const struct hs_copies_stage *stage,
				  const struct hs_copies_key *copied,
				  const struct hs_command *command, size_t argc,
				  const struct hs_bytes *argv,
				  void (*then)(struct hs_core *core, struct hs_request *request))
{
	return (struct hs_internal){
		.call = hs_call_of(command, argc, argv),
		.on_done = then,
		.slot = copied ? copied->slot : 0,
		.stage = stage->index + 1,
	};
}

/* Records what the call is about. The key's state stays until the call ends. */
static void begin_call(const struct hs_copies_stage *stage,
		       const struct hs_request *internal_request, struct hs_copies_key *copied,
		       const struct hs_copies *copies)
{
	*hs_copies_call(stage, internal_request) = (struct hs_copies_call){
		.copied = copied,
		.copies = copies ? hs_copies_ref((struct hs_copies *)copies) : NULL,
	};
	if (copied)
		copied->in_flight++;
}

/* Sends the command to every copy, with the copy's name as its key. */
static void send_to_copies(struct hs_copies_stage *stage, const struct hs_internal *internal,
			   struct hs_copies_key *copied, const struct hs_copies *copies)
{
	uint32_t count = copies->count - 1;
	struct hs_request *internal_request =
		hs_internal_prepare_parts(stage->core, internal, count);

	begin_call(stage, internal_request, copied, copies);
	for (uint32_t i = 0; i < count; i++)
		hs_internal_part(internal_request, i, copies->places[1 + i].name,
				 copies->places[1 + i].slot);
	hs_internal_send(stage->core, internal_request);
}

/* Ends such a call. */
static void end_call(struct hs_copies_stage *stage, struct hs_request *internal_request)
{
	struct hs_copies_key *copied = hs_copies_call(stage, internal_request)->copied;

	hs_copies_unref(&hs_copies_call(stage, internal_request)->copies);
	hs_internal_end(stage->core, internal_request);
	if (copied)
		hs_copies_release(copied);
}

/* --- deleting a set --- */

static void unlink_done(struct hs_core *core, struct hs_request *internal_request)
{
	struct hs_copies_stage *stage = hs_internal_stage(core, internal_request);

	/* a copy that could not be deleted expires with its lease */
	end_call(stage, internal_request);
}

void hs_copies_unlink(struct hs_copies_stage *stage, const struct hs_copies *copies)
{
	const struct hs_command *command = hs_command_by_id(HS_CMD_ID_UNLINK);
	struct hs_bytes argv[2] = {HS_LIT("UNLINK"), {"", 0}};
	struct hs_internal internal = call_of(stage, NULL, command, 2, argv, unlink_done);

	send_to_copies(stage, &internal, NULL, copies);
}

/* --- the shared cache --- */

static const struct hs_command *dump_command(const struct hs_copies_stage *stage)
{
	return hs_learned_find(stage->core->learned, HS_LIT("dump"));
}

/* The signature under which the set is in the shared cache: command DUMP, inverted so that it differs from
 * GET's. */
static void query_init(const struct hs_copies_stage *stage, const struct hs_copies_key *copied,
		       struct hs_cache_query *query, struct hs_bytes argv[2])
{
	hs_cache_query_get(query, hs_shared_hash(stage->shared, hs_copies_key_name(copied)),
			   hs_copies_key_name(copied), argv);
	query->command = dump_command(stage);
	query->signature = ~query->signature;
}

static struct hs_cache_entry *make_entry(struct hs_copies_stage *stage,
					 const struct hs_copies_key *copied, struct hs_bytes names,
					 const struct hs_op *op)
{
	struct hs_bytes argv[2];
	struct hs_cache_query query;
	struct hs_cache_entry *entry;

	query_init(stage, copied, &query, argv);
	entry = hs_cache_entry_create(&query, names);
	hs_check(entry);
	entry->worker = stage->core->world.worker;
	entry->done = copied->version.done;
	entry->read_us = op ? op->received.mono_us : stage->core->now.mono_us;
	entry->cost_us = stage->core->now.mono_us - entry->read_us;
	entry->until_us =
		hs_cache_entry_until(&stage->core->prng, copied->rule, false, entry->read_us);
	if (op) {
		entry->tracking_session = op->tracking_session;
		entry->tracking_epoch = op->tracking_epoch;
		/* Counts from the start of the read, so the copy never outlives the original. */
		atomic_init(&entry->expires_us,
			    op->ttl_ms < 0 ? UINT64_MAX
					   : entry->read_us + (uint64_t)op->ttl_ms * 1000);
	}
	return entry;
}

/* Announces in the shared cache that this worker is making a set. */
static void announce(struct hs_copies_stage *stage, struct hs_copies_key *copied)
{
	struct hs_cache_entry *entry = make_entry(stage, copied, HS_LIT("*0\r\n"), NULL);

	hs_shared_put(stage->shared, entry);
	hs_cache_entry_unref(&entry);
}

static bool is_announced(const struct hs_copies_stage *stage, const struct hs_cache_entry *entry)
{
	return hs_bytes_equal(entry->reply[1], HS_LIT("*0\r\n")) &&
	       entry->worker != stage->core->world.worker &&
	       stage->core->now.mono_us < entry->read_us + ANNOUNCED_US_MAX;
}

bool hs_copies_find_shared(struct hs_copies_stage *stage, struct hs_copies_key *copied)
{
	struct hs_bytes argv[2];
	struct hs_cache_query query;
	struct hs_cache_entry *entry;
	struct hs_copies *copies;
	uint64_t age_us;
	bool found = false;
	struct hs_version version = hs_shared_version(stage->shared, copied->key_hash);

	if (!dump_command(stage))
		return false;
	query_init(stage, copied, &query, argv);
	entry = hs_shared_get(stage->shared, &query);
	if (!entry)
		return false;
	if (is_announced(stage, entry)) {
		hs_copies_pause(stage, copied, LOOK_AGAIN_US,
				"another worker is making the copies");
		found = true;
	} else if (entry->tracking_session &&
		   hs_cache_entry_state(entry, copied->rule, version, stage->core->now.mono_us,
					&age_us) == HS_CACHE_ENTRY_FRESH) {
		copies = hs_copies_create(entry, copied->slot);
		if (copies && copies->count > 1) {
			hs_copies_adopt(stage, copied, copies, false);
			found = true;
		} else {
			hs_copies_unref(&copies);
		}
	}
	hs_cache_entry_unref(&entry);
	return found;
}

/* --- making a set --- */

/* Making failed: deletes the copies made so far. */
static void give_up(struct hs_copies_stage *stage, struct hs_copies_key *copied)
{
	hs_counter_add(&stage->stats.failed, 1);
	if (copied->making) {
		atomic_store_explicit(&copied->making->entry->invalid, true, memory_order_release);
		hs_copies_unlink(stage, copied->making);
	}
	hs_copies_unref(&copied->making);
}

/* The key was written through this process or reported as changed since it was read, or changes are not
 * reported any longer. */
static bool is_changed(const struct hs_copies_stage *stage, const struct hs_copies_key *copied)
{
	struct hs_version now = hs_shared_version(stage->shared, copied->key_hash);
	const struct hs_cache_entry *entry = copied->making ? copied->making->entry : NULL;

	return now.begun != copied->version.begun || now.done != copied->version.done ||
	       (entry &&
		(atomic_load_explicit(&entry->invalid, memory_order_acquire) ||
		 hs_tracking_session_epoch(entry->tracking_session) != entry->tracking_epoch));
}

/* Whether to go on making the set; false: it was given up. */
static bool may_continue(struct hs_copies_stage *stage, struct hs_copies_key *copied)
{
	if (copied->hot && !is_changed(stage, copied))
		return true;
	give_up(stage, copied);
	if (copied->hot) {
		hs_copies_backoff(&copied->backoff, copied->places_before, 0);
		hs_copies_pause(stage, copied, copied->backoff.backoff_us,
				"the key changed while copies were made");
	}
	return false;
}

static void pause_with_error(struct hs_copies_stage *stage, struct hs_copies_key *copied,
			     const char *word, struct hs_bytes reply)
{
	char shown[80];

	while (reply.len > 0 && reply.data[reply.len - 1] < ' ')
		reply.len--;
	hs_copies_pause(stage, copied, LONG_PAUSE_US, "%s failed: %s", word,
			hs_bytes_escape(reply, shown, sizeof shown));
}

/* TTL for a copy; 0: too short to be worth it. */
static int64_t lease_ms(const struct hs_copies_stage *stage, const struct hs_cache_entry *entry)
{
	uint64_t expires_us = atomic_load_explicit(&entry->expires_us, memory_order_relaxed);
	uint64_t now_us = stage->core->now.mono_us, left_us = HS_COPIES_LEASE_US;

	if (expires_us != UINT64_MAX)
		left_us = expires_us > now_us ? expires_us - now_us : 0;
	if (left_us < TTL_US_MIN)
		return 0;
	return (int64_t)((left_us < HS_COPIES_LEASE_US ? left_us : HS_COPIES_LEASE_US) / 1000);
}

static void restore_done(struct hs_core *core, struct hs_request *internal_request)
{
	struct hs_copies_stage *stage = hs_internal_stage(core, internal_request);
	struct hs_copies_key *copied = hs_copies_call(stage, internal_request)->copied;
	struct hs_bytes wrong = {NULL, 0};

	for (uint32_t i = 0; i < internal_request->parts_count; i++) {
		struct hs_bytes reply = hs_internal_reply(internal_request, i);

		if (!hs_bytes_equal(reply, HS_LIT("+OK\r\n")))
			wrong = reply;
	}
	if (may_continue(stage, copied)) {
		if (wrong.data) {
			give_up(stage, copied);
			pause_with_error(stage, copied, "RESTORE", wrong);
		} else {
			struct hs_copies *copies = copied->making;

			copied->making = NULL;
			hs_shared_put(stage->shared, copies->entry);
			hs_copies_adopt(stage, copied, copies, true);
			hs_counter_add(&stage->stats.made, 1);
		}
	}
	end_call(stage, internal_request);
}

static void restore(struct hs_copies_stage *stage, struct hs_copies_key *copied,
		    struct hs_bytes payload)
{
	const struct hs_command *command = hs_learned_find(stage->core->learned, HS_LIT("restore"));
	int64_t lease = lease_ms(stage, copied->making->entry);
	char ttl[HS_NUM_TEXT_MAX];
	struct hs_bytes argv[5] = {
		HS_LIT("RESTORE"), {"", 0}, {ttl, 0}, payload, HS_LIT("REPLACE")};
	struct hs_internal internal = call_of(stage, copied, command, 5, argv, restore_done);

	if (lease == 0) {
		give_up(stage, copied);
		hs_copies_pause(stage, copied, SHORT_PAUSE_US, "the key expires soon");
		return;
	}
	argv[2].len = (size_t)snprintf(ttl, sizeof ttl, "%" PRId64, lease);
	send_to_copies(stage, &internal, copied, copied->making);
}

/* Names a copy for every chosen place. False: no place got a name. */
static bool name_places(struct hs_copies_stage *stage, struct hs_copies_key *copied,
			const struct hs_op *op, uint32_t wanted)
{
	uint16_t partitions[HS_COPIES_MAX];
	uint16_t home = hs_core_partition(stage->core, copied->slot);
	uint32_t count = hs_copies_choose(stage->core->world.slots, &stage->loads, home, wanted,
					  copied->key_hash, partitions);
	struct hs_bytes names[HS_COPIES_MAX];
	struct hs_buf room[HS_COPIES_MAX] = {{0}}, reply = {0};
	struct hs_cache_entry *entry;
	uint32_t named = 0;

	stage->id.set++;
	for (uint32_t i = 1; i < count; i++) {
		if (!hs_copies_name(stage->core->world.slots, partitions[i], &stage->id,
				    hs_copies_key_name(copied), &room[named]))
			continue;
		names[named] = hs_buf_bytes(&room[named]);
		named++;
	}
	if (named > 0) {
		hs_copies_describe(names, named, &reply);
		entry = make_entry(stage, copied, hs_buf_bytes(&reply), op);
		copied->making = hs_copies_create(entry, copied->slot);
		hs_cache_entry_unref(&entry);
		hs_buf_deinit(&reply);
	}
	for (uint32_t i = 0; i < named; i++)
		hs_buf_deinit(&room[i]);
	return named > 0;
}

/* The payload of DUMP's reply; empty: the reply is something else. */
static struct hs_bytes payload_of(struct hs_bytes reply)
{
	struct hs_parsed_reply answer;
	int64_t used = hs_parse_reply_head(&answer, reply.data, reply.len);

	return used > 0 && answer.type == HS_PARSED_BULK ? answer.text : (struct hs_bytes){NULL, 0};
}

static uint32_t wanted_places(const struct hs_copies_stage *stage,
			      const struct hs_copies_key *copied)
{
	const struct hs_copies_loads *loads = &stage->loads;
	uint16_t home = hs_core_partition(stage->core, copied->slot);
	struct hs_heat_row row;
	uint32_t partitions = 0;
	double key;

	for (uint32_t i = hs_core_partition_from(stage->core, 0); i < HS_PARTITIONS_MAX;
	     i = hs_core_partition_from(stage->core, (uint16_t)(i + 1)))
		partitions++;
	if (copied->rule->copies != HS_COPIES_AUTO)
		return hs_copies_wanted(copied->rule->copies, partitions, 0, 0, 0);
	hs_heat_find(stage->core->world.heats, stage->core->world.heats_count, HS_HEAT_KEYS,
		     hs_copies_key_name(copied), 0, stage->core->now.mono_us, &row);
	key = row.window[HS_HEAT_SHORT].ops_low;
	/* Adds the load that the previous set took away and that would come back. */
	return hs_copies_wanted(HS_COPIES_AUTO, partitions, key,
				loads->of[home] + key * (1 - 1.0 / copied->places_before),
				loads->all);
}

static void dump_done(struct hs_core *core, struct hs_request *internal_request)
{
	struct hs_copies_stage *stage = hs_internal_stage(core, internal_request);
	struct hs_copies_key *copied = hs_copies_call(stage, internal_request)->copied;
	const struct hs_op *op = &internal_request->parts[0].op;
	struct hs_bytes reply = hs_internal_reply(internal_request, 0);
	struct hs_bytes payload = payload_of(reply);

	if (!may_continue(stage, copied)) {
		end_call(stage, internal_request);
		return;
	}
	if (payload.len == 0 && reply.len > 0 && reply.data[0] == '-')
		pause_with_error(stage, copied, "DUMP", reply);
	else if (payload.len == 0)
		hs_copies_pause(stage, copied, SHORT_PAUSE_US, "the key does not exist");
	else if (payload.len > HS_COPIES_VALUE_BYTES_MAX)
		hs_copies_pause(stage, copied, LONG_PAUSE_US,
				"its value has %zu bytes; at most %zu are copied", payload.len,
				(size_t)HS_COPIES_VALUE_BYTES_MAX);
	else if (!op->tracking_session || op->ttl_ms == 0)
		hs_copies_pause(stage, copied, LONG_PAUSE_US,
				"the server does not report when the key changes or expires");
	else if (!name_places(stage, copied, op, wanted_places(stage, copied)))
		hs_copies_pause(stage, copied, SHORT_PAUSE_US,
				"no other partition can take a copy");
	if (copied->making)
		restore(stage, copied, payload);
	else
		hs_counter_add(&stage->stats.failed, 1);
	end_call(stage, internal_request);
}

void hs_copies_make(struct hs_copies_stage *stage, struct hs_copies_key *copied)
{
	const struct hs_command *dump = dump_command(stage);
	struct hs_bytes argv[2] = {HS_LIT("DUMP"), hs_copies_key_name(copied)};
	struct hs_internal internal = call_of(stage, copied, dump, 2, argv, dump_done);
	struct hs_request *internal_request;

	if (!dump || !hs_learned_find(stage->core->learned, HS_LIT("restore"))) {
		hs_copies_pause(stage, copied, LONG_PAUSE_US,
				"the server has no DUMP or RESTORE command");
		return;
	}
	if (copied->key_len > HS_COPIES_KEY_BYTES_MAX) {
		hs_copies_pause(stage, copied, LONG_PAUSE_US, "its name is longer than %d bytes",
				HS_COPIES_KEY_BYTES_MAX);
		return;
	}
	if (wanted_places(stage, copied) < 2) {
		hs_copies_pause(stage, copied, SHORT_PAUSE_US,
				copied->rule->copies == HS_COPIES_AUTO
					? "its partition is no busier than the others"
					: "there is only one partition");
		return;
	}
	copied->version = hs_shared_version(stage->shared, copied->key_hash);
	announce(stage, copied);
	internal_request = hs_internal_prepare(stage->core, &internal);
	begin_call(stage, internal_request, copied, NULL);
	internal_request->parts[0].op.track = true;
	hs_internal_send(stage->core, internal_request);
}

/* --- the lease --- */

static void renew_done(struct hs_core *core, struct hs_request *internal_request)
{
	struct hs_copies_stage *stage = hs_internal_stage(core, internal_request);
	struct hs_copies_key *copied = hs_copies_call(stage, internal_request)->copied;
	bool gone = false;

	for (uint32_t i = 0; i < internal_request->parts_count; i++)
		gone = gone ||
		       hs_bytes_equal(hs_internal_reply(internal_request, i), HS_LIT(":0\r\n"));
	/* A copy is gone (evicted or flushed): drop the set, so that another one is made. */
	if (gone && copied->copies == hs_copies_call(stage, internal_request)->copies)
		hs_copies_drop(stage, copied);
	end_call(stage, internal_request);
}

void hs_copies_renew(struct hs_copies_stage *stage, struct hs_copies_key *copied)
{
	const struct hs_command *command = hs_command_by_id(HS_CMD_ID_PEXPIRE);
	int64_t lease = lease_ms(stage, copied->copies->entry);
	char ttl[HS_NUM_TEXT_MAX];
	struct hs_bytes argv[3] = {HS_LIT("PEXPIRE"), {"", 0}, {ttl, 0}};
	struct hs_internal internal = call_of(stage, copied, command, 3, argv, renew_done);

	copied->renew_us = stage->core->now.mono_us + HS_COPIES_LEASE_US / 3;
	if (lease == 0)
		return;
	argv[2].len = (size_t)snprintf(ttl, sizeof ttl, "%" PRId64, lease);
	send_to_copies(stage, &internal, copied, copied->copies);
}
