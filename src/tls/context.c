/* Contexts: turns files and options into an SSL_CTX, or into one line that says what is wrong with them. */
#include "base/err.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/words.h"
#include "tls/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct making {
	const struct hs_tls_options *options;
	SSL_CTX *ssl;
	bool locked; /* the key file is encrypted */
	char *error;
	size_t error_size;
};

static bool given(const char *text)
{
	return text && text[0];
}

/* OpenSSL's text for its first error. */
static const char *reason(void)
{
	const char *text = ERR_reason_error_string(ERR_peek_error());

	return text ? text : "invalid";
}

static int refuse(const struct making *making, const char *what, const char *path, const char *why)
{
	return hs_err_set(HS_EINVAL, making->error, making->error_size, "%s %s: %s", what, path,
			  why);
}

/* Checks the file before OpenSSL opens it, whose errors hide the reason (no such file, no permission). */
static int check_file(const struct making *making, const char *what, const char *path, bool folder)
{
	struct stat found;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int status = 0;

	if (fd < 0 || fstat(fd, &found) != 0)
		status = refuse(making, what, path, strerror(errno));
	else if (folder != (bool)S_ISDIR(found.st_mode))
		status = refuse(making, what, path, strerror(folder ? ENOTDIR : EISDIR));
	if (fd >= 0)
		close(fd);
	return status;
}

/* Password callback of OpenSSL, which without it would ask at the terminal. */
static int give_pass(char *text, int size, int writing, void *context)
{
	struct making *making = context;
	const char *pass = making->options->key_file_pass;
	size_t len = given(pass) ? strlen(pass) : 0;

	(void)writing;
	making->locked = true;
	if (len > (size_t)size)
		return 0;
	memcpy(text, given(pass) ? pass : "", len);
	return (int)len;
}

static int load_key(struct making *making)
{
	const struct hs_tls_options *options = making->options;
	const char *why = "no PEM key in the file";
	int status = check_file(making, "key file", options->key_file, false);

	making->locked = false;
	if (status < 0 ||
	    SSL_CTX_use_PrivateKey_file(making->ssl, options->key_file, SSL_FILETYPE_PEM) == 1)
		return status;
	if (ERR_GET_LIB(ERR_peek_last_error()) == ERR_LIB_X509)
		why = "does not belong to the certificate";
	else if (making->locked)
		why = given(options->key_file_pass) ? "the password is wrong" : "needs a password";
	return refuse(making, "key file", options->key_file, why);
}

static int load_certificate(struct making *making)
{
	const struct hs_tls_options *options = making->options;
	int status;

	if (!given(options->cert_file) && !given(options->key_file) &&
	    options->role == HS_TLS_CLIENT)
		return 0;
	if (!given(options->cert_file) || !given(options->key_file))
		return hs_err_set(HS_EINVAL, making->error, making->error_size,
				  "both a certificate file and its key file are needed");
	status = check_file(making, "certificate file", options->cert_file, false);
	if (status < 0)
		return status;
	if (SSL_CTX_use_certificate_chain_file(making->ssl, options->cert_file) != 1)
		return refuse(making, "certificate file", options->cert_file, reason());
	return load_key(making);
}

static int load_authorities(const struct making *making)
{
	const struct hs_tls_options *options = making->options;
	int status = 0;

	if (given(options->ca_cert_file)) {
		status = check_file(making, "CA file", options->ca_cert_file, false);
		if (status == 0 &&
		    SSL_CTX_load_verify_file(making->ssl, options->ca_cert_file) != 1)
			status = refuse(making, "CA file", options->ca_cert_file, reason());
	}
	if (status == 0 && given(options->ca_cert_dir)) {
		status = check_file(making, "CA folder", options->ca_cert_dir, true);
		if (status == 0 && SSL_CTX_load_verify_dir(making->ssl, options->ca_cert_dir) != 1)
			status = refuse(making, "CA folder", options->ca_cert_dir, reason());
	}
	if (status < 0 || given(options->ca_cert_file) || given(options->ca_cert_dir) ||
	    options->verify == HS_TLS_VERIFY_NONE)
		return status;
	if (options->role == HS_TLS_SERVER) {
		/* The system's CAs certify host names; they cannot say which clients may connect. */
		return hs_err_set(HS_EINVAL, making->error, making->error_size,
				  "a CA file or folder is needed to check clients' certificates");
	}
	SSL_CTX_set_default_verify_paths(making->ssl);
	return 0;
}

static int set_protocols(const struct making *making)
{
	static const char *const known[] = {"TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3", NULL};
	static const uint64_t without[] = {SSL_OP_NO_TLSv1, SSL_OP_NO_TLSv1_1, SSL_OP_NO_TLSv1_2,
					   SSL_OP_NO_TLSv1_3};
	enum { KNOWN = sizeof without / sizeof *without };
	struct hs_bytes rest =
		hs_bytes_of(given(making->options->protocols) ? making->options->protocols : "");
	uint64_t off = SSL_OP_NO_SSLv3;
	bool wanted[KNOWN] = {false, false, true, true};

	if (rest.len > 0) {
		memset(wanted, 0, sizeof wanted);
		SSL_CTX_set_min_proto_version(
			making->ssl,
			/* Allows versions that the system's configuration forbids. */
			0);
	}
	while (rest.len > 0) {
		struct hs_bytes word = hs_bytes_cut(&rest, ' ');
		int which = hs_words_index(known, word);

		if (which >= 0)
			wanted[which] = true;
		else if (word.len > 0)
			return hs_err_set(HS_EINVAL, making->error, making->error_size,
					  "'%.*s' is not a protocol: use some of TLSv1, TLSv1.1, "
					  "TLSv1.2, TLSv1.3",
					  (int)word.len, word.data);
	}
	for (size_t i = 0; i < KNOWN; i++)
		off |= wanted[i] ? 0 : without[i];
	SSL_CTX_set_options(making->ssl, off);
	return 0;
}

static int set_rules(const struct making *making)
{
	const struct hs_tls_options *options = making->options;
	SSL_CTX *ssl = making->ssl;
	int mode = SSL_VERIFY_PEER;
	int status = set_protocols(making);

	if (status < 0)
		return status;
	if (given(options->ciphers) && SSL_CTX_set_cipher_list(ssl, options->ciphers) != 1)
		return refuse(making, "ciphers", options->ciphers, reason());
	if (given(options->ciphersuites) &&
	    SSL_CTX_set_ciphersuites(ssl, options->ciphersuites) != 1)
		return refuse(making, "ciphersuites", options->ciphersuites, reason());
	if (options->prefer_server_ciphers)
		SSL_CTX_set_options(ssl, SSL_OP_CIPHER_SERVER_PREFERENCE);
	SSL_CTX_set_dh_auto(ssl, 1);
	SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	/* Frees the buffers of an idle connection. */
	SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_max_cert_list(ssl, HS_TLS_HANDSHAKE_BYTES_MAX / 2);
	/* Sessions are resumed with tickets, which need no memory here. */
	SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_session_id_context(ssl, (const unsigned char *)"heatsink", 8);
	if (options->verify == HS_TLS_VERIFY_NONE)
		mode = SSL_VERIFY_NONE;
	else if (options->verify == HS_TLS_VERIFY_REQUIRED)
		mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
	SSL_CTX_set_verify(ssl, mode, NULL);
	return 0;
}

int hs_tls_check_rules(const struct hs_tls_options *options, char *error, size_t error_size)
{
	struct making making = {.options = options, .error = error, .error_size = error_size};
	int status;

	ERR_clear_error();
	making.ssl = SSL_CTX_new(TLS_server_method());
	hs_check(making.ssl);
	status = set_rules(&making);
	ERR_clear_error();
	SSL_CTX_free(making.ssl);
	return status;
}

int hs_tls_context_create(const struct hs_tls_options *options, struct hs_tls_context **pointer,
			  char *error, size_t error_size)
{
	struct making making = {.options = options, .error = error, .error_size = error_size};
	struct hs_tls_context *context;
	int status;

	ERR_clear_error();
	making.ssl = SSL_CTX_new(options->role == HS_TLS_SERVER ? TLS_server_method()
								: TLS_client_method());
	hs_check(making.ssl);
	SSL_CTX_set_default_passwd_cb(making.ssl, give_pass);
	SSL_CTX_set_default_passwd_cb_userdata(making.ssl, &making);
	status = set_rules(&making);
	if (status == 0)
		status = load_certificate(&making);
	if (status == 0)
		status = load_authorities(&making);
	ERR_clear_error();
	SSL_CTX_set_default_passwd_cb_userdata(making.ssl, NULL);
	if (status < 0) {
		SSL_CTX_free(making.ssl);
		return status;
	}
	context = hs_mem_zalloc(sizeof *context);
	context->refs = 1;
	context->role = options->role;
	context->verify = options->verify;
	context->ssl = making.ssl;
	context->pipe = hs_tls_pipe_create();
	*pointer = context;
	return 0;
}

struct hs_tls_context *hs_tls_context_hold(struct hs_tls_context *context)
{
	if (context)
		atomic_fetch_add(&context->refs, 1);
	return context;
}

void hs_tls_context_release(struct hs_tls_context **pointer)
{
	struct hs_tls_context *context = *pointer;

	*pointer = NULL;
	if (!context || atomic_fetch_sub(&context->refs, 1) > 1)
		return;
	SSL_CTX_free(context->ssl);
	BIO_meth_free(context->pipe);
	hs_mem_free(&context);
}
