/* Tables of what servers do not say about their commands: where those go that have no tips (before
 * Redis 7 none had), where the keys are that no spec describes, and which commands are not for
 * clients of heatsink at all. Our own rows come first everywhere: what is one of them needs no line
 * here, and a line becomes idle when its command becomes one of ours. */
#include "command/learned_row.h"

#define ALL(name, how)                                                                             \
	{                                                                                          \
		name, HS_PLACE_ALL, HS_MERGE_##how                                                 \
	}
static const struct hs_known_route routes[] = {
	ALL("bgrewriteaof", ALL_SUCCEEDED),
	ALL("bgsave", ALL_SUCCEEDED),
	ALL("function|delete", ALL_SUCCEEDED),
	ALL("function|flush", ALL_SUCCEEDED),
	ALL("function|kill", ONE_SUCCEEDED),
	ALL("function|load", ALL_SUCCEEDED),
	ALL("function|restore", ALL_SUCCEEDED),
	ALL("lastsave", MIN), /* since when all of it is saved */
	ALL("memory|purge", ALL_SUCCEEDED),
	{"memory|usage", HS_PLACE_PARTITION, HS_MERGE_NONE},
	ALL("pubsub|channels", CONCAT),
	ALL("pubsub|shardchannels", CONCAT),
	ALL("save", ALL_SUCCEEDED),
	ALL("script|exists", AND),
	ALL("script|flush", ALL_SUCCEEDED),
	ALL("script|kill", ONE_SUCCEEDED),
	ALL("script|load", ALL_SUCCEEDED),
	ALL("wait", MIN),
	ALL("waitaof", MIN),
};
#undef ALL

#define SHARED "it changes the connection to the server, which many clients share"
#define STREAM "it turns the connection to the server into a stream, and many clients share that"
#define TOPOLOGY "who is whose replica is between the servers; ask them directly"
#define USERS "the server's users are not heatsink's; ask the server directly"
#define NODES "the cluster's nodes stand behind heatsink; ask them directly"

static const struct {
	const char *name; /* of a container: all its subcommands */
	const char *why;
} refusals[] = {
	{"acl", USERS},
	{"asking", SHARED},
	{"client", SHARED},
	{"cluster", NODES},
	{"config", "it would be one server's alone; ask the server directly"},
	{"debug", "it can stop the server for everybody; ask the server directly"},
	{"failover", TOPOLOGY},
	{"latency", "LATENCY speaks of heatsink itself here; ask the server directly"},
	{"module|load", "what a server runs is decided where it stands"},
	{"module|loadex", "what a server runs is decided where it stands"},
	{"module|unload", "what a server runs is decided where it stands"},
	{"monitor", "heatsink has no stream of all commands; HEAT TOP shows the busiest keys, "
		    "SLOWLOG GET the slowest commands"},
	{"psubscribe", STREAM},
	{"psync", STREAM},
	{"punsubscribe", SHARED},
	{"readonly", SHARED},
	{"readwrite", SHARED},
	{"replconf", STREAM},
	{"replicaof", TOPOLOGY},
	{"restore-asking", "it is for the moving of slots between servers"},
	{"script|debug", SHARED},
	{"sentinel", NODES},
	{"slaveof", TOPOLOGY},
	{"ssubscribe", STREAM},
	{"subscribe", STREAM},
	{"sunsubscribe", SHARED},
	{"sync", STREAM},
	{"unsubscribe", SHARED},
};

/* Commands that wait for others although no server says so of them. */
static const char *const waits[] = {"wait", "waitaof"};

/* Commands of the category @scripting that run nothing and install nothing that runs under a name that
 * others call. Every other command of the category is unchecked, those of future servers included. A
 * name that ends with | stands for all subcommands. */
static const char *const harmless_scripting[] = {
	"script",	 "script|",	  "function|delete", "function|dump",  "function|flush",
	"function|help", "function|kill", "function|list",   "function|stats",
};

/* Modules' commands that run other commands although they name keys: how their names begin. */
static const char *const running_modules[] = {"rg.", "tfcall", "tfunction", "ai.script", "ai.dag"};

/* Reads whose answers follow from the value of their one key alone. Left out: what depends on the time
 * (TTL, OBJECT, XINFO, XPENDING), on chance (SRANDMEMBER), on a cursor (SSCAN), on other keys (SORT), what
 * writes on the side (PFCOUNT), and what has both missing strings and missing arrays (LMPOP's kin). Checked
 * against a server by tests/integration/test_dialect.py. The fields of a hash expire at servers that have
 * HPEXPIRE, and are told of some time after. */
static const struct {
	const char *name;
	unsigned keep;
} keeps[] = {
	{"bitfield_ro", HS_KEEP_YES},
	{"geodist", HS_KEEP_YES},
	{"geohash", HS_KEEP_YES},
	{"geopos", HS_KEEP_YES | HS_KEEP_NULL_ARRAYS},
	{"georadius_ro", HS_KEEP_YES},
	{"georadiusbymember_ro", HS_KEEP_YES},
	{"geosearch", HS_KEEP_YES},
	{"hexists", HS_KEEP_FIELDS | HS_KEEP_YES},
	{"hget", HS_KEEP_FIELDS | HS_KEEP_YES},
	{"hgetall", HS_KEEP_FIELDS | HS_KEEP_YES | HS_KEEP_WHOLE},
	{"hkeys", HS_KEEP_FIELDS | HS_KEEP_YES | HS_KEEP_WHOLE},
	{"hlen", HS_KEEP_FIELDS | HS_KEEP_YES | HS_KEEP_WHOLE},
	{"hmget", HS_KEEP_FIELDS | HS_KEEP_YES},
	{"hstrlen", HS_KEEP_FIELDS | HS_KEEP_YES},
	{"hvals", HS_KEEP_FIELDS | HS_KEEP_YES | HS_KEEP_WHOLE},
	{"lindex", HS_KEEP_YES},
	{"llen", HS_KEEP_YES | HS_KEEP_WHOLE},
	{"lpos", HS_KEEP_YES},
	{"lrange", HS_KEEP_YES},
	{"scard", HS_KEEP_YES | HS_KEEP_WHOLE},
	{"sismember", HS_KEEP_YES},
	{"smembers", HS_KEEP_YES | HS_KEEP_WHOLE},
	{"smismember", HS_KEEP_YES},
	{"xlen", HS_KEEP_YES},
	{"xrange", HS_KEEP_YES | HS_KEEP_NULL_ARRAYS},
	{"xrevrange", HS_KEEP_YES | HS_KEEP_NULL_ARRAYS},
	{"zcard", HS_KEEP_YES | HS_KEEP_WHOLE},
	{"zcount", HS_KEEP_YES},
	{"zlexcount", HS_KEEP_YES},
	{"zmscore", HS_KEEP_YES},
	{"zrange", HS_KEEP_YES | HS_KEEP_PAIRS},
	{"zrangebylex", HS_KEEP_YES},
	{"zrangebyscore", HS_KEEP_YES | HS_KEEP_PAIRS},
	{"zrank", HS_KEEP_YES | HS_KEEP_SHORT},
	{"zrevrange", HS_KEEP_YES | HS_KEEP_PAIRS},
	{"zrevrangebylex", HS_KEEP_YES},
	{"zrevrangebyscore", HS_KEEP_YES | HS_KEEP_PAIRS},
	{"zrevrank", HS_KEEP_YES | HS_KEEP_SHORT},
	{"zscore", HS_KEEP_YES},
};

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

static const struct {
	const char *name;
	bool always; /* also when the server has specs: they do not say everything */
	uint8_t count;
	struct hs_key_spec specs[3];
} keys[] = {
	{"eval", false, 1, {NUMBER(2, BOTH)}},
	{"evalsha", false, 1, {NUMBER(2, BOTH)}},
	{"georadius",
	 false,
	 3,
	 {RANGE(1, 0, READ), BEHIND("store", 6, 0, 0, STORE), BEHIND("storedist", 6, 0, 0, STORE)}},
	{"georadiusbymember",
	 false,
	 3,
	 {RANGE(1, 0, READ), BEHIND("store", 5, 0, 0, STORE), BEHIND("storedist", 5, 0, 0, STORE)}},
	{"memory|usage", false, 1, {RANGE(2, 0, HS_KEY_RO)}},
	{"migrate", true, 1, {SPECIAL(HS_KEY_SEARCH_MIGRATE, TAKE)}},
	{"sort", true, 2, {RANGE(1, 0, READ), SPECIAL(HS_KEY_SEARCH_SORT, STORE)}},
	{"stralgo", false, 1, {BEHIND("keys", 2, 1, 0, READ)}},
	{"xread", false, 1, {BEHIND("streams", 1, -1, 2, READ)}},
	{"xreadgroup", false, 1, {BEHIND("streams", 4, -1, 2, READ)}},
	{"zdiff", false, 1, {NUMBER(1, READ)}},
	{"zdiffstore", false, 2, {RANGE(1, 0, STORE), NUMBER(2, READ)}},
	{"zinter", false, 1, {NUMBER(1, READ)}},
	{"zinterstore", false, 2, {RANGE(1, 0, STORE), NUMBER(2, READ)}},
	{"zunion", false, 1, {NUMBER(1, READ)}},
	{"zunionstore", false, 2, {RANGE(1, 0, STORE), NUMBER(2, READ)}},
};

#define COUNT(table) (sizeof(table) / sizeof(table)[0])

const struct hs_known_route *hs_known_route(const char *name)
{
	for (size_t i = 0; i < COUNT(routes); i++)
		if (strcmp(routes[i].name, name) == 0)
			return &routes[i];
	return NULL;
}

const struct hs_known_route *hs_known_sub(const char *parent, const struct hs_known_route *route)
{
	size_t len = strlen(parent);

	for (size_t i = route ? (size_t)(route - routes) + 1 : 0; i < COUNT(routes); i++)
		if (strncmp(routes[i].name, parent, len) == 0 && routes[i].name[len] == '|')
			return &routes[i];
	return NULL;
}

bool hs_known_waits(const char *name)
{
	for (size_t i = 0; i < COUNT(waits); i++)
		if (strcmp(waits[i], name) == 0)
			return true;
	return false;
}

unsigned hs_known_keep(const char *name)
{
	for (size_t i = 0; i < COUNT(keeps); i++)
		if (strcmp(keeps[i].name, name) == 0)
			return keeps[i].keep;
	return 0;
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

bool hs_known_unchecked(const char *name, const char *categories, bool is_module, bool has_keys)
{
	if (strstr(categories, "@scripting"))
		return !is_harmless_scripting(name);
	for (size_t i = 0; i < COUNT(running_modules); i++)
		if (strncmp(running_modules[i], name, strlen(running_modules[i])) == 0)
			return true;
	return is_module && !has_keys;
}

const char *hs_known_refused(const char *name)
{
	size_t container = strcspn(name, "|");

	for (size_t i = 0; i < COUNT(refusals); i++)
		if (strcmp(refusals[i].name, name) == 0 ||
		    (strlen(refusals[i].name) == container &&
		     strncmp(refusals[i].name, name, container) == 0))
			return refusals[i].why;
	return NULL;
}

const struct hs_key_spec *hs_known_keys(const char *name, bool specs, uint8_t *count)
{
	for (size_t i = 0; i < COUNT(keys); i++) {
		if (strcmp(keys[i].name, name) != 0 || (specs && !keys[i].always))
			continue;
		*count = keys[i].count;
		return keys[i].specs;
	}
	return NULL;
}
