/* One connection to the server. A question is a handful of commands sent at once; its answer is
 * there when the last reply is. Nothing here waits: the loop polls for the descriptor beside the
 * keyboard, so that a server that hangs holds up no key.
 *
 *     CLOSED ──ask──▶ CONNECTING ──▶ OPEN ──replies──▶ OPEN (idle) ──ask──▶ …
 *        ▲                │            │
 *        └────────────────┴── failed ──┘     the error says what to do; the next ask connects
 *
 * A new connection says AUTH, where there is a password, and HELLO 3. A server that does not know
 * HELLO answers in RESP2, which is read as well. */
#include "cli/top.h"

#include "base/mem.h"
#include "wire/answer.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

enum state { CLOSED, CONNECTING, OPEN };

/* What a reply answers. */
enum command { AUTH, HELLO, INFO, HEAT };

enum { COMMANDS_MAX = HS_TOP_REPLIES_MAX + 2, RECEIVE_BYTES = 64 << 10 };

struct hs_top_client {
	const struct hs_top_options *options;
	struct addrinfo *addresses, *address; /* all, and the one in use */
	int fd;
	enum state state;
	bool asking, failed;
	uint64_t deadline_us;
	struct hs_top_question question;
	struct hs_buf out, in;
	size_t sent; /* of `out` */
	enum command commands[COMMANDS_MAX];
	size_t commands_count;
	size_t ends[COMMANDS_MAX]; /* of the replies, in `in` */
	size_t ends_count;
	char error[HS_TOP_ERROR_MAX];
};

struct hs_top_client *hs_top_client_create(const struct hs_top_options *options,
					   char error[HS_TOP_ERROR_MAX])
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *addresses;
	struct hs_top_client *client;
	char port[8];
	int rc;

	snprintf(port, sizeof port, "%u", (unsigned)options->port);
	rc = getaddrinfo(options->host, port, &hints, &addresses);
	if (rc != 0) {
		snprintf(error, HS_TOP_ERROR_MAX, "--target: '%s': %s", options->host,
			 gai_strerror(rc));
		return NULL;
	}
	client = hs_mem_zalloc(sizeof *client);
	client->options = options;
	client->addresses = addresses;
	client->fd = -1;
	return client;
}

static void hang_up(struct hs_top_client *client)
{
	if (client->fd >= 0)
		close(client->fd);
	client->fd = -1;
	client->state = CLOSED;
}

void hs_top_client_destroy(struct hs_top_client **client)
{
	struct hs_top_client *old = *client;

	if (!old)
		return;
	hang_up(old);
	freeaddrinfo(old->addresses);
	hs_buf_deinit(&old->out);
	hs_buf_deinit(&old->in);
	hs_mem_free(client);
}

__attribute__((format(printf, 2, 3))) static void fail(struct hs_top_client *client,
						       const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(client->error, sizeof client->error, format, arguments);
	va_end(arguments);
	hang_up(client);
	client->failed = true;
}

/* ---- connecting ---- */

/* Tries the addresses from `address` on until one does not fail at once. */
static void connect_next(struct hs_top_client *client)
{
	int why = 0, one = 1;

	for (; client->address; client->address = client->address->ai_next) {
		struct addrinfo *address = client->address;

		client->fd =
			socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (client->fd < 0) {
			why = errno;
			continue;
		}
		setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		client->state = CONNECTING;
		if (connect(client->fd, address->ai_addr, address->ai_addrlen) == 0 ||
		    errno == EINPROGRESS)
			return;
		why = errno;
		hang_up(client);
	}
	fail(client, "cannot connect to %s: %s; is heatsink running there? (--target)",
	     client->options->target, strerror(why));
}

/* Whether a connection under way has come about; the next address when it has not. */
static void finish_connect(struct hs_top_client *client)
{
	struct pollfd ready = {.fd = client->fd, .events = POLLOUT};
	socklen_t len = sizeof(int);
	int why = 0;

	if (poll(&ready, 1, 0) <= 0)
		return;
	if (getsockopt(client->fd, SOL_SOCKET, SO_ERROR, &why, &len) == 0 && why == 0) {
		client->state = OPEN;
		return;
	}
	hang_up(client);
	client->address = client->address->ai_next;
	if (client->address)
		connect_next(client);
	else
		fail(client, "cannot connect to %s: %s; is heatsink running there? (--target)",
		     client->options->target, strerror(why));
}

/* ---- asking ---- */

static void append_word(struct hs_buf *out, struct hs_bytes word)
{
	hs_buf_printf(out, "$%zu\r\n", word.len);
	hs_buf_append_bytes(out, word);
	hs_buf_append(out, "\r\n", 2);
}

/* Composes one command; words that are empty are left out. */
static void say(struct hs_top_client *client, enum command command, const struct hs_bytes *words,
		size_t count)
{
	size_t given = 0;

	for (size_t i = 0; i < count; i++)
		given += words[i].data != NULL;
	hs_buf_printf(&client->out, "*%zu\r\n", given);
	for (size_t i = 0; i < count; i++) {
		if (words[i].data)
			append_word(&client->out, words[i]);
	}
	hs_check(client->commands_count < COMMANDS_MAX);
	client->commands[client->commands_count++] = command;
}

#define SAY(client, command, ...)                                                                  \
	say(client, command, (const struct hs_bytes[]){__VA_ARGS__},                               \
	    sizeof((const struct hs_bytes[]){__VA_ARGS__}) / sizeof(struct hs_bytes))

static const struct hs_bytes no_word = {NULL, 0};

static void say_rows(struct hs_top_client *client, const struct hs_top_question *question,
		     enum hs_top_what what, uint64_t count)
{
	bool chosen = question->window != HS_TOP_AUTO;
	bool filtered = what == HS_TOP_KEYS && question->prefix_len;
	char number[24];

	snprintf(number, sizeof number, "%llu", (unsigned long long)count);
	SAY(client, HEAT, HS_LIT("HEAT"),
	    hs_bytes_of(what == HS_TOP_KEYS ? "TOP" : hs_top_what_name(what)), HS_LIT("COUNT"),
	    hs_bytes_of(number), HS_LIT("BY"), hs_bytes_of(hs_top_sort_name(question->sort)),
	    chosen ? HS_LIT("WINDOW") : no_word,
	    chosen ? hs_bytes_of(hs_top_window_name(question->window)) : no_word,
	    filtered ? HS_LIT("PREFIX") : no_word,
	    filtered ? (struct hs_bytes){question->prefix, question->prefix_len} : no_word);
}

static void compose(struct hs_top_client *client, bool greet)
{
	const struct hs_top_question *question = &client->question;
	const char *password = client->options->password.text;
	bool chosen = question->window != HS_TOP_AUTO;
	/* Prefixes are filtered here: enough of them must come for some to be left. */
	bool all = question->what == HS_TOP_PREFIXES && question->prefix_len;

	if (greet && *password)
		SAY(client, AUTH, HS_LIT("AUTH"), hs_bytes_of(password));
	if (greet)
		SAY(client, HELLO, HS_LIT("HELLO"), HS_LIT("3"));
	SAY(client, INFO, HS_LIT("INFO"), HS_LIT("server"));
	SAY(client, HEAT, HS_LIT("HEAT"), HS_LIT("PARTITIONS"), chosen ? HS_LIT("WINDOW") : no_word,
	    chosen ? hs_bytes_of(hs_top_window_name(question->window)) : no_word);
	say_rows(client, question, question->what, all ? HS_TOP_ROWS_MAX : question->count);
	if (question->what != HS_TOP_PREFIXES)
		say_rows(client, question, HS_TOP_PREFIXES, HS_TOP_PREFIX_ROWS);
}

void hs_top_client_ask(struct hs_top_client *client, const struct hs_top_question *question,
		       uint64_t now_us)
{
	bool greet = client->state == CLOSED;

	hs_check(!client->asking);
	client->question = *question;
	client->asking = true;
	client->failed = false;
	client->deadline_us = now_us + client->options->timeout_us;
	client->commands_count = client->ends_count = 0;
	client->sent = client->out.len = client->in.len = 0;
	compose(client, greet);
	if (greet) {
		client->address = client->addresses;
		connect_next(client);
	}
}

bool hs_top_client_asking(const struct hs_top_client *client)
{
	return client->asking;
}

const struct hs_top_question *hs_top_client_question(const struct hs_top_client *client)
{
	return &client->question;
}

/* A question that has failed at once needs no event to be stepped: its deadline is over. */
int hs_top_client_poll(const struct hs_top_client *client, short *events)
{
	bool write = client->state == CONNECTING || client->sent < client->out.len;

	*events = (short)((write ? POLLOUT : 0) | (client->state == OPEN ? POLLIN : 0));
	return client->asking ? client->fd : -1;
}

uint64_t hs_top_client_deadline_us(const struct hs_top_client *client)
{
	if (!client->asking)
		return UINT64_MAX;
	return client->failed ? 0 : client->deadline_us;
}

const char *hs_top_client_error(const struct hs_top_client *client)
{
	return client->error;
}

/* ---- replies ---- */

static bool starts(struct hs_bytes text, const char *word)
{
	size_t len = strlen(word);

	return text.len >= len && memcmp(text.data, word, len) == 0;
}

/* Errors that do not stand in the way: no password wanted, no HELLO known, no INFO given. */
static bool harmless(enum command command, struct hs_bytes text)
{
	switch (command) {
	case AUTH:
		return starts(text, "ERR AUTH <password> called without any password");
	case HELLO:
		return starts(text, "ERR unknown command") || starts(text, "NOPROTO");
	case INFO:
		return !starts(text, "NOAUTH");
	case HEAT:
		break;
	}
	return false;
}

static void complain(struct hs_top_client *client, enum command command, struct hs_bytes text)
{
	const char *target = client->options->target;
	char said[160];

	hs_bytes_escape(text, said, sizeof said);
	if (starts(text, "NOAUTH"))
		fail(client,
		     "%s wants a password: give it with --password-file FILE, "
		     "$" HS_FLAGS_PASSWORD_ENV " or --password WORD",
		     target);
	else if (command == AUTH)
		fail(client,
		     "%s refuses the password: check --password, --password-file "
		     "or $" HS_FLAGS_PASSWORD_ENV " (%s)",
		     target, said);
	else if (command == HEAT && starts(text, "ERR unknown command"))
		fail(client,
		     "%s is not heatsink: it does not know HEAT; point --target at a heatsink "
		     "server",
		     target);
	else
		fail(client, "%s answers: %s", target, said);
}

/* One whole reply. What is pushed out of turn answers nothing. */
static void take_reply(struct hs_top_client *client, const struct hs_answer *head, size_t end)
{
	enum command command = client->commands[client->ends_count];

	if (head->type == HS_ANSWER_ERROR && !harmless(command, head->text))
		complain(client, command, head->text);
	else
		client->ends[client->ends_count++] = end;
}

static void read_replies(struct hs_top_client *client)
{
	while (!client->failed && client->ends_count < client->commands_count) {
		size_t at = client->ends_count ? client->ends[client->ends_count - 1] : 0;
		const char *data = client->in.data + at;
		struct hs_answer head;
		int64_t len = hs_answer_length(data, client->in.len - at);

		if (len == 0)
			return;
		if (len < 0 || hs_answer_head(&head, data, client->in.len - at) <= 0) {
			fail(client, "%s does not speak Redis's protocol: is --target right?",
			     client->options->target);
			return;
		}
		if (head.type == HS_ANSWER_PUSH) {
			memmove(client->in.data + at, data + len,
				client->in.len - at - (size_t)len);
			client->in.len -= (size_t)len;
			continue;
		}
		take_reply(client, &head, at + (size_t)len);
	}
}

struct hs_top_replies hs_top_client_replies(const struct hs_top_client *client)
{
	struct hs_top_replies replies = {.count = 0};

	for (size_t i = 0; i < client->ends_count; i++) {
		size_t from = i ? client->ends[i - 1] : 0;

		if (client->commands[i] == AUTH || client->commands[i] == HELLO)
			continue;
		replies.reply[replies.count++] =
			(struct hs_bytes){client->in.data + from, client->ends[i] - from};
	}
	return replies;
}

/* ---- moving on ---- */

static void lost(struct hs_top_client *client, const char *why)
{
	fail(client, "lost the connection to %s: %s", client->options->target, why);
}

static void send_some(struct hs_top_client *client)
{
	while (client->sent < client->out.len) {
		ssize_t len = send(client->fd, client->out.data + client->sent,
				   client->out.len - client->sent, MSG_NOSIGNAL);

		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0 && errno != EAGAIN)
			lost(client, strerror(errno));
		if (len < 0)
			return;
		client->sent += (size_t)len;
	}
}

static void receive_some(struct hs_top_client *client)
{
	while (!client->failed && client->ends_count < client->commands_count) {
		char *to = hs_buf_reserve(&client->in, RECEIVE_BYTES);
		ssize_t len = recv(client->fd, to, RECEIVE_BYTES, 0);

		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0 && errno == EAGAIN)
			return;
		if (len <= 0) {
			lost(client, len < 0 ? strerror(errno) : "it was closed");
			return;
		}
		client->in.len += (size_t)len;
		if (client->in.len > HS_TOP_REPLY_BYTES_MAX)
			fail(client, "%s sends more than %d MB at once: is --target right?",
			     client->options->target, HS_TOP_REPLY_BYTES_MAX >> 20);
		else
			read_replies(client);
	}
}

enum hs_top_step hs_top_client_step(struct hs_top_client *client, uint64_t now_us)
{
	if (!client->asking)
		return HS_TOP_WAITING;
	if (!client->failed && client->state == CONNECTING)
		finish_connect(client);
	if (!client->failed && client->state == OPEN)
		send_some(client);
	if (!client->failed && client->state == OPEN)
		receive_some(client);
	if (!client->failed && client->ends_count == client->commands_count) {
		client->asking = false;
		return HS_TOP_ANSWERED;
	}
	if (!client->failed && now_us >= client->deadline_us)
		fail(client, "no answer from %s within %.1f s: it hangs, or the network does",
		     client->options->target, (double)client->options->timeout_us / 1e6);
	if (!client->failed)
		return HS_TOP_WAITING;
	client->asking = false;
	return HS_TOP_FAILED;
}
