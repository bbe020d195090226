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
 * Rules. On the way out stages are called first to last, on the way back last to first. An internal call
 * (core/internal.h) enters behind the stage that sends it. A held command is offered again to the stage that
 * held it, not to those before it, unless something else has held it since. An engine may answer inside `depart`: a request may be gone when a call
 * returns. No stage resumes a connection or runs commands from inside a point: it
 * says hs_core_resume_later, and the core does when the event is handled. A stage that takes what departs and
 * sends it on later keeps the order in which it came.
 *
 * State. `create` returns the worker's state of the stage, which every point gets back as `self`. State of
 * a session, a request and a hot key lies in them: the stage says how many bytes it needs, and finds them
 * with hs_stage_session, hs_stage_request and hs_hot.state. A session's begins as zeros. A request's is
 * not cleared: the stage fills it in when it makes, takes or marks the request. The mark (a bit in part->marked)
 * means that `arrive` is called for the part.
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
struct hs_news;
struct hs_part;
struct hs_reply;
struct hs_request;
struct hs_session;
struct hs_vouch;

enum hs_verdict {
	HS_PASS,     /* to the next stage, or the engine */
	HS_ANSWERED, /* the client has its reply, in its turn */
	HS_TAKEN,    /* the stage answers it later, or sends it on later */
	HS_HOLD, /* only if the session has requests in flight: its input waits until all of them
		      * are answered; then the command is offered again */
	HS_WAIT, /* hs_flight_holds has held it */
};

/* Told of one request that an internal call stands for. `followed`: something of the same client is sent
 * behind it before it is answered. */
typedef void hs_stage_asker(void *context, struct hs_request *request, bool followed);

struct hs_stage {
	const char *name;
	size_t session_bytes, request_bytes;

	void *(*create)(struct hs_core *core, uint32_t index);
	void (*destroy)(void *self); /* every request is answered */
	/* A session begins, with its state zeroed. */
	void (*open)(void *self, struct hs_session *session);
	void (*close)(void *self,
		      struct hs_session *session); /* frees what the session's state holds */

	/* A command passed every check and is next on its connection. */
	enum hs_verdict (*admit)(void *self, struct hs_session *session, struct hs_call *call);
	/* A part of a request, or an internal call, is about to be handed to the engine. */
	enum hs_verdict (*depart)(void *self, struct hs_request *request, struct hs_part *part);
	/* A part was answered, its client has not been told: a part that the stage has marked, or any part if
	 * the stage wants to hear of all (HS_POINT_ARRIVE). */
	void (*arrive)(void *self, struct hs_request *request, struct hs_part *part);
	/* The events of a round are handled: what was gathered is sent. And: there is some. */
	void (*flush)(void *self);
	bool (*needs_flush)(const void *self);

	/* A request for a key above hot-share was counted; `waited`: it was not answered at once. With every
	 * tick, for every key in the table: whether it has cooled. A key with state stays in the table. */
	void (*hot)(void *self, struct hs_hot *hot, bool waited);
	void (*cool)(void *self, struct hs_hot *hot, bool cool);

	/* Whether reads of the key that get as far as this stage are now answered elsewhere than by the
	 * key's own partition. */
	bool (*serves)(void *self, struct hs_hot *hot);

	/* The core's options or rules are others. */
	void (*configure)(void *self);
	/* What `vouch` vouches for of a key may have changed; NULL: of every key. */
	void (*changed)(void *self, const struct hs_vouch *vouch, const struct hs_bytes *key);
	/* Of sessions that the stage listens to (hs_stage_hear): EXEC was admitted, and this is one of its
	 * commands for the engine; a command was taken from the input, and run, refused or sent; a request
	 * is answered, its reply comes next. */
	void (*queued)(void *self, struct hs_session *session, const struct hs_call *call);
	void (*passed)(void *self, struct hs_session *session, const struct hs_call *call);
	void (*finish)(void *self, struct hs_request *request);
	/* An event of the engine: a message of a channel, changed keys (core/news.h). */
	void (*news)(void *self, const struct hs_news *news);
	/* The session's user has other rights: whether the session has something in this stage that it
	 * was allowed to have and no longer is. It is closed then. */
	bool (*loses)(void *self, const struct hs_session *session, const struct hs_acl_user *old,
		      const struct hs_acl_user *user);
	/* Another worker has a message for this stage (hs_stage_tell). */
	void (*told)(void *self);
	/* With every tick of the core, some ten a second. */
	void (*tick)(void *self);
	/* The time has come that the stage has named (hs_stage_due). */
	void (*deadline)(void *self);
	/* The server stops: what is left at the servers is given back. Called again until nothing is in
	 * flight, or the server's patience is over. */
	void (*stop)(void *self);

	/* The client has gone: what waits for it alone is dropped. */
	void (*forget)(void *self, struct hs_session *session);
	/* The rows of HEAT PLAN. */
	void (*report)(void *self, struct hs_reply *reply);
	/* The requests that an internal call of this stage stands for. */
	void (*askers)(void *self, const struct hs_request *internal, hs_stage_asker *tell,
		       void *context);
};

enum {
	HS_STAGES_MAX = HS_HOT_STAGES,
	HS_STAGE_NONE = HS_STAGES_MAX, /* part->stage: it passes no stage on its way out */
};

enum hs_point {
	HS_POINT_ADMIT,
	HS_POINT_DEPART,
	HS_POINT_ARRIVE, /* of parts that the stage has not marked, too */
	HS_POINT_READS,	 /* `hot`, of reads that the engine answers at once */
	HS_POINTS
};

/* The stages of a core. */
struct hs_stages {
	const struct hs_stage *table[HS_STAGES_MAX];
	void *self[HS_STAGES_MAX];
	uint32_t count;
	uint32_t want[HS_POINTS];	/* a bit for each stage that is to be called there now */
	uint64_t due_us[HS_STAGES_MAX]; /* `deadline` is called then; 0: not at all */
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
/* A request that the stage took goes on: to the stages behind it, and the engine. It may be gone when this
 * returns. */
void hs_stage_send(struct hs_core *core, uint32_t index, struct hs_request *request);
/* `depart` took a part, which counts among its session's operations in flight until the stage calls
 * hs_stage_send or hs_stage_answer for it. Delay: it goes to the engine later, and stages behind this one do
 * not know of it yet, so that meanwhile the session reads from the engine. Divert: it is answered from somewhere
 * else. */
void hs_stage_delay(struct hs_request *request, struct hs_part *part);
void hs_stage_divert(struct hs_request *request, struct hs_part *part);
/* Answers such a part as if the engine had. The request may be gone when this returns. */
void hs_stage_answer(struct hs_core *core, uint32_t index, struct hs_request *request,
		     struct hs_part *part, struct hs_bytes reply);
/* Answers a request with one part that the stage took, with a reply that it shares with others: counted and
 * accounted for as if it had been alone. */
void hs_stage_share(struct hs_core *core, uint32_t index, struct hs_request *request,
		    struct hs_bytes reply);
/* A request with one part that the stage took comes to its end in another way: the stages before it are told
 * (`arrive`). */
void hs_stage_ended(struct hs_core *core, uint32_t index, struct hs_request *request);
/* From now on `queued`, `passed` and `finish` are called for this session, or not. */
void hs_stage_hear(struct hs_session *session, uint32_t index, bool wanted);
/* Calls `deadline` at that time; 0: not at all. */
void hs_stage_due(struct hs_core *core, uint32_t index, uint64_t mono_us);
/* Calls `told` of the same stage on all workers, this one included. A message may be lost when a worker
 * has too many. */
void hs_stage_tell(struct hs_core *core, uint32_t index);
/* Whether a stage behind this one serves reads of the key. */
bool hs_stage_served_behind(struct hs_core *core, uint32_t index, uint16_t slot,
			    struct hs_bytes key);
/* The number of a stage in the array. */
uint32_t hs_stage_index(const struct hs_core *core, const struct hs_stage *stage);

/* --- for the core --- */

/* `stages` ends with NULL. Init says how large sessions and requests are; create comes when the core is
 * complete. */
void hs_stages_init(struct hs_core *core, const struct hs_stage *const *stages);
void hs_stages_create(struct hs_core *core);
void hs_stages_deinit(struct hs_core *core);
/* Beginning with stage `from`. */
enum hs_verdict hs_stages_admit(struct hs_core *core, struct hs_session *session,
				struct hs_call *call, uint32_t from);
/* True: a stage took it. */
bool hs_stages_depart(struct hs_core *core, struct hs_request *request, struct hs_part *part);
void hs_stages_arrive(struct hs_core *core, struct hs_request *request, struct hs_part *part);
void hs_stages_flush(struct hs_core *core);
bool hs_stages_need_flush(const struct hs_core *core);
void hs_stages_hot(struct hs_core *core, struct hs_hot *hot, bool waited);
void hs_stages_cool(struct hs_core *core, struct hs_hot *hot, bool cool);
void hs_stages_forget(struct hs_core *core, struct hs_session *session);
void hs_stages_open(struct hs_core *core, struct hs_session *session);
void hs_stages_close(struct hs_core *core, struct hs_session *session);
void hs_stages_queued(struct hs_core *core, struct hs_session *session, const struct hs_call *call);
void hs_stages_passed(struct hs_core *core, struct hs_session *session, const struct hs_call *call);
void hs_stages_finish(struct hs_core *core, struct hs_request *request);
void hs_stages_news(struct hs_core *core, const struct hs_news *news);
bool hs_stages_lose(struct hs_core *core, const struct hs_session *session,
		    const struct hs_acl_user *old, const struct hs_acl_user *user);
void hs_stages_report(struct hs_core *core, struct hs_reply *reply);
void hs_stages_configure(struct hs_core *core);
void hs_stages_changed(struct hs_core *core, const struct hs_vouch *vouch,
		       const struct hs_bytes *key);
void hs_stages_told(struct hs_core *core, uint32_t index);
void hs_stages_deadline(struct hs_core *core); /* of those whose time has come */
void hs_stages_tick(struct hs_core *core);
uint64_t hs_stages_due(const struct hs_core *core); /* the first of them; 0: none */
void hs_stages_stop(struct hs_core *core);
/* False: the call was sent by no stage, or stands for nobody. */
bool hs_stages_askers(const struct hs_core *core, const struct hs_request *internal,
		      hs_stage_asker *tell, void *context);

#endif
