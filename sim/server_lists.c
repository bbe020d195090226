/* Lists, as far as BLPOP needs them: RPUSH and BLPOP. A list is stored as a text value, which clients must not set
 * and other commands show. Moves, replication and failovers carry it like any value.
 *
 *     LIST a b c      the word LIST, then the elements from the first to the last
 *
 * Blocked clients are served in the order in which they blocked, after the command that pushed elements, or
 * when the key arrives from another node. */
#include "sim/server_internal.h"

#include "base/slot.h"

#define LIST_HEAD "LIST"

/* False: there is no list. `elements` begin with a space each, and are borrowed. */
static bool find_list(struct hs_sim_server *server, struct hs_bytes key, struct hs_buf *value,
		      bool *other)
{
	uint16_t slot = hs_slot_of(key);

	*other = false;
	value->len = 0;
	if (hs_sim_data_expire(server, slot, key) || !hs_sim_keys_value(server, key, value))
		return false;
	*other = !hs_bytes_begins(hs_buf_bytes(value), HS_LIT(LIST_HEAD " "));
	return !*other;
}

static void put_list(struct hs_sim_server_conn *conn, struct hs_bytes key, struct hs_bytes value)
{
	const struct hs_bytes set[] = {HS_LIT("SET"), key, value};
	const struct hs_bytes del[] = {HS_LIT("DEL"), key};
	bool empty = value.len == strlen(LIST_HEAD);
	struct hs_buf out = {0};
	struct hs_reply nobody = {.out = &out, .resp = 2};

	hs_sim_data_run(conn, hs_command_by_id(empty ? HS_CMD_ID_DEL : HS_CMD_ID_SET),
			empty ? 2 : 3, empty ? del : set, &nobody);
	hs_buf_deinit(&out);
}

static void reply_wrong(struct hs_reply *reply)
{
	hs_reply_error(reply, "WRONGTYPE Operation against a key holding the wrong kind of value");
}

/* Elements must not contain spaces. */
void hs_sim_lists_push(struct hs_sim_server_conn *conn, size_t argc, const struct hs_bytes *argv,
		       struct hs_reply *reply)
{
	struct hs_buf value = {0};
	bool other, found = find_list(conn->server, argv[1], &value, &other);
	int64_t count = 0;

	if (other) {
		reply_wrong(reply);
		hs_buf_deinit(&value);
		return;
	}
	if (!found)
		hs_buf_append_bytes(&value, HS_LIT(LIST_HEAD));
	for (size_t i = 2; i < argc; i++) {
		hs_buf_append(&value, " ", 1);
		hs_buf_append_bytes(&value, argv[i]);
	}
	for (size_t i = 0; i < value.len; i++)
		count += value.data[i] == ' ';
	put_list(conn, argv[1], hs_buf_bytes(&value));
	hs_reply_int(reply, count);
	hs_buf_deinit(&value);
	conn->server->lists_grew = true;
}

/* Pops the first element of the first list that has one. */
bool hs_sim_lists_pop(struct hs_sim_server_conn *conn, size_t keys, const struct hs_bytes *names,
		      struct hs_reply *reply)
{
	struct hs_buf value = {0};
	struct hs_bytes element;
	bool other = false, done = false;
	const char *end;

	for (size_t i = 0; i < keys && !done; i++) {
		done = find_list(conn->server, names[i], &value, &other) || other;
		if (!done)
			continue;
		if (other) {
			reply_wrong(reply);
			break;
		}
		element.data = value.data + strlen(LIST_HEAD) + 1;
		element.len = value.len - strlen(LIST_HEAD) - 1;
		end = memchr(element.data, ' ', element.len);
		if (end)
			element.len = (size_t)(end - element.data);
		hs_reply_array(reply, 2);
		hs_reply_bulk(reply, names[i]);
		hs_reply_bulk(reply, element);
		hs_buf_reserve(&value, 1);
		memmove(value.data + strlen(LIST_HEAD), element.data + element.len,
			value.len - strlen(LIST_HEAD) - 1 - element.len);
		value.len -= 1 + element.len;
		put_list(conn, names[i], hs_buf_bytes(&value));
	}
	hs_buf_deinit(&value);
	return done;
}

void hs_sim_lists_wait(struct hs_sim_server_conn *conn, size_t keys, const struct hs_bytes *names)
{
	conn->wait_keys.len = 0;
	for (size_t i = 0; i < keys; i++) {
		hs_buf_append(&conn->wait_keys, (const char *)&names[i].len, sizeof names[i].len);
		hs_buf_append_bytes(&conn->wait_keys, names[i]);
	}
}

/* Tries the lists that the connection waits for, in its order. */
static bool serve(struct hs_sim_server_conn *conn, struct hs_reply *reply)
{
	struct hs_bytes name;
	bool served = false;

	for (size_t at = 0; at < conn->wait_keys.len && !served; at += name.len) {
		memcpy(&name.len, conn->wait_keys.data + at, sizeof name.len);
		at += sizeof name.len;
		name.data = conn->wait_keys.data + at;
		served = hs_sim_lists_pop(conn, 1, &name, reply);
	}
	return served;
}

/* The connection that has waited longest for a list with elements. */
static struct hs_sim_server_conn *find_waiting(struct hs_sim_server *server, uint64_t since)
{
	struct hs_sim_server_conn *first = NULL;

	for (struct hs_link *link = server->clients.next; link != &server->clients;
	     link = link->next) {
		struct hs_sim_server_conn *conn =
			hs_list_entry(link, struct hs_sim_server_conn, link);

		if (conn->flags & HS_SIM_CONN_BLOCKED && conn->wait == HS_SIM_WAIT_LIST &&
		    conn->wait_number > since && (!first || conn->wait_number < first->wait_number))
			first = conn;
	}
	return first;
}

void hs_sim_lists_serve(struct hs_sim_server *server)
{
	struct hs_sim_server_conn *conn;
	uint64_t since = 0;

	server->lists_grew = false;
	while ((conn = find_waiting(server, since))) {
		struct hs_reply reply = hs_sim_conn_reply(conn);

		since = conn->wait_number;
		if (!serve(conn, &reply))
			continue;
		conn->flags &= ~(unsigned)HS_SIM_CONN_BLOCKED;
		hs_sim_conn_wrote(conn);
		hs_sim_conn_ready(conn);
	}
}
