/* The rows: what every option is called, means and may be. */
#include "serve/options.h"

/* The field's type for each kind: options.c writes through the offset. A row whose field has another type does not
 * compile. */
#define TYPE_INT int64_t
#define TYPE_BYTES int64_t
#define TYPE_SHARE int64_t
#define TYPE_BOOL int64_t
#define TYPE_WORD int64_t
#define TYPE_TEXT char *
#define TYPE_USERS struct hs_acl *
#define TYPE_RULES const struct hs_rules *

#define ROW(kind_, name_, field, fallback_, argument_)                                             \
	.name = (name_), .kind = HS_OPTION_##kind_,                                                \
	.offset = _Generic(((struct hs_options *)0)->field, TYPE_##kind_                           \
			   : offsetof(struct hs_options, field)),                                  \
	.fallback = (fallback_), .argument = (argument_)
#define FIXED(name_, value) .name = (name_), .kind = HS_OPTION_FIXED, .fallback = (value)

/* clang-format off */
const struct hs_option hs_option_table[] = {
	{ROW(TEXT, "bind", bind, "127.0.0.1", "ADDRESS"),
	 .help = "Addresses to listen on, separated by spaces."},
	{ROW(INT, "port", port, "6380", "N"), .min = 0, .max = 65535,
	 .help = "Port for Redis clients; 0 takes any free one, or none when tls-port is set."},
	{ROW(INT, "tls-port", tls_port, "0", "N"), .min = 0, .max = 65535,
	 .help = "Port for Redis clients that speak TLS; 0: none. With `port 0` it is the only "
		 "one."},
	{ROW(TEXT, "tls-cert-file", tls_cert_file, "", "FILE"), .live = true,
	 .help = "The server's certificate for tls-port, PEM, its chain behind it. SIGHUP and "
		 "CONFIG SET read it again, for new connections."},
	{ROW(TEXT, "tls-key-file", tls_key_file, "", "FILE"), .live = true,
	 .help = "The private key of that certificate, PEM."},
	{ROW(TEXT, "tls-key-file-pass", tls_key_file_pass, "", "PASSWORD"), .live = true,
	 .help = "The password that the key file is under."},
	{ROW(TEXT, "tls-ca-cert-file", tls_ca_cert_file, "", "FILE"), .live = true,
	 .help = "Authorities whose clients are let in, PEM."},
	{ROW(TEXT, "tls-ca-cert-dir", tls_ca_cert_dir, "", "FOLDER"), .live = true,
	 .help = "The same as a folder of files under their hashes, as `openssl rehash` makes it."},
	{ROW(WORD, "tls-auth-clients", tls_auth_clients, "yes", "WHO"),
	 .words = HS_WORDS("yes", "no", "optional"),
	 .live = true,
	 .help = "yes: clients must show a certificate of these authorities. optional: or none. "
		 "no: they are not asked."},
	{ROW(TEXT, "tls-protocols", tls_protocols, "", "LIST"), .live = true,
	 .help = "Versions to speak, separated by spaces; empty means TLSv1.2 TLSv1.3."},
	{ROW(TEXT, "tls-ciphers", tls_ciphers, "", "LIST"), .live = true,
	 .help = "Ciphers up to TLSv1.2, as `openssl ciphers` writes them; empty: OpenSSL's own."},
	{ROW(TEXT, "tls-ciphersuites", tls_ciphersuites, "", "LIST"), .live = true,
	 .help = "Ciphers of TLSv1.3, separated by colons; empty: OpenSSL's own."},
	{ROW(BOOL, "tls-prefer-server-ciphers", tls_prefer_server_ciphers, "no", "YES|NO"),
	 .live = true,
	 .help = "Choose by the order of these lists instead of the client's."},
	{ROW(INT, "tls-handshake-timeout", tls_handshake_timeout, "10", "SECONDS"),
	 .min = 1, .max = 3600,
	 .help = "Close connections to tls-port that take longer for their handshake."},
	{ROW(INT, "http", http, "8380", "N"), .min = -1, .max = 65535,
	 .help = "Port for metrics and JSON over HTTP; 0 takes any free one, -1: none. Whoever "
		 "finds the default taken goes without."},
	{ROW(TEXT, "http-bind", http_bind, "127.0.0.1", "ADDRESS"),
	 .help = "The address HTTP listens on. It has no password: beyond loopback, anyone who "
		 "reaches it can read key names."},
	{ROW(INT, "http-timeout", http_timeout, "10", "SECONDS"), .min = 1, .max = 3600,
	 .help = "Close HTTP connections that take longer for a request and its answer."},
	{ROW(INT, "metrics-keys", metrics_keys, "0", "N"), .min = 0, .max = 100, .live = true,
	 .help = "Show this many of the hottest keys in /metrics; 0 for none."},
	{ROW(WORD, "metrics-key-names", metrics_key_names, "hash", "HOW"),
	 .words = HS_WORDS("hash", "plain"),
	 .live = true,
	 .help = "How /metrics names keys: hash, as HEAT KEY shows it, or plain."},
	{ROW(TEXT, "engine", engine, "embedded", "ENGINE"),
	 .help = "What keeps the data: embedded (LMDB, on this machine); or "
		 "redis://[user:pass@]host[:port][/db], one server; or "
		 "cluster://[user:pass@]host:port[,host:port...], a Redis or Valkey Cluster; "
		 "rediss:// and clusters:// the same over TLS."},
	{ROW(TEXT, "engine-user", engine_user, "", "NAME"),
	 .help = "Who heatsink is to the servers behind it, unless the URL says; empty: the "
		 "default user."},
	{ROW(TEXT, "engine-password", engine_password, "", "PASSWORD"),
	 .help = "The password for the servers behind heatsink, unless the URL has one."},
	{ROW(INT, "engine-timeout", engine_timeout, "5000", "MS"), .min = 100, .max = 3600000,
	 .help = "A request waits so many milliseconds for a server: through failovers and slots "
		 "on the move, and for its reply. Blocking commands wait as long as they say."},
	{ROW(INT, "engine-inflight", engine_inflight, "4096", "N"), .min = 1, .max = 1000000,
	 .help = "Requests under way on one connection to a server; more wait."},
	{ROW(BYTES, "engine-inflight-bytes", engine_inflight_bytes, "16mb", "BYTES"),
	 .min = 0, .max = (int64_t)1 << 40, .live = true,
	 .help = "Large replies under way from one server to one worker, reckoned by what the "
		 "key or the client was last answered; a client whose next request would exceed "
		 "this, or a quarter of it by itself, is held until there is room. 0: no limit."},
	{ROW(INT, "engine-queue", engine_queue, "16384", "N"), .min = 1, .max = 10000000,
	 .help = "Requests of one worker that wait for a server; more are refused with BUSY."},
	{ROW(INT, "engine-private-connections", engine_private_connections, "512", "N"),
	 .min = 1, .max = 100000,
	 .help = "Connections of one worker for clients that block (BLPOP) or WATCH; more are "
		 "refused with BUSY."},
	{ROW(INT, "engine-refresh", engine_refresh, "10000", "MS"), .min = 100, .max = 3600000,
	 .help = "Looks at a cluster's topology this often, about; on surprise at once."},
	{ROW(TEXT, "engine-tls-ca-cert-file", engine_tls_ca_cert_file, "", "FILE"),
	 .help = "Authorities that vouch for the servers behind rediss:// and clusters://, PEM. "
		 "Without these two: those of the system."},
	{ROW(TEXT, "engine-tls-ca-cert-dir", engine_tls_ca_cert_dir, "", "FOLDER"),
	 .help = "The same as a folder of files under their hashes."},
	{ROW(TEXT, "engine-tls-cert-file", engine_tls_cert_file, "", "FILE"),
	 .help = "The certificate that heatsink shows to those servers, PEM; empty: none."},
	{ROW(TEXT, "engine-tls-key-file", engine_tls_key_file, "", "FILE"),
	 .help = "The private key of that certificate, PEM."},
	{ROW(BOOL, "engine-tls-skip-verify", engine_tls_skip_verify, "no", "YES|NO"),
	 .help = "Believe whoever answers there. For tests alone."},
	{ROW(TEXT, "data", data, "./data", "FOLDER"), .embedded = true,
	 .help = "Where the embedded engine keeps its files."},
	{ROW(INT, "workers", workers, "0", "N"), .min = 0, .max = 256,
	 .help = "Threads that serve clients; 0 means one per core, 256 at most."},
	{ROW(INT, "partitions", partitions, "8", "N"), .min = 1, .max = 256, .embedded = true,
	 .help = "Stores of a new database; an existing one keeps its number."},
	{ROW(WORD, "sync", sync, "always", "WHEN"),
	 .words = HS_WORDS("always", "off"), .embedded = true,
	 .help = "always: acknowledged means on disk. off: survives a killed process, not a "
		 "power cut."},
	{ROW(BYTES, "store-size", store_size, "16gb", "BYTES"),
	 .min = 1 << 20, .max = (int64_t)1 << 44, .embedded = true,
	 .help = "The most one partition may take; writes are refused beyond it."},
	{ROW(BYTES, "log-size", log_size, "32mb", "BYTES"),
	 .min = 1 << 16, .max = (int64_t)1 << 32, .embedded = true,
	 .help = "Size of each of the two redo log files; a full one starts a checkpoint."},
	{ROW(TEXT, "requirepass", requirepass, "", "PASSWORD"), .live = true,
	 .help = "Clients must AUTH with it; empty for none."},
	{ROW(USERS, "user", users, "", "NAME RULE..."), .live = true,
	 .help = "A user and what it may do, in the rules of Redis's ACL; once for each user. "
		 "See docs/ACL.md."},
	{ROW(BOOL, "protected-mode", protected_mode, "yes", "YES|NO"),
	 .help = "Refuse to listen beyond loopback while a user can log in without a password, "
		 "and refuse to take the last password of a user away while it does."},
	{ROW(INT, "maxclients", maxclients, "10000", "N"),
	 .min = 1, .max = UINT32_MAX, .live = true,
	 .help = "Connections at once; one more is told so and closed."},
	{ROW(BYTES, "output-limit", output_limit, "64mb", "BYTES"),
	 .min = 1024, .max = (int64_t)1 << 40, .live = true,
	 .help = "A client with more unread replies than this is cut off."},
	{ROW(INT, "timeout", timeout, "0", "SECONDS"), .min = 0, .max = 31536000, .live = true,
	 .help = "Close clients idle for this long; 0 for never."},
	{ROW(INT, "tcp-keepalive", tcp_keepalive, "300", "SECONDS"), .min = 0, .max = 86400,
	 .help = "Probe silent connections this often; 0 for never."},
	{ROW(INT, "tcp-backlog", tcp_backlog, "511", "N"), .min = 1, .max = 65535,
	 .help = "Connections waiting to be accepted."},
	{ROW(INT, "shutdown-timeout", shutdown_timeout, "10", "SECONDS"),
	 .min = 0, .max = 3600, .live = true,
	 .help = "How long SIGTERM waits for clients that keep sending."},
	{ROW(INT, "slowlog-log-slower-than", slowlog_slower_than, "10000", "MICROSECONDS"),
	 .min = -1, .max = INT64_MAX, .live = true,
	 .help = "Commands slower than this go to SLOWLOG; -1: none."},
	{ROW(INT, "slowlog-max-len", slowlog_max_len, "128", "N"),
	 .min = 0, .max = 1000000, .live = true,
	 .help = "Entries SLOWLOG keeps for each worker."},
	{ROW(INT, "tracking-table-max-keys", tracking_table_max_keys, "1000000", "N"),
	 .min = 0, .max = INT64_MAX, .live = true,
	 .help = "Keys that CLIENT TRACKING remembers in all, shared evenly by the workers; "
		 "beyond it keys are forgotten and their readers told so. 0: no limit."},
	{ROW(SHARE, "hot-share", hot_share, "1%", "PERCENT"),
	 .min = 1, .max = 1000000, .live = true,
	 .help = "A key is hot when it takes this share of a worker's requests, measured over "
		 "some 80 ms. Mitigations act on hot keys only."},
	{ROW(SHARE, "hot-share-least", hot_share_least, "0.25%", "PERCENT"),
	 .min = 0, .max = 1000000, .live = true,
	 .help = "A hot key stays hot while it takes this share. Below hot-share, so that a key "
		 "near the bound does not change sides all the time; a larger one counts as "
		 "hot-share."},
	{ROW(INT, "hot-requests", hot_requests, "8", "N"), .min = 1, .max = 1 << 24, .live = true,
	 .help = "A key with fewer requests in that time is not hot, whatever its share: on a "
		 "quiet server one request may be all there is."},
	{ROW(INT, "hot-cool", hot_cool, "1000", "MS"), .min = 0, .max = 3600000, .live = true,
	 .help = "A key that has been below hot-share-least for so long is not hot any more."},
	{ROW(BOOL, "fold", fold, "yes", "YES|NO"), .live = true,
	 .help = "Answer requests that wait for the same hot key with one or two requests to the "
		 "engine, each exactly as if it had been alone (docs/FOLDING.md)."},
	{ROW(INT, "fold-waiters-max", fold_waiters_max, "65536", "N"),
	 .min = 1, .max = 1 << 24, .live = true,
	 .help = "Requests that may wait for one hot key on each worker; one more is answered "
		 "with BUSY and not run."},
	{ROW(INT, "fold-worth", fold_worth, "2", "N"), .min = 0, .max = 1000, .live = true,
	 .help = "Folding a key rests for 1024 requests when fewer than N of them, on average, "
		 "shared each of the last 32 commands. 0: it never rests."},
	{ROW(RULES, "rule", rules, "", "GLOB CONTRACT OPTION=VALUE..."), .live = true,
	 .help = "What may be done to the keys that fit the glob: strict, or cache with its "
		 "options; once for each rule, and the longest literal prefix wins. See "
		 "docs/CONTRACTS.md."},
	{ROW(WORD, "mitigate", mitigate, "on", "HOW"),
	 .words = HS_WORDS("on", "observe", "off"), .live = true,
	 .help = "on: does to keys what their rules allow. observe: changes nothing, and counts "
		 "what would have been saved. off: neither."},
	{ROW(BYTES, "cache-bytes", cache_bytes, "64mb", "BYTES"),
	 .min = 0, .max = (int64_t)1 << 44, .live = true,
	 .help = "What is kept under cache rules, of all workers together; 0: nothing is."},
	{ROW(BYTES, "cache-entry-bytes", cache_entry_bytes, "1mb", "BYTES"),
	 .min = 0, .max = (int64_t)1 << 30, .live = true,
	 .help = "A larger reply is not kept."},
	{ROW(INT, "acllog-max-len", acllog_max_len, "128", "N"),
	 .min = 0, .max = 1000000, .live = true,
	 .help = "Entries ACL LOG keeps for each worker."},
	{ROW(WORD, "log-level", log_level, "info", "LEVEL"),
	 .words = HS_WORDS("debug", "info", "warn", "error"),
	 .live = true,
	 .help = "The least important lines that are still written: debug, info, warn, error."},
	{ROW(TEXT, "cluster-announce-ip", cluster_announce_ip, "", "ADDRESS"), .live = true,
	 .help = "Where CLUSTER sends cluster-aware clients; empty: the address they reached."},
	{ROW(INT, "cluster-announce-port", cluster_announce_port, "0", "N"),
	 .min = 0, .max = 65535, .live = true,
	 .help = "The port CLUSTER names; 0: the one they reached."},
	{ROW(INT, "cluster-announce-tls-port", cluster_announce_tls_port, "0", "N"),
	 .min = 0, .max = 65535, .live = true,
	 .help = "The port CLUSTER names to clients that came over TLS; 0: the one they reached."},
	{ROW(TEXT, "config", config, "", "FILE"),
	 .help = "Read options from this file first; flags win over it."},

	/* Asked for by clients and exporters; constant here. In front of servers those that are in
	 * engine/redis/server_options.c are the servers'. */
	{FIXED("appendonly", "yes")},
	{FIXED("cluster-enabled", "yes")},
	{FIXED("cluster-require-full-coverage", "yes")},
	{FIXED("databases", "1")},
	{FIXED("latency-monitor-threshold", "0")},
	{FIXED("maxmemory", "0")},
	{FIXED("maxmemory-policy", "noeviction")},
	{FIXED("notify-keyspace-events", "")},
	{FIXED("proto-max-bulk-len", "536870912")},
	{FIXED("save", "")},
};
/* clang-format on */
const size_t hs_option_count = sizeof hs_option_table / sizeof *hs_option_table;
