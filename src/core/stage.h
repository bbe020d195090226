/* Stages: how a mitigation plugs into the request path.
 *
 *     call ─ checks ─ admit ─ … ─ request ─ depart ─ engine ─ arrive ─ reply
 *                      │                      │                 │
 *                  stage 0, 1, 2 …        stage 0, 1, 2 …    … 2, 1, 0
 *
 * The core parses and checks commands, keeps replies in order, and knows no mitigation. A stage is a table
 * of functions that the core calls at fixed points; serve/ and sim/ hand it an array of them
 * (stages/stages.c), whose order is part of the design. NULL: the stage has nothing to do there.
 *
 * Order. On the way out the core calls stages first to last, on the way back last to first. An internal call
 * (core/internal.h; request->session is core->self) enters behind the stage that sends it. A held command is offered
 * again to the stage that held it, not to the stages before it, unless something else has held it since (HS_ALREADY_HELD is such:
 * the command comes to all stages again). A stage that
 * delays a request keeps the order of what one session sends to one partition: either it delays what comes behind, or
 * `admit` holds the session. The core does not.
 *
 * Nesting. An engine may answer inside a submission, so a request may be gone when hs_stage_send, hs_internal_send,
 * hs_stage_answer or hs_stage_share returns. A stage does not call these from `arrive`, `hot` and `finish`, where the core
 * is in the middle of an answer, nor from `close`, `queued`, `serves`, `loses`, `report` and `askers`, which only ask: it
 * notes what is to be done, and does it in `flush`. No point resumes a connection or
 * runs its commands: hs_core_resume_later has the core do so when the event is handled.
 *
 * State. `create` returns the worker's state of the stage, which every point gets back as `self`. State of a session, a
 * request and a hot key lies in them: the stage says how many bytes it needs, and finds them with hs_stage_session,
 * hs_stage_request and hs_hot.state. A session's begins as zeros. A request's is not cleared: the stage fills it in when
 * it makes, takes or marks the request. A marked part (a bit in part->marked) is one whose `arrive` the stage hears;
 * beside the mark the stage has one bit of its own there (part->noted).
 * core->self is a session with state, and is neither opened nor closed.
 *
 * A read that the engine answers at once, with nothing of its session in front of it, becomes no request: it is
 * admitted, and does not depart or arrive. */
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

/* `depart` says HS_PASS or HS_TAKEN, `admit` any of them. */
enum hs_stage_result {
	HS_PASS, /* to the next stage, or the engine */
	HS_ANSWERED, /* the client has its reply, in its turn (hs_dispatch_answer, hs_dispatch_reject) */
	/* The stage answers it later, or sends it on later. `admit` has made a request of it then (hs_request_single) and
	 * asked hs_reply_budget_holds before. `depart` has called hs_stage_delay or hs_stage_divert (fold alone keeps these counts
	 * itself: absorb/fold/chain.c). */
	HS_TAKEN,
	/* The session's input waits until all its requests in flight are answered; then the command is offered again.
	 * Said of a session that has some: else the process stops. */
	HS_HOLD,
	HS_ALREADY_HELD, /* the stage has asked hs_reply_budget_holds (core/reply_budget.h), which has held the session */
};

/* Told of one request that an internal call stands for. `followed`: something of the same client is sent
 * behind it before it is answered. */
typedef void hs_stage_member(void *context, struct hs_request *request, bool followed);

struct hs_stage {
	const char *name;
	size_t session_bytes, request_bytes;
	/* What it counts (base/counter.h), and where in its state the counters stand. NULL: it counts nothing. */
	const struct hs_counter_table *counters;
	size_t counters_at;

	void *(*create)(struct hs_core *core, uint32_t index);
	void (*destroy)(
		void *self); /* every request is answered; frees its state of hot keys, too */
	/* A session begins, with its state zeroed. */
	void (*open)(void *self, struct hs_session *session);
	void (*close)(void *self,
		      struct hs_session *session); /* frees what the session's state holds */

	/* A command passed every check and is next on its connection. Of a transaction this is EXEC alone, with the commands
	 * that were queued (hs_multi_call of session->multi). */
	enum hs_stage_result (*admit)(void *self, struct hs_session *session, struct hs_call *call);
	/* A part of a request, or an internal call, is about to be handed to the engine. */
	enum hs_stage_result (*depart)(void *self, struct hs_request *request,
				       struct hs_part *part);
	/* A part that the stage has marked was answered, its client has not been told. The reply is in
	 * part->op.answer if that is not empty, else in part->out. */
	void (*arrive)(void *self, struct hs_request *request, struct hs_part *part);
	/* The events of a round are handled, ticks and completions too: what the stage has gathered is sent. Called once
	 * each time that the stage asks for it (HS_POINT_FLUSH), also if it asks from here: what is to wait longer waits for
	 * `deadline`. */
	void (*flush)(void *self);

	/* A request for a key above hot-share was counted, or several of them together; `waited`: it was not answered at
	 * once. Of reads that were, all stages hear if one asks for them (HS_POINT_HOT_READS), and of a batch of them the
	 * last one counts. `cool`, with every tick, for every key in the
	 * table: whether it has cooled. A key with state stays in the table. */
	void (*hot)(void *self, struct hs_hot *hot, bool waited);
	void (*cool)(void *self, struct hs_hot *hot, bool cool);

	/* Whether reads of the key that get as far as this stage are now answered elsewhere than by the
	 * key's own partition. */
	bool (*serves_reads)(void *self, struct hs_hot *hot);

	/* The core's options or rules are others. */
	void (*configure)(void *self);
	/* What `vouch` vouches for of a key may have changed; NULL: of every key. */
	void (*changed)(void *self, const struct hs_tracking_session *tracking_session,
			const struct hs_bytes *key);
	/* Of sessions that the stage listens to (hs_stage_observe). `queued`: EXEC was admitted, and this is one of its
	 * commands for the engine. `handled`: a command was taken from the input, and run, refused or sent. `finish`: a
	 * request is answered, its reply comes next. */
	void (*exec_command)(void *self, struct hs_session *session, const struct hs_call *call);
	void (*handled)(void *self, struct hs_session *session, const struct hs_call *call);
	void (*before_reply)(void *self, struct hs_request *request);
	/* An event of the engine: a message of a channel, changed keys (core/event.h). */
	void (*event)(void *self, const struct hs_event *event);
	/* The session's user has other rights: whether the session has something in this stage that it
	 * was allowed to have and no longer is. It is closed then. */
	bool (*lost_permission)(void *self, const struct hs_session *session,
				const struct hs_acl_user *old, const struct hs_acl_user *user);
	/* Another worker has a message for this stage (hs_stage_tell). */
	void (*told)(void *self);
	/* With every tick of the core, some ten a second. */
	void (*tick)(void *self);
	/* The time has come that the stage has named (hs_stage_due): once, unless it names another one. */
	void (*deadline)(void *self);
	/* The server stops: delayed requests are sent on, and what is left at the servers is given back. Called again
	 * until nothing is in flight, or the server's patience is over. */
	void (*stop)(void *self);

	/* The client has gone: requests of it that the stage has taken may be answered with anything or sent, now or
	 * later. */
	void (*forget)(void *self, struct hs_session *session);
	/* The rows of HEAT PLAN. */
	void (*report)(void *self, struct hs_reply *reply);
	/* The requests that an internal call of this stage stands for. */
	void (*members)(void *self, const struct hs_request *internal, hs_stage_member *tell,
			void *context);
};

enum {
	HS_STAGES_MAX = HS_HOT_STAGES,
	HS_STAGE_NONE =
		HS_STAGES_MAX + 1, /* part->stage: it passes no stage on its way out, nor back */
};

enum hs_point {
	HS_POINT_ADMIT,
	HS_POINT_DEPART,
	HS_POINT_DEPART_WRITES, /* `depart`, except of commands that only read */
	HS_POINT_FLUSH,		/* once, at the end of this round */
	HS_POINT_HOT_READS,	/* `hot`, of reads that the engine answers at once */
	HS_POINTS
};

/* The stages of a core. */
struct hs_stages {
	const struct hs_stage *table[HS_STAGES_MAX];
	void *self[HS_STAGES_MAX];
	uint32_t count;
	uint32_t want[HS_POINTS]; /* a bit for each stage that is to be called there now */
	uint32_t have_hot;	  /* a bit for each stage with a `hot` */
	uint32_t sends_forbidden; /* above 0: inside a point that sends nothing */
	/* Whose next command is just being admitted; or NULL. An earlier request of this session that departs meanwhile
	 * makes way for that command, which the stages before have let pass. */
	const struct hs_session *admitting;
	uint64_t due_us[HS_STAGES_MAX]; /* `deadline` is called then; 0: not at all */
	uint64_t first_due_us;		/* the first of them; 0: none */
	size_t session_at[HS_STAGES_MAX], request_at[HS_STAGES_MAX]; /* where its state is */
	size_t session_bytes, request_bytes; /* with the structs themselves */
};

/* --- for stages --- */

/* From now on the core calls the stage at that point, or does not. A stage that has nothing to do costs
 * one bit test. */
void hs_stage_want(struct hs_core *core, uint32_t index, enum hs_point point, bool wanted);
/* State of a session and of a request: `at` is where it lies (hs_stages.session_at, .request_at). */
static inline void *hs_stage_session(const struct hs_session *session, size_t at)
{
	return (char *)(uintptr_t)session + at;
}

static inline void *hs_stage_request(const struct hs_request *request, size_t at)
{
	return (char *)(uintptr_t)request + at;
}
/* `depart` takes a part with one of these two, and it counts among its session's operations in flight until the stage
 * sends, answers, shares or ends it. Delay: it goes to the engine later. Stages behind this one do not know of it yet, so
 * stages that answer reads let its session's reads pass meanwhile (session->delayed). Divert: it is answered from
 * somewhere else. */
void hs_stage_delay(struct hs_request *request, struct hs_part *part);
void hs_stage_divert(struct hs_request *request, struct hs_part *part);
/* A part that the stage took, when it was admitted or departed, goes on to the stages behind it, and the engine. */
void hs_stage_send(struct hs_core *core, uint32_t index, struct hs_request *request,
		   struct hs_part *part);
/* Answers such a part as if the engine had: the stages before this one hear of it. */
void hs_stage_answer(struct hs_core *core, uint32_t index, struct hs_request *request,
		     struct hs_part *part, struct hs_bytes reply);
/* Answers a request with one part that the stage took, with a reply that it shares with others: counted and
 * accounted for as if it had been alone. Its session goes on when the stage says so (hs_core_resume_later), since others
 * may have to be answered first. */
void hs_stage_share(struct hs_core *core, uint32_t index, struct hs_request *request,
		    struct hs_bytes reply);
/* A request with one part that the stage took is about to be ended by the stage itself (hs_count_request and
 * hs_dispatch_finish; hs_request_finish if its client has gone): the stages before this one hear of it. */
void hs_stage_release(struct hs_core *core, uint32_t index, struct hs_request *request);
/* From now on `queued`, `handled` and `finish` are called for this session, or not. */
void hs_stage_observe(struct hs_session *session, uint32_t index, bool wanted);
/* Calls `deadline` at that time; 0: not at all. */
void hs_stage_due(struct hs_core *core, uint32_t index, uint64_t mono_us);
/* Calls `told` of the same stage on all workers, this one included. A message may be lost when a worker
 * has too many. */
void hs_stage_tell(struct hs_core *core, uint32_t index);
/* Whether a stage behind this one serves reads of the key. */
bool hs_stage_served_behind(struct hs_core *core, uint32_t index, uint16_t slot,
			    struct hs_bytes key);
/* Tells which requests an internal call stands for. False: no stage sent it, or it stands for nobody. */
bool hs_stage_members(const struct hs_core *core, const struct hs_request *internal,
		      hs_stage_member *tell, void *context);
/* The number of a stage in the array. */
uint32_t hs_stage_index(const struct hs_core *core, const struct hs_stage *stage);

/* --- for the core --- */

/* `stages` ends with NULL. Init says how large sessions and requests are; create comes when the core is
 * complete. */
void hs_stages_init(struct hs_core *core, const struct hs_stage *const *stages);
void hs_stages_create(struct hs_core *core);
void hs_stages_deinit(struct hs_core *core);
/* Beginning with stage `from`. */
enum hs_stage_result hs_stages_admit(struct hs_core *core, struct hs_session *session,
				     struct hs_call *call, uint32_t from);
/* `wanting`: a bit for each stage to call. True: a stage took it. */
bool hs_stages_depart(struct hs_core *core, struct hs_request *request, struct hs_part *part,
		      uint32_t wanting);
/* Of the stages with numbers below `below`: those that the part has passed. */
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
void hs_stages_deadline(struct hs_core *core); /* of those whose time has come */
void hs_stages_tick(struct hs_core *core);
void hs_stages_stop(struct hs_core *core);

#endif
