#include "serve/tls_options.h"

#include "base/err.h"

static struct hs_tls_options tls_options(const struct hs_options *options)
{
	return (struct hs_tls_options){
		.role = HS_TLS_SERVER,
		.verify = (enum hs_tls_verify)options->tls_auth_clients,
		.cert_file = options->tls_cert_file,
		.key_file = options->tls_key_file,
		.key_file_pass = options->tls_key_file_pass,
		.ca_cert_file = options->tls_ca_cert_file,
		.ca_cert_dir = options->tls_ca_cert_dir,
		.protocols = options->tls_protocols,
		.ciphers = options->tls_ciphers,
		.ciphersuites = options->tls_ciphersuites,
		.prefer_server_ciphers = options->tls_prefer_server_ciphers,
	};
}

int hs_tls_options_read(const struct hs_options *options, struct hs_tls_context **context,
			char *error, size_t error_size)
{
	struct hs_tls_options tls = tls_options(options);
	char why[512];

	if (tls.cert_file[0] == '\0' || tls.key_file[0] == '\0')
		return hs_err_set(HS_EINVAL, error, error_size,
				  "tls-port needs tls-cert-file and tls-key-file");
	if (tls.verify != HS_TLS_VERIFY_NONE && tls.ca_cert_file[0] == '\0' &&
	    tls.ca_cert_dir[0] == '\0')
		return hs_err_set(HS_EINVAL, error, error_size,
				  "tls-auth-clients %s needs tls-ca-cert-file or tls-ca-cert-dir",
				  tls.verify == HS_TLS_VERIFY_REQUIRED ? "yes" : "optional");
	if (hs_tls_context_create(&tls, context, why, sizeof why) < 0)
		return hs_err_set(HS_EINVAL, error, error_size, "TLS: %s", why);
	return 0;
}

int hs_tls_options_check(const struct hs_options *options, char *error, size_t error_size)
{
	struct hs_tls_options tls = tls_options(options);
	char why[512];

	/* All empty: OpenSSL's defaults, nothing to check. */
	if (!tls.protocols[0] && !tls.ciphers[0] && !tls.ciphersuites[0])
		return 0;
	if (hs_tls_check_rules(&tls, why, sizeof why) == 0)
		return 0;
	return hs_err_set(HS_EINVAL, error, error_size, "TLS: %s", why);
}
