/* The redis engine: a Redis or Valkey server, or a Cluster of them, over the network. See redis.c
 * for how its parts work together. */
#ifndef HS_ENGINE_REDIS_REDIS_H
#define HS_ENGINE_REDIS_REDIS_H

#include "engine/engine.h"

struct hs_redis_options {
	const char *url;	     /* redis:// rediss:// cluster:// clusters:// */
	const char *user, *password; /* where the URL has none */
	uint64_t timeout_ms;	     /* an operation waits so long at most */
	uint32_t in_flight_max;	     /* under way on one connection */
	uint32_t waiting_max;	     /* waiting for one node */
	uint32_t private_max;	     /* connections of a worker for blocking commands and WATCH */
	uint64_t refresh_ms;	     /* between two looks at a cluster's topology */
	/* Towards the servers, for rediss:// and clusters://. */
	const char *tls_ca_cert_file, *tls_ca_cert_dir, *tls_cert_file, *tls_key_file;
	bool tls_skip_verify;
};

/* Whether an engine's name is one of ours. */
bool hs_redis_is_url(const char *name);

/* A wrong URL or certificate is an error, in one line; servers that are away are not. */
int hs_redis_create(const struct hs_redis_options *options, const struct hs_engine_host *host,
		    struct hs_engine **engine, char *error, size_t error_size) HS_MUSTCHECK;

#endif
