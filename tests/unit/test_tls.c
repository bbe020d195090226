/* Goal: the TLS filter passes plain bytes in both directions, whole and in order, to the right peer only. It
 * gives the reason for every refusal, and a handshake uses bounded memory.
 *
 * Method: certificates made by tests/lib/make-certificates; a client and a server connection in one thread,
 * with two buffers as the network between them, delivered in pieces of any size. One test shares a context
 * between threads. */
#include "base/err.h"
#include "base/limits.h"
#include "tls/tls.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static char folder[64];

enum { PATHS = 64 };

/* The path of a file in the folder of the certificates; valid for the next PATHS - 1 calls. */
static const char *at(const char *name)
{
	static _Thread_local char paths[PATHS][128];
	static _Thread_local unsigned turn;
	char *path = paths[turn++ % PATHS];

	snprintf(path, sizeof paths[0], "%s/%s", folder, name);
	return path;
}

static int make_folder(void **state)
{
	char command[128];

	(void)state;
	snprintf(folder, sizeof folder, "/tmp/heatsink-tls-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(command, sizeof command, "tests/lib/make-certificates %s", folder);
	return system(command); // NOLINT(cert-env33-c): a program of our own
}

static int remove_folder(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof command, "rm -rf %s", folder);
	return system(command); // NOLINT(cert-env33-c)
}

static struct hs_tls_options server_options(void)
{
	return (struct hs_tls_options){
		.role = HS_TLS_SERVER,
		.verify = HS_TLS_VERIFY_NONE,
		.cert_file = at("server.pem"),
		.key_file = at("server.key"),
	};
}

static struct hs_tls_options client_options(void)
{
	return (struct hs_tls_options){.role = HS_TLS_CLIENT, .ca_cert_file = at("ca.pem")};
}

static struct hs_tls_context *context_of(struct hs_tls_options options)
{
	struct hs_tls_context *context = NULL;
	char error[512] = "";
	int status = hs_tls_context_create(&options, &context, error, sizeof error);

	assert_string_equal(error, "");
	assert_int_equal(status, 0);
	return context;
}

/* One side: its connection, the bytes it has decrypted, the bytes it has to send. */
struct side {
	struct hs_tls *tls;
	struct hs_buf plain, net;
	int status;
};

struct pair {
	struct side client, server;
};

static void connect_pair(struct pair *pair, struct hs_tls_options server,
			 struct hs_tls_options client, const char *name)
{
	struct hs_tls_context *contexts[] = {context_of(server), context_of(client)};

	memset(pair, 0, sizeof *pair);
	pair->server.tls = hs_tls_create(contexts[0], NULL);
	pair->client.tls = hs_tls_create(contexts[1], name);
	/* Each connection holds a reference to its context, so the test releases its references. */
	hs_tls_context_release(&contexts[0]);
	hs_tls_context_release(&contexts[1]);
	assert_null(contexts[0]);
	pair->client.status = hs_tls_start(pair->client.tls, &pair->client.net);
}

static void part(struct pair *pair)
{
	struct side *sides[] = {&pair->client, &pair->server};

	for (int i = 0; i < 2; i++) {
		hs_tls_destroy(&sides[i]->tls);
		hs_buf_deinit(&sides[i]->plain);
		hs_buf_deinit(&sides[i]->net);
	}
}

/* Delivers one side's bytes to the other side, `most` bytes at a time. */
static bool carry(struct side *from, struct side *to, size_t most)
{
	struct hs_buf moved = {0};
	size_t done = 0;

	hs_buf_swap(&moved, &from->net);
	while (done < moved.len && to->status == 0) {
		size_t len = moved.len - done < most ? moved.len - done : most;
		/* The bytes lie in an allocation of exactly their length, so that a sanitizer reports a read
		 * beyond the end. */
		char *piece = malloc(len);

		assert_non_null(piece);
		memcpy(piece, moved.data + done, len);
		to->status = hs_tls_receive(to->tls, piece, len, &to->plain, &to->net);
		free(piece);
		done += len;
	}
	hs_buf_deinit(&moved);
	return done > 0;
}

static void pump(struct pair *pair, size_t most)
{
	bool more = true;

	while (more) {
		more = carry(&pair->client, &pair->server, most);
		more = carry(&pair->server, &pair->client, most) || more;
	}
}

static void say(struct side *side, const char *text)
{
	assert_int_equal(hs_tls_send(side->tls, text, strlen(text), &side->net), 0);
}

static void assert_heard(struct side *side, const char *text)
{
	assert_int_equal(side->plain.len, strlen(text));
	assert_memory_equal(side->plain.data, text, strlen(text));
	side->plain.len = 0;
}

static void assert_talks(struct pair *pair, size_t most)
{
	assert_true(hs_tls_ready(pair->client.tls));
	assert_true(hs_tls_ready(pair->server.tls));
	say(&pair->client, "PING\r\n");
	say(&pair->client, "ECHO x\r\n");
	pump(pair, most);
	assert_heard(&pair->server, "PING\r\nECHO x\r\n");
	say(&pair->server, "+PONG\r\n");
	pump(pair, most);
	assert_heard(&pair->client, "+PONG\r\n");
	assert_string_equal(hs_tls_error(pair->client.tls), "");
	assert_string_equal(hs_tls_error(pair->server.tls), "");
}

static void test_talks_in_pieces_of_any_size(void **state)
{
	static const size_t sizes[] = {1, 2, 5, 7, 100, 1000, SIZE_MAX};
	static const char *const protocols[] = {"", "TLSv1.2", "TLSv1.3", "TLSv1.2 TLSv1.3"};
	struct pair pair;

	(void)state;
	for (size_t p = 0; p < 4; p++) {
		for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
			struct hs_tls_options client = client_options();

			client.protocols = protocols[p];
			connect_pair(&pair, server_options(), client, "localhost");
			assert_false(hs_tls_ready(pair.client.tls));
			pump(&pair, sizes[i]);
			assert_talks(&pair, sizes[i]);
			part(&pair);
		}
	}
}

static void test_large_values(void **state)
{
	enum { BYTES = 3000000 };
	char *value = malloc(BYTES);
	struct pair pair;

	(void)state;
	assert_non_null(value);
	for (size_t i = 0; i < BYTES; i++)
		value[i] = (char)(i * 2654435761u >> 13);
	connect_pair(&pair, server_options(), client_options(), "localhost");
	pump(&pair, SIZE_MAX);
	assert_int_equal(hs_tls_send(pair.client.tls, value, BYTES, &pair.client.net), 0);
	pump(&pair, 65536);
	assert_int_equal(pair.server.plain.len, BYTES);
	assert_memory_equal(pair.server.plain.data, value, BYTES);
	assert_int_equal(hs_tls_send(pair.server.tls, value, BYTES, &pair.server.net), 0);
	pump(&pair, 999);
	assert_int_equal(pair.client.plain.len, BYTES);
	assert_memory_equal(pair.client.plain.data, value, BYTES);
	part(&pair);
	free(value);
}

/* The client's first data arrive in the same piece as the end of its handshake. */
static void test_data_after_the_handshake(void **state)
{
	struct hs_tls_options client = client_options();
	struct pair pair;

	(void)state;
	client.protocols = "TLSv1.3";
	connect_pair(&pair, server_options(), client, "localhost");
	carry(&pair.client, &pair.server, SIZE_MAX);
	carry(&pair.server, &pair.client, SIZE_MAX);
	assert_true(hs_tls_ready(pair.client.tls));
	assert_false(hs_tls_ready(pair.server.tls));
	say(&pair.client, "early bird");
	carry(&pair.client, &pair.server, SIZE_MAX);
	assert_heard(&pair.server, "early bird");
	part(&pair);
}

static void test_close_notify_leaves_the_other_direction_open(void **state)
{
	static const char *const protocols[] = {"TLSv1.2", "TLSv1.3"};
	struct pair pair;

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct hs_tls_options client = client_options();

		client.protocols = protocols[i];
		connect_pair(&pair, server_options(), client, "localhost");
		/* The handshake has not begun: closing sends nothing. */
		hs_tls_close(pair.server.tls, &pair.server.net);
		assert_int_equal(pair.server.net.len, 0);
		pump(&pair, SIZE_MAX);
		say(&pair.client, "last");
		hs_tls_close(pair.client.tls, &pair.client.net);
		pump(&pair, SIZE_MAX);
		assert_heard(&pair.server, "last");
		assert_true(hs_tls_ended(pair.server.tls));
		assert_false(hs_tls_ended(pair.client.tls));
		assert_int_equal(pair.server.status, 0);
		say(&pair.server, "answer");
		hs_tls_close(pair.server.tls, &pair.server.net);
		carry(&pair.server, &pair.client, SIZE_MAX);
		assert_heard(&pair.client, "answer");
		assert_true(hs_tls_ended(pair.client.tls));
		/* The filter drops bytes that come after a close_notify. */
		assert_int_equal(hs_tls_receive(pair.server.tls, "x", 1, &pair.server.plain,
						&pair.server.net),
				 0);
		assert_int_equal(pair.server.plain.len, 0);
		part(&pair);
	}
}

static void test_server_certificates_a_client_accepts(void **state)
{
	static const struct {
		const char *cert, *key, *ca_file, *ca_dir, *name;
		enum hs_tls_verify verify;
		/* Expected in the client's error; NULL: the client accepts the certificate. */
		const char *error;
	} cases[] = {
		{"server.pem", "server.key", "ca.pem", NULL, "localhost", 0, NULL},
		{"server.pem", "server.key", NULL, "cas", "localhost", 0, NULL},
		{"server.pem", "server.key", "ca.pem", NULL, "127.0.0.1", 0, NULL},
		{"server.pem", "server.key", "ca.pem", NULL, "::1", 0, NULL},
		{"server.pem", "server.key", "ca.pem", NULL, "a.example.test", 0, NULL},
		{"server.pem", "server.key", "ca.pem", NULL, NULL, 0, NULL},
		{"server.pem", "server.key", "ca.pem", NULL, "127.0.0.2", 0, "IP address mismatch"},
		{"server.pem", "server.key", "ca.pem", NULL, "::2", 0, "IP address mismatch"},
		{"server.pem", "server.key", "ca.pem", NULL, "server", 0, "ostname mismatch"},
		{"server.pem", "server.key", "ca.pem", NULL, "a.b.example.test", 0,
		 "ostname mismatch"},
		{"server.pem", "server.key", "other-ca.pem", NULL, "localhost", 0, "local issuer"},
		{"server.pem", "server.key", NULL, NULL, "localhost", 0, "local issuer"},
		{"stranger.pem", "stranger.key", "ca.pem", NULL, "localhost", 0, "local issuer"},
		{"expired.pem", "expired.key", "ca.pem", NULL, "localhost", 0, "expired"},
		{"expired.pem", "expired.key", NULL, NULL, "nobody", HS_TLS_VERIFY_NONE, NULL},
	};
	struct pair pair;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hs_tls_options server = server_options();
		struct hs_tls_options client = {.role = HS_TLS_CLIENT, .verify = cases[i].verify};

		server.cert_file = at(cases[i].cert);
		server.key_file = at(cases[i].key);
		client.ca_cert_file = cases[i].ca_file ? at(cases[i].ca_file) : NULL;
		client.ca_cert_dir = cases[i].ca_dir ? at(cases[i].ca_dir) : "";
		connect_pair(&pair, server, client, cases[i].name);
		pump(&pair, SIZE_MAX);
		if (cases[i].error) {
			assert_int_equal(pair.client.status, HS_EPROTO);
			assert_non_null(strstr(hs_tls_error(pair.client.tls), "verify failed"));
			assert_non_null(strstr(hs_tls_error(pair.client.tls), cases[i].error));
			assert_false(hs_tls_ready(pair.client.tls));
			/* The client has told the server by an alert. */
			assert_non_null(strstr(hs_tls_error(pair.server.tls), "alert"));
		} else {
			assert_talks(&pair, SIZE_MAX);
		}
		part(&pair);
	}
}

static void test_an_invalid_server_name_is_refused(void **state)
{
	char name[300];
	struct pair pair;

	(void)state;
	memset(name, 'x', sizeof name);
	name[sizeof name - 1] = '\0';
	connect_pair(&pair, server_options(), client_options(), name);
	assert_int_equal(pair.client.status, HS_EPROTO);
	assert_non_null(strstr(hs_tls_error(pair.client.tls), "is not a host name"));
	assert_int_equal(pair.client.net.len, 0);
	part(&pair);
}

static void test_client_certificates_a_server_accepts(void **state)
{
	static const struct {
		enum hs_tls_verify verify;
		const char *cert, *key; /* the client's certificate and key */
		const char *error;
	} cases[] = {
		{HS_TLS_VERIFY_REQUIRED, "client.pem", "client.key", NULL},
		{HS_TLS_VERIFY_REQUIRED, NULL, NULL, "did not return a certificate"},
		{HS_TLS_VERIFY_REQUIRED, "stranger.pem", "stranger.key", "local issuer"},
		{HS_TLS_VERIFY_REQUIRED, "expired.pem", "expired.key", "expired"},
		{HS_TLS_VERIFY_OPTIONAL, "client.pem", "client.key", NULL},
		{HS_TLS_VERIFY_OPTIONAL, NULL, NULL, NULL},
		{HS_TLS_VERIFY_OPTIONAL, "stranger.pem", "stranger.key", "local issuer"},
		{HS_TLS_VERIFY_NONE, "stranger.pem", "stranger.key", NULL},
	};
	static const char *const protocols[] = {"TLSv1.2", "TLSv1.3"};
	struct pair pair;

	(void)state;
	for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
		struct hs_tls_options server = server_options();
		struct hs_tls_options client = client_options();

		server.verify = cases[i / 2].verify;
		server.ca_cert_file = at("ca.pem");
		client.protocols = protocols[i % 2];
		client.cert_file = cases[i / 2].cert ? at(cases[i / 2].cert) : NULL;
		client.key_file = cases[i / 2].key ? at(cases[i / 2].key) : NULL;
		connect_pair(&pair, server, client, "localhost");
		pump(&pair, SIZE_MAX);
		if (cases[i / 2].error) {
			assert_false(hs_tls_ready(pair.server.tls));
			assert_non_null(strstr(hs_tls_error(pair.server.tls), cases[i / 2].error));
			assert_int_equal(pair.client.status, HS_EPROTO);
		} else {
			assert_talks(&pair, SIZE_MAX);
		}
		part(&pair);
	}
}

static void test_no_common_protocol(void **state)
{
	struct hs_tls_options server = server_options(), client = client_options();
	struct pair pair;

	(void)state;
	server.protocols = "TLSv1.3";
	client.protocols = "tlsv1.2";
	connect_pair(&pair, server, client, "localhost");
	pump(&pair, SIZE_MAX);
	assert_non_null(strstr(hs_tls_error(pair.server.tls), "unsupported protocol"));
	assert_int_equal(pair.client.status, HS_EPROTO);
	part(&pair);

	server.protocols = "TLSv1.2";
	server.ciphers = "ECDHE-ECDSA-AES256-GCM-SHA384";
	client.ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256";
	connect_pair(&pair, server, client, "localhost");
	pump(&pair, SIZE_MAX);
	assert_non_null(strstr(hs_tls_error(pair.server.tls), "no shared cipher"));
	part(&pair);

	client.ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384";
	connect_pair(&pair, server, client, "localhost");
	pump(&pair, SIZE_MAX);
	assert_talks(&pair, SIZE_MAX);
	part(&pair);
}

static void test_garbage(void **state)
{
	static const char *const garbage[] = {
		"PING\r\n*1\r\n$4\r\nPING\r\n",
		"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"\x16\x03\x01\x00\x05\x7f\x01\x01\x01\x01", /* a malformed record */
		"\x17\x03\x03\x00\x05zzzzz",		    /* data before any handshake */
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
	};
	static const size_t lens[] = {20, 36, 10, 10, 12};
	struct hs_tls_context *context = context_of(server_options());

	(void)state;
	for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
		for (size_t most = 1; most <= lens[i]; most += lens[i] - 1) {
			struct side side = {.tls = hs_tls_create(context, NULL)};
			struct side sender = {0};

			hs_buf_append(&sender.net, garbage[i], lens[i]);
			carry(&sender, &side, most);
			assert_int_equal(side.status, HS_EPROTO);
			assert_string_not_equal(hs_tls_error(side.tls), "");
			assert_string_not_equal(hs_tls_error(side.tls), "unknown TLS error");
			assert_int_equal(side.plain.len, 0);
			assert_true(side.net.len < 100);
			/* After an error the connection refuses all further bytes. */
			assert_int_equal(hs_tls_receive(side.tls, "x", 1, &side.plain, &side.net),
					 HS_EPROTO);
			hs_tls_destroy(&side.tls);
			hs_buf_deinit(&side.plain);
			hs_buf_deinit(&side.net);
			hs_buf_deinit(&sender.net);
		}
	}
	hs_tls_context_release(&context);
}

static void test_damaged_on_the_way(void **state)
{
	struct pair pair;

	(void)state;
	connect_pair(&pair, server_options(), client_options(), "localhost");
	pump(&pair, SIZE_MAX);
	say(&pair.client, "precious");
	pair.client.net.data[pair.client.net.len - 1] ^= 1;
	carry(&pair.client, &pair.server, SIZE_MAX);
	assert_int_equal(pair.server.status, HS_EPROTO);
	assert_int_equal(pair.server.plain.len, 0);
	assert_non_null(strstr(hs_tls_error(pair.server.tls), "bad record mac"));
	assert_int_equal(hs_tls_send(pair.server.tls, "x", 1, &pair.server.net), HS_EPROTO);
	part(&pair);
}

/* Any amount of data may come with the end of the handshake: the memory limit applies to the handshake only. */
static void test_much_data_after_the_handshake(void **state)
{
	enum { BYTES = 2 * HS_TLS_HANDSHAKE_BYTES_MAX };
	static const char zeros[BYTES];
	struct pair pair;

	(void)state;
	connect_pair(&pair, server_options(), client_options(), "localhost");
	carry(&pair.client, &pair.server, SIZE_MAX);
	carry(&pair.server, &pair.client, SIZE_MAX);
	assert_int_equal(hs_tls_send(pair.client.tls, zeros, BYTES, &pair.client.net), 0);
	carry(&pair.client, &pair.server, SIZE_MAX);
	assert_int_equal(pair.server.status, 0);
	assert_int_equal(pair.server.plain.len, BYTES);
	part(&pair);
}

/* The first message of the handshake announces the largest size that OpenSSL accepts; it comes whole or in
 * pieces. The filter refuses it. */
static void test_a_handshake_has_an_end(void **state)
{
	enum { RECORDS = 9, RECORD = 5 + 16384 };
	static const size_t sizes[] = {1000, RECORD, 65536, SIZE_MAX};
	struct hs_tls_context *context = context_of(server_options());

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct side side = {.tls = hs_tls_create(context, NULL)}, sender = {0};

		for (int r = 0; r < RECORDS; r++) {
			char record[RECORD] = "\x16\x03\x01\x40";

			if (r == 0)
				memcpy(record + 5, "\x01\x02\x01\x00", 4);
			hs_buf_append(&sender.net, record, sizeof record);
		}
		carry(&sender, &side, sizes[i]);
		assert_non_null(strstr(hs_tls_error(side.tls), "longer than 131072 bytes"));
		assert_int_equal(side.net.len, 0);
		hs_tls_destroy(&side.tls);
		hs_buf_deinit(&side.plain);
	}
	hs_tls_context_release(&context);
}

static void test_wrong_files_and_rules(void **state)
{
	static const char pass[] = "open sesame";
	const struct {
		struct hs_tls_options options;
		const char *words[2];
	} cases[] = {
		{{.cert_file = at("none.pem"), .key_file = at("server.key")},
		 {"certificate file ", "/none.pem: No such file or directory"}},
		{{.cert_file = at("server.pem"), .key_file = at("none.key")},
		 {"key file ", "/none.key: No such file or directory"}},
		{{.cert_file = folder, .key_file = at("server.key")},
		 {"certificate file ", ": Is a directory"}},
		{{.cert_file = at("server.key"), .key_file = at("server.key")},
		 {"certificate file ", "/server.key: no start line"}},
		{{.cert_file = at("server.pem"), .key_file = at("server.pem")},
		 {"key file ", "/server.pem: no PEM key in the file"}},
		{{.cert_file = at("server.pem"), .key_file = at("client.key")},
		 {"key file ", "/client.key: does not belong to the certificate"}},
		{{.cert_file = at("server.pem"), .key_file = at("locked.key")},
		 {"key file ", "/locked.key: needs a password"}},
		{{.cert_file = at("server.pem"),
		  .key_file = at("locked.key"),
		  .key_file_pass = "x"},
		 {"key file ", "/locked.key: the password is wrong"}},
		{{.cert_file = at("server.pem")}, {"certificate file and its key file", "both"}},
		{{.role = HS_TLS_CLIENT, .key_file = at("client.key")},
		 {"certificate file", "both"}},
		{{.role = HS_TLS_CLIENT, .ca_cert_file = at("none.pem")},
		 {"CA file ", "/none.pem: No such file or directory"}},
		{{.role = HS_TLS_CLIENT, .ca_cert_file = at("ca.key")},
		 {"CA file ", "/ca.key: no "}},
		{{.role = HS_TLS_CLIENT, .ca_cert_dir = at("ca.pem")},
		 {"CA folder ", "/ca.pem: Not a directory"}},
		{{.role = HS_TLS_CLIENT, .ca_cert_dir = at("nowhere")},
		 {"CA folder ", "/nowhere: No such file or directory"}},
		{{.cert_file = at("server.pem"), .key_file = at("server.key")},
		 {"a CA file or folder is needed", "clients' certificates"}},
		{{.role = HS_TLS_CLIENT, .protocols = "TLSv1.2 SSLv3"},
		 {"'SSLv3' is not a protocol", ""}},
		{{.role = HS_TLS_CLIENT, .ciphers = "NONSENSE"},
		 {"ciphers NONSENSE: ", "no cipher"}},
		{{.role = HS_TLS_CLIENT, .ciphersuites = "NONSENSE"},
		 {"ciphersuites NONSENSE: ", "no cipher"}},
	};
	struct hs_tls_options unlocked = server_options();
	struct hs_tls_context *context;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char error[512] = "";
		struct hs_tls_options options = cases[i].options;

		context = NULL;
		assert_int_equal(hs_tls_context_create(&options, &context, error, sizeof error),
				 HS_EINVAL);
		assert_null(context);
		if (!strstr(error, cases[i].words[0]) || !strstr(error, cases[i].words[1]))
			fail_msg("case %zu says: %s", i, error);
		assert_null(strchr(error, '\n'));
	}
	unlocked.key_file = at("locked.key");
	unlocked.key_file_pass = pass;
	context = context_of(unlocked);
	hs_tls_context_release(&context);
	/* The first release has set the pointer to NULL: no effect. */
	hs_tls_context_release(&context);
}

enum { THREADS = 4, ROUNDS = 20 };

static void *many_handshakes(void *argument)
{
	struct hs_tls_context **contexts = argument;

	for (int i = 0; i < ROUNDS; i++) {
		struct pair pair = {
			.server.tls = hs_tls_create(contexts[0], NULL),
			.client.tls = hs_tls_create(contexts[1], "localhost"),
		};

		pair.client.status = hs_tls_start(pair.client.tls, &pair.client.net);
		pump(&pair, SIZE_MAX);
		assert_talks(&pair, SIZE_MAX);
		part(&pair);
	}
	hs_tls_context_release(&contexts[0]);
	hs_tls_context_release(&contexts[1]);
	return NULL;
}

/* Several threads share a context; the last one to release it frees it. */
static void test_a_context_is_for_all_threads(void **state)
{
	struct hs_tls_context *server = context_of(server_options());
	struct hs_tls_context *client = context_of(client_options());
	struct hs_tls_context *held[THREADS][2];
	pthread_t threads[THREADS];

	(void)state;
	for (int i = 0; i < THREADS; i++) {
		held[i][0] = hs_tls_context_hold(server);
		held[i][1] = hs_tls_context_hold(client);
		assert_int_equal(pthread_create(&threads[i], NULL, many_handshakes, held[i]), 0);
	}
	hs_tls_context_release(&server);
	hs_tls_context_release(&client);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_null(hs_tls_context_hold(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_talks_in_pieces_of_any_size),
		cmocka_unit_test(test_large_values),
		cmocka_unit_test(test_data_after_the_handshake),
		cmocka_unit_test(test_close_notify_leaves_the_other_direction_open),
		cmocka_unit_test(test_server_certificates_a_client_accepts),
		cmocka_unit_test(test_an_invalid_server_name_is_refused),
		cmocka_unit_test(test_client_certificates_a_server_accepts),
		cmocka_unit_test(test_no_common_protocol),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_damaged_on_the_way),
		cmocka_unit_test(test_much_data_after_the_handshake),
		cmocka_unit_test(test_a_handshake_has_an_end),
		cmocka_unit_test(test_wrong_files_and_rules),
		cmocka_unit_test(test_a_context_is_for_all_threads),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
