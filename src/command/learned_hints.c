/* Built-in knowledge that COMMAND replies lack, by command: routing for commands without tips
 * (before Redis 7 no command had tips), positions of keys without specs, which replies may be
 * cached, and the commands that heatsink refuses. heatsink's own rows come first: a command with a
 * row of its own needs no line here. */
#include "command/learned_row.h"

#define SHARED "it changes the connection to the server, which many clients share"
#define STREAM "it turns the connection to the server into a stream, but many clients share it"
#define TOPOLOGY "replication is set up between the servers; ask them directly"
#define USERS "the server's users are not heatsink's; ask the server directly"
#define NODES "it concerns one node of the cluster; ask that node directly"

static const struct {
	const char *name; /* for a container: also all its subcommands */
	const char *why;
} refusals[] = {
	{"acl", USERS},
	{"asking", SHARED},
	{"client", SHARED},
	{"cluster", NODES},
	{"config", "it would reach one server only; ask the server directly"},
	{"debug", "it can stop the server for all clients; ask the server directly"},
	{"failover", TOPOLOGY},
	{"latency", "heatsink's LATENCY is about heatsink itself; ask the server directly"},
	{"module|load", "modules are loaded on the server itself; ask the server directly"},
	{"module|loadex", "modules are loaded on the server itself; ask the server directly"},
	{"module|unload", "modules are loaded on the server itself; ask the server directly"},
	{"monitor", "heatsink has no stream of all commands; HEAT TOP shows the busiest keys, "
		    "SLOWLOG GET the slowest commands"},
	{"psubscribe", STREAM},
	{"psync", STREAM},
	{"punsubscribe", SHARED},
	{"readonly", SHARED},
	{"readwrite", SHARED},
	{"replconf", STREAM},
	{"replicaof", TOPOLOGY},
	{"restore-asking", "servers use it to migrate slots between them"},
	{"script|debug", SHARED},
	{"sentinel", NODES},
	{"slaveof", TOPOLOGY},
	{"ssubscribe", STREAM},
	{"subscribe", STREAM},
	{"sunsubscribe", SHARED},
	{"sync", STREAM},
	{"unsubscribe", SHARED},
};

/* Commands of the category @scripting that run no script and install none under a name that other
 * clients call. Every other command of the category is unchecked, those of future servers included.
 * A name that ends with | stands for all subcommands. */
static const char *const harmless_scripting[] = {
	"script",	 "script|",	  "function|delete", "function|dump",  "function|flush",
	"function|help", "function|kill", "function|list",   "function|stats",
};

/* Prefixes of modules' commands that run other commands although they name keys. */
static const char *const running_modules[] = {"rg.", "tfcall", "tfunction", "ai.script", "ai.dag"};

#define RANGE(from, to, what)                                                                      \
	{                                                                                          \
		.search = HS_KEY_SEARCH_INDEX, .index = (from), .find = HS_KEY_FIND_RANGE,         \
		.last = (to), .step = 1, .flags = (what)                                           \
	}
#define NUMBER(from, what)                                                                         \
	{                                                                                          \
		.search = HS_KEY_SEARCH_INDEX, .index = (from), .find = HS_KEY_FIND_KEYNUM,        \
		.first = 1, .step = 1, .flags = (what)                                             \
	}
#define BEHIND(word, from, to, part, what)                                                         \
	{                                                                                          \
		.search = HS_KEY_SEARCH_KEYWORD, .keyword = (word), .index = (from),               \
		.find = HS_KEY_FIND_RANGE, .last = (to), .limit = (part), .step = 1,               \
		.flags = (what)                                                                    \
	}
#define SPECIAL(how, what)                                                                         \
	{                                                                                          \
		.search = (how), .step = 1, .flags = (what)                                        \
	}

enum {
	READ = HS_KEY_RO | HS_KEY_ACCESS,
	STORE = HS_KEY_OW | HS_KEY_UPDATE,
	BOTH = HS_KEY_RW | HS_KEY_ACCESS | HS_KEY_UPDATE,
	TAKE = HS_KEY_RW | HS_KEY_ACCESS | HS_KEY_DELETE,
};

#define COUNT(table) (sizeof(table) / sizeof(table)[0])
#define ALL(how) .routed = true, .place = HS_PLACE_ALL, .merge = HS_MERGE_##how
#define SPECS(...) ((const struct hs_key_spec[]){__VA_ARGS__})
#define KEYS(...) .keys = SPECS(__VA_ARGS__), .keys_count = COUNT(SPECS(__VA_ARGS__))

/* clang-format off */
static const struct hs_builtin_hint table[] = {
	/* Routing. */
	{"bgrewriteaof", ALL(ALL_SUCCEEDED)},
	{"bgsave", ALL(ALL_SUCCEEDED)},
	{"function|delete", ALL(ALL_SUCCEEDED)},
	{"function|flush", ALL(ALL_SUCCEEDED)},
	{"function|kill", ALL(ONE_SUCCEEDED)},
	{"function|load", ALL(ALL_SUCCEEDED)},
	{"function|restore", ALL(ALL_SUCCEEDED)},
	{"lastsave", ALL(MIN)}, /* the oldest save of all shards */
	{"memory|purge", ALL(ALL_SUCCEEDED)},
	{"memory|usage", .routed = true, .place = HS_PLACE_PARTITION, KEYS(RANGE(2, 0, HS_KEY_RO))},
	{"pubsub|channels", ALL(CONCAT)},
	{"pubsub|shardchannels", ALL(CONCAT)},
	{"save", ALL(ALL_SUCCEEDED)},
	{"script|exists", ALL(AND)},
	{"script|flush", ALL(ALL_SUCCEEDED)},
	{"script|kill", ALL(ONE_SUCCEEDED)},
	{"script|load", ALL(ALL_SUCCEEDED)},
	{"wait", ALL(MIN), .blocks = true},
	{"waitaof", ALL(MIN), .blocks = true},

	/* Reads whose reply depends on the value of their one key alone. Left out: replies that
	 * depend on time (TTL, OBJECT, XINFO, XPENDING), on chance (SRANDMEMBER), on a cursor
	 * (SSCAN) or on other keys (SORT), reads that also write (PFCOUNT), and replies with both
	 * null strings and null arrays (LMPOP and its relatives). tests/integration/test_dialect.py
	 * checks them against a server. Servers with HPEXPIRE expire hash fields, and send the
	 * invalidation some time later. */
	{"bitfield_ro", .cacheable = HS_CACHEABLE},
	{"geodist", .cacheable = HS_CACHEABLE},
	{"geohash", .cacheable = HS_CACHEABLE},
	{"geopos", .cacheable = HS_CACHEABLE | HS_CACHEABLE_NULL_ARRAYS},
	{"georadius_ro", .cacheable = HS_CACHEABLE},
	{"georadiusbymember_ro", .cacheable = HS_CACHEABLE},
	{"geosearch", .cacheable = HS_CACHEABLE},
	{"hexists", .cacheable = HS_CACHEABLE_PARTS_EXPIRE | HS_CACHEABLE},
	{"hget", .cacheable = HS_CACHEABLE_PARTS_EXPIRE | HS_CACHEABLE},
	{"hgetall", .cacheable = HS_CACHEABLE_PARTS_EXPIRE | HS_CACHEABLE | HS_CACHEABLE_EMPTY_IS_MISSING},
	{"hkeys", .cacheable = HS_CACHEABLE_PARTS_EXPIRE | HS_CACHEABLE | HS_CACHEABLE_EMPTY_IS_MISSING},
	{"hlen", .cacheable = HS_CACHEABLE_PARTS_EXPIRE | HS_CACHEABLE | HS_CACHEABLE_EMPTY_IS_MISSING},
	{"hmget", .cacheable = HS_CACHEABLE_PARTS_EXPIRE | HS_CACHEABLE},
	{"hstrlen", .cacheable = HS_CACHEABLE_PARTS_EXPIRE | HS_CACHEABLE},
	{"hvals", .cacheable = HS_CACHEABLE_PARTS_EXPIRE | HS_CACHEABLE | HS_CACHEABLE_EMPTY_IS_MISSING},
	{"lindex", .cacheable = HS_CACHEABLE},
	{"llen", .cacheable = HS_CACHEABLE | HS_CACHEABLE_EMPTY_IS_MISSING},
	{"lpos", .cacheable = HS_CACHEABLE},
	{"lrange", .cacheable = HS_CACHEABLE},
	{"scard", .cacheable = HS_CACHEABLE | HS_CACHEABLE_EMPTY_IS_MISSING},
	{"sismember", .cacheable = HS_CACHEABLE},
	{"smembers", .cacheable = HS_CACHEABLE | HS_CACHEABLE_EMPTY_IS_MISSING},
	{"smismember", .cacheable = HS_CACHEABLE},
	{"xlen", .cacheable = HS_CACHEABLE},
	{"xrange", .cacheable = HS_CACHEABLE | HS_CACHEABLE_NULL_ARRAYS},
	{"xrevrange", .cacheable = HS_CACHEABLE | HS_CACHEABLE_NULL_ARRAYS},
	{"zcard", .cacheable = HS_CACHEABLE | HS_CACHEABLE_EMPTY_IS_MISSING},
	{"zcount", .cacheable = HS_CACHEABLE},
	{"zlexcount", .cacheable = HS_CACHEABLE},
	{"zmscore", .cacheable = HS_CACHEABLE},
	{"zrange", .cacheable = HS_CACHEABLE | HS_CACHEABLE_PAIRS},
	{"zrangebylex", .cacheable = HS_CACHEABLE},
	{"zrangebyscore", .cacheable = HS_CACHEABLE | HS_CACHEABLE_PAIRS},
	{"zrank", .cacheable = HS_CACHEABLE | HS_CACHEABLE_WITHOUT_OPTIONS},
	{"zrevrange", .cacheable = HS_CACHEABLE | HS_CACHEABLE_PAIRS},
	{"zrevrangebylex", .cacheable = HS_CACHEABLE},
	{"zrevrangebyscore", .cacheable = HS_CACHEABLE | HS_CACHEABLE_PAIRS},
	{"zrevrank", .cacheable = HS_CACHEABLE | HS_CACHEABLE_WITHOUT_OPTIONS},
	{"zscore", .cacheable = HS_CACHEABLE},

	/* Positions of keys. */
	{"eval", KEYS(NUMBER(2, BOTH))},
	{"evalsha", KEYS(NUMBER(2, BOTH))},
	{"georadius", KEYS(RANGE(1, 0, READ), BEHIND("store", 6, 0, 0, STORE), BEHIND("storedist", 6, 0, 0, STORE))},
	{"georadiusbymember", KEYS(RANGE(1, 0, READ), BEHIND("store", 5, 0, 0, STORE), BEHIND("storedist", 5, 0, 0, STORE))},
	{"migrate", KEYS(SPECIAL(HS_KEY_SEARCH_MIGRATE, TAKE)), .keys_always = true},
	{"sort", KEYS(RANGE(1, 0, READ), SPECIAL(HS_KEY_SEARCH_SORT, STORE)), .keys_always = true},
	{"stralgo", KEYS(BEHIND("keys", 2, 1, 0, READ))},
	{"xread", KEYS(BEHIND("streams", 1, -1, 2, READ))},
	{"xreadgroup", KEYS(BEHIND("streams", 4, -1, 2, READ))},
	{"zdiff", KEYS(NUMBER(1, READ))},
	{"zdiffstore", KEYS(RANGE(1, 0, STORE), NUMBER(2, READ))},
	{"zinter", KEYS(NUMBER(1, READ))},
	{"zinterstore", KEYS(RANGE(1, 0, STORE), NUMBER(2, READ))},
	{"zunion", KEYS(NUMBER(1, READ))},
	{"zunionstore", KEYS(RANGE(1, 0, STORE), NUMBER(2, READ))},
};
/* clang-format on */

const struct hs_builtin_hint *hs_builtin_hint(const char *name)
{
	for (size_t i = 0; i < COUNT(table); i++)
		if (strcmp(table[i].name, name) == 0)
			return &table[i];
	return NULL;
}

const struct hs_builtin_hint *hs_builtin_hint_sub(const char *parent,
						  const struct hs_builtin_hint *before)
{
	for (size_t i = before ? (size_t)(before - table) + 1 : 0; i < COUNT(table); i++)
		if (hs_command_names_sub(table[i].name, parent))
			return &table[i];
	return NULL;
}

static bool is_harmless_scripting(const char *name)
{
	for (size_t i = 0; i < COUNT(harmless_scripting); i++) {
		size_t len = strlen(harmless_scripting[i]);

		if (harmless_scripting[i][len - 1] == '|'
			    ? strncmp(harmless_scripting[i], name, len) == 0
			    : strcmp(harmless_scripting[i], name) == 0)
			return true;
	}
	return false;
}

bool hs_builtin_unchecked(const char *name, const char *categories, bool is_module, bool has_keys)
{
	if (strstr(categories, "@scripting"))
		return !is_harmless_scripting(name);
	for (size_t i = 0; i < COUNT(running_modules); i++)
		if (strncmp(running_modules[i], name, strlen(running_modules[i])) == 0)
			return true;
	return is_module && !has_keys;
}

const char *hs_builtin_refused(const char *name)
{
	size_t container = strcspn(name, "|");

	for (size_t i = 0; i < COUNT(refusals); i++)
		if (strcmp(refusals[i].name, name) == 0 ||
		    (strlen(refusals[i].name) == container &&
		     strncmp(refusals[i].name, name, container) == 0))
			return refusals[i].why;
	return NULL;
}
