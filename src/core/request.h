/* Private to the core, its stages and local/: requests in flight, or answered before their turn. A request has
 * one part for each operation that it needs; its reply is merged of theirs. Requests come from a pool, and
 * belong to the worker's thread.
 *
 *     get / make / single ─ split ─ submit parts ─ … ─ all answered ─ finish ─ (its turn) ─ session->out ─ put
 *
 * A call of hs_dispatch_submit, hs_request_finish, _answer or _share may free the request. */
#ifndef HS_CORE_REQUEST_H
#define HS_CORE_REQUEST_H

#include "core/call.h"
#include "core/session.h"

struct hs_deferred;

/* Whether a stage has taken a departing part (core/stage.h). */
enum hs_part_taken { HS_PART_FREE, HS_PART_DELAYED, HS_PART_DIVERTED };

/* One operation of a request, and its reply. */
struct hs_part {
	struct hs_op op;
	struct hs_buf out;
	struct hs_bytes *argv; /* arguments of this part of a split command, owned; or NULL */
	uint64_t time_us;      /* from the request's start to this part's reply */
	bool answered;
	uint8_t bucket; /* index in session->in_bucket while in flight */
	uint8_t stage;	/* the first stage that it has not passed on its way out */
	enum hs_part_taken taken;
	uint32_t marked; /* a bit for each stage that wants its `arrive` */
	/* A bit for each stage's own use, valid while its bit in `marked` is set. */
	uint32_t stage_bits;
};

struct hs_request {
	struct hs_link link;  /* in session->requests, or in core->request_pool */
	uint32_t reply_bytes; /* estimated for its reply: core/reply_budget.h */
	uint16_t reply_partition;
	struct hs_session *session;
	struct hs_call call;   /* the arguments belong to the request after hs_request_copy_call */
	struct hs_bytes *argv; /* of the call: argv_inline, or owned; the bytes are in `args` */
	struct hs_bytes argv_inline[8];
	struct hs_buf args;    /* copy of the arguments' bytes: the input buffer is reused */
	struct hs_buf reply;   /* the merged reply */
	struct hs_part *parts; /* one part: &single; several: owned */
	struct hs_part single;
	uint32_t parts_count;
	uint32_t parts_left;
	uint32_t *key_part; /* HS_MERGE_BY_KEY: the part with the reply for key i, owned */
	size_t keys;
	/* SCAN: the partition's own cursor; HS_OP_HOST: the client, for the log. */
	struct hs_buf cursor;
	struct hs_multi *multi; /* EXEC: the queued commands, owned until it is answered */
	/* EXEC: the commands that run after the commit, owned; or NULL. */
	struct hs_deferred *deferred;
	/* The EXEC that this request is a deferred command of: the reply goes there; or NULL. */
	struct hs_request *exec;
	uint64_t start_us;
	bool done;
	bool blocks; /* blocks until another client acts (BLPOP) */
	bool muted;  /* CLIENT REPLY OFF or SKIP: the reply is dropped */
	/* A placeholder in the order of replies, without a command: a push message that must not overtake the
	 * replies of earlier requests (core/push.h). */
	bool is_push;
	uint64_t redirect_to;	  /* a push for the connection with this id; 0: for this session */
	uint32_t redirect_worker; /* the worker of that connection */
	/* A stage has delayed it: its wait began at start_us, and its operation is `ordered`. */
	bool delayed;
	uint8_t resp; /* protocol version of the reply; 0: that of the session */
	/* The client id to send it under, instead of the session's; 0: the session's. */
	uint64_t client;
	uint64_t number; /* counts the session's requests from 1 */
	/* Only for internal calls (core/internal.h). */
	void *context; /* the sender's, for `on_done` */
	/* The sending stage + 1, which is the first stage it passes; 0: no stage sent it. */
	uint8_t sender_stage;
	struct hs_link due; /* in core->internal_due */
	uint64_t due_us;
	uint64_t timeout_us; /* 0: none, and `due` is unlinked */
	bool timed_out; /* the timeout has passed: nothing waits for the parts still in flight */
	/* Called when all parts are answered, and at the timeout (core/internal.h), instead of merging the
	 * replies; NULL: merge. */
	void (*on_done)(struct hs_core *core, struct hs_request *request);
};

struct hs_request *hs_request_get(struct hs_core *core, struct hs_session *session,
				  const struct hs_command *command);
/* Makes `call` the request's command, and copies its arguments. */
void hs_request_copy_call(struct hs_request *request, const struct hs_call *call);
/* hs_request_get and hs_request_copy_call. */
struct hs_request *hs_request_make(struct hs_core *core, struct hs_session *session,
				   const struct hs_call *call);
/* A request with one part, whose operation is complete but for the fields that hs_dispatch_submit sets. */
struct hs_request *hs_request_single(struct hs_core *core, struct hs_session *session,
				     const struct hs_call *call, uint16_t slot);
void hs_request_split(struct hs_request *request, uint32_t parts);
void hs_request_drop_parts(struct hs_request *request); /* before another hs_request_split */
/* Marks the request done, and moves every reply whose turn has come to the session's out buffer. */
void hs_request_finish(struct hs_core *core, struct hs_request *request);
/* The same for the request whose turn it is; the reply's bytes lie elsewhere. */
void hs_request_answer(struct hs_core *core, struct hs_request *request, struct hs_bytes reply);
/* The same for a request that shares the reply of another (a batch, a fetch); counts it, too. The caller must
 * not resume its session before all requests that share the reply have it. */
void hs_request_share(struct hs_core *core, struct hs_request *request, struct hs_bytes reply);
void hs_request_put(struct hs_core *core, struct hs_request *request);
void hs_request_pool_deinit(struct hs_core *core);

#endif
