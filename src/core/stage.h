/* Stages: how a mitigation plugs into the request path.
 *
 *     call ─ checks ─ admit ─ … ─ request ─ depart ─ engine ─ arrive ─ reply
 *                      │                      │                 │
 *                  stage 0, 1, 2 …        stage 0, 1, 2 …    … 2, 1, 0
 *
 * The core parses and checks commands, keeps replies in order, and knows no mitigation. A stage is a table
 * of functions that the core calls at fixed points; serve/ and sim/ hand it an array of them
 * (absorb/stages.c), whose order is part of the design. NULL: the stage has nothing to do there.
 *
 * Rules. On the way out stages are called first to last, on the way back last to first. An internal call
 * (core/internal.h) enters behind the stage that sends it. An engine may answer inside `depart`: a request
 * may be gone when a call returns. No stage resumes a connection or runs commands from inside a point: it
 * says hs_core_resume_later, and the core does when the event is handled.
 *
 * State. `create` returns the worker's state of the stage, which every point gets back as `self`. State of
 * a session, a request and a hot key lies in them: the stage says how many bytes it needs, and finds them
 * with hs_stage_session, hs_stage_request and hs_hot.state. A session's begins as zeros. A request's is
 * not cleared: it means something where the stage's bit is set in request->marked. */
#ifndef HS_CORE_STAGE_H
#define HS_CORE_STAGE_H

#include "core/call.h"
#include "core/hot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hs_core;
struct hs_part;
struct hs_reply;
struct hs_request;
struct hs_session;

enum hs_verdict {
	HS_PASS,     /* to the next stage, or the engine */
	HS_ANSWERED, /* the client has its reply, in its turn */
	HS_TAKEN,    /* the stage answers it later, or sends it on later */
	HS_HOLD, /* the client's input waits until nothing of it is in flight; then the command comes
		      * again */
};

/* Told of one request that an internal call stands for. `followed`: something of the same client is sent
 * behind it before it is answered. */
typedef void hs_stage_asker(void *context, struct hs_request *request, bool followed);

struct hs_stage {
	const char *name;
	size_t session_bytes, request_bytes;

	void *(*create)(struct hs_core *core, uint32_t index);
	void (*destroy)(void *self); /* every request is answered */
	void (*close)(void *self,
		      struct hs_session *session); /* frees what the session's state holds */

	/* A command passed every check and is next on its connection. */
	enum hs_verdict (*admit)(void *self, struct hs_session *session, struct hs_call *call);
	/* A part of a request, or an internal call, is about to be handed to the engine. */
	enum hs_verdict (*depart)(void *self, struct hs_request *request, struct hs_part *part);
	/* A marked part was answered; its client has not been told. */
	void (*arrive)(void *self, struct hs_request *request, struct hs_part *part);
	/* The events of a round are handled: what was gathered is sent. And: there is some. */
	void (*flush)(void *self);
	bool (*needs_flush)(const void *self);

	/* A request for a hot key was counted; `waited`: it was not answered at once. With every tick: the
	 * key has cooled, or not. A key with state stays in the table. */
	void (*hot)(void *self, struct hs_hot *hot, bool waited);
	void (*cool)(void *self, struct hs_hot *hot, bool cool);

	/* The client has gone: what waits for it alone is dropped. */
	void (*forget)(void *self, struct hs_session *session);
	/* The rows of HEAT PLAN. */
	void (*report)(void *self, struct hs_reply *reply);
	/* The requests that an internal call of this stage stands for. */
	void (*askers)(void *self, const struct hs_request *internal, hs_stage_asker *tell,
		       void *context);
};

enum { HS_STAGES_MAX = HS_HOT_STAGES };

enum hs_point { HS_POINT_ADMIT, HS_POINT_DEPART, HS_POINTS };

/* The stages of a core. */
struct hs_stages {
	const struct hs_stage *table[HS_STAGES_MAX];
	void *self[HS_STAGES_MAX];
	uint32_t count;
	uint32_t want[HS_POINTS]; /* a bit for each stage that is to be called there now */
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

/* --- for the core --- */

/* `stages` ends with NULL. Init says how large sessions and requests are; create comes when the core is
 * complete. */
void hs_stages_init(struct hs_core *core, const struct hs_stage *const *stages);
void hs_stages_create(struct hs_core *core);
void hs_stages_deinit(struct hs_core *core);
enum hs_verdict hs_stages_admit(struct hs_core *core, struct hs_session *session,
				struct hs_call *call);
/* True: a stage took it. */
bool hs_stages_depart(struct hs_core *core, struct hs_request *request, struct hs_part *part);
void hs_stages_arrive(struct hs_core *core, struct hs_request *request, struct hs_part *part);
void hs_stages_flush(struct hs_core *core);
bool hs_stages_need_flush(const struct hs_core *core);
void hs_stages_hot(struct hs_core *core, struct hs_hot *hot, bool waited);
void hs_stages_cool(struct hs_core *core, struct hs_hot *hot, bool cool);
void hs_stages_forget(struct hs_core *core, struct hs_session *session);
void hs_stages_close(struct hs_core *core, struct hs_session *session);
void hs_stages_report(struct hs_core *core, struct hs_reply *reply);
/* False: the call was sent by no stage, or stands for nobody. */
bool hs_stages_askers(const struct hs_core *core, const struct hs_request *internal,
		      hs_stage_asker *tell, void *context);

#endif
