#include "engine/redis/pipe.h"

#include "base/limits.h"
#include "base/num.h"
#include "wire/reply.h"

#include <string.h>

enum { ROOM_MAX = 1 << 20 };

void hs_ops_push(struct hs_ops *ops, struct hs_op *op)
{
	op->next = NULL;
	if (ops->last)
		ops->last->next = op;
	else
		ops->first = op;
	ops->last = op;
	ops->count++;
}

struct hs_op *hs_ops_pop(struct hs_ops *ops)
{
	struct hs_op *op = ops->first;

	if (!op)
		return NULL;
	ops->first = op->next;
	if (!ops->first)
		ops->last = NULL;
	ops->count--;
	op->next = NULL;
	return op;
}

void hs_pipe_init(struct hs_pipe *pipe, struct hs_node *node, uint8_t resp, bool own)
{
	*pipe = (struct hs_pipe){.node = node, .resp = resp, .own = own};
	hs_list_init(&pipe->dirty);
	hs_list_init(&pipe->owns);
}

void hs_pipe_reset(struct hs_pipe *pipe)
{
	hs_buf_clear(&pipe->out, HS_KEEP_BYTES);
	hs_buf_deinit(&pipe->partial);
	pipe->scan = (struct hs_answer_scan){0};
	pipe->composed = 0;
	pipe->sent = 0;
	pipe->sent_seen = 0;
	pipe->moved_us = 0;
	pipe->closing = false;
	pipe->blameless = false;
	pipe->doom = NULL;
	pipe->server_id = 0;
	pipe->tracking = false;
	pipe->proving = false;
	pipe->proof.len = 0;
}

void hs_pipe_deinit(struct hs_pipe *pipe)
{
	hs_check(!pipe->waiting.first && !pipe->flying.first);
	hs_list_remove(&pipe->dirty);
	hs_list_remove(&pipe->owns);
	hs_buf_deinit(&pipe->out);
	hs_buf_deinit(&pipe->partial);
	hs_buf_deinit(&pipe->proof);
}

char *hs_pipe_room(struct hs_pipe *pipe, size_t *room)
{
	size_t want;

	*room = 0;
	/* Only for one that is long: the read must not go beyond its end. */
	if (pipe->partial.len == 0 || pipe->scan.need <= pipe->partial.len + HS_KEEP_BYTES)
		return NULL;
	want = pipe->scan.need - pipe->partial.len;
	*room = want < ROOM_MAX ? want : ROOM_MAX;
	return hs_buf_reserve(&pipe->partial, *room);
}

static void append_header(struct hs_buf *out, char type, size_t number)
{
	char *at = hs_buf_reserve(out, 1 + HS_NUM_TEXT_MAX + 2);
	size_t len;

	at[0] = type;
	len = hs_num_format_int((int64_t)number, at + 1);
	memcpy(at + 1 + len, "\r\n", 2);
	out->len += 1 + len + 2;
}

static void append_request(struct hs_buf *out, size_t argc, const struct hs_bytes *argv)
{
	append_header(out, '*', argc);
	for (size_t i = 0; i < argc; i++) {
		append_header(out, '$', argv[i].len);
		hs_buf_append_bytes(out, argv[i]);
		hs_buf_append(out, "\r\n", 2);
	}
}

static void append_word(struct hs_buf *out, const char *word)
{
	struct hs_bytes argv = {word, strlen(word)};

	append_request(out, 1, &argv);
}

/* MULTI, the commands that need the engine, EXEC, in one run of bytes: nobody's command can come
 * between them. Asked for once, before MULTI: the server keeps that in mind until EXEC. */
static uint32_t compose_exec(struct hs_buf *out, const struct hs_op_tx *tx, bool asking)
{
	uint32_t replies = asking ? 2 : 1;

	if (asking)
		append_word(out, "ASKING");
	append_word(out, "MULTI");
	for (size_t i = 0; i < tx->count; i++) {
		if (tx->commands[i].answered.len > 0)
			continue;
		append_request(out, tx->commands[i].argc, tx->commands[i].argv);
		replies++;
	}
	append_word(out, "EXEC");
	return replies;
}

static bool is_wait(const struct hs_command *command)
{
	return strncmp(command->name, "wait", strlen("wait")) == 0;
}

/* A client that watches may choose the other dialect meanwhile. Returns how many replies that adds. */
static uint32_t change_dialect(struct hs_pipe *pipe, const struct hs_op *op)
{
	const struct hs_bytes argv[] = {HS_LIT("HELLO"), op->resp == 3 ? HS_LIT("3") : HS_LIT("2")};

	if (!pipe->own || pipe->resp == op->resp || op->kind == HS_OP_UNWATCH)
		return 0;
	append_request(&pipe->out, 2, argv);
	pipe->resp = op->resp;
	return 1;
}

static void append_op(struct hs_buf *out, const struct hs_op *op)
{
	if (op->raw.len > 0)
		hs_buf_append_bytes(out, op->raw);
	else
		append_request(out, op->argc, op->argv);
}

/* A read, and how long its key has to live, both tracked: should that change in between, it is told of.
 *
 *     CLIENT CACHING YES, PTTL key, CLIENT CACHING YES, GET key
 *
 * A SET, in one run of bytes:
 *
 *     CLIENT CACHING YES, MULTI, EXISTS key, SET key …, EXISTS key, EXEC, PING
 *
 * A write is not tracked, so the second EXISTS has what the SET leaves behind tracked, before anybody
 * else can change it. The first one makes sure that the key is tracked already: so that the server
 * tells of the SET itself, once, between the replies to EXEC and PING; fill.c says why. */
static void compose_tracked(struct hs_pipe *pipe, struct hs_op *op)
{
	const struct hs_bytes caching[] = {HS_LIT("CLIENT"), HS_LIT("CACHING"), HS_LIT("YES")};
	const struct hs_bytes pttl[] = {HS_LIT("PTTL"), op->argv[1]};
	struct hs_buf *out = &pipe->out;
	size_t start = out->len;

	append_request(out, 3, caching);
	op->left_ms = 0;
	if (!(op->command->flags & HS_CMD_WRITE)) {
		append_request(out, 2, pttl);
		append_request(out, 3, caching);
		append_op(out, op);
		pipe->composed += out->len - start;
		op->engine_mark = pipe->composed;
		op->engine_replies = HS_PIPE_READ_FIRST + 1;
		return;
	}

	const struct hs_bytes exists[] = {HS_LIT("EXISTS"), op->argv[1]};

	append_word(out, "MULTI");
	append_request(out, 2, exists);
	append_op(out, op);
	/* A server that does not know MULTI runs it now. */
	op->engine_mark = pipe->composed + out->len - start;
	append_request(out, 2, exists);
	append_word(out, "EXEC");
	append_word(out, "PING");
	pipe->composed += out->len - start;
	op->engine_replies = HS_PIPE_WRITE_CACHING + 1;
}

void hs_pipe_compose(struct hs_pipe *pipe, struct hs_op *op, bool asking)
{
	struct hs_buf *out = &pipe->out;
	size_t start = out->len;

	if (pipe->fill && op->track) {
		op->vouch_epoch = hs_vouch_epoch(pipe->vouch); /* it must be the same at the end */
		compose_tracked(pipe, op);
		hs_ops_push(&pipe->flying, op);
		return;
	}
	op->engine_replies = change_dialect(pipe, op);
	if (op->kind == HS_OP_EXEC) {
		op->engine_replies += compose_exec(out, op->tx, asking);
	} else {
		if (asking) {
			append_word(out, "ASKING");
			op->engine_replies++;
		}
		/* WAIT looks at the last command of its own connection: one that comes behind all
		 * its client's writes, which have been answered. */
		if (pipe->own && is_wait(op->command)) {
			append_word(out, "PING");
			op->engine_replies++;
		}
		if (op->kind == HS_OP_UNWATCH)
			append_word(out, "UNWATCH");
		else
			append_op(out, op);
	}
	pipe->composed += out->len - start;
	op->engine_mark = pipe->composed;
	hs_ops_push(&pipe->flying, op);
}

bool hs_pipe_splice(const struct hs_op *op, struct hs_bytes reply, struct hs_buf *out)
{
	struct hs_reply writer = {.out = out, .resp = op->resp};
	struct hs_answer head;
	int64_t used = hs_answer_head(&head, reply.data, reply.len);
	size_t at = (size_t)used;

	if (used <= 0 || head.type != HS_ANSWER_ARRAY)
		return false;
	hs_reply_array(&writer, op->tx->count);
	for (size_t i = 0; i < op->tx->count; i++) {
		struct hs_bytes answered = op->tx->commands[i].answered;

		if (answered.len == 0) {
			int64_t len = hs_answer_length(reply.data + at, reply.len - at);

			if (len <= 0)
				return false;
			answered = (struct hs_bytes){reply.data + at, (size_t)len};
			at += (size_t)len;
		}
		hs_buf_append_bytes(out, answered);
	}
	return at == reply.len;
}
