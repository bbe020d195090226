/* CLIENT TRACKING, CLIENT CACHING and CLIENT TRACKINGINFO. */
#include "sim/server_internal.h"

#include "base/num.h"

#define MODES (HS_SIM_CONN_BCAST | HS_SIM_CONN_OPTIN | HS_SIM_CONN_OPTOUT | HS_SIM_CONN_NOLOOP)

struct wish {
	unsigned flags;
	uint64_t redirect;
	bool redirects;
	size_t prefixes;
};

/* Returns an error's text, or NULL. */
static const char *parse(const struct hs_sim_server *server, size_t argc,
			 const struct hs_bytes *argv, struct wish *wish)
{
	int64_t id;

	for (size_t i = 3; i < argc; i++) {
		bool more = i + 1 < argc;

		if (hs_bytes_is_word(argv[i], "redirect") && more) {
			if (wish->redirects)
				return "ERR A client can only redirect to a single other client";
			if (!hs_num_parse_int(argv[++i], &id))
				return "ERR value is not an integer or out of range";
			if (!hs_sim_server_conn_by_id(server, (uint64_t)id))
				return "ERR The client ID you want redirect to does not exist";
			wish->redirects = true;
			wish->redirect = (uint64_t)id;
		} else if (hs_bytes_is_word(argv[i], "bcast")) {
			wish->flags |= HS_SIM_CONN_BCAST;
		} else if (hs_bytes_is_word(argv[i], "optin")) {
			wish->flags |= HS_SIM_CONN_OPTIN;
		} else if (hs_bytes_is_word(argv[i], "optout")) {
			wish->flags |= HS_SIM_CONN_OPTOUT;
		} else if (hs_bytes_is_word(argv[i], "noloop")) {
			wish->flags |= HS_SIM_CONN_NOLOOP;
		} else if (hs_bytes_is_word(argv[i], "prefix") && more) {
			i++;
			wish->prefixes++;
		} else {
			return "ERR syntax error";
		}
	}
	return NULL;
}

static const char *judge(const struct hs_sim_server_conn *conn, const struct wish *wish)
{
	unsigned optional = HS_SIM_CONN_OPTIN | HS_SIM_CONN_OPTOUT;

	if (wish->prefixes > 0 && !(wish->flags & HS_SIM_CONN_BCAST))
		return "ERR PREFIX option requires BCAST mode to be enabled";
	if (conn->flags & HS_SIM_CONN_TRACKING && (conn->flags ^ wish->flags) & HS_SIM_CONN_BCAST)
		return "ERR You can't switch BCAST mode on/off before disabling tracking for this "
		       "client, and then re-enabling it with a different mode.";
	if (wish->flags & HS_SIM_CONN_BCAST && wish->flags & optional)
		return "ERR OPTIN and OPTOUT are not compatible with BCAST";
	if ((wish->flags & optional) == optional)
		return "ERR You can't specify both OPTIN mode and OPTOUT mode";
	if ((wish->flags & HS_SIM_CONN_OPTIN && conn->flags & HS_SIM_CONN_OPTOUT) ||
	    (wish->flags & HS_SIM_CONN_OPTOUT && conn->flags & HS_SIM_CONN_OPTIN))
		return "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this "
		       "client, and then re-enabling it with a different mode.";
	return NULL;
}

static bool overlap(struct hs_bytes a, struct hs_bytes b)
{
	return memcmp(a.data, b.data, a.len < b.len ? a.len : b.len) == 0;
}

/* False: two prefixes of one connection overlap; the error is written. */
static bool prefixes_fit(const struct hs_sim_server_conn *conn, size_t argc,
			 const struct hs_bytes *argv, struct hs_reply *reply)
{
	static const char text[] = "ERR Prefix '%.*s' overlaps with %s prefix '%.*s'. Prefixes for "
				   "a single client must not overlap.";
	const struct hs_sim_prefix *at;

	for (size_t i = 3; i + 1 < argc; i++) {
		struct hs_bytes mine = argv[i + 1], other;

		if (hs_bytes_is_word(argv[i], "redirect"))
			i++;
		if (!hs_bytes_is_word(argv[i], "prefix"))
			continue;
		for (at = hs_sim_prefix_next(conn, NULL, &other); at;
		     at = hs_sim_prefix_next(conn, at, &other)) {
			if (overlap(other, mine)) {
				hs_reply_errorf(reply, text, (int)mine.len, mine.data,
						"an existing", (int)other.len, other.data);
				return false;
			}
		}
		for (size_t j = i + 2; j + 1 < argc; j++) {
			other = argv[j + 1];
			if (hs_bytes_is_word(argv[j], "redirect"))
				j++;
			if (hs_bytes_is_word(argv[j], "prefix") && overlap(mine, other)) {
				hs_reply_errorf(reply, text, (int)mine.len, mine.data,
						"another provided", (int)other.len, other.data);
				return false;
			}
		}
		i++;
	}
	return true;
}

static void start(struct hs_sim_server_conn *conn, size_t argc, const struct hs_bytes *argv,
		  const struct wish *wish)
{
	struct hs_sim_server *server = conn->server;

	hs_sim_tracking_begin(server);
	if (!(conn->flags & HS_SIM_CONN_TRACKING))
		server->tracking_conns++;
	conn->flags &= ~(unsigned)(MODES | HS_SIM_CONN_BROKEN_REDIRECT);
	conn->flags |= HS_SIM_CONN_TRACKING | wish->flags;
	conn->redirect = wish->redirect;
	if (!(wish->flags & HS_SIM_CONN_BCAST))
		return;
	if (wish->prefixes == 0)
		hs_sim_prefix_join(conn, HS_LIT(""));
	for (size_t i = 3; i + 1 < argc; i++) {
		if (hs_bytes_is_word(argv[i], "prefix"))
			hs_sim_prefix_join(conn, argv[i + 1]);
		i += hs_bytes_is_word(argv[i], "prefix") || hs_bytes_is_word(argv[i], "redirect");
	}
}

void hs_sim_tracking_stop(struct hs_sim_server_conn *conn)
{
	if (!(conn->flags & HS_SIM_CONN_TRACKING))
		return;
	hs_sim_prefix_leave_all(conn);
	conn->server->tracking_conns--;
	conn->flags &= ~(unsigned)(MODES | HS_SIM_CONN_TRACKING | HS_SIM_CONN_CACHING |
				   HS_SIM_CONN_BROKEN_REDIRECT);
}

void hs_sim_tracking_command(struct hs_sim_server_conn *conn, size_t argc,
			     const struct hs_bytes *argv, struct hs_reply *reply)
{
	struct wish wish = {0};
	const char *error = parse(conn->server, argc, argv, &wish);
	bool on = hs_bytes_is_word(argv[2], "on");

	if (!error && on)
		error = judge(conn, &wish);
	if (!error && !on && !hs_bytes_is_word(argv[2], "off"))
		error = "ERR syntax error";
	if (error) {
		hs_reply_error(reply, error);
		return;
	}
	if (on && wish.flags & HS_SIM_CONN_BCAST && !prefixes_fit(conn, argc, argv, reply))
		return;
	if (on)
		start(conn, argc, argv, &wish);
	else
		hs_sim_tracking_stop(conn);
	hs_reply_ok(reply);
}

void hs_sim_tracking_caching(struct hs_sim_server_conn *conn, struct hs_bytes word,
			     struct hs_reply *reply)
{
	const char *error = NULL;
	bool yes = hs_bytes_is_word(word, "yes");

	if (!(conn->flags & HS_SIM_CONN_TRACKING))
		error = "ERR CLIENT CACHING can be called only when the client is in tracking mode "
			"with OPTIN or OPTOUT mode enabled";
	else if (!yes && !hs_bytes_is_word(word, "no"))
		error = "ERR syntax error";
	else if (yes && !(conn->flags & HS_SIM_CONN_OPTIN))
		error = "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN "
			"mode.";
	else if (!yes && !(conn->flags & HS_SIM_CONN_OPTOUT))
		error = "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT "
			"mode.";
	if (error) {
		hs_reply_error(reply, error);
		return;
	}
	conn->flags |= HS_SIM_CONN_CACHING;
	hs_reply_ok(reply);
}

void hs_sim_tracking_info(struct hs_sim_server_conn *conn, struct hs_reply *reply)
{
	static const struct {
		unsigned flag;
		const char *word;
	} rows[] = {
		{HS_SIM_CONN_BCAST, "bcast"},
		{HS_SIM_CONN_OPTIN, "optin"},
		{HS_SIM_CONN_OPTOUT, "optout"},
		{HS_SIM_CONN_NOLOOP, "noloop"},
		{HS_SIM_CONN_BROKEN_REDIRECT, "broken_redirect"},
	};
	bool on = conn->flags & HS_SIM_CONN_TRACKING;
	size_t count = 1, prefixes = 0;
	const struct hs_sim_prefix *at;
	struct hs_bytes bytes;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		count += (conn->flags & rows[i].flag) != 0;
	if (conn->flags & HS_SIM_CONN_CACHING && on)
		count++;
	hs_reply_map(reply, 3);
	hs_reply_bulk_text(reply, "flags");
	hs_reply_set(reply, count);
	hs_reply_bulk_text(reply, on ? "on" : "off");
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (!(conn->flags & rows[i].flag))
			continue;
		hs_reply_bulk_text(reply, rows[i].word);
		if (conn->flags & HS_SIM_CONN_CACHING && rows[i].flag == HS_SIM_CONN_OPTIN)
			hs_reply_bulk_text(reply, "caching-yes");
		if (conn->flags & HS_SIM_CONN_CACHING && rows[i].flag == HS_SIM_CONN_OPTOUT)
			hs_reply_bulk_text(reply, "caching-no");
	}
	hs_reply_bulk_text(reply, "redirect");
	hs_reply_int(reply, on ? (int64_t)conn->redirect : -1);
	hs_reply_bulk_text(reply, "prefixes");
	for (at = hs_sim_prefix_next(conn, NULL, &bytes); at;
	     at = hs_sim_prefix_next(conn, at, &bytes))
		prefixes++;
	hs_reply_array(reply, prefixes);
	for (at = hs_sim_prefix_next(conn, NULL, &bytes); at;
	     at = hs_sim_prefix_next(conn, at, &bytes))
		hs_reply_bulk(reply, bytes);
}
