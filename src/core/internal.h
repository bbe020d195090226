/* Internal calls: commands that heatsink sends on its own behalf. A fetch for the cache, a batch of
 * folded requests, the making of copies, a message to another worker.
 *
 *     prepare ─ part … ─ send ─┬─ answered ─────────────────────────── then(request)
 *                              └─ not in time ─ then(request), late ─ … ─ answered ─ then(request)
 *
 * An internal call is a request of nobody's connection (core->self), so it is counted nowhere as a
 * client's. `then` is called when all parts are answered, and ends the call with hs_internal_end. It may
 * run inside hs_internal_send: an engine may answer at once. A call with a timeout that is not answered
 * in time has `then` called before, too: ended there, its answer is dropped; not ended, it goes on.
 *
 * Order. By default a call is in no order with any other: it has a client id of its own. Calls with the
 * same id keep their order per partition, as commands of one connection do. A transaction is one call
 * (HS_OP_EXEC). For WATCH to EXEC, draw an id with hs_internal_client and send WATCH and EXEC with it as
 * `watcher`: a Redis engine gives it a connection of its own until EXEC or UNWATCH.
 *
 * Outcome. A call whose connection was lost may have run (-UNKNOWN). It is never sent again
 * here: what is idempotent the caller may send again. */
#ifndef HS_CORE_INTERNAL_H
#define HS_CORE_INTERNAL_H

#include "core/state.h"

/* What a call is, before it is prepared. `call`, `then` and `slot` are set always, `stage` by every stage; zero is the
 * usual value of all others. */
struct hs_internal {
	struct hs_call call; /* its arguments are copied, unless `borrowed` */
	void (*on_done)(struct hs_core *core, struct hs_request *request);
	void *context; /* request->context, for `then` */
	uint16_t slot; /* HS_SLOT_NONE: it has no key */
	bool borrowed; /* the arguments and `raw` stay where they are until `then`; not with a timeout */
	uint8_t resp; /* of the reply; 0: 3 */
	enum hs_op_kind kind;
	uint64_t client; /* in order with others of this id; 0: a new one */
	uint32_t stage; /* the first that it passes: the number of its sender + 1; 0: all of them */
	uint64_t
		timeout_us; /* looked at with every tick, ten a second; 0: as long as the engine takes */
};

/* A client id that no connection and no other worker has. */
uint64_t hs_internal_client(struct hs_core *core);

/* A call with one operation, filled in: the caller may change it (`track`, `watcher`, `tx`) before
 * hs_internal_send. A transaction's commands (`tx`) are the caller's, and stay until `then`: it has no timeout. */
struct hs_request *hs_internal_prepare(struct hs_core *core, const struct hs_internal *internal);
/* The same with `parts` operations. Each has the arguments of the call, with `key` in place of the
 * second, which is copied, and goes to that key's slot. Call hs_internal_part for each. */
struct hs_request *hs_internal_prepare_parts(struct hs_core *core,
					     const struct hs_internal *internal, uint32_t parts);
/* Inside `then`, of a call with one operation: it is to be sent once more, instead of being ended. It is filled in anew,
 * with a new client id. */
void hs_internal_prepare_again(struct hs_core *core, struct hs_request *request);
void hs_internal_part(struct hs_request *request, uint32_t index, struct hs_bytes key,
		      uint16_t slot);
/* May call `then`, and with it end the request. */
void hs_internal_send(struct hs_core *core, struct hs_request *request);

/* Inside `then`: its time is over, and not all parts are answered. */
static inline bool hs_internal_timed_out(const struct hs_request *request)
{
	return request->timed_out && request->parts_left > 0;
}

/* The stage that sends it, which there is. */
static inline void *hs_internal_stage(const struct hs_core *core, const struct hs_request *request)
{
	hs_check(request->sender_stage > 0 && request->sender_stage <= core->stages.count);
	return core->stages.self[request->sender_stage - 1];
}

/* Of one part, inside `then`. */
struct hs_bytes hs_internal_reply(const struct hs_request *request, uint32_t index);
/* The last thing `then` does; or instead of sending it. A late call lives on until its answer comes. */
void hs_internal_end(struct hs_core *core, struct hs_request *request);

/* Calls whose time is over: called with every tick. */
void hs_internal_tick(struct hs_core *core);

#endif
