#include "serve/audit.h"

enum { WORD_BYTES = 100, TEXT_BYTES = 600 };

static bool is_change(const struct hs_op *op)
{
	if (op->command->id == HS_CMD_ID_HEAT_MITIGATE)
		return op->argc > 2;
	if (op->command->id == HS_CMD_ID_HEAT_RULE)
		return hs_bytes_is_word(op->argv[2], "set") || hs_bytes_is_word(op->argv[2], "del");
	return op->command->audited;
}

static bool has_word(struct hs_bytes text, const char *word)
{
	size_t len = strlen(word);

	for (size_t i = 0; i + len <= text.len; i++)
		if (hs_bytes_is_word((struct hs_bytes){text.data + i, len}, word))
			return true;
	return false;
}

/* Passwords: values of options such as requirepass and tls-key-file-pass, and the rules of a user that begin
 * as passwords and their hashes do. */
static bool is_secret(const struct hs_op *op, size_t at)
{
	if (op->command->id == HS_CMD_ID_ACL_SETUSER)
		return at > 2 && op->argv[at].len > 0 && strchr("><#!", op->argv[at].data[0]);
	if (op->command->id == HS_CMD_ID_CONFIG_SET)
		return at > 2 && at % 2 == 1 &&
		       (has_word(op->argv[at - 1], "pass") ||
			has_word(op->argv[at - 1], "masterauth"));
	return false;
}

/* "CONFIG SET maxclients 100". */
static void append_request(const struct hs_op *op, struct hs_buf *text)
{
	char shown[WORD_BYTES];

	for (size_t i = 0; i < op->argc; i++) {
		if (text->len > TEXT_BYTES) {
			hs_buf_printf(text, " ... (%zu more words)", op->argc - i);
			return;
		}
		hs_buf_printf(text, "%s%s", i > 0 ? " " : "",
			      is_secret(op, i) ? "(hidden)"
					       : hs_bytes_escape(op->argv[i], shown, sizeof shown));
	}
}

void hs_audit_log(const struct hs_host *host, const struct hs_op *op, struct hs_bytes reply)
{
	struct hs_buf text = {0};

	if (!is_change(op) || (reply.len > 0 && reply.data[0] == '-'))
		return;
	if (op->command->id == HS_CMD_ID_ACL_DELUSER && hs_bytes_equal(reply, HS_LIT(":0\r\n")))
		return;
	append_request(op, &text);
	hs_log(host->log, HS_LOG_INFO, "%.*s: %s %.*s", (int)text.len, text.data,
	       reply.len > 0 ? "done for" : "sent to the servers for",
	       op->raw.len > 0 ? (int)op->raw.len : 8, op->raw.len > 0 ? op->raw.data : "a client");
	hs_buf_deinit(&text);
}
