#include "serve/options.h"

#include "base/err.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "base/num.h"
#include "engine/redis/url.h"
#include "serve/secure.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <strings.h>

enum { BIND_BYTES_MAX = 1024 };

#define AT(field) offsetof(struct hs_options, field)

const struct hs_option hs_option_table[] = {
	{.name = "bind",
	 .kind = HS_OPTION_TEXT,
	 .fallback = "127.0.0.1",
	 .offset = AT(bind),
	 .argument = "ADDRESS",
	 .help = "Addresses to listen on, separated by spaces."},
	{.name = "port",
	 .kind = HS_OPTION_INT,
	 .fallback = "6380",
	 .offset = AT(port),
	 .min = 0,
	 .max = 65535,
	 .argument = "N",
	 .help = "Port for Redis clients; 0 takes any free one, or none when tls-port is set."},
	{.name = "tls-port",
	 .kind = HS_OPTION_INT,
	 .fallback = "0",
	 .offset = AT(tls_port),
	 .min = 0,
	 .max = 65535,
	 .argument = "N",
	 .help = "Port for Redis clients that speak TLS; 0: none. With `port 0` it is the only "
		 "one."},
	{.name = "tls-cert-file",
	 .kind = HS_OPTION_TEXT,
	 .fallback = "",
	 .offset = AT(tls_cert_file),
	 .live = true,
	 .argument = "FILE",
	 .help = "The server's certificate for tls-port, PEM, its chain behind it. SIGHUP and "
		 "CONFIG SET read it again, for new connections."},
	{.name = "tls-key-file",
	 .kind = HS_OPTION_TEXT,
	 .fallback = "",
	 .offset = AT(tls_key_file),
	 .live = true,
	 .argument = "FILE",
	 .help = "The private key of that certificate, PEM."},
	{.name = "tls-key-file-pass",
	 .kind = HS_OPTION_TEXT,
	 .fallback = "",
	 .offset = AT(tls_key_file_pass),
	 .live = true,
	 .argument = "PASSWORD",
	 .help = "The password that the key file is under."},
	{.name = "tls-ca-cert-file",
	 .kind = HS_OPTION_TEXT,
	 .fallback = "",
	 .offset = AT(tls_ca_cert_file),
	 .live = true,
	 .argument = "FILE",
	 .help = "Authorities whose clients are let in, PEM."},
	{.name = "tls-ca-cert-dir",
	 .kind = HS_OPTION_TEXT,
	 .fallback = "",
	 .offset = AT(tls_ca_cert_dir),
	 .live = true,
	 .argument = "FOLDER",
	 .help = "The same as a folder of files under their hashes, as `openssl rehash` makes it."},
	{.name = "tls-auth-clients",
	 .kind = HS_OPTION_WORD,
	 .fallback = "yes",
	 .offset = AT(tls_auth_clients),
	 .words = "yes no optional",
	 .live = true,
	 .argument = "WHO",
	 .help = "yes: clients must show a certificate of these authorities. optional: or none. "
		 "no: they are not asked."},
	{.name = "tls-protocols",
	 .kind = HS_OPTION_TEXT,
	 .fallback = "",
	 .offset = AT(tls_protocols),
	 .live = true,
	 .argument = "LIST",
	 .help = "Versions to speak, separated by spaces; empty means TLSv1.2 TLSv1.3."},
	{.name = "tls-ciphers",
	 .kind = HS_OPTION_TEXT,
	 .fallback = "",
	 .offset = AT(tls_ciphers),
	 .live = true,
	 .argument = "LIST",
	 .help = "Ciphers up to TLSv1.2, as `openssl ciphers` writes them; empty: OpenSSL's own."},
	{.name = "tls-ciphersuites",
	 .kind = HS_OPTION_TEXT,
	 .fallback = "",
	 .offset = AT(tls_ciphersuites),
	 .live = true,
	 .argument = "LIST",
	 .help = "Ciphers of TLSv1.3, separated by colons; empty: OpenSSL's own."},
	{.name = "tls-prefer-server-ciphers",
	 .kind = HS_OPTION_BOOL,
	 .fallback = "no",
	 .offset = AT(tls_prefer_server_ciphers),
	 .live = true,
	 .argument = "YES|NO",
	 .help = "Choose by the order of these lists instead of the client's."},
	{.name = "tls-handshake-timeout",
	 .kind = HS_OPTION_INT,
	 .fallback = "10",
	 .offset = AT(tls_handshake_timeout),
	 .min = 1,
	 .max = 3600,
	 .argument = "SECONDS",
	 .help = "Close connections to tls-port that take longer for their handshake."},
	{.name = "http",
	 .kind = HS_OPTION_INT,
	 .fallback = "8380",
	 .offset = AT(http),
	 .min = -1,
	 .max = 65535,
	 .argument = "N",
	 .help = "Port for metrics and JSON over HTTP; 0 takes any free one, -1: none. Whoever "
		 "finds the default taken goes without."},
	{.name = "http-bind",
	 .kind = HS_OPTION_TEXT,
	 .fallback = "127.0.0.1",
	 .offset = AT(http_bind),
	 .argument = "ADDRESS",
	 .help = "The address HTTP listens on. It has no password: beyond loopback, anyone who "
		 "reaches it can read key names."},
	{.name = "http-timeout",
	 .kind = HS_OPTION_INT,
	 .fallback = "10",
	 .offset = AT(http_timeout),
	 .min = 1,
	 .max = 3600,
	 .argument = "SECONDS",
	 .help = "Close HTTP connections that take longer for a request and its answer."},
	{.name = "metrics-keys",
	 .kind = HS_OPTION_INT,
	 .fallback = "0",
	 .offset = AT(metrics_keys),
	 .min = 0,
	 .max = 100,
	 .live = true,
	 .argument = "N",
	 .help = "Show this many of the hottest keys in /metrics; 0 for none."},
	{.name = "metrics-key-names",
	 .kind = HS_OPTION_WORD,
	 .fallback = "hash",
	 .offset = AT(metrics_key_names),
	 .words = "hash plain",
	 .live = true,
	 .argument = "HOW",
	 .help = "How /metrics names keys: hash, as HEAT KEY shows it, or plain."},
	{.name = "engine",
	 .kind = HS_OPTION_TEXT,
	 .fallback = "embedded",
	 .offset = AT(engine),
	 .argument = "ENGINE",
	 .help = "What keeps the data: embedded (LMDB, on this machine); or "
		 "redis://[user:pass@]host[:port][/db], one server; or "
		 "cluster://[user:pass@]host:port[,host:port...], a Redis or Valkey Cluster; "
		 "rediss:// "
		 "and clusters:// the same over TLS."},
	{.name = "engine-user",
	 .kind = HS_OPTION_TEXT,
	 .fallback = "",
	 .offset = AT(engine_user),
	 .argument = "NAME",
	 .help = "Who heatsink is to the servers behind it, unless the URL says; empty: the "
		 "default "
		 "user."},
	{.name = "engine-password",
	 .kind = HS_OPTION_TEXT,
	 .fallback = "",
	 .offset = AT(engine_password),
	 .argument = "PASSWORD",
	 .help = "The password for the servers behind heatsink, unless the URL has one."},
	{.name = "engine-timeout",
	 .kind = HS_OPTION_INT,
	 .fallback = "5000",
	 .offset = AT(engine_timeout),
	 .min = 100,
	 .max = 3600000,
	 .argument = "MS",
	 .help = "A request waits so many milliseconds for a server: through failovers and slots "
		 "on "
		 "the move, and for its reply. Blocking commands wait as long as they say."},
	{.name = "engine-inflight",
	 .kind = HS_OPTION_INT,
	 .fallback = "4096",
	 .offset = AT(engine_inflight),
	 .min = 1,
	 .max = 1000000,
	 .argument = "N",
	 .help = "Requests under way on one connection to a server; more wait."},
	{.name = "engine-inflight-bytes",
	 .kind = HS_OPTION_BYTES,
	 .fallback = "16mb",
	 .offset = AT(engine_inflight_bytes),
	 .min = 0,
	 .max = (int64_t)1 << 40,
	 .live = true,
	 .argument = "BYTES",
	 .help = "Large replies under way from one server to one worker, reckoned by what the key "
		 "or "
		 "the client was last answered; a client whose next request would exceed this, or "
		 "a "
		 "quarter of it by itself, is held until there is room. 0: no limit."},
	{.name = "engine-queue",
	 .kind = HS_OPTION_INT,
	 .fallback = "16384",
	 .offset = AT(engine_queue),
	 .min = 1,
	 .max = 10000000,
	 .argument = "N",
	 .help = "Requests of one worker that wait for a server; more are refused with BUSY."},
	{.name = "engine-private-connections",
	 .kind = HS_OPTION_INT,
	 .fallback = "512",
	 .offset = AT(engine_private_connections),
	 .min = 1,
	 .max = 100000,
	 .argument = "N",
	 .help = "Connections of one worker for clients that block (BLPOP) or WATCH; more are "
		 "refused "
		 "with BUSY."},
	{.name = "engine-refresh",
	 .kind = HS_OPTION_INT,
	 .fallback = "10000",
	 .offset = AT(engine_refresh),
	 .min = 100,
	 .max = 3600000,
	 .argument = "MS",
	 .help = "Looks at a cluster's topology this often, about; on surprise at once."},
	{.name = "engine-tls-ca-cert-file",
	 .kind = HS_OPTION_TEXT,
	 .fallback = "",
	 .offset = AT(engine_tls_ca_cert_file),
	 .argument = "FILE",
	 .help = "Authorities that vouch for the servers behind rediss:// and clusters://, PEM. "
		 "Without these two: those of the system."},
	{.name = "engine-tls-ca-cert-dir",
	 .kind = HS_OPTION_TEXT,
	 .fallback = "",
	 .offset = AT(engine_tls_ca_cert_dir),
	 .argument = "FOLDER",
	 .help = "The same as a folder of files under their hashes."},
	{.name = "engine-tls-cert-file",
	 .kind = HS_OPTION_TEXT,
	 .fallback = "",
	 .offset = AT(engine_tls_cert_file),
	 .argument = "FILE",
	 .help = "The certificate that heatsink shows to those servers, PEM; empty: none."},
	{.name = "engine-tls-key-file",
	 .kind = HS_OPTION_TEXT,
	 .fallback = "",
	 .offset = AT(engine_tls_key_file),
	 .argument = "FILE",
	 .help = "The private key of that certificate, PEM."},
	{.name = "engine-tls-skip-verify",
	 .kind = HS_OPTION_BOOL,
	 .fallback = "no",
	 .offset = AT(engine_tls_skip_verify),
	 .argument = "YES|NO",
	 .help = "Believe whoever answers there. For tests alone."},
	{.name = "data",
	 .kind = HS_OPTION_TEXT,
	 .fallback = "./data",
	 .offset = AT(data),
	 .embedded = true,
	 .argument = "FOLDER",
	 .help = "Where the embedded engine keeps its files."},
	{.name = "workers",
	 .kind = HS_OPTION_INT,
	 .fallback = "0",
	 .offset = AT(workers),
	 .min = 0,
	 .max = 256,
	 .argument = "N",
	 .help = "Threads that serve clients; 0 means one per core, 256 at most."},
	{.name = "partitions",
	 .kind = HS_OPTION_INT,
	 .fallback = "8",
	 .offset = AT(partitions),
	 .min = 1,
	 .max = 256,
	 .embedded = true,
	 .argument = "N",
	 .help = "Stores of a new database; an existing one keeps its number."},
	{.name = "sync",
	 .kind = HS_OPTION_WORD,
	 .fallback = "always",
	 .offset = AT(sync),
	 .words = "always off",
	 .embedded = true,
	 .argument = "WHEN",
	 .help = "always: acknowledged means on disk. off: survives a killed process, not a power "
		 "cut."},
	{.name = "store-size",
	 .kind = HS_OPTION_BYTES,
	 .fallback = "16gb",
	 .offset = AT(store_size),
	 .min = 1 << 20,
	 .max = (int64_t)1 << 44,
	 .embedded = true,
	 .argument = "BYTES",
	 .help = "The most one partition may take; writes are refused beyond it."},
	{.name = "log-size",
	 .kind = HS_OPTION_BYTES,
	 .fallback = "32mb",
	 .offset = AT(log_size),
	 .min = 1 << 16,
	 .max = (int64_t)1 << 32,
	 .embedded = true,
	 .argument = "BYTES",
	 .help = "Size of each of the two redo log files; a full one starts a checkpoint."},
	{.name = "requirepass",
	 .kind = HS_OPTION_TEXT,
	 .fallback = "",
	 .offset = AT(requirepass),
	 .live = true,
	 .argument = "PASSWORD",
	 .help = "Clients must AUTH with it; empty for none."},
	{.name = "user",
	 .kind = HS_OPTION_USERS,
	 .fallback = "",
	 .offset = AT(users),
	 .live = true,
	 .argument = "NAME RULE...",
	 .help = "A user and what it may do, in the rules of Redis's ACL; once for each user. See "
		 "docs/ACL.md."},
	{.name = "protected-mode",
	 .kind = HS_OPTION_BOOL,
	 .fallback = "yes",
	 .offset = AT(protected_mode),
	 .argument = "YES|NO",
	 .help = "Refuse to listen beyond loopback while a user can log in without a password, and "
		 "refuse to take the last password of a user away while it does."},
	{.name = "maxclients",
	 .kind = HS_OPTION_INT,
	 .fallback = "10000",
	 .offset = AT(maxclients),
	 .min = 1,
	 .max = UINT32_MAX,
	 .live = true,
	 .argument = "N",
	 .help = "Connections at once; one more is told so and closed."},
	{.name = "output-limit",
	 .kind = HS_OPTION_BYTES,
	 .fallback = "64mb",
	 .offset = AT(output_limit),
	 .min = 1024,
	 .max = (int64_t)1 << 40,
	 .live = true,
	 .argument = "BYTES",
	 .help = "A client with more unread replies than this is cut off."},
	{.name = "timeout",
	 .kind = HS_OPTION_INT,
	 .fallback = "0",
	 .offset = AT(timeout),
	 .min = 0,
	 .max = 31536000,
	 .live = true,
	 .argument = "SECONDS",
	 .help = "Close clients idle for this long; 0 for never."},
	{.name = "tcp-keepalive",
	 .kind = HS_OPTION_INT,
	 .fallback = "300",
	 .offset = AT(tcp_keepalive),
	 .min = 0,
	 .max = 86400,
	 .argument = "SECONDS",
	 .help = "Probe silent connections this often; 0 for never."},
	{.name = "tcp-backlog",
	 .kind = HS_OPTION_INT,
	 .fallback = "511",
	 .offset = AT(tcp_backlog),
	 .min = 1,
	 .max = 65535,
	 .argument = "N",
	 .help = "Connections waiting to be accepted."},
	{.name = "shutdown-timeout",
	 .kind = HS_OPTION_INT,
	 .fallback = "10",
	 .offset = AT(shutdown_timeout),
	 .min = 0,
	 .max = 3600,
	 .live = true,
	 .argument = "SECONDS",
	 .help = "How long SIGTERM waits for clients that keep sending."},
	{.name = "slowlog-log-slower-than",
	 .kind = HS_OPTION_INT,
	 .fallback = "10000",
	 .offset = AT(slowlog_slower_than),
	 .min = -1,
	 .max = INT64_MAX,
	 .live = true,
	 .argument = "MICROSECONDS",
	 .help = "Commands slower than this go to SLOWLOG; -1: none."},
	{.name = "slowlog-max-len",
	 .kind = HS_OPTION_INT,
	 .fallback = "128",
	 .offset = AT(slowlog_max_len),
	 .min = 0,
	 .max = 1000000,
	 .live = true,
	 .argument = "N",
	 .help = "Entries SLOWLOG keeps for each worker."},
	{.name = "tracking-table-max-keys",
	 .kind = HS_OPTION_INT,
	 .fallback = "1000000",
	 .offset = AT(tracking_table_max_keys),
	 .min = 0,
	 .max = INT64_MAX,
	 .live = true,
	 .argument = "N",
	 .help = "Keys that CLIENT TRACKING remembers in all, shared evenly by the workers; beyond "
		 "it keys are forgotten and their readers told so. 0: no limit."},
	{.name = "hot-share",
	 .kind = HS_OPTION_SHARE,
	 .fallback = "1%",
	 .offset = AT(hot_share),
	 .min = 1,
	 .max = 1000000,
	 .live = true,
	 .argument = "PERCENT",
	 .help = "A key is hot when it takes this share of a worker's requests, measured over some "
		 "80 ms. Mitigations act on hot keys only."},
	{.name = "hot-share-least",
	 .kind = HS_OPTION_SHARE,
	 .fallback = "0.25%",
	 .offset = AT(hot_share_least),
	 .min = 0,
	 .max = 1000000,
	 .live = true,
	 .argument = "PERCENT",
	 .help = "A hot key stays hot while it takes this share. Below hot-share, so that a key "
		 "near the bound does not change sides all the time."},
	{.name = "hot-requests",
	 .kind = HS_OPTION_INT,
	 .fallback = "8",
	 .offset = AT(hot_requests),
	 .min = 1,
	 .max = 1 << 24,
	 .live = true,
	 .argument = "N",
	 .help = "A key with fewer requests in that time is not hot, whatever its share: on a "
		 "quiet "
		 "server one request may be all there is."},
	{.name = "hot-cool",
	 .kind = HS_OPTION_INT,
	 .fallback = "1000",
	 .offset = AT(hot_cool),
	 .min = 0,
	 .max = 3600000,
	 .live = true,
	 .argument = "MS",
	 .help = "A key that has been below hot-share-least for so long is not hot any more."},
	{.name = "fold",
	 .kind = HS_OPTION_BOOL,
	 .fallback = "yes",
	 .offset = AT(fold),
	 .live = true,
	 .argument = "YES|NO",
	 .help = "Answer requests that wait for the same hot key with one or two requests to the "
		 "engine, each exactly as if it had been alone (docs/FOLDING.md)."},
	{.name = "fold-waiters-max",
	 .kind = HS_OPTION_INT,
	 .fallback = "65536",
	 .offset = AT(fold_waiters_max),
	 .min = 1,
	 .max = 1 << 24,
	 .live = true,
	 .argument = "N",
	 .help = "Requests that may wait for one hot key on each worker; one more is answered with "
		 "BUSY and not run."},
	{.name = "fold-worth",
	 .kind = HS_OPTION_INT,
	 .fallback = "2",
	 .offset = AT(fold_worth),
	 .min = 0,
	 .max = 1000,
	 .live = true,
	 .argument = "N",
	 .help = "Folding a key rests for 1024 requests when fewer than N of them, on average, "
		 "shared each of the last 32 commands. 0: it never rests."},
	{.name = "rule",
	 .kind = HS_OPTION_RULES,
	 .fallback = "",
	 .offset = AT(rules),
	 .live = true,
	 .argument = "GLOB CONTRACT OPTION=VALUE...",
	 .help = "What may be done to the keys that fit the glob: strict, or cache with its "
		 "options; once for each rule, and the longest literal prefix wins. See "
		 "docs/CONTRACTS.md."},
	{.name = "mitigate",
	 .kind = HS_OPTION_WORD,
	 .fallback = "on",
	 .offset = AT(mitigate),
	 .words = "on observe off",
	 .live = true,
	 .argument = "HOW",
	 .help = "on: does to keys what their rules allow. observe: changes nothing, and counts "
		 "what would have been saved. off: neither."},
	{.name = "cache-bytes",
	 .kind = HS_OPTION_BYTES,
	 .fallback = "64mb",
	 .offset = AT(cache_bytes),
	 .min = 0,
	 .max = (int64_t)1 << 44,
	 .live = true,
	 .argument = "BYTES",
	 .help = "What is kept under cache rules, of all workers together; 0: nothing is."},
	{.name = "cache-entry-bytes",
	 .kind = HS_OPTION_BYTES,
	 .fallback = "1mb",
	 .offset = AT(cache_entry_bytes),
	 .min = 0,
	 .max = (int64_t)1 << 30,
	 .live = true,
	 .argument = "BYTES",
	 .help = "A larger reply is not kept."},
	{.name = "acllog-max-len",
	 .kind = HS_OPTION_INT,
	 .fallback = "128",
	 .offset = AT(acllog_max_len),
	 .min = 0,
	 .max = 1000000,
	 .live = true,
	 .argument = "N",
	 .help = "Entries ACL LOG keeps for each worker."},
	{.name = "log-level",
	 .kind = HS_OPTION_WORD,
	 .fallback = "info",
	 .offset = AT(log_level),
	 .words = "debug info warn error",
	 .live = true,
	 .argument = "LEVEL",
	 .help = "The least important lines that are still written: debug, info, warn, error."},
	{.name = "cluster-announce-ip",
	 .kind = HS_OPTION_TEXT,
	 .fallback = "",
	 .offset = AT(cluster_announce_ip),
	 .live = true,
	 .argument = "ADDRESS",
	 .help = "Where CLUSTER sends cluster-aware clients; empty: the address they reached."},
	{.name = "cluster-announce-port",
	 .kind = HS_OPTION_INT,
	 .fallback = "0",
	 .offset = AT(cluster_announce_port),
	 .min = 0,
	 .max = 65535,
	 .live = true,
	 .argument = "N",
	 .help = "The port CLUSTER names; 0: the one they reached."},
	{.name = "cluster-announce-tls-port",
	 .kind = HS_OPTION_INT,
	 .fallback = "0",
	 .offset = AT(cluster_announce_tls_port),
	 .min = 0,
	 .max = 65535,
	 .live = true,
	 .argument = "N",
	 .help = "The port CLUSTER names to clients that came over TLS; 0: the one they reached."},
	{.name = "config",
	 .kind = HS_OPTION_TEXT,
	 .fallback = "",
	 .offset = AT(config),
	 .argument = "FILE",
	 .help = "Read options from this file first; flags win over it."},

	/* Asked for by clients and exporters; constant here. In front of servers those that are in
	 * engine/redis/server_options.c are the servers'. */
	{.name = "appendonly", .kind = HS_OPTION_FIXED, .fallback = "yes"},
	{.name = "cluster-enabled", .kind = HS_OPTION_FIXED, .fallback = "yes"},
	{.name = "cluster-require-full-coverage", .kind = HS_OPTION_FIXED, .fallback = "yes"},
	{.name = "databases", .kind = HS_OPTION_FIXED, .fallback = "1"},
	{.name = "latency-monitor-threshold", .kind = HS_OPTION_FIXED, .fallback = "0"},
	{.name = "maxmemory", .kind = HS_OPTION_FIXED, .fallback = "0"},
	{.name = "maxmemory-policy", .kind = HS_OPTION_FIXED, .fallback = "noeviction"},
	{.name = "notify-keyspace-events", .kind = HS_OPTION_FIXED, .fallback = ""},
	{.name = "proto-max-bulk-len", .kind = HS_OPTION_FIXED, .fallback = "536870912"},
	{.name = "save", .kind = HS_OPTION_FIXED, .fallback = ""},
};
const size_t hs_option_count = sizeof hs_option_table / sizeof *hs_option_table;

static int64_t *number_at(const struct hs_options *options, const struct hs_option *option)
{
	return (int64_t *)((char *)(uintptr_t)options + option->offset);
}

static char **text_at(const struct hs_options *options, const struct hs_option *option)
{
	return (char **)((char *)(uintptr_t)options + option->offset);
}

void hs_options_init(struct hs_options *options)
{
	char error[128];

	memset(options, 0, sizeof *options);
	options->users = hs_acl_create();
	options->rules = hs_rules_create();
	for (size_t i = 0; i < hs_option_count; i++) {
		const struct hs_option *option = &hs_option_table[i];

		if (option->kind == HS_OPTION_FIXED || option->kind == HS_OPTION_USERS ||
		    option->kind == HS_OPTION_RULES)
			continue;
		hs_check(hs_option_set(options, option, hs_bytes_of(option->fallback), error,
				       sizeof error) == 0);
	}
}

void hs_options_deinit(struct hs_options *options)
{
	for (size_t i = 0; i < hs_option_count; i++) {
		const struct hs_option *option = &hs_option_table[i];

		if (option->kind != HS_OPTION_FIXED && option->kind == HS_OPTION_TEXT)
			hs_mem_free(text_at(options, option));
	}
	hs_acl_drop(&options->users);
	hs_rules_unref(&options->rules);
}

void hs_options_copy(struct hs_options *to, const struct hs_options *from)
{
	*to = *from;
	to->users = hs_acl_hold(from->users);
	hs_rules_ref(to->rules);
	for (size_t i = 0; i < hs_option_count; i++) {
		const struct hs_option *option = &hs_option_table[i];

		if (option->kind != HS_OPTION_FIXED && option->kind == HS_OPTION_TEXT) {
			const char *text = *text_at(from, option);

			*text_at(to, option) = hs_mem_dup(text, strlen(text));
		}
	}
}

const struct hs_option *hs_option_find(struct hs_bytes name)
{
	for (size_t i = 0; i < hs_option_count; i++) {
		if (hs_bytes_is_word(name, hs_option_table[i].name))
			return &hs_option_table[i];
	}
	return NULL;
}

/* Which of the words it is, or -1. */
static int64_t word_index(const char *words, struct hs_bytes value)
{
	int64_t index = 0;

	while (*words) {
		size_t len = strcspn(words, " ");

		if (value.len == len && strncasecmp(words, value.data, len) == 0)
			return index;
		words += len + (words[len] == ' ');
		index++;
	}
	return -1;
}

/* Redis's sentence, since CONFIG SET says it too. */
static void list_words(const char *words, char *error, size_t error_size)
{
	size_t at =
		(size_t)snprintf(error, error_size, "argument(s) must be one of the following: ");

	for (; *words && at + 2 < error_size; words++) {
		error[at++] = *words == ' ' ? ',' : *words;
		if (*words == ' ')
			error[at++] = ' ';
	}
	error[at] = '\0';
}

static int set_number(struct hs_options *options, const struct hs_option *option, int64_t number,
		      char *error, size_t error_size)
{
	if (number < option->min || number > option->max) {
		snprintf(error, error_size, "argument must be between %lld and %lld inclusive",
			 (long long)option->min, (long long)option->max);
		return HS_ERANGE;
	}
	*number_at(options, option) = number;
	return 0;
}

/* "1%", "0.25%" or without the sign, as millionths. */
static bool parse_share(struct hs_bytes value, int64_t *millionths)
{
	int64_t number = 0;
	int decimals = -1; /* none yet */
	size_t digits = 0;

	if (value.len > 0 && value.data[value.len - 1] == '%')
		value.len--;
	for (size_t i = 0; i < value.len; i++) {
		char c = value.data[i];

		if (c == '.' && decimals < 0) {
			decimals = 0;
			continue;
		}
		if (c < '0' || c > '9' || ++digits > 9 || (decimals >= 0 && ++decimals > 4))
			return false;
		number = number * 10 + (c - '0');
	}
	for (int i = decimals < 0 ? 0 : decimals; i < 4; i++)
		number *= 10;
	*millionths = number;
	return digits > 0;
}

static void format_share(int64_t millionths, struct hs_buf *text)
{
	char decimals[8];
	size_t len = (size_t)snprintf(decimals, sizeof decimals, "%04d", (int)(millionths % 10000));

	while (len > 0 && decimals[len - 1] == '0')
		len--;
	hs_buf_printf(text, "%lld%s%.*s%%", (long long)(millionths / 10000), len > 0 ? "." : "",
		      (int)len, decimals);
}

int hs_option_set(struct hs_options *options, const struct hs_option *option, struct hs_bytes value,
		  char *error, size_t error_size)
{
	int64_t number;
	uint64_t bytes;

	switch (option->kind) {
	case HS_OPTION_INT:
		if (!hs_num_parse_int(value, &number)) {
			snprintf(error, error_size, "argument couldn't be parsed into an integer");
			return HS_EINVAL;
		}
		return set_number(options, option, number, error, error_size);
	case HS_OPTION_BYTES:
		if (!hs_num_parse_bytes(value, &bytes) || bytes > INT64_MAX) {
			snprintf(error, error_size, "argument must be a memory value");
			return HS_EINVAL;
		}
		return set_number(options, option, (int64_t)bytes, error, error_size);
	case HS_OPTION_SHARE:
		if (!parse_share(value, &number) || number < option->min || number > option->max) {
			snprintf(error, error_size,
				 "argument must be a share of at most 100%%, such as 0.25%%");
			return HS_EINVAL;
		}
		*number_at(options, option) = number;
		return 0;
	case HS_OPTION_BOOL:
		number = word_index("no yes", value);
		if (number < 0) {
			snprintf(error, error_size, "argument must be 'yes' or 'no'");
			return HS_EINVAL;
		}
		*number_at(options, option) = number;
		return 0;
	case HS_OPTION_WORD:
		number = word_index(option->words, value);
		if (number < 0) {
			list_words(option->words, error, error_size);
			return HS_EINVAL;
		}
		if (option->kind != HS_OPTION_TEXT) {
			*number_at(options, option) = number;
			return 0;
		}
		break;
	case HS_OPTION_TEXT:
		if (value.len > 0 && memchr(value.data, '\0', value.len)) {
			snprintf(error, error_size, "must not contain a zero byte");
			return HS_EINVAL;
		}
		break;
	case HS_OPTION_USERS:
		snprintf(error, error_size, "users are changed one by one: ACL SETUSER");
		return HS_EINVAL;
	case HS_OPTION_RULES:
		snprintf(error, error_size,
			 "rules are changed one by one: HEAT RULE SET, HEAT RULE DEL");
		return HS_EINVAL;
	case HS_OPTION_FIXED:
		if (hs_bytes_equal(value, hs_bytes_of(option->fallback)))
			return 0;
		snprintf(error, error_size, "is always '%s' here", option->fallback);
		return HS_EINVAL;
	}
	hs_mem_free(text_at(options, option));
	*text_at(options, option) = hs_mem_dup(value.data, value.len);
	return 0;
}

static void format_word(const char *words, int64_t index, struct hs_buf *text)
{
	while (index-- > 0)
		words += strcspn(words, " ") + 1;
	hs_buf_append(text, words, strcspn(words, " "));
}

void hs_option_format(const struct hs_options *options, const struct hs_option *option,
		      struct hs_buf *text)
{
	switch (option->kind) {
	case HS_OPTION_INT:
	case HS_OPTION_BYTES:
		hs_buf_printf(text, "%lld", (long long)*number_at(options, option));
		break;
	case HS_OPTION_SHARE:
		format_share(*number_at(options, option), text);
		break;
	case HS_OPTION_BOOL:
		format_word("no yes", *number_at(options, option), text);
		break;
	case HS_OPTION_WORD:
	case HS_OPTION_TEXT:
		if (option->kind == HS_OPTION_TEXT)
			hs_buf_append_bytes(text, hs_bytes_of(*text_at(options, option)));
		else
			format_word(option->words, *number_at(options, option), text);
		break;
	case HS_OPTION_USERS:
		break;
	case HS_OPTION_RULES:
		for (size_t i = 0; i < hs_rules_count(options->rules); i++) {
			if (i > 0)
				hs_buf_append(text, "\n", 1);
			hs_rule_describe(hs_rules_at(options->rules, i), text);
		}
		break;
	case HS_OPTION_FIXED:
		hs_buf_append_bytes(text, hs_bytes_of(option->fallback));
	}
}

const char *hs_option_nearest(struct hs_bytes name)
{
	struct hs_nearest nearest = hs_nearest_to(name);

	for (size_t i = 0; i < hs_option_count; i++) {
		if (hs_option_table[i].kind != HS_OPTION_FIXED)
			hs_nearest_try(&nearest, hs_option_table[i].name);
	}
	return nearest.name;
}

bool hs_options_is_loopback(const char *address)
{
	struct in_addr v4;
	struct in6_addr v6;

	if (inet_pton(AF_INET, address, &v4) == 1)
		return (ntohl(v4.s_addr) >> 24) == 127;
	if (inet_pton(AF_INET6, address, &v6) == 1)
		return IN6_IS_ADDR_LOOPBACK(&v6);
	return strcmp(address, "localhost") == 0;
}

static bool is_address(const char *text)
{
	struct in_addr v4;
	struct in6_addr v6;

	return inet_pton(AF_INET, text, &v4) == 1 || inet_pton(AF_INET6, text, &v6) == 1;
}

/* What clients can be told to connect to: it stands in lines that they take apart. */
static bool is_host(const char *text)
{
	return is_address(text) ||
	       (strlen(text) <= HS_HOST_NAME_MAX &&
		text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789.-_")] == '\0');
}

/* The first address that can be reached from other machines; "": none. `list` is room for it. */
static const char *public_address(const struct hs_options *options, char *list, size_t size)
{
	char *rest = list, *address;

	snprintf(list, size, "%s", options->bind);
	while ((address = strsep(&rest, " "))) {
		if (*address != '\0' && !hs_options_is_loopback(address))
			return address;
	}
	return "";
}

int hs_options_check_user(const struct hs_options *options, const struct hs_acl_user *user,
			  char *error, size_t error_size)
{
	char list[BIND_BYTES_MAX], name[64];
	const char *address = public_address(options, list, sizeof list);
	bool is_default = hs_bytes_equal(hs_acl_user_name(user), HS_LIT("default"));

	if (!options->protected_mode || *address == '\0' || !hs_acl_user_is_open(user))
		return 0;
	hs_bytes_escape(hs_acl_user_name(user), name, sizeof name);
	snprintf(error, error_size,
		 "bind %s would let anybody on the network in as user '%s', which has no password: "
		 "%s, turn the user off (%s off), or start with --protected-mode no",
		 address, name, is_default ? "set requirepass" : "give it one (>password)", name);
	return HS_EINVAL;
}

/* No user may be open to the network. */
static int check_users(const struct hs_options *options, char *error, size_t error_size)
{
	struct hs_acl *acl = hs_options_acl(options);
	int status = 0;

	for (size_t i = 0; i < hs_acl_count(acl) && status == 0; i++)
		status = hs_options_check_user(options, hs_acl_at(acl, i), error, error_size);
	hs_acl_drop(&acl);
	return status;
}

static int check_engine(const char *engine, char *error, size_t error_size)
{
	struct hs_redis_url url;
	char why[HS_REDIS_WHY_BYTES];

	if (strcmp(engine, "embedded") == 0)
		return 0;
	if (strstr(engine, "://")) {
		if (hs_redis_url_parse(&url, hs_bytes_of(engine), why, sizeof why) == 0)
			return 0;
		snprintf(error, error_size, "engine: %s", why);
		return HS_EINVAL;
	}
	snprintf(error, error_size,
		 "engine '%s' is neither embedded nor a URL like redis://127.0.0.1:6379 or "
		 "cluster://127.0.0.1:7000",
		 engine);
	return HS_EINVAL;
}

int hs_options_check(const struct hs_options *options, char *error, size_t error_size)
{
	char list[BIND_BYTES_MAX];
	char *rest = list, *address;

	if (strlen(options->bind) >= sizeof list) {
		snprintf(error, error_size, "bind is longer than %d bytes", BIND_BYTES_MAX - 1);
		return HS_EINVAL;
	}
	if (check_engine(options->engine, error, error_size) < 0)
		return HS_EINVAL;
	if (!is_host(options->cluster_announce_ip)) {
		snprintf(error, error_size, "cluster-announce-ip '%s' is no address or host name",
			 options->cluster_announce_ip);
		return HS_EINVAL;
	}
	if (!hs_options_is_loopback(options->http_bind) && !is_address(options->http_bind)) {
		snprintf(error, error_size, "http-bind '%s' is not an address", options->http_bind);
		return HS_EINVAL;
	}
	snprintf(list, sizeof list, "%s", options->bind);
	while ((address = strsep(&rest, " "))) {
		if (*address == '\0' || hs_options_is_loopback(address))
			continue;
		if (!is_address(address)) {
			snprintf(error, error_size, "bind '%s' is not an address", address);
			return HS_EINVAL;
		}
	}
	if (hs_secure_check(options, error, error_size) < 0)
		return HS_EINVAL;
	return check_users(options, error, error_size);
}

void hs_options_help(struct hs_buf *text)
{
	for (size_t i = 0; i < hs_option_count; i++) {
		const struct hs_option *option = &hs_option_table[i];
		char flag[64];

		if (option->kind == HS_OPTION_FIXED)
			continue;
		snprintf(flag, sizeof flag, "--%s %s", option->name, option->argument);
		hs_buf_printf(text, "  %-40s %s", flag, option->help);
		if (option->fallback[0])
			hs_buf_printf(text, " [%s]", option->fallback);
		hs_buf_printf(text, "\n");
	}
}
