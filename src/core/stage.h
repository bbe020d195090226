/* Stages: how a mitigation plugs into the request path.
 *
 *     call ─ checks ─ admit ─ … ─ request ─ depart ─ engine ─ arrive ─ reply
 *                      │                      │                 │
 *                  stage 0, 1, 2 …        stage 0, 1, 2 …    … 2, 1, 0
 *
 * A stage is a table of functions that the core calls at fixed points (struct hs_stage). NULL: the stage has
 * nothing to do at that point. serve/ and sim/ hand the core an array of stages (stages/stages.c); its order is
 * part of the design.
 *
 * The core must not know which mitigation a stage implements, nor its state. A stage must not know the stages
 * beside it, sockets, clocks and other threads' cores.
 *
 * Threads. The core calls every point on its worker's thread. A stage reaches the same stage of other workers
 * by hs_stage_tell and by data that all stages share (hs_core_world.shared).
 *
 * Order. On the way out the core calls stages first to last, on the way back last to first. An internal call
 * (core/internal.h; request->session is core->self) enters behind the stage that sends it. After HS_HOLD the
 * held command is offered again from the stage that held it; after any other hold (HS_ALREADY_HELD, CLIENT
 * PAUSE) from stage 0. A stage that delays a request keeps the order of one session's operations on one
 * partition: it delays the later ones too, or its `admit` holds the session. The core does not do that for it.
 *
 * Nesting. An engine may answer inside submit. So a request may be gone when hs_stage_send, hs_internal_send,
 * hs_stage_answer or hs_stage_share returns. A stage must not call these from `arrive`, `hot` and
 * `before_reply`, which run in the middle of an answer, nor from `close`, `exec_command`, `serves_reads`,
 * `lost_permission`, `report` and `members`, which are queries. It notes the work, and does it in `flush`. No
 * point resumes a connection or runs its commands: the stage calls hs_core_resume_later, and the core resumes
 * the connection at the end of the event.
 *
 * State. `create` returns the worker's state of the stage; every point gets it as `self`. A stage also has
 * state in each session, request and hot key: it says how many bytes it needs, and finds them with
 * hs_stage_session, hs_stage_request and hs_hot.state. Session state begins as zeros. Request state is not
 * cleared: the stage initialises it when it makes, takes or marks the request. When a stage has set its bit in
 * part->marked, the core calls its `arrive` for that part; its bit in part->stage_bits is free for the stage's
 * use then. core->self is a session with stage state that is never opened or closed.
 *
 * A read that the engine answers at once, with no earlier request of its session in flight, never becomes a
 * request: it is admitted, and neither departs nor arrives.
 *
 * Bad days. The core calls `forget` when a client disconnects; requests of it that the stage has taken still
 * need an answer. A message between workers may be lost (hs_stage_tell). A stage that sends from `arrive`, `hot`
 * or `before_reply`, or holds a session with nothing in flight, stops the process (hs_check). */
#ifndef HS_CORE_STAGE_H
#define HS_CORE_STAGE_H

#include "core/call.h"
#include "core/hot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hs_acl_user;
struct hs_core;
struct hs_counter_table;
struct hs_event;
struct hs_part;
struct hs_reply;
struct hs_request;
struct hs_session;
struct hs_tracking_session;

/* The results of `admit` and `depart`. `depart` returns only HS_PASS or HS_TAKEN. */
enum hs_stage_result {
	HS_PASS,     /* go on to the next stage or the engine */
	HS_ANSWERED, /* the stage has replied (hs_dispatch_answer, hs_dispatch_reject) */
	/* The stage answers the command or sends it on later. Before that, `admit` has called
	 * hs_reply_budget_holds and made a request (hs_request_single); `depart` has called hs_stage_delay or
	 * hs_stage_divert. The one exception is fold, which does that accounting itself (absorb/fold/chain.c). */
	HS_TAKEN,
	/* The core holds the session until all its requests in flight are answered, and then offers the command
	 * again. With nothing in flight HS_HOLD is a bug and stops the process. */
	HS_HOLD,
	/* The stage has called hs_reply_budget_holds (core/reply_budget.h), which has held the session. */
	HS_ALREADY_HELD,
};

/* Called for one client request that an internal call stands for. `followed`: the same client has sent a later
 * request that went to the engine behind the internal call before its answer. */
typedef void hs_stage_member(void *context, struct hs_request *request, bool followed);

struct hs_stage {
	const char *name;
	size_t session_bytes, request_bytes;
	/* Its counter table (base/counter.h), and the offset of the counters in its state. NULL: no counters. */
	const struct hs_counter_table *counters;
	size_t counters_at;

	void *(*create)(struct hs_core *core, uint32_t index);
	void (*destroy)(void *self); /* no request is left; frees the state of hot keys, too */
	/* A session begins; its state is zeroed. */
	void (*open)(void *self, struct hs_session *session);
	void (*close)(void *self,
		      struct hs_session *session); /* frees what the session's state owns */

	/* A command passed all checks and is next on its connection. Of a transaction only EXEC is admitted;
	 * its queued commands are hs_multi_call of session->multi. */
	enum hs_stage_result (*admit)(void *self, struct hs_session *session, struct hs_call *call);
	/* A part of a request, or an internal call, is about to go to the engine. */
	enum hs_stage_result (*depart)(void *self, struct hs_request *request,
				       struct hs_part *part);
	/* A part that the stage has marked is answered, and the client does not have the reply yet. The reply
	 * is in part->op.answer if that is not empty, else in part->out. */
	void (*arrive)(void *self, struct hs_request *request, struct hs_part *part);
	/* The end of a round of events, ticks and completions: the stage sends what it has gathered. Called once
	 * after each hs_stage_want(HS_POINT_FLUSH); if `flush` itself asks, again in the same round. Work for
	 * later uses `deadline`. */
	void (*flush)(void *self);

	/* `hot`: a request for a key above hot-share was counted, or a run of them. `waited`: the engine did
	 * not answer it at once. Reads that were answered at once reach all stages if one stage wants them
	 * (HS_POINT_HOT_READS), and only the last read of each timed run of commands does.
	 *
	 * `cool`: called for every key in the table with every tick. `cool`: the key has cooled down, or the
	 * plan does not let the stage act on it. A key with state stays in the table. */
	void (*hot)(void *self, struct hs_hot *hot, bool waited);
	void (*cool)(void *self, struct hs_hot *hot, bool cool);

	/* Whether reads of the key that reach this stage are answered elsewhere than at the key's own
	 * partition. */
	bool (*serves_reads)(void *self, struct hs_hot *hot);

	/* The core's options or rules have changed. */
	void (*configure)(void *self);
	/* The key may have changed at the server; NULL: every key read in this tracking session may have. */
	void (*changed)(void *self, const struct hs_tracking_session *tracking_session,
			const struct hs_bytes *key);
	/* Only for sessions that the stage observes (hs_stage_observe). `exec_command`: EXEC was admitted, and
	 * `call` is one of its commands for the engine. `handled`: a command was taken from the input, and run,
	 * refused or sent. `before_reply`: a request is answered, and its reply is delivered next. */
	void (*exec_command)(void *self, struct hs_session *session, const struct hs_call *call);
	void (*handled)(void *self, struct hs_session *session, const struct hs_call *call);
	void (*before_reply)(void *self, struct hs_request *request);
	/* An event of the engine: a published message, changed keys (core/event.h). */
	void (*event)(void *self, const struct hs_event *event);
	/* The permissions of the session's user have changed: whether the session holds something in this stage
	 * that it may no longer have, such as a subscription. The core then closes the session. */
	bool (*lost_permission)(void *self, const struct hs_session *session,
				const struct hs_acl_user *old, const struct hs_acl_user *user);
	/* A worker called hs_stage_tell for this stage: wake what waits for shared data. */
	void (*told)(void *self);
	/* With every tick of the core, every 100 ms. */
	void (*tick)(void *self);
	/* The time given to hs_stage_due has come. Called once, unless the stage names another time. */
	void (*deadline)(void *self);
	/* The server stops: the stage sends delayed requests on and removes what it has put on the servers.
	 * Called repeatedly until nothing is in flight, or shutdown-timeout is over. */
	void (*stop)(void *self);

	/* The client has disconnected. Its requests that the stage has taken still need any answer or to be
	 * sent, now or later. */
	void (*forget)(void *self, struct hs_session *session);
	/* Writes the stage's rows of HEAT PLAN (core/report.h). */
	void (*report)(void *self, struct hs_reply *reply);
	/* Calls `tell` for each client request that an internal call of this stage stands for. */
	void (*members)(void *self, const struct hs_request *internal, hs_stage_member *tell,
			void *context);
};

enum {
	HS_STAGES_MAX = HS_HOT_STAGES,
	/* Part->stage: the part passes no stage, on the way out and back. */
	HS_STAGE_NONE = HS_STAGES_MAX + 1,
};

enum hs_point {
	HS_POINT_ADMIT,
	HS_POINT_DEPART,
	HS_POINT_DEPART_WRITES, /* `depart`, except of commands that only read */
	HS_POINT_FLUSH,		/* once, at the end of this round of events */
	HS_POINT_HOT_READS,	/* `hot`, for reads that the engine answers at once */
	HS_POINTS
};

/* The stages of one core. */
struct hs_stages {
	const struct hs_stage *table[HS_STAGES_MAX];
	void *self[HS_STAGES_MAX];
	uint32_t count;
	uint32_t want[HS_POINTS]; /* a bit for each stage that wants to be called there */
	uint32_t have_hot;	  /* a bit for each stage with a `hot` */
	uint32_t sends_forbidden; /* above 0: inside a point from which stages must not send */
	/* The session whose next command is being admitted; or NULL. Meanwhile a stage that sends an earlier
	 * request of this session must send it directly: the stages before have already let the next command
	 * pass. */
	const struct hs_session *admitting;
	uint64_t due_us[HS_STAGES_MAX]; /* when `deadline` is called; 0: not at all */
	uint64_t first_due_us;		/* the earliest of due_us; 0: none */
	/* Offset of the stage's state. */
	size_t session_at[HS_STAGES_MAX], request_at[HS_STAGES_MAX];
	size_t session_bytes, request_bytes; /* bytes of a session or request with all state */
};

/* --- for stages --- */

/* Turns the calls of a point on or off for this stage. A stage that is off costs one bit test. */
void hs_stage_want(struct hs_core *core, uint32_t index, enum hs_point point, bool wanted);
/* The stage's state in a session or request; `at` is its offset (hs_stages.session_at, .request_at). */
static inline void *hs_stage_session(const struct hs_session *session, size_t at)
{
	return (char *)(uintptr_t)session + at;
}

static inline void *hs_stage_request(const struct hs_request *request, size_t at)
{
	return (char *)(uintptr_t)request + at;
}
/* `depart` takes a part with one of these two. Until the stage sends, answers, shares or releases the part, the
 * part counts as one of its session's operations in flight.
 *
 * Delay: the stage sends the part to the engine later. The stages behind do not know of it yet. So stages that
 * answer reads let the session's reads pass meanwhile (session->delayed). Divert: the stage answers the part
 * from somewhere else. */
void hs_stage_delay(struct hs_request *request, struct hs_part *part);
void hs_stage_divert(struct hs_request *request, struct hs_part *part);
/* Sends a part that the stage took in `admit` or `depart` on, to the stages behind and the engine. */
void hs_stage_send(struct hs_core *core, uint32_t index, struct hs_request *request,
		   struct hs_part *part);
/* Answers a part that the stage took in admit or depart, as the engine would. The stages before this one get
 * their `arrive`. */
void hs_stage_answer(struct hs_core *core, uint32_t index, struct hs_request *request,
		     struct hs_part *part, struct hs_bytes reply);
/* Answers a one-part request that the stage took, with a reply that it shares with others; the request is
 * counted as if it had been sent alone. The session goes on when the stage calls hs_core_resume_later: others
 * that share the reply may have to be answered first. */
void hs_stage_share(struct hs_core *core, uint32_t index, struct hs_request *request,
		    struct hs_bytes reply);
/* Call it before the stage itself ends a one-part request that it took (hs_count_request and
 * hs_dispatch_finish, or hs_request_finish if the client has disconnected). The stages before this one get
 * their `arrive`. */
void hs_stage_release(struct hs_core *core, uint32_t index, struct hs_request *request);
/* Turns `exec_command`, `handled` and `before_reply` on or off for this session. */
void hs_stage_observe(struct hs_session *session, uint32_t index, bool wanted);
/* Asks for `deadline` at that time; 0: cancels it. */
void hs_stage_due(struct hs_core *core, uint32_t index, uint64_t mono_us);
/* Calls `told` of the same stage on all workers, this one included. The message is lost when a worker's event
 * queue is full; a stage must not depend on it. */
void hs_stage_tell(struct hs_core *core, uint32_t index);
/* Whether a stage behind this one serves reads of the key (`serves_reads`). */
bool hs_stage_served_behind(struct hs_core *core, uint32_t index, uint16_t slot,
			    struct hs_bytes key);
/* Calls `tell` for each client request that an internal call stands for. False: no stage sent the call, or the
 * stage has no `members`. */
bool hs_stage_members(const struct hs_core *core, const struct hs_request *internal,
		      hs_stage_member *tell, void *context);
/* The stage's position in the array. */
uint32_t hs_stage_index(const struct hs_core *core, const struct hs_stage *stage);

/* --- for the core --- */

/* `stages` ends with NULL. Init computes the sizes of sessions and requests; create runs when the core is
 * complete. */
void hs_stages_init(struct hs_core *core, const struct hs_stage *const *stages);
void hs_stages_create(struct hs_core *core);
void hs_stages_deinit(struct hs_core *core);
/* Begins with stage `from`. */
enum hs_stage_result hs_stages_admit(struct hs_core *core, struct hs_session *session,
				     struct hs_call *call, uint32_t from);
/* `wanting`: a bit for each stage to call. True: a stage took the part. */
bool hs_stages_depart(struct hs_core *core, struct hs_request *request, struct hs_part *part,
		      uint32_t wanting);
/* Calls the marked stages with numbers below `below`: those that the part has passed. */
void hs_stages_arrive(struct hs_core *core, struct hs_request *request, struct hs_part *part,
		      uint32_t below);
void hs_stages_flush(struct hs_core *core);
void hs_stages_hot(struct hs_core *core, struct hs_hot *hot, bool waited);
void hs_stages_cool(struct hs_core *core, struct hs_hot *hot, bool cool);
void hs_stages_forget(struct hs_core *core, struct hs_session *session);
void hs_stages_open(struct hs_core *core, struct hs_session *session);
void hs_stages_close(struct hs_core *core, struct hs_session *session);
void hs_stages_queued(struct hs_core *core, struct hs_session *session, const struct hs_call *call);
void hs_stages_handled(struct hs_core *core, struct hs_session *session,
		       const struct hs_call *call);
void hs_stages_finish(struct hs_core *core, struct hs_request *request);
void hs_stages_event(struct hs_core *core, const struct hs_event *event);
bool hs_stages_lost_permission(struct hs_core *core, const struct hs_session *session,
			       const struct hs_acl_user *old, const struct hs_acl_user *user);
void hs_stages_report(struct hs_core *core, struct hs_reply *reply);
void hs_stages_configure(struct hs_core *core);
void hs_stages_changed(struct hs_core *core, const struct hs_tracking_session *tracking_session,
		       const struct hs_bytes *key);
void hs_stages_told(struct hs_core *core, uint32_t index);
void hs_stages_deadline(struct hs_core *core); /* of stages whose time has come */
void hs_stages_tick(struct hs_core *core);
void hs_stages_stop(struct hs_core *core);

#endif
