/* Private to the core, its stages and local/: requests that wait for an engine or for their turn. A request has one part for
 * each operation that it needs; its reply is merged of theirs. */
#ifndef HS_CORE_REQUEST_H
#define HS_CORE_REQUEST_H

#include "core/call.h"
#include "core/session.h"

struct hs_deferred;

/* Whether a stage has a part that departed (core/stage.h). */
enum hs_part_taken { HS_PART_FREE, HS_PART_DELAYED, HS_PART_DIVERTED };

/* One part of a request: an operation and where its reply goes. */
struct hs_part {
	struct hs_op op;
	struct hs_buf out;
	struct hs_bytes *argv; /* a split command's own arguments, owned; or NULL */
	uint64_t time_us;      /* from the request's start to this part's answer */
	bool answered;
	uint8_t bucket; /* its session counts it there while it is under way */
	uint8_t stage;	/* the first that it has not passed on its way out */
	enum hs_part_taken taken;
	uint32_t marked; /* a bit for each stage that has state in it, and hears of its answer */
	uint32_t stage_bits; /* a bit of each stage's own, valid in a part that it has marked */
};

struct hs_request {
	struct hs_link link;  /* in session->requests, or in the core's pool */
	uint32_t reply_bytes; /* reckoned for its reply: core/reply_budget.c */
	uint16_t reply_partition;
	struct hs_session *session;
	struct hs_call call;   /* its arguments are here once hs_request_copy_call was called */
	struct hs_bytes *argv; /* the call's: argv_inline or owned; the bytes are in `args` */
	struct hs_bytes argv_inline[8];
	struct hs_buf args;    /* the arguments' bytes, copied: the client's buffer goes on */
	struct hs_buf reply;   /* filled in turn or out of turn */
	struct hs_part *parts; /* one: &single; more: owned */
	struct hs_part single;
	uint32_t parts_count;
	uint32_t parts_left;
	uint32_t *key_part; /* HS_MERGE_BY_KEY: which part answers key i, owned */
	size_t keys;
	struct hs_buf cursor;	      /* SCAN: the partition's own cursor; HS_OP_HOST: who asks */
	struct hs_multi *multi;	      /* EXEC: the commands, owned until it is answered */
	struct hs_deferred *deferred; /* EXEC: what is left behind its commit, owned; or NULL */
	struct hs_request *exec; /* the EXEC this is a part of: its reply goes there; or NULL */
	uint64_t start_us;
	bool done;
	bool blocks; /* waits for what others do */
	bool muted;  /* CLIENT REPLY OFF or SKIP */
	/* Nobody's request but a place in the order of replies: what must not come before those of
	 * the requests ahead of it (core/push.c). */
	bool is_push;
	uint64_t redirect_to; /* a push for another connection, of this number; 0: for this one */
	uint32_t redirect_worker; /* where that one is */
	bool delayed;	 /* a stage has held it up: its wait began then, and its order counts */
	uint8_t resp;	 /* the dialect of its reply; 0: as its session has it */
	uint64_t client; /* the client id that it is sent under, instead of its session's; or 0 */
	uint64_t number; /* among its session's */
	/* Of an internal call (core/internal.h). */
	void *context;	      /* the sender's */
	uint8_t sender_stage; /* the first stage that it passes: hs_internal.stage */
	struct hs_link due;   /* in core->internal_due */
	uint64_t due_us;
	uint64_t timeout_us; /* 0: it has none, and is in no list */
	bool timed_out;	     /* its time is over: nobody waits for what is still to be answered */
	/* What is done when all parts are answered, instead of merging them; NULL: nothing else. */
	void (*on_done)(struct hs_core *core, struct hs_request *request);
};

/* Requests come from a pool. */
struct hs_request *hs_request_get(struct hs_core *core, struct hs_session *session,
				  const struct hs_command *command);
/* Copies a call into the request, whose command it is. */
void hs_request_copy_call(struct hs_request *request, const struct hs_call *call);
/* Both: a request for a call. */
struct hs_request *hs_request_make(struct hs_core *core, struct hs_session *session,
				   const struct hs_call *call);
/* With one operation, which is filled in but for what hs_dispatch_submit adds. */
struct hs_request *hs_request_single(struct hs_core *core, struct hs_session *session,
				     const struct hs_call *call, uint16_t slot);
void hs_request_split(struct hs_request *request, uint32_t parts);
void hs_request_drop_parts(struct hs_request *request); /* to split it anew */
/* Marks it done and moves every reply whose turn has come to the session's out buffer. */
void hs_request_finish(struct hs_core *core, struct hs_request *request);
/* The same for the request whose turn it is, with a reply that lies elsewhere. */
void hs_request_answer(struct hs_core *core, struct hs_request *request, struct hs_bytes reply);
/* The same for one that was not sent by itself and shares the reply of another: counted and accounted
 * for here. Its session must not be resumed before all who share it have it. */
void hs_request_share(struct hs_core *core, struct hs_request *request, struct hs_bytes reply);
void hs_request_put(struct hs_core *core, struct hs_request *request);
void hs_request_pool_deinit(struct hs_core *core);

#endif
