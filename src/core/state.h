/* Private to the core, its stages and local/: the state of a core, and what its events do to sessions.
 * core/core.h is the public side. Everything here belongs to the worker's thread. */
#ifndef HS_CORE_STATE_H
#define HS_CORE_STATE_H

#include "base/prng.h"
#include "core/commands.h"
#include "core/core.h"
#include "core/hot.h"
#include "core/pause.h"
#include "core/reply_budget.h"
#include "core/request.h"
#include "core/stage.h"
#include "route/slot_map.h"

struct hs_acl_log;
struct hs_slowlog;

enum { HS_TIMED_COMMANDS_MAX = 64 };

_Static_assert((int)HS_TIMED_COMMANDS_MAX <= (int)HS_HEAT_NOTES_MAX,
	       "a batch's heat is noted until it is timed");

/* -DHS_HEAT_OFF compiles counting out, to measure its cost. */
#ifdef HS_HEAT_OFF
enum { HS_CORE_HEAT = 0 };
#else
enum { HS_CORE_HEAT = 1 };
#endif

struct hs_core {
	struct hs_core_world world;
	struct hs_core_options options;
	const struct hs_learned *learned; /* commands that the engine's servers have; or NULL */
	struct hs_core_stats stats;
	struct hs_link sessions;
	struct hs_link sendable;
	struct hs_link sleepers;
	struct hs_hash_table ids; /* connected sessions by id */
	/* A session without a client; owns internal calls (core/internal.h). */
	struct hs_session *self;
	struct hs_link internal_due; /* internal calls with a timeout, earliest first */
	uint64_t calls;		     /* commands dispatched since the start */
	uint64_t internal_clients;   /* client ids given to internal calls */
	struct hs_hot_table hot_table;
	struct hs_stages stages;
	struct hs_link resuming;     /* sessions to resume at the end of this event */
	struct hs_link request_pool; /* finished requests for reuse */
	uint32_t request_pool_len;
	uint32_t orphans; /* disconnected sessions with operations in flight */
	struct hs_acl *acl;
	/* The default user is on and has no password: clients need not authenticate. */
	bool default_user_open;
	struct hs_slowlog *slowlog;
	struct hs_pause pause;
	struct hs_reply_budget reply_budget;
	struct hs_acl_log *acl_log;
	/* Sends a push message to a connection of any worker; set by the stage that composes such messages
	 * (push/). */
	void (*forward)(struct hs_core *core, uint64_t from, uint64_t to, uint32_t worker,
			struct hs_bytes message);
	struct hs_prng prng;
	struct hs_now now;     /* of this event */
	uint64_t event;	       /* counts events */
	uint64_t idle_scan_us; /* when idle sessions are checked next */
	/* The key of a run of shared replies (hs_count_run_begin); empty: no run. */
	struct hs_bytes run_key;
	/* Commands answered since timing_start_us that share the time since then evenly (core/dispatch.c). */
	enum hs_command_id timed[HS_TIMED_COMMANDS_MAX];
	uint32_t timed_count;
	uint64_t timing_start_us;
};

/* Begins an event. */
static inline void hs_core_set_now(struct hs_core *core, struct hs_now now)
{
	core->now = now;
	core->event++;
	if (HS_CORE_HEAT && core->world.heat)
		hs_heat_now(core->world.heat, now.mono_us);
}

static inline uint16_t hs_core_partition(const struct hs_core *core, uint16_t slot)
{
	return core->world.slots ? hs_slot_map_get(core->world.slots, slot)
				 : hs_slot_partition(slot, core->world.partitions);
}

/* 0 while the engine does not know its partitions. */
static inline uint16_t hs_core_partitions(const struct hs_core *core)
{
	return core->world.slots ? hs_slot_map_count(core->world.slots) : core->world.partitions;
}

/* The first partition in use with a number of at least `from`; HS_PARTITIONS_MAX: none. */
static inline uint16_t hs_core_partition_from(const struct hs_core *core, uint16_t from)
{
	const struct hs_slot_map *slots = core->world.slots;

	while (from < HS_PARTITIONS_MAX &&
	       !(slots ? hs_slot_map_has(slots, from) : from < core->world.partitions))
		from++;
	return from;
}

/* Bytes of replies that the client has not read. */
size_t hs_core_unsent(const struct hs_session *session);
/* Closes the session if that is more than `output_bytes_max`. */
void hs_core_check_output(struct hs_core *core, struct hs_session *session);

/* Goes on with the input of a session that was held, or frees a disconnected one with nothing in flight. */
void hs_core_resume(struct hs_core *core, struct hs_session *session);
/* The same at the end of the event, when no replies are half delivered. */
void hs_core_resume_later(struct hs_core *core, struct hs_session *session);
void hs_core_resume_others(struct hs_core *core);
/* Resumes all sessions queued by hs_core_resume_later. The last thing that an event does. */
static inline void hs_core_resume_all(struct hs_core *core)
{
	if (!hs_list_empty(&core->resuming))
		hs_core_resume_others(core);
}
/* Sends a push message, composed for RESP2 (RESP3 differs in the first byte). A client that reads too slowly is
 * closed instead. `publisher`: the request of this worker that published the message; or NULL. False: not
 * delivered. */
bool hs_core_message(struct hs_core *core, struct hs_session *session, struct hs_bytes message,
		     struct hs_request *publisher);

/* Holds the session until then (DEBUG SLEEP); `command` is answered with OK at that time. */
void hs_core_sleep(struct hs_core *core, struct hs_session *session,
		   const struct hs_command *command, uint64_t until_us);

#endif
