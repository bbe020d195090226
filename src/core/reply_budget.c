/* The reply budget, in front of servers.
 *
 * A server answers every request. If a client does not read its large replies, they fill the connection that
 * all clients of the worker share, and the replies of all others wait behind them. So the core estimates the
 * size of a reply before it sends the request, and holds a client whose next request does not fit:
 *
 *     its own replies in flight       a quarter of engine-inflight-bytes
 *     with its unread replies         a quarter of output-limit
 *     all clients', of one partition  engine-inflight-bytes
 *
 * A single request is always allowed where no other is in flight. A held client's input stays in order. The
 * core tries it again when one of its replies comes, when the client has read, or when replies to others have
 * made room. Requests with small replies are never held, so that they do not wait for clients that read slowly.
 *
 * The estimate is the size of the last reply for the same key, which a small table remembers while large
 * replies occur; else the recent largest reply of the same client. A new client starts with
 * HS_REPLY_GUESS_BYTES until it has had replies. */
#include "core/reply_budget.h"

#include "base/hash.h"
#include "base/limits.h"
#include "core/hold.h"
#include "core/state.h"

enum { REMEMBER_US = 10 * 1000 * 1000, SHRINK = 8 };

#define LARGE_BYTES (16 * HS_KIB) /* smaller replies are not counted */
#define UNREAD_BYTES_MIN HS_MIB	  /* every client may have that much unread */

static struct hs_reply_budget_size *size_of(struct hs_core *core, const struct hs_call *call,
					    uint32_t *tag)
{
	size_t at = hs_keys_single(call->command, call->argc);
	uint64_t hash;

	if (at == 0)
		return NULL;
	hash = hs_hash(call->argv[at], core->world.seed + (uint64_t)call->command->id);
	*tag = (uint32_t)(hash >> 32) | 1;
	return &core->reply_budget.sizes[hash % HS_REPLY_BUDGET_SIZES];
}

/* Writes have short replies, but for those that return old values; SET does so only with options. */
static bool may_be_large(const struct hs_call *call)
{
	const struct hs_command *command = call->command;

	if (!(command->flags & HS_CMD_WRITE) || command->id >= HS_CMD_IDS)
		return true;
	return command->flags & HS_CMD_RETURNS_VALUE &&
	       (command->id != HS_CMD_ID_SET || call->argc > 3);
}

static uint64_t estimate(struct hs_core *core, const struct hs_session *session,
			 const struct hs_call *call)
{
	uint32_t tag;
	const struct hs_reply_budget_size *size;

	if (core->now.mono_us < core->reply_budget.large_until_us) {
		size = size_of(core, call, &tag);
		if (size && size->tag == tag)
			return size->bytes;
	}
	return session->typical_reply_bytes;
}

/* False: it must wait for its client's own replies, for its client to read, or for replies to others. */
static bool fits(const struct hs_core *core, const struct hs_session *session, uint16_t partition,
		 uint64_t bytes)
{
	uint64_t most = core->options.engine_inflight_bytes_max;
	uint64_t unread = hs_core_unsent(session), unread_max = core->options.output_bytes_max / 4;

	if (unread_max < UNREAD_BYTES_MIN)
		unread_max = UNREAD_BYTES_MIN;
	if (session->reply_bytes > 0 && session->reply_bytes + bytes > most / 4)
		return false;
	if (unread > 0 && unread + session->reply_bytes + bytes > unread_max)
		return false;
	return core->reply_budget.bytes[partition] == 0 ||
	       core->reply_budget.bytes[partition] + bytes <= most;
}

bool hs_reply_budget_holds(struct hs_core *core, struct hs_session *session, struct hs_call *call)
{
	uint16_t partition;
	uint64_t bytes;

	session->next_reply_bytes = 0;
	if (core->options.engine_inflight_bytes_max == 0 ||
	    (session->typical_reply_bytes < LARGE_BYTES &&
	     core->now.mono_us >= core->reply_budget.large_until_us) ||
	    !may_be_large(call))
		return false;
	bytes = estimate(core, session, call);
	if (bytes < LARGE_BYTES)
		return false;
	if (bytes > UINT32_MAX)
		bytes = UINT32_MAX;
	hs_call_slots(call);
	partition = hs_core_partition(core, call->slot);
	if (fits(core, session, partition, bytes)) {
		session->next_reply_bytes = (uint32_t)bytes;
		session->next_reply_partition = partition;
		return false;
	}
	hs_hold(core, session, HS_HOLD_REPLY_BUDGET);
	hs_list_append(&core->reply_budget.held, &session->budget_link);
	return true;
}

void hs_reply_budget_learn(struct hs_core *core, struct hs_session *session,
			   const struct hs_call *call, size_t bytes)
{
	struct hs_reply_budget_size *size;
	uint32_t tag;

	if (!may_be_large(call))
		return;
	if (bytes >= session->typical_reply_bytes)
		session->typical_reply_bytes = bytes;
	else
		session->typical_reply_bytes -=
			(session->typical_reply_bytes - bytes + SHRINK - 1) / SHRINK;
	if (bytes >= LARGE_BYTES)
		core->reply_budget.large_until_us = core->now.mono_us + REMEMBER_US;
	if (core->now.mono_us >= core->reply_budget.large_until_us)
		return;
	size = size_of(core, call, &tag);
	if (size)
		*size = (struct hs_reply_budget_size){tag, bytes < UINT32_MAX ? (uint32_t)bytes
									      : UINT32_MAX};
}

void hs_reply_budget_release(struct hs_core *core, struct hs_request *request)
{
	core->reply_budget.bytes[request->reply_partition] -= request->reply_bytes;
	request->session->reply_bytes -= request->reply_bytes;
	request->reply_bytes = 0;
	core->reply_budget.freed = true;
}

void hs_reply_budget_resume(struct hs_core *core)
{
	struct hs_link waiting;

	core->reply_budget.freed = false;
	if (hs_list_empty(&core->reply_budget.held))
		return;
	hs_list_init(&waiting);
	while (!hs_list_empty(&core->reply_budget.held)) {
		struct hs_link *link = core->reply_budget.held.next;

		hs_list_remove(link);
		hs_list_append(&waiting, link);
	}
	while (!hs_list_empty(&waiting)) {
		struct hs_session *session =
			hs_list_entry(waiting.next, struct hs_session, budget_link);

		hs_list_remove(&session->budget_link);
		hs_core_resume(core, session);
	}
}
