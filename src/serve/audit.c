#include "serve/audit.h"

#include "command/secret.h"

enum { WORD_BYTES = 100, TEXT_BYTES = 600 };

/* True if the reply is +OK or a number above 0; a query (HEAT RULE LIST) is answered with data. An empty reply counts
 * as a change: the servers behind heatsink answer it later. */
static bool has_changed(struct hs_bytes reply)
{
	return reply.len == 0 || reply.data[0] == '+' ||
	       (reply.data[0] == ':' && !hs_bytes_equal(reply, HS_LIT(":0\r\n")));
}

/* SLOWLOG hides every argument of ACL SETUSER, as Redis does. The audit line shows the user's name and the rules,
 * without passwords. */
static bool is_secret(const struct hs_op *op, size_t at)
{
	if (op->command->id == HS_CMD_ID_ACL_SETUSER)
		return at > 2 && hs_secret_rule(op->argv[at]);
	return hs_secret_at(op->argc, op->argv, at);
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
			      is_secret(op, i) ? HS_SECRET_TEXT
					       : hs_bytes_escape(op->argv[i], shown, sizeof shown));
	}
}

void hs_audit_log(const struct hs_host *host, const struct hs_op *op, struct hs_bytes reply)
{
	struct hs_buf text = {0};

	if (!op->command->audited || !has_changed(reply))
		return;
	append_request(op, &text);
	hs_log(host->log, HS_LOG_INFO, "%.*s: %s %.*s", (int)text.len, text.data,
	       reply.len > 0 ? "done for" : "sent to the servers for",
	       op->raw.len > 0 ? (int)op->raw.len : 8, op->raw.len > 0 ? op->raw.data : "a client");
	hs_buf_deinit(&text);
}
