/* Every limit that is not an option, in one place, tied together where one leans on another.
 * Options with their defaults are in serve/options.c. Reaching a limit is a counted, clear error
 * to the caller it concerns and no trouble to anybody else (law 6). */
#ifndef HS_BASE_LIMITS_H
#define HS_BASE_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#define HS_KIB ((size_t)1024)
#define HS_MIB (HS_KIB * 1024)
#define HS_GIB (HS_MIB * 1024)

enum {
	HS_SLOTS = 16384,	 /* as in Redis Cluster */
	HS_PARTITIONS_MAX = 256, /* stores of the embedded engine */
	HS_WORKERS_MAX = 256,
	HS_PARTITION_BUCKETS = 16, /* per-session in-flight counters, by partition modulo this */

	HS_SESSION_INFLIGHT_MAX = 256, /* pipelined requests of one connection under way at once */
	HS_MULTI_COMMANDS_MAX = 1 << 20, /* commands queued between MULTI and EXEC */
	HS_WATCH_KEYS_MAX = 1024,	 /* keys watched by one connection */
	HS_TRACKING_PREFIXES_MAX = 256, /* of one connection, CLIENT TRACKING ON BCAST PREFIX … */
	/* Connections that may wait for news of keys, for each key that may be tracked: beyond that
	 * keys are forgotten. */
	HS_TRACKING_CLIENTS_PER_KEY = 8,
	HS_CHANGED_KEYS_MAX = 1 << 20, /* names in one piece of news; more are told as "all" */
	HS_SESSION_SUBSCRIPTIONS_MAX = 1 << 18, /* channels and patterns of one connection */
	HS_WORKER_SUBSCRIPTIONS_MAX = 1 << 20,	/* of all connections of one worker */
	HS_CLIENT_NAME_MAX = 4096,
	HS_HOST_NAME_MAX = 253,
	HS_NODE_ID_LEN = 40, /* hex digits, as in Redis Cluster */
	HS_SLOWLOG_ARGS_MAX = 32,
	HS_SLOWLOG_ARG_BYTES_MAX = 128,

	HS_LEARNED_MAX = 1024, /* commands learned from a server that have counters of their own */
	HS_LEARNED_ROWS_MAX = 16384, /* descriptions of commands, of all the times of asking */
	HS_LEARNED_NAME_BYTES_MAX = 96,
	HS_LEARNED_SPECS_MAX = 16, /* of one command's keys */

	HS_CHANNELS_MAX = 1 << 20, /* channels and patterns listened to at a server, in all */

	HS_ACL_USERS_MAX = 10000,   /* with the default one */
	HS_ACL_LOG_BYTES_MAX = 512, /* of a key or a name in ACL LOG */

	HS_HTTP_CONNECTIONS_MAX = 256, /* one more takes the place of an idle one */
	HS_HTTP_RESERVED_MAX = 16,     /* beyond these, for health checks when all are busy */
	HS_HTTP_KEY_READS_MAX = 64,    /* values being read for HTTP; one more is told so */

	HS_HOT_KEYS_MAX = 4096, /* hot keys of one worker */

	HS_COPIES_KEYS_MAX = 64,       /* hot keys that one worker may make copies of */
	HS_COPIES_KEY_BYTES_MAX = 512, /* a key with a longer name is not copied */

	HS_RULES_MAX = 1024, /* contracts */

	HS_LOOKUPS_MAX = 64, /* names of servers being looked up */

	HS_ARGC_INLINE = 16, /* arguments that need no heap */
};

#define HS_PAUSE_MS_MAX INT64_C(3153600000000) /* CLIENT PAUSE: a hundred years are enough */
#define HS_INLINE_BYTES_MAX (64 * HS_KIB) /* an inline command, or a length line: Redis's limit */
#define HS_BULK_BYTES_MAX (512 * HS_MIB)  /* one argument: Redis's proto-max-bulk-len */
#define HS_ARGC_MAX ((size_t)2147483647)  /* Redis's limit on a request's elements */
/* A reply of several values, of the embedded engine; one value always fits. */
#define HS_REPLY_BYTES_MAX (HS_BULK_BYTES_MAX + HS_MIB)
#define HS_QUERY_BYTES_MAX HS_GIB /* one request in all: Redis's client-query-buffer-limit */
#define HS_UNAUTH_ARGC_MAX 10	  /* before AUTH, as Redis */
#define HS_UNAUTH_BULK_BYTES_MAX (16 * HS_KIB)
#define HS_MULTI_BYTES_MAX (512 * HS_MIB)	   /* all commands of one transaction */
#define HS_WATCH_NAMES_BYTES_MAX (4 * HS_KIB)	   /* watched keys that a connection remembers */
#define HS_ACL_USER_BYTES_MAX (8 * HS_KIB)	   /* one user's rules, as ACL LIST shows them */
#define HS_RULE_GLOB_BYTES_MAX HS_KIB		   /* of the keys that a rule is for */
#define HS_TRACKING_PREFIX_BYTES_MAX (64 * HS_KIB) /* all of one connection's prefixes */
#define HS_TRACKING_TABLE_BYTES_MAX (256 * HS_MIB) /* names of tracked keys, of one worker */
#define HS_CHANGED_NAMES_BYTES_MAX (16 * HS_MIB)   /* in one piece of news */
#define HS_WORKER_TOPIC_BYTES_MAX (256 * HS_MIB)   /* names of what a worker's clients listen to */
#define HS_HOT_BYTES_MAX (16 * HS_MIB)		   /* names of all hot keys of one worker */
#define HS_FOLD_KEY_BYTES_MAX (64 * HS_KIB)	   /* a longer key is not folded */
#define HS_COPIES_VALUE_BYTES_MAX (16 * HS_MIB)	   /* as DUMP has it; a larger one is not copied */
#define HS_REPLY_GUESS_BYTES (256 * HS_KIB)	   /* what a new client's replies may cost */
#define HS_IDLE_BUFFER_BYTES (16 * HS_KIB)	   /* what an idle buffer keeps */
#define HS_READ_BYTES (64 * HS_KIB)		   /* one read from a socket */
#define HS_HTTP_REQUEST_BYTES_MAX (16 * HS_KIB)	   /* a request line and its headers */
#define HS_HTTP_BODY_BYTES_MAX (16 * HS_MIB)	   /* one answer */
#define HS_HTTP_UNREAD_BYTES_MAX (64 * HS_MIB)	   /* answers that nobody has read yet */

/* News. */
#define HS_CHANNEL_NAMES_BYTES_MAX (256 * HS_MIB)	/* of all HS_CHANNELS_MAX */
#define HS_EVENT_BYTES_MAX (HS_BULK_BYTES_MAX + HS_MIB) /* one message of a server, names and all */
#define HS_EVENT_QUEUE_BYTES_MAX (64 * HS_MIB)		/* what a worker has not read yet */

/* What a side of a TLS handshake may send in all, before it has shown who it is. */
#define HS_TLS_HANDSHAKE_BYTES_MAX (128 * HS_KIB)

_Static_assert(HS_BULK_BYTES_MAX < HS_QUERY_BYTES_MAX, "the largest argument must fit a request");
_Static_assert(HS_EVENT_BYTES_MAX > HS_BULK_BYTES_MAX, "the largest value can be published");
_Static_assert(HS_MULTI_BYTES_MAX >= HS_BULK_BYTES_MAX, "a transaction takes the largest argument");
_Static_assert(
	HS_ACL_USER_BYTES_MAX * 4 < HS_INLINE_BYTES_MAX,
	"a user's line in the file, every byte of it escaped, is read like an inline command");

#endif
