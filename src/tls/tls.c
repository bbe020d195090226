/* Connections. OpenSSL reads and writes through a BIO of our own, the pipe: a read takes bytes that hs_tls_receive
 * was just given, a write appends to the caller's buffer. We keep no bytes between calls: OpenSSL reads until the
 * input is used up and keeps an unfinished record in a buffer of its own. */
#include "tls/tls.h"

#include "base/err.h"
#include "base/limits.h"
#include "base/mem.h"
#include "tls/internal.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>

enum { RECORD_BYTES = 16384 }; /* most plain bytes in one record */

struct hs_tls {
	struct hs_tls_context *context;
	SSL *ssl;
	/* Set during a call: its input, and the buffer for its output. */
	const char *in;
	size_t in_len;
	struct hs_buf *net;
	size_t handshake_bytes; /* bytes of the peer that the handshake has consumed */
	bool ready;
	bool ended;
	char error[256];
};

static int pipe_read(BIO *bio, char *to, size_t want, size_t *got)
{
	struct hs_tls *tls = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	*got = want < tls->in_len ? want : tls->in_len;
	if (*got == 0) {
		BIO_set_retry_read(bio);
		return 0;
	}
	memcpy(to, tls->in, *got);
	tls->in += *got;
	tls->in_len -= *got;
	return 1;
}

static int pipe_write(BIO *bio, const char *from, size_t len, size_t *put)
{
	struct hs_tls *tls = BIO_get_data(bio);

	BIO_clear_retry_flags(bio);
	hs_check(tls->net);
	hs_buf_append(tls->net, from, len);
	*put = len;
	return 1;
}

static long pipe_control(BIO *bio, int command, long number, void *pointer)
{
	(void)bio;
	(void)number;
	(void)pointer;
	return command == BIO_CTRL_FLUSH;
}

BIO_METHOD *hs_tls_pipe_create(void)
{
	BIO_METHOD *method = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "heatsink");

	hs_check(method);
	hs_check(BIO_meth_set_read_ex(method, pipe_read) == 1);
	hs_check(BIO_meth_set_write_ex(method, pipe_write) == 1);
	hs_check(BIO_meth_set_ctrl(method, pipe_control) == 1);
	return method;
}

static bool is_address(const char *text)
{
	struct in6_addr address;

	return inet_pton(AF_INET, text, &address) == 1 || inet_pton(AF_INET6, text, &address) == 1;
}

/* Sets the name that the certificate must match. An invalid name is an error: without it OpenSSL would check no
 * name. */
static void expect_peer(struct hs_tls *tls, const char *name)
{
	bool address = is_address(name), fine;

	SSL_set_hostflags(tls->ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	if (address)
		fine = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls->ssl), name) == 1;
	else
		fine = SSL_set1_host(tls->ssl, name) == 1 &&
		       SSL_set_tlsext_host_name(tls->ssl, name) == 1;
	if (!fine)
		snprintf(tls->error, sizeof tls->error, "'%.200s' is not a host name", name);
}

struct hs_tls *hs_tls_create(struct hs_tls_context *context, const char *server_name)
{
	struct hs_tls *tls = hs_mem_zalloc(sizeof *tls);
	BIO *bio = BIO_new(context->pipe);

	tls->context = hs_tls_context_hold(context);
	tls->ssl = SSL_new(context->ssl);
	hs_check(tls->ssl);
	hs_check(bio);
	BIO_set_data(bio, tls);
	BIO_set_init(bio, 1);
	SSL_set_bio(tls->ssl, bio, bio);
	if (context->role == HS_TLS_SERVER) {
		SSL_set_accept_state(tls->ssl);
	} else {
		SSL_set_connect_state(tls->ssl);
		if (server_name && server_name[0])
			expect_peer(tls, server_name);
	}
	return tls;
}

void hs_tls_destroy(struct hs_tls **pointer)
{
	struct hs_tls *tls = *pointer;

	if (!tls)
		return;
	SSL_free(tls->ssl);
	hs_tls_context_release(&tls->context);
	hs_mem_free(pointer);
}

/* Sets the error: OpenSSL's text; for a refused certificate also why it was refused. */
static int fail(struct hs_tls *tls)
{
	unsigned long code = ERR_peek_error();
	const char *reason = ERR_reason_error_string(code);
	long verdict = SSL_get_verify_result(tls->ssl);

	if (tls->error[0] == '\0' && ERR_GET_REASON(code) == SSL_R_CERTIFICATE_VERIFY_FAILED &&
	    verdict != X509_V_OK)
		snprintf(tls->error, sizeof tls->error, "%s: %s", reason,
			 X509_verify_cert_error_string(verdict));
	else if (tls->error[0] == '\0')
		snprintf(tls->error, sizeof tls->error, "%s",
			 reason ? reason : "unknown TLS error");
	ERR_clear_error();
	return HS_EPROTO;
}

/* Maps the result of an OpenSSL call that could not finish: 0 (needs more bytes, or the peer closed) or HS_EPROTO. */
static int result_of(struct hs_tls *tls, int result)
{
	switch (SSL_get_error(tls->ssl, result)) {
	case SSL_ERROR_WANT_READ:
		return 0;
	case SSL_ERROR_ZERO_RETURN:
		tls->ended = true;
		return 0;
	default:
		return fail(tls);
	}
}

/* Gives the handshake at most HS_TLS_HANDSHAKE_BYTES_MAX of the peer's bytes in all. */
static int continue_handshake(struct hs_tls *tls)
{
	size_t allowed = HS_TLS_HANDSHAKE_BYTES_MAX - tls->handshake_bytes;
	size_t held = tls->in_len > allowed ? tls->in_len - allowed : 0;
	int result;

	tls->in_len -= held;
	tls->handshake_bytes += tls->in_len;
	result = SSL_do_handshake(tls->ssl);
	tls->in_len += held;
	if (result == 1) {
		tls->ready = true;
		return 0;
	}
	if (result_of(tls, result) < 0)
		return HS_EPROTO;
	if (held == 0)
		return 0;
	snprintf(tls->error, sizeof tls->error, "the handshake is longer than %zu bytes",
		 HS_TLS_HANDSHAKE_BYTES_MAX);
	return HS_EPROTO;
}

static int read_plain(struct hs_tls *tls, struct hs_buf *plain)
{
	size_t got;

	do {
		int result = SSL_read_ex(tls->ssl, hs_buf_reserve(plain, RECORD_BYTES),
					 RECORD_BYTES, &got);

		if (result != 1)
			return result_of(tls, result);
		plain->len += got;
	} while (tls->in_len > 0 || SSL_pending(tls->ssl) > 0);
	return 0;
}

int hs_tls_start(struct hs_tls *tls, struct hs_buf *net)
{
	return hs_tls_receive(tls, NULL, 0, NULL, net);
}

int hs_tls_receive(struct hs_tls *tls, const char *data, size_t len, struct hs_buf *plain,
		   struct hs_buf *net)
{
	int status = 0;

	if (tls->error[0])
		return HS_EPROTO;
	if (tls->ended)
		return 0;
	ERR_clear_error();
	tls->in = data;
	tls->in_len = len;
	tls->net = net;
	if (!tls->ready)
		status = continue_handshake(tls);
	if (status == 0 && tls->ready && tls->in_len > 0)
		status = read_plain(tls, plain);
	tls->in = NULL;
	tls->in_len = 0;
	tls->net = NULL;
	return status;
}

int hs_tls_send(struct hs_tls *tls, const char *data, size_t len, struct hs_buf *net)
{
	size_t done;
	int status = 0;

	hs_check(tls->ready);
	if (tls->error[0])
		return HS_EPROTO;
	if (len == 0)
		return 0;
	ERR_clear_error();
	tls->net = net;
	if (SSL_write_ex(tls->ssl, data, len, &done) != 1)
		status = fail(tls);
	else
		hs_check(done == len);
	tls->net = NULL;
	return status;
}

void hs_tls_close(struct hs_tls *tls, struct hs_buf *net)
{
	if (!tls->ready || tls->error[0])
		return;
	ERR_clear_error();
	tls->net = net;
	SSL_shutdown(tls->ssl);
	tls->net = NULL;
	ERR_clear_error();
}

bool hs_tls_ready(const struct hs_tls *tls)
{
	return tls->ready;
}

bool hs_tls_ended(const struct hs_tls *tls)
{
	return tls->ended;
}

const char *hs_tls_error(const struct hs_tls *tls)
{
	return tls->error;
}
