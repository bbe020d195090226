/* The command table: what heatsink knows about each command, one row each (command/rows.def).
 * Identifiers, the search for a name, COMMAND, HELP, ACL-like flags, routing and splitting all come from
 * these rows. A new command is its row and one function. The table is constant and shared by all threads. */
#ifndef HS_COMMAND_COMMAND_H
#define HS_COMMAND_COMMAND_H

#include "base/bytes.h"
#include "base/check.h"
#include "base/limits.h"

#include <stdbool.h>
#include <stdint.h>

/* Where a command runs. */
enum hs_command_place {
	HS_PLACE_CORE,	    /* the worker's core answers it itself */
	HS_PLACE_HOST,	    /* the process around the workers: CONFIG, INFO, SHUTDOWN */
	HS_PLACE_WORKERS,   /* every worker's core does its part: CLIENT LIST */
	HS_PLACE_PARTITION, /* the engine, on the one partition its keys live on */
	HS_PLACE_SPLIT,	    /* the engine, split by key and merged: MGET */
	HS_PLACE_ALL,	    /* the engine, on every partition, merged: DBSIZE */
	HS_PLACE_CURSOR,    /* the engine, on the partition its cursor names: SCAN */
	HS_PLACE_SLOT,	    /* the engine, on the partition of the slot it names: CLUSTER … */
	HS_PLACE_PARENT,    /* a container: its subcommands say */
	HS_PLACE_ANY,	    /* the engine, on any one partition: PUBLISH */
	HS_PLACE_REFUSED,   /* nowhere: `refused` says why */
};

/* How the parts of a split command become one reply. */
enum hs_command_merge {
	HS_MERGE_NONE,
	HS_MERGE_BY_KEY, /* MGET: element i answers key i */
	HS_MERGE_SUM,	 /* DEL, EXISTS, DBSIZE */
	HS_MERGE_OK,	 /* MSET, FLUSHALL: OK when all are */
	HS_MERGE_CONCAT, /* KEYS */
	HS_MERGE_FIRST,	 /* RANDOMKEY: the first part that is not null */
	/* Of numbers, and of arrays of numbers element by element. */
	HS_MERGE_MIN, /* WAIT */
	HS_MERGE_MAX,
	HS_MERGE_AND, /* SCRIPT EXISTS */
	HS_MERGE_OR,
	HS_MERGE_ALL_SUCCEEDED, /* SCRIPT LOAD: the first part, when none is an error */
	HS_MERGE_ONE_SUCCEEDED, /* SCRIPT KILL: the first part that is no error */
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
	HS_CMD_BLOCKING = 1 << 17, /* may wait for what others do */
	HS_CMD_PUBSUB = 1 << 18,
	/* Our own, not shown. */
	HS_CMD_CONDITIONAL = 1 << 16,	/* a write that may be refused: answered with 0 or null */
	HS_CMD_CONTAINER = 1 << 19,	/* learned: its first argument may name a row of its own */
	HS_CMD_UNTIL_LEARNED = 1 << 20, /* ours as long as no server has one to learn */
	HS_CMD_EFFECT_UNKNOWN =
		1 << 21, /* learned: may read its keys as well as write them (EVAL) */
	/* Learned: its arguments do not say all that it does. It runs other commands (EVAL), installs
	 * code that does (FUNCTION LOAD), or is a module's and names no keys. acl/acl.h. */
	HS_CMD_UNCHECKED = 1 << 22,
	/* Replicas may hear of it (PUBLISH, PFCOUNT): CLIENT PAUSE WRITE holds it. */
	HS_CMD_MAY_REPLICATE = 1 << 23,
	HS_CMD_DELETES = 1 << 24,	/* deletes and adds nothing: runs in a full store */
	HS_CMD_SHOWS_KEYS = 1 << 25,	/* answers with names of keys: copies are left out */
	HS_CMD_RETURNS_VALUE = 1 << 26, /* a write that may answer with what was there */
};

/* Of a read of one key whose answer follows from that key's value alone, not from the time, chance, other
 * keys or who asks: its replies can be kept (absorb/entry.h), and are written in both dialects. */
enum hs_command_cacheable {
	HS_CACHEABLE = 1 << 0,
	HS_CACHEABLE_PAIRS = 1 << 1,	   /* RESP3 has pairs where RESP2 has one array: scores */
	HS_CACHEABLE_NULL_ARRAYS = 1 << 2, /* what is missing is a missing array in RESP2 */
	HS_CACHEABLE_EMPTY_IS_MISSING =
		1 << 3, /* nothing, 0 or null means that there is no such key */
	HS_CACHEABLE_WITHOUT_OPTIONS =
		1 << 4, /* only without options: they change what is answered */
	/* Parts of the value may expire by themselves: an answer is as old as its reading, whoever would
	 * say if somebody changed it. */
	HS_CACHEABLE_PARTS_EXPIRE = 1 << 5,
};

/* What a command subscribes, publishes or looks at (push/). */
enum hs_topic_kind { HS_TOPIC_CHANNEL, HS_TOPIC_PATTERN, HS_TOPIC_SHARD, HS_TOPIC_KINDS };

/* Identifiers of the rows, in table order: HS_CMD_ID_GET, HS_CMD_ID_CLIENT_LIST … They index the
 * per-command counters and the tables of functions that run commands. */
enum hs_command_id {
	HS_CMD_ID_NONE,
#define ROW(identifier, ...) HS_CMD_ID_##identifier,
#include "command/rows.def"
	HS_CMD_IDS, /* how many, with NONE */
	/* Behind them come the commands that are learned from a server (command/learned.h). What is
	 * counted by identifier has this many cells. */
	HS_CMD_IDS_ALL = HS_CMD_IDS + HS_LEARNED_MAX,
};

#include "command/keys.h"

struct hs_command {
	const char *name; /* lower case; a subcommand: "client|list" */
	enum hs_command_id id;
	enum hs_command_id parent; /* HS_CMD_ID_NONE for a whole command */
	enum hs_command_place place;
	enum hs_command_merge merge;
	int arity; /* with the name (and the subcommand's); negative: at least that many */
	unsigned flags;
	unsigned cacheable; /* enum hs_command_cacheable; 0: replies are not to be kept */
	/* Keys: argument positions first, first + step … last (negative: counted from the end);
	 * first 0 means none. */
	int key_first;
	int key_last;
	int key_step;
	/* What is done to the keys, in Redis's words: "RW access update". Two of them with a comma
	 * between ("RO access, OW update"): one for the first key, one for the second. */
	const char *key_access;
	/* Learned rows whose keys three numbers cannot say; key_first is 0 then. NULL: none. */
	const struct hs_key_spec *key_specs;
	uint8_t key_specs_count;
	bool starts; /* its row says START: it makes its request itself (core/commands.h) */
	/* Outside a transaction, the only command of its client under way: it changes who may do what, or
	 * what its client hears, also for what stands behind it. */
	bool alone;
	/* Allowed to a client that has subscribed in RESP2, where messages and replies look alike. */
	bool runs_subscribed;
	bool runs_inside_multi; /* it acts on the transaction itself: MULTI does not queue it */
	bool audited; /* may change configuration or users: the log says who did (serve/audit.h) */
	enum hs_topic_kind topic; /* of commands about channels */
	const char *group;	  /* "string", "generic", "connection", "server" … */
	const char *categories;	  /* Redis's ACL categories: "@read @string @fast" */
	const char *tips;	  /* Redis's hints to clients that route; NULL for none */
	const char *since;	  /* the Redis version that brought it; for our own, ours */
	const char *deprecated;	  /* the one that advised against it; NULL: none did */
	const char *replaced_by;
	const char *summary;   /* our own words */
	const char *arguments; /* "key value [NX | XX]", see command/syntax.h; NULL for none */
	const char *complexity;
	const char *refused;  /* HS_PLACE_REFUSED: why, in words that go on behind a colon */
	const char *unqueued; /* why MULTI does not queue it, behind its name; NULL: it does */
};

/* The row of a command, whatever the case of its name; NULL when there is none. For a container
 * command this is the container: follow with hs_command_sub. O(1), no allocation. */
const struct hs_command *hs_command_find(struct hs_bytes name);

/* The row of a container's subcommand; NULL when there is none. */
const struct hs_command *hs_command_sub(const struct hs_command *parent, struct hs_bytes name);

const struct hs_command *hs_command_by_id(enum hs_command_id id); /* NULL for HS_CMD_ID_NONE */

/* Whether a full name, "client|list", is that of a subcommand of this container. Identifiers of learned
 * containers may be shared. */
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

/* PUBLISH, SUBSCRIBE … as they are answered here. What stands where keys would is names of shard
 * channels. */
static inline bool hs_command_is_pubsub(const struct hs_command *command)
{
	return (command->flags & HS_CMD_PUBSUB) && command->id < HS_CMD_IDS;
}

static inline bool hs_command_has_keys(const struct hs_command *command)
{
	return command->key_first != 0 || command->key_specs;
}

/* And they are not all what its specs say is none (HS_KEY_NOT_KEY), such as a shard channel. */
bool hs_command_has_real_keys(const struct hs_command *command);

/* The walk over the keys of a request: see command/keys.h. */
static inline void hs_keys_begin(struct hs_key_walk *walk, const struct hs_command *command,
				 size_t argc, const struct hs_bytes *argv)
{
	size_t first = (size_t)command->key_first, last;

	if (command->key_last >= 0) {
		last = (size_t)command->key_last;
		if (last >= argc)
			last = argc - 1; /* wraps for 0 arguments: the check below sees it */
	} else {
		last = argc - (size_t)-command->key_last; /* so may this */
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

/* The position of the key of a command that always has just one; 0 for others. */
static inline size_t hs_keys_single(const struct hs_command *command, size_t argc)
{
	size_t at = (size_t)command->key_first;

	return command->key_first == command->key_last && at < argc ? at : 0;
}

/* The positions of the keys among `argc` arguments, as first, last, step with last resolved, for
 * commands that are split by key: their rows have the three numbers. Returns how many there are; 0
 * for none. */
size_t hs_command_keys(const struct hs_command *command, size_t argc, size_t *first, size_t *step);

/* Whether the command is known to change nothing. An unknown command counts as a write (law 8). */
static inline bool hs_command_only_reads(const struct hs_command *command)
{
	if (command->flags & HS_CMD_READONLY)
		return true;
	/* Of our own it is known; of those learned from a server, unknown means write. */
	return command->id < HS_CMD_IDS &&
	       !(command->flags & (HS_CMD_WRITE | HS_CMD_EFFECT_UNKNOWN));
}
/* Whether it may write keys that are not among its arguments: a script. */
bool hs_command_may_write_others(const struct hs_command *command);

/* Whether this request may wait for what others do: XREAD does so only with BLOCK. */
bool hs_command_blocks(const struct hs_command *command, size_t argc, const struct hs_bytes *argv);

struct hs_reply;
struct hs_learned;

/* Answers a command whose row says DESCRIBE from the table and from what is learned from a server (NULL:
 * nothing), but for what is refused anyway. `argc` fits its arity. */
void hs_command_describe(const struct hs_command *command, const struct hs_learned *learned,
			 struct hs_reply *reply, size_t argc, const struct hs_bytes *argv);

/* Answers HELP of a container: a line for each subcommand and one that explains it. */
void hs_command_help(const struct hs_command *parent, struct hs_reply *reply);

#endif
