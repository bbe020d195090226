/* Private to the core, its stages and local/: the state of a core, which is one worker's request path, and what its events do
 * to sessions. The public side is core/core.h. */
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

/* Compiled without (-DHS_HEAT_OFF) to measure what counting costs. */
#ifdef HS_HEAT_OFF
enum { HS_CORE_HEAT = 0 };
#else
enum { HS_CORE_HEAT = 1 };
#endif

struct hs_core {
	struct hs_core_world world;
	struct hs_core_options options;
	const struct hs_learned *learned; /* the commands of a server behind it; or NULL */
	struct hs_core_stats stats;
	struct hs_link sessions;
	struct hs_link sendable;
	struct hs_link sleepers;
	struct hs_hash_table ids;    /* who is connected, by number */
	struct hs_session *self;     /* nobody: owns the requests that are the core's own */
	struct hs_link internal_due; /* internal calls with a timeout, the first to be over first */
	uint64_t calls;		     /* commands dispatched, ever */
	uint64_t internal_clients;   /* client ids drawn for internal calls */
	struct hs_hot_table hot_table;
	struct hs_stages stages;
	struct hs_link resuming;     /* sessions that go on when the event is handled */
	struct hs_link request_pool; /* finished requests, kept for the next */
	uint32_t request_pool_len;
	uint32_t orphans; /* sessions gone with operations under way */
	struct hs_acl *acl;
	bool default_user_open; /* the default user is on and has no password: nobody has to say who it is */
	struct hs_slowlog *slowlog;
	struct hs_pause pause;
	struct hs_reply_budget reply_budget;
	struct hs_acl_log *acl_log;
	/* Sends a push to a connection of some worker; set by the stage that makes such pushes. */
	void (*forward)(struct hs_core *core, uint64_t from, uint64_t to, uint32_t worker,
			struct hs_bytes message);
	struct hs_prng prng;
	struct hs_now now;     /* of the event being handled */
	uint64_t event;	       /* its number */
	uint64_t idle_scan_us; /* when idle sessions are looked at next */
	/* The key of the answers that are handed out; empty: they are not of one key (hs_count_run_begin). */
	struct hs_bytes run_key;
	/* Commands answered in this batch that share its time evenly. */
	enum hs_command_id timed[HS_TIMED_COMMANDS_MAX];
	uint32_t timed_count;
	uint64_t timing_start_us;
};

/* The time of an event. */
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

/* How many partitions there are now; 0 while the engine does not know. */
static inline uint16_t hs_core_partitions(const struct hs_core *core)
{
	return core->world.slots ? hs_slot_map_count(core->world.slots) : core->world.partitions;
}

/* The first partition that is there from number `from` on; HS_PARTITIONS_MAX: none is. */
static inline uint16_t hs_core_partition_from(const struct hs_core *core, uint16_t from)
{
	const struct hs_slot_map *slots = core->world.slots;

	while (from < HS_PARTITIONS_MAX &&
	       !(slots ? hs_slot_map_has(slots, from) : from < core->world.partitions))
		from++;
	return from;
}

/* Bytes of replies that wait somewhere for this client. */
size_t hs_core_unsent(const struct hs_session *session);
/* Who has too much unread is cut off. */
void hs_core_check_output(struct hs_core *core, struct hs_session *session);

/* Goes on with the input of a session that had to pause, frees one that is gone. */
void hs_core_resume(struct hs_core *core, struct hs_session *session);
/* The same when the event is handled: nobody is in the middle of handing out replies then. */
void hs_core_resume_later(struct hs_core *core, struct hs_session *session);
void hs_core_resume_others(struct hs_core *core);
/* Those; the last thing that an event does. */
static inline void hs_core_resume_all(struct hs_core *core)
{
	if (!hs_list_empty(&core->resuming))
		hs_core_resume_others(core);
}
/* Something the client did not ask for now, composed for RESP2: RESP3 differs in the first byte. A
 * client that reads too slowly is cut off instead. `publisher`: the request that causes it, of this
 * worker; or NULL. False: the client does not get it. */
bool hs_core_message(struct hs_core *core, struct hs_session *session, struct hs_bytes message,
		     struct hs_request *publisher);

/* Takes nothing more from the session until then, and answers `command` with OK. */
void hs_core_sleep(struct hs_core *core, struct hs_session *session,
		   const struct hs_command *command, uint64_t until_us);

#endif
