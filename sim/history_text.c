#include "sim/history_text.h"

#include "base/err.h"

#include <inttypes.h>
#include <stdio.h>

enum { LINE_BYTES_MAX = 512, WORD_BYTES_MAX = 32 };

static const char *const kinds[HS_SIM_KINDS] = {
	[HS_SIM_GET] = "GET",		[HS_SIM_SET] = "SET",
	[HS_SIM_SETNX] = "SETNX",	[HS_SIM_GETSET] = "GETSET",
	[HS_SIM_DEL] = "DEL",		[HS_SIM_GETDEL] = "GETDEL",
	[HS_SIM_INCRBY] = "INCRBY",	[HS_SIM_SETXX] = "SETXX",
	[HS_SIM_SETNXGET] = "SETNXGET", [HS_SIM_SETXXGET] = "SETXXGET",
	[HS_SIM_GETRANGE] = "GETRANGE", [HS_SIM_STRLEN] = "STRLEN",
	[HS_SIM_EXISTS] = "EXISTS",	[HS_SIM_PTTL] = "PTTL",
	[HS_SIM_TTL] = "TTL",		[HS_SIM_PEXPIRE] = "PEXPIRE",
	[HS_SIM_PERSIST] = "PERSIST",	[HS_SIM_CLEAR] = "CLEAR",
	[HS_SIM_NONE] = "NONE",
};

static void write_op(const struct hs_sim_op *op, struct hs_buf *text)
{
	hs_buf_printf(text, "%s client=%" PRIu32 " more=%" PRIu32 " asked=%" PRIu64 " answered=",
		      kinds[op->kind], op->client, op->more, op->asked);
	if (op->answered == HS_SIM_NEVER)
		hs_buf_printf(text, "never");
	else
		hs_buf_printf(text, "%" PRIu64, op->answered);
	hs_buf_printf(text,
		      " asked_us=%" PRId64 " answered_us=%" PRId64 " argument=%" PRId64
		      " ttl_ms=%" PRId64 " answer=%" PRId64 " flags=%s%s\n",
		      op->asked_us, op->answered_us, op->argument, op->ttl_ms, op->answer,
		      op->refusable ? "refusable," : "", op->loose ? "loose" : "");
}

void hs_sim_history_write(const struct hs_sim_history *history, struct hs_buf *text)
{
	for (size_t i = 0; i < history->count; i++)
		write_op(&history->ops[i], text);
}

static bool find_kind(const char *word, enum hs_sim_kind *kind)
{
	for (int i = 0; i < HS_SIM_KINDS; i++) {
		if (strcmp(kinds[i], word) == 0) {
			*kind = (enum hs_sim_kind)i;
			return true;
		}
	}
	return false;
}

static bool read_op(const char *line, struct hs_sim_op *op)
{
	char kind[WORD_BYTES_MAX], answered[WORD_BYTES_MAX], flags[WORD_BYTES_MAX] = "";
	int fields;

	*op = (struct hs_sim_op){0};
	fields = sscanf(line,
			"%31s client=%" SCNu32 " more=%" SCNu32 " asked=%" SCNu64
			" answered=%31s asked_us=%" SCNd64 " answered_us=%" SCNd64
			" argument=%" SCNd64 " ttl_ms=%" SCNd64 " answer=%" SCNd64 " flags=%31s",
			kind, &op->client, &op->more, &op->asked, answered, &op->asked_us,
			&op->answered_us, &op->argument, &op->ttl_ms, &op->answer, flags);
	op->refusable = strstr(flags, "refusable") != NULL;
	op->loose = strstr(flags, "loose") != NULL;
	if (fields < 10 || !find_kind(kind, &op->kind))
		return false;
	op->answered = HS_SIM_NEVER;
	return strcmp(answered, "never") == 0 || sscanf(answered, "%" SCNu64, &op->answered) == 1;
}

/* Whether every transaction is complete. */
static bool is_whole(const struct hs_sim_history *history)
{
	size_t at = 0;

	while (at < history->count)
		at += 1 + (size_t)history->ops[at].more;
	return at == history->count;
}

int hs_sim_history_read(struct hs_sim_history *history, struct hs_bytes text, size_t *line)
{
	*line = 0;
	while (text.len > 0) {
		const char *end = memchr(text.data, '\n', text.len);
		size_t len = end ? (size_t)(end - text.data) : text.len;
		char copy[LINE_BYTES_MAX];
		struct hs_sim_op op;

		++*line;
		if (len >= sizeof copy)
			return HS_EINVAL;
		memcpy(copy, text.data, len);
		copy[len] = '\0';
		text = (struct hs_bytes){text.data + len + (end != NULL),
					 text.len - len - (end != NULL)};
		if (len == 0 || copy[0] == '#')
			continue;
		if (!read_op(copy, &op))
			return HS_EINVAL;
		if (history->count == HS_SIM_HISTORY_TEXT_OPS_MAX)
			return HS_ELIMIT;
		hs_sim_history_add(history, &op);
	}
	return is_whole(history) ? 0 : HS_EINVAL;
}
