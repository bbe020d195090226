/* Every limit that is not an option, in one place; static asserts below check limits that depend on each other.
 * Options and their defaults are in serve/options.def. A request that reaches a limit gets a clear error, which
 * is counted, and other clients do not notice (law 6 of docs/ARCHITECTURE.md). */
#ifndef HS_BASE_LIMITS_H
#define HS_BASE_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#define HS_KIB ((size_t)1024)
#define HS_MIB (HS_KIB * 1024)
#define HS_GIB (HS_MIB * 1024)

enum {
	HS_SLOTS = 16384,	 /* as in Redis Cluster */
	HS_PARTITIONS_MAX = 256, /* stores of the embedded engine, or masters of a Cluster */
	HS_WORKERS_MAX = 256,
	HS_PARTITION_BUCKETS = 16, /* in-flight counters of a session, by partition modulo this */

	HS_SESSION_INFLIGHT_MAX = 256,	 /* pipelined requests of one connection in flight */
	HS_MULTI_COMMANDS_MAX = 1 << 20, /* commands queued between MULTI and EXEC */
	HS_WATCH_KEYS_MAX = 1024,	 /* keys watched by one connection */
	HS_TRACKING_PREFIXES_MAX = 256, /* of one connection: CLIENT TRACKING ON BCAST PREFIX … */
	/* CLIENT TRACKING remembers at most this many readers per key, on average over tracking-table-max-keys.
	 * Beyond that it evicts keys and sends their readers an invalidation. */
	HS_TRACKING_CLIENTS_PER_KEY = 8,
	/* Keys in one HS_EVENT_CHANGED; more become HS_EVENT_CHANGED_ALL. */
	HS_CHANGED_KEYS_MAX = 1 << 20,
	HS_SESSION_SUBSCRIPTIONS_MAX = 1 << 18, /* channels and patterns of one connection */
	/* Channels and patterns of all connections of one worker. */
	HS_WORKER_SUBSCRIPTIONS_MAX = 1 << 20,
	HS_CLIENT_NAME_MAX = 4096,
	HS_HOST_NAME_MAX = 253,
	HS_NODE_ID_LEN = 40, /* hex digits, as in Redis Cluster */
	HS_SLOWLOG_ARGS_MAX = 32,
	HS_SLOWLOG_ARG_BYTES_MAX = 128,

	HS_LEARNED_MAX = 1024, /* learned commands with counters of their own */
	/* Rows made from COMMAND replies since the start, over all servers and refreshes. */
	HS_LEARNED_ROWS_MAX = 16384,
	HS_LEARNED_NAME_BYTES_MAX = 96,
	HS_LEARNED_SPECS_MAX = 16, /* key specifications of one command */

	HS_CHANNELS_MAX = 1 << 20, /* channels and patterns subscribed at servers, in all */

	HS_ACL_USERS_MAX = 10000,   /* including the default user */
	HS_ACL_LOG_BYTES_MAX = 512, /* a longer key or name is cut in ACL LOG */

	HS_HTTP_CONNECTIONS_MAX = 256, /* one more replaces an idle one */
	HS_HTTP_RESERVED_MAX = 16,     /* extra connections for health checks when all are busy */
	HS_HTTP_KEY_READS_MAX = 64,    /* values being read for HTTP; one more gets an error */

	HS_HOT_KEYS_MAX = 4096, /* hot keys of one worker */

	HS_COPIES_KEYS_MAX = 64,       /* hot keys that one worker may copy */
	HS_COPIES_KEY_BYTES_MAX = 512, /* a key with a longer name is not copied */

	HS_RULES_MAX = 1024, /* rules in the configuration */

	HS_LOOKUPS_MAX = 64, /* host names being looked up */

	HS_ARGC_INLINE = 16, /* arguments of a request that need no heap memory */
};

#define HS_PAUSE_MS_MAX INT64_C(3153600000000) /* CLIENT PAUSE: a hundred years */
#define HS_INLINE_BYTES_MAX (64 * HS_KIB) /* an inline command, or a length line: Redis's limit */
#define HS_BULK_BYTES_MAX (512 * HS_MIB)  /* one argument: Redis's proto-max-bulk-len */
#define HS_ARGC_MAX ((size_t)2147483647)  /* Redis's limit on a request's elements */
/* A reply of the embedded engine with several values. A single value always fits. */
#define HS_REPLY_BYTES_MAX (HS_BULK_BYTES_MAX + HS_MIB)
#define HS_QUERY_BYTES_MAX HS_GIB /* one request in all: Redis's client-query-buffer-limit */
#define HS_UNAUTH_ARGC_MAX 10	  /* before AUTH, as in Redis */
#define HS_UNAUTH_BULK_BYTES_MAX (16 * HS_KIB)
#define HS_MULTI_BYTES_MAX (512 * HS_MIB)	   /* all commands of one transaction */
#define HS_WATCH_NAMES_BYTES_MAX (4 * HS_KIB)	   /* names of watched keys of one connection */
#define HS_ACL_USER_BYTES_MAX (8 * HS_KIB)	   /* one user's rules, as ACL LIST shows them */
#define HS_RULE_GLOB_BYTES_MAX HS_KIB		   /* the glob of a rule */
#define HS_TRACKING_PREFIX_BYTES_MAX (64 * HS_KIB) /* all of one connection's prefixes */
#define HS_TRACKING_TABLE_BYTES_MAX (256 * HS_MIB) /* names of tracked keys of one worker */
#define HS_CHANGED_NAMES_BYTES_MAX (16 * HS_MIB)   /* names in one HS_EVENT_CHANGED */
/* Names of the channels and patterns of one worker's clients. */
#define HS_WORKER_TOPIC_BYTES_MAX (256 * HS_MIB)
#define HS_HOT_BYTES_MAX (16 * HS_MIB)	    /* names of all hot keys of one worker */
#define HS_FOLD_KEY_BYTES_MAX (64 * HS_KIB) /* a longer key is not folded */
/* As DUMP returns it; a larger value is not copied. */
#define HS_COPIES_VALUE_BYTES_MAX (16 * HS_MIB)
/* Estimated reply size for a new client (core/reply_budget.h). */
#define HS_REPLY_GUESS_BYTES (256 * HS_KIB)
#define HS_IDLE_BUFFER_BYTES (16 * HS_KIB)	/* memory that an idle buffer does not free */
#define HS_READ_BYTES (64 * HS_KIB)		/* one read from a socket */
#define HS_HTTP_REQUEST_BYTES_MAX (16 * HS_KIB) /* a request line and its headers */
#define HS_HTTP_BODY_BYTES_MAX (16 * HS_MIB)	/* one response */
#define HS_HTTP_UNREAD_BYTES_MAX (64 * HS_MIB)	/* responses that clients have not read */

/* Events. */
#define HS_CHANNEL_NAMES_BYTES_MAX (256 * HS_MIB) /* names of all HS_CHANNELS_MAX channels */
/* One message of a server, names included. */
#define HS_EVENT_BYTES_MAX (HS_BULK_BYTES_MAX + HS_MIB)
#define HS_EVENT_QUEUE_BYTES_MAX (64 * HS_MIB) /* events that a worker has not handled */

/* Bytes that one side may send in a TLS handshake before it has authenticated. */
#define HS_TLS_HANDSHAKE_BYTES_MAX (128 * HS_KIB)

_Static_assert(HS_BULK_BYTES_MAX < HS_QUERY_BYTES_MAX, "the largest argument must fit a request");
_Static_assert(HS_EVENT_BYTES_MAX > HS_BULK_BYTES_MAX, "the largest value can be published");
_Static_assert(HS_MULTI_BYTES_MAX >= HS_BULK_BYTES_MAX, "a transaction takes the largest argument");
_Static_assert(
	HS_ACL_USER_BYTES_MAX * 4 < HS_INLINE_BYTES_MAX,
	"a user's line in the file, every byte of it escaped, is read like an inline command");

#endif
