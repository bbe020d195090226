/* Composes all commands at once, then takes one reply for each. The first error ends the greeting; for
 * `any_resp_server` some errors do not (is_harmless). */
#include "upstream/greeting.h"

#include "wire/compose.h"
#include "wire/parse_reply.h"

#include <stdio.h>

enum { REPLIES_BYTES_MAX = 1 << 16, ARGS_MAX = 7 };

void hs_greeting_init(struct hs_greeting *greeting, const struct hs_greeting_options *options)
{
	*greeting = (struct hs_greeting){.options = *options};
	snprintf(greeting->expected_id, sizeof greeting->expected_id, "%s", options->expected_id);
}

void hs_greeting_deinit(struct hs_greeting *greeting)
{
	hs_buf_deinit(&greeting->in);
}

static void compose_select(struct hs_greeting *greeting, struct hs_buf *out)
{
	uint32_t db = greeting->options.login->db;
	char select[32];

	if (db == 0 || greeting->options.hello_only)
		return;
	snprintf(select, sizeof select, "SELECT %u", db);
	hs_compose_line(out, select);
	greeting->replies_left++;
}

/* AUTH also for a user without a password: a `nopass` user is let in with any. */
static bool wants_auth(const struct hs_login *login)
{
	return login->user[0] || login->password[0];
}

static void compose_for_any_server(struct hs_greeting *greeting, struct hs_buf *out)
{
	const struct hs_login *login = greeting->options.login;
	const struct hs_bytes auth[] = {HS_LIT("AUTH"), hs_bytes_of(login->user),
					hs_bytes_of(login->password)};
	const struct hs_bytes old[] = {auth[0], auth[2]};

	greeting->replies_left = 1;
	if (wants_auth(login)) {
		hs_compose(out, login->user[0] ? 3 : 2, login->user[0] ? auth : old);
		greeting->replies_left++;
	}
	compose_select(greeting, out);
	hs_compose_line(out, greeting->options.resp == 3 ? "HELLO 3" : "PING");
}

void hs_greeting_compose(struct hs_greeting *greeting, struct hs_buf *out)
{
	const struct hs_login *login = greeting->options.login;
	struct hs_bytes hello[ARGS_MAX] = {HS_LIT("HELLO"),
					   greeting->options.resp == 3 ? HS_LIT("3") : HS_LIT("2")};
	size_t argc = 2;

	if (greeting->options.any_resp_server) {
		compose_for_any_server(greeting, out);
		return;
	}
	if (wants_auth(login)) {
		hello[argc++] = HS_LIT("AUTH");
		hello[argc++] = hs_bytes_of(login->user[0] ? login->user : "default");
		hello[argc++] = hs_bytes_of(login->password);
	}
	hello[argc++] = HS_LIT("SETNAME");
	hello[argc++] = HS_LIT("heatsink");
	hs_compose(out, argc, hello);
	greeting->replies_left = 1;
	compose_select(greeting, out);
	if (greeting->expected_id[0]) {
		hs_compose_line(out, "CLUSTER MYID");
		greeting->replies_left++;
	}
}

/* This connection's id from the map in HELLO's reply. */
static int64_t read_id(struct hs_bytes reply)
{
	struct hs_parsed_reply head, field;
	int64_t at = hs_parse_reply_head(&head, reply.data, reply.len);

	while (at > 0 && (size_t)at < reply.len) {
		int64_t used = hs_parse_reply_head(&field, reply.data + at, reply.len - (size_t)at);

		if (used <= 0)
			break;
		at += used;
		if (field.type == HS_PARSED_BULK && hs_bytes_equal(field.text, HS_LIT("id")) &&
		    hs_parse_reply_head(&field, reply.data + at, reply.len - (size_t)at) > 0 &&
		    field.type == HS_PARSED_INT)
			return field.integer;
	}
	return 0;
}

static void explain_refusal(struct hs_greeting *greeting, struct hs_bytes text)
{
	const struct hs_login *login = greeting->options.login;

	if (hs_bytes_begins(text, HS_LIT("NOAUTH"))) /* the server's text goes on about HELLO */
		text = HS_LIT("it requires a password: NOAUTH");
	if (hs_bytes_begins(text, HS_LIT("WRONGPASS")) ||
	    hs_bytes_begins(text, HS_LIT("it requires")))
		snprintf(greeting->why, sizeof greeting->why,
			 HS_LOGIN_REFUSED " as '%s': check %s (%.*s)",
			 login->user[0] ? login->user : "default", login->login_options,
			 (int)text.len, text.data);
	else
		snprintf(greeting->why, sizeof greeting->why, HS_GREETING_REFUSED ": %.*s",
			 (int)text.len, text.data);
}

/* An error that does not fail a greeting for any RESP server: AUTH where no password is set; or any error to the
 * last command, unless it refuses the connection. That server works: it may not know HELLO, may be loading, or may
 * refuse PING because it cannot save (MISCONF) or has lost its master (MASTERDOWN). */
static bool is_harmless(const struct hs_greeting *greeting, struct hs_bytes text)
{
	static const char *const refuses[] = {"NOAUTH", "DENIED", "ERR max number of clients",
					      "ERR this port speaks TLS only"};

	if (!greeting->options.any_resp_server)
		return false;
	if (hs_bytes_begins(text, HS_LIT("ERR AUTH <password> called without any password")))
		return true;
	for (size_t i = 0; i < sizeof refuses / sizeof *refuses; i++) {
		if (hs_bytes_begins(text, hs_bytes_of(refuses[i])))
			return false;
	}
	return greeting->replies_left == 1;
}

/* False: the greeting failed. */
static bool take_reply(struct hs_greeting *greeting, struct hs_bytes reply)
{
	struct hs_parsed_reply head;

	if (hs_parse_reply_head(&head, reply.data, reply.len) <= 0)
		return false;
	if (head.type == HS_PARSED_ERROR && !is_harmless(greeting, head.text)) {
		explain_refusal(greeting, head.text);
		return false;
	}
	if (head.type == HS_PARSED_MAP || head.type == HS_PARSED_ARRAY)
		greeting->server_id = read_id(reply);
	greeting->replies_left--;
	if (greeting->replies_left == 0 && greeting->expected_id[0] &&
	    !hs_bytes_equal(head.text, hs_bytes_of(greeting->expected_id))) {
		snprintf(greeting->why, sizeof greeting->why,
			 "another node than the cluster lists answers at this address: %.*s",
			 (int)head.text.len, head.text.data);
		return false;
	}
	return true;
}

enum hs_greeting_step hs_greeting_receive(struct hs_greeting *greeting, const char *data,
					  size_t len, size_t *used)
{
	size_t before = greeting->in.len, at = 0;

	*used = len;
	snprintf(greeting->why, sizeof greeting->why, "the server does not speak RESP");
	hs_buf_append(&greeting->in, data, len);
	while (greeting->replies_left > 0) {
		const char *next = greeting->in.data + at;
		int64_t size = hs_parse_reply_length(next, greeting->in.len - at);

		if (size < 0 || greeting->in.len > REPLIES_BYTES_MAX)
			return HS_GREETING_FAILED;
		if (size == 0) {
			hs_buf_consume(&greeting->in, at);
			return HS_GREETING_MORE;
		}
		if (!take_reply(greeting, (struct hs_bytes){next, (size_t)size}))
			return HS_GREETING_FAILED;
		at += (size_t)size;
	}
	hs_buf_deinit(&greeting->in);
	*used = at - before;
	return HS_GREETING_READY;
}
