/* Internal calls: commands that heatsink sends on its own behalf, such as a fetch for the cache, a batch of
 * folded requests, the making of copies, or a message to another worker.
 *
 *     prepare ─ part … ─ send ─┬─ answered ──────────────────────────────────── on_done(request)
 *                              └─ timeout ─ on_done(request) ─ … ─ answered ─── on_done(request)
 *
 * An internal call is a request of core->self, so the core does not count it as a client's. When all parts are
 * answered the core calls `on_done`, which ends the call with hs_internal_end. That may happen inside
 * hs_internal_send, because an engine may answer at once. If a call with a timeout is not answered in time, the
 * core calls `on_done` at the timeout, too: if it ends the call there, the reply is dropped later; if not, the
 * call goes on.
 *
 * Order. By default an internal call is in no order with any other: it has a client id of its own. Calls with
 * the same id keep their order per partition, as commands of one connection do. A transaction is one call
 * (HS_OP_EXEC). For WATCH to EXEC, draw an id with hs_internal_client and send WATCH and EXEC with it as
 * `watcher`: a Redis engine gives the id a private connection until EXEC or UNWATCH.
 *
 * Bad days. A call whose connection was lost may have run (-UNKNOWN); it is not sent again here. The caller may
 * send an idempotent call again (hs_internal_prepare_again). Without a timeout a call waits as long as the
 * engine lets it.
 *
 * Worker's thread only. The core owns the request; the arguments are copied, or the caller's (`borrowed`). */
#ifndef HS_CORE_INTERNAL_H
#define HS_CORE_INTERNAL_H

#include "core/state.h"

/* Describes a call to prepare. Every caller sets `call`, `on_done` and `slot`, every stage sets `stage`. Zero
 * is the usual value of the other fields. */
struct hs_internal {
	struct hs_call call; /* its arguments are copied, unless `borrowed` */
	void (*on_done)(struct hs_core *core, struct hs_request *request);
	void *context; /* becomes request->context */
	uint16_t slot; /* HS_SLOT_NONE: no key */
	/* The arguments and `raw` stay valid until `on_done`; not with a timeout. */
	bool borrowed;
	uint8_t resp; /* protocol version of the reply; 0: 3 */
	enum hs_op_kind kind;
	uint64_t client; /* keeps order with other calls of this id; 0: an id of its own */
	/* The first stage that it passes: the sender's number + 1; 0: all stages. */
	uint32_t stage;
	uint64_t timeout_us; /* checked with every tick (100 ms); 0: none */
};

/* A client id that no connection and no other worker uses. */
uint64_t hs_internal_client(struct hs_core *core);

/* A call with one operation. The caller may change the operation (`track`, `watcher`, `tx`) before
 * hs_internal_send. The commands of a transaction (`tx`) are the caller's and stay valid until `on_done`; such
 * a call has no timeout. */
struct hs_request *hs_internal_prepare(struct hs_core *core, const struct hs_internal *internal);
/* The same with several operations. Each has the call's arguments with its own `key` (copied) in place of the
 * second, and goes to that key's slot: call hs_internal_part for each. */
struct hs_request *hs_internal_prepare_parts(struct hs_core *core,
					     const struct hs_internal *internal, uint32_t parts);
/* Inside `on_done` of a call with one operation: prepares the same request to be sent again instead of ending
 * it, with a new client id. */
void hs_internal_prepare_again(struct hs_core *core, struct hs_request *request);
void hs_internal_part(struct hs_request *request, uint32_t index, struct hs_bytes key,
		      uint16_t slot);
/* May call `on_done`, which may end the request. */
void hs_internal_send(struct hs_core *core, struct hs_request *request);

/* Inside `on_done`: the timeout has passed, and not all parts are answered. */
static inline bool hs_internal_timed_out(const struct hs_request *request)
{
	return request->timed_out && request->parts_left > 0;
}

/* The state of the stage that sent the call; a stage did. */
static inline void *hs_internal_stage(const struct hs_core *core, const struct hs_request *request)
{
	hs_check(request->sender_stage > 0 && request->sender_stage <= core->stages.count);
	return core->stages.self[request->sender_stage - 1];
}

/* The reply of one part, inside `on_done`. */
struct hs_bytes hs_internal_reply(const struct hs_request *request, uint32_t index);
/* Ends a call: last in `on_done`, or instead of sending it. A call that has timed out lives on until its reply
 * comes. */
void hs_internal_end(struct hs_core *core, struct hs_request *request);

/* Handles timeouts; called with every tick. */
void hs_internal_tick(struct hs_core *core);

#endif
