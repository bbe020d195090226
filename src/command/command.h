/* The command table: what heatsink knows about each command, one row each (command/rows.def).
 * Identifiers, lookup by name, COMMAND, HELP, ACL categories, routing and splitting all come from
 * these rows. A new command is its row and one function.
 *
 * The folder describes commands and runs none. It knows base/ and wire/. It calls no engine,
 * connection or store; not_embedded.h and learned_hints.c hold only facts about engines and
 * servers. The rows name the functions that run a command only through macros (rows.def). The table
 * is constant and shared by all threads. Commands that only a server knows come from learned.h, as
 * rows of the same type. */
#ifndef HS_COMMAND_COMMAND_H
#define HS_COMMAND_COMMAND_H

#include "base/bytes.h"
#include "base/check.h"
#include "base/limits.h"

#include <stdbool.h>
#include <stdint.h>

/* Where a command runs. */
enum hs_command_place {
	HS_PLACE_CORE,	    /* the worker's core */
	HS_PLACE_HOST,	    /* the control thread: CONFIG, INFO, SHUTDOWN */
	HS_PLACE_WORKERS,   /* every worker's core contributes a part: CLIENT LIST */
	HS_PLACE_PARTITION, /* the engine, on the partition of its keys */
	HS_PLACE_SPLIT,	    /* the engine, split by key and merged: MGET */
	HS_PLACE_ALL,	    /* the engine, on every partition, merged: DBSIZE */
	HS_PLACE_CURSOR,    /* the engine, on the partition its cursor names: SCAN */
	HS_PLACE_SLOT,	    /* the engine, on the partition of the slot it names: CLUSTER … */
	HS_PLACE_PARENT, /* a container (CLIENT, CONFIG): the rows of its subcommands have the place */
	HS_PLACE_ANY,	 /* the engine, on any one partition: PUBLISH */
	HS_PLACE_REFUSED, /* nowhere: `refused` says why */
};

/* How the parts of a split command become one reply. */
enum hs_command_merge {
	HS_MERGE_NONE,
	HS_MERGE_BY_KEY, /* MGET: element i is that of key i */
	HS_MERGE_SUM,	 /* DEL, EXISTS, DBSIZE */
	HS_MERGE_OK,	 /* MSET, FLUSHALL: OK when no part is an error */
	HS_MERGE_CONCAT, /* KEYS */
	HS_MERGE_FIRST,	 /* RANDOMKEY: the first part that is not null */
	/* For numbers, and for arrays of numbers element by element. */
	HS_MERGE_MIN, /* WAIT */
	HS_MERGE_MAX,
	HS_MERGE_AND, /* SCRIPT EXISTS */
	HS_MERGE_OR,
	HS_MERGE_ALL_SUCCEEDED, /* SCRIPT LOAD: the first part, if no part is an error */
	HS_MERGE_ONE_SUCCEEDED, /* SCRIPT KILL: the first part that is not an error */
};

enum hs_command_flag {
	/* Redis's flags, shown by COMMAND INFO. */
	HS_CMD_WRITE = 1 << 0,
	HS_CMD_READONLY = 1 << 1,
	HS_CMD_DENYOOM = 1 << 2, /* may grow the store */
	HS_CMD_ADMIN = 1 << 3,
	HS_CMD_NOSCRIPT = 1 << 4,
	HS_CMD_LOADING = 1 << 5,
	HS_CMD_STALE = 1 << 6,
	HS_CMD_FAST = 1 << 7,
	HS_CMD_NO_AUTH = 1 << 8,  /* allowed before AUTH */
	HS_CMD_NO_MULTI = 1 << 9, /* not allowed inside a transaction */
	HS_CMD_MOVABLEKEYS = 1 << 10,
	HS_CMD_SKIP_SLOWLOG = 1 << 11,
	HS_CMD_SKIP_MONITOR = 1 << 12,
	HS_CMD_NO_ASYNC_LOADING = 1 << 13,
	HS_CMD_NO_MANDATORY_KEYS = 1 << 14,
	HS_CMD_ALLOW_BUSY = 1 << 15,
	HS_CMD_BLOCKING = 1 << 17, /* may block until another client acts */
	HS_CMD_PUBSUB = 1 << 18,
	/* heatsink's own flags, not shown. */
	HS_CMD_CONDITIONAL =
		1 << 16, /* a write that may do nothing and reply with 0 or null: SETNX */
	HS_CMD_CONTAINER = 1 << 19, /* learned: its first argument may be a subcommand with a row */
	/* our row is used until a server's COMMAND reply describes the command */
	HS_CMD_UNTIL_LEARNED = 1 << 20,
	HS_CMD_EFFECT_UNKNOWN =
		1 << 21, /* learned: says neither read nor write (EVAL), so it may do both */
	/* Learned: it does more than its arguments say. It runs other commands (EVAL), installs
	 * code that does (FUNCTION LOAD), or is a module's and names no keys. acl/acl.h. */
	HS_CMD_UNCHECKED = 1 << 22,
	/* May replicate (PUBLISH, PFCOUNT): CLIENT PAUSE WRITE holds it. */
	HS_CMD_MAY_REPLICATE = 1 << 23,
	HS_CMD_DELETES = 1 << 24, /* deletes and adds nothing: allowed in a full store */
	/* Its reply lists keys; those that heatsink itself stores on the servers are left out
	 * (core/reserved.h). */
	HS_CMD_SHOWS_KEYS = 1 << 25,
	HS_CMD_RETURNS_VALUE = 1 << 26, /* a write that may reply with the old value */
};

/* For a read of one key whose reply depends on that key's value alone, not on time, chance, other
 * keys or the client: its reply can be a cache entry (absorb/entry.h), stored in RESP2 and RESP3. */
enum hs_command_cacheable {
	HS_CACHEABLE = 1 << 0,
	HS_CACHEABLE_PAIRS =
		1 << 1, /* RESP3 has nested pairs where RESP2 has a flat array: scores */
	HS_CACHEABLE_NULL_ARRAYS = 1 << 2, /* a RESP3 null in the reply is *-1 in RESP2 */
	HS_CACHEABLE_EMPTY_IS_MISSING =
		1 << 3, /* an empty, 0 or null reply means that the key does not exist */
	HS_CACHEABLE_WITHOUT_OPTIONS =
		1 << 4, /* only without options, because they change the reply */
	/* Hash fields may expire on their own, and the server sends no invalidation for that: the
	 * age of an entry counts from the time when it was read. */
	HS_CACHEABLE_PARTS_EXPIRE = 1 << 5,
};

/* The topics that a command subscribes to, publishes to or lists (push/). */
enum hs_topic_kind { HS_TOPIC_CHANNEL, HS_TOPIC_PATTERN, HS_TOPIC_SHARD, HS_TOPIC_KINDS };

/* Identifiers of the rows, in table order: HS_CMD_ID_GET, HS_CMD_ID_CLIENT_LIST … They index the
 * per-command counters and the tables of functions. */
enum hs_command_id {
	HS_CMD_ID_NONE,
#define ROW(identifier, ...) HS_CMD_ID_##identifier,
#include "command/rows.def"
	HS_CMD_IDS, /* their number, NONE included */
	/* Commands learned from a server have the identifiers after these (command/learned.h).
	 * Arrays indexed by identifier have this length. */
	HS_CMD_IDS_ALL = HS_CMD_IDS + HS_LEARNED_MAX,
};

#include "command/keys.h"

struct hs_command {
	const char *name; /* in lower case; of a subcommand: "client|list" */
	enum hs_command_id id;
	enum hs_command_id
		parent; /* the container of a subcommand; HS_CMD_ID_NONE for a whole command */
	enum hs_command_place place;
	enum hs_command_merge merge;
	int arity; /* counts the name (and the subcommand's); negative: at least that many */
	unsigned flags;
	unsigned cacheable; /* enum hs_command_cacheable; 0: replies are not cached */
	/* Keys: argument positions first, first + step … last (negative: counted from the end);
	 * first 0 means none. */
	int key_first;
	int key_last;
	int key_step;
	/* How the keys are used, in Redis's words: "RW access update". With a comma ("RO access, OW
	 * update"): the first key, then the others. */
	const char *key_access;
	/* For learned rows with keys that the three numbers cannot describe; key_first is 0 then.
	 * NULL: none. */
	const struct hs_key_spec *key_specs;
	uint8_t key_specs_count;
	/* Its row has START: its own function creates the request and answers it later
	 * (hs_start_run in core/commands.h): SUBSCRIBE, EXEC. */
	bool starts;
	/* Outside MULTI it runs alone: heatsink waits for the connection's earlier commands and
	 * holds later ones, because it changes the user or the subscriptions under which they run. */
	bool alone;
	/* Allowed on a RESP2 connection with subscriptions, where messages and replies look alike. */
	bool runs_subscribed;
	bool runs_inside_multi; /* acts on the transaction itself, so MULTI does not queue it */
	bool audited; /* may change configuration or users: logged with its client (serve/audit.h) */
	enum hs_topic_kind topic; /* for commands about channels */
	const char *group;	  /* "string", "generic", "connection", "server" … */
	const char *categories;	  /* Redis's ACL categories: "@read @string @fast" */
	const char *tips;	  /* Redis's hints to clients that route; NULL for none */
	const char *since;	  /* Redis version that introduced it; for our own commands, ours */
	const char *deprecated;	  /* Redis version that deprecated it; NULL: not deprecated */
	const char *replaced_by;
	const char *summary;
	const char *arguments; /* "key value [NX | XX]", see command/syntax.h; NULL for none */
	const char *complexity;
	const char *refused; /* HS_PLACE_REFUSED: the reason; completes "…: reason" */
	/* NULL: MULTI queues it. Otherwise the error reads: '<name>' <unqueued> and cannot be part of
	 * a transaction (core/multi.c). */
	const char *unqueued;
};

/* The row of a command by its name in any case; NULL when there is none. For a container this is
 * the container's row: go on with hs_command_sub. O(1), no allocation. */
const struct hs_command *hs_command_find(struct hs_bytes name);

/* The row of a container's subcommand; NULL when there is none. */
const struct hs_command *hs_command_sub(const struct hs_command *parent, struct hs_bytes name);

const struct hs_command *hs_command_by_id(enum hs_command_id id); /* NULL for HS_CMD_ID_NONE */

/* Is a full name like "client|list" that of a subcommand of this container? By name, because
 * learned containers may share an identifier. */
static inline bool hs_command_names_sub(const char *name, const char *parent)
{
	size_t len = strlen(parent);

	return strncmp(name, parent, len) == 0 && name[len] == '|';
}

static inline bool hs_command_arity_fits(const struct hs_command *command, size_t argc)
{
	return command->arity >= 0 ? argc == (size_t)command->arity
				   : argc >= (size_t)-command->arity;
}

/* PUBLISH, SUBSCRIBE … as heatsink runs them (not a learned row). Their key positions hold names of
 * shard channels. */
static inline bool hs_command_is_pubsub(const struct hs_command *command)
{
	return (command->flags & HS_CMD_PUBSUB) && command->id < HS_CMD_IDS;
}

static inline bool hs_command_has_keys(const struct hs_command *command)
{
	return command->key_first != 0 || command->key_specs;
}

/* Whether the command has at least one real key, not only HS_KEY_NOT_KEY positions such as a shard
 * channel. */
bool hs_command_has_real_keys(const struct hs_command *command);

/* The walk over the keys of a request: see command/keys.h. */
static inline void hs_keys_begin(struct hs_key_walk *walk, const struct hs_command *command,
				 size_t argc, const struct hs_bytes *argv)
{
	size_t first = (size_t)command->key_first, last;

	if (command->key_last >= 0) {
		last = (size_t)command->key_last;
		if (last >= argc)
			last = argc -
			       1; /* wraps for 0 arguments; the range check below catches it */
	} else {
		last = argc - (size_t)-command->key_last; /* may wrap, too */
	}
	if (first == 0 || last >= argc) {
		first = 1;
		last = 0;
	}
	*walk = (struct hs_key_walk){
		.command = command,
		.argv = argv,
		.argc = argc,
		.next = first,
		.last = last,
		.step = (size_t)command->key_step,
	};
}

static inline size_t hs_keys_next(struct hs_key_walk *walk)
{
	walk->at = walk->next;
	if (walk->next <= walk->last) {
		walk->next += walk->step;
		return walk->at;
	}
	if (!walk->command->key_specs)
		return 0;
	return hs_keys_next_spec(walk);
}

/* The position of the key of a command with always one key; 0 for other commands. */
static inline size_t hs_keys_single(const struct hs_command *command, size_t argc)
{
	size_t at = (size_t)command->key_first;

	return command->key_first == command->key_last && at < argc ? at : 0;
}

/* The positions of the keys among `argc` arguments, for commands that are split by key: *first,
 * *first + *step and so on. Returns the number of keys; 0 for none. Only for rows with the three
 * numbers. */
size_t hs_command_keys(const struct hs_command *command, size_t argc, size_t *first, size_t *step);

/* Whether the command is known to change nothing. A learned command that says neither read nor
 * write counts as a write. */
static inline bool hs_command_only_reads(const struct hs_command *command)
{
	if (command->flags & HS_CMD_READONLY)
		return true;
	/* Our rows are complete: without WRITE they change nothing. Learned rows are not. */
	return command->id < HS_CMD_IDS &&
	       !(command->flags & (HS_CMD_WRITE | HS_CMD_EFFECT_UNKNOWN));
}
/* Whether it may write keys that are not among its arguments, as scripts do. */
bool hs_command_may_write_others(const struct hs_command *command);

/* Whether this request may block until another client acts: XREAD does so only with BLOCK. */
bool hs_command_blocks(const struct hs_command *command, size_t argc, const struct hs_bytes *argv);

struct hs_reply;
struct hs_learned;

/* Replies to COMMAND and its subcommands (rows with DESCRIBE) from the table and from the learned
 * rows (NULL: none). Rows that are refused on every engine are left out. `argc` fits the arity. */
void hs_command_describe(const struct hs_command *command, const struct hs_learned *learned,
			 struct hs_reply *reply, size_t argc, const struct hs_bytes *argv);

/* Replies to HELP of a container: for each subcommand a line with its form and a line that explains
 * it. */
void hs_command_help(const struct hs_command *parent, struct hs_reply *reply);

#endif
