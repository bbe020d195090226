#include "command/not_embedded.h"

#include "command/learned_row.h"

#include <string.h>

enum { NAME_MAX_BYTES = 32 };

static const struct {
	const char *lack; /* completes "the embedded engine …" */
	const char *names;
} groups[] = {
	{"has no lists yet", " blmove blmpop blpop brpop brpoplpush lindex linsert llen lmove "
			     "lmpop lpop lpos lpush lpushx "
			     "lrange lrem lset ltrim rpop rpoplpush rpush rpushx "},
	{"has no hashes yet", " hdel hexists hget hgetall hincrby hincrbyfloat hkeys hlen hmget "
			      "hmset hrandfield hscan hset "
			      "hsetnx hstrlen hvals "},
	{"has no sets yet",
	 " sadd scard sdiff sdiffstore sinter sintercard sinterstore sismember smembers smismember "
	 "smove spop srandmember srem sscan sunion sunionstore "},
	{"has no sorted sets yet",
	 " bzmpop bzpopmax bzpopmin geoadd geodist geohash geopos georadius georadius_ro "
	 "georadiusbymember georadiusbymember_ro geosearch geosearchstore zadd zcard zcount zdiff "
	 "zdiffstore zincrby zinter zintercard zinterstore zlexcount zmpop zmscore zpopmax zpopmin "
	 "zrandmember zrange zrangebylex zrangebyscore zrangestore zrank zrem zremrangebylex "
	 "zremrangebyrank zremrangebyscore zrevrange zrevrangebylex zrevrangebyscore zrevrank "
	 "zscan "
	 "zscore zunion zunionstore "},
	{"has no streams yet",
	 " xack xadd xautoclaim xclaim xdel xgroup xinfo xlen xpending xrange xread xreadgroup "
	 "xrevrange xsetid xtrim "},
	{"has no scripts",
	 " eval eval_ro evalsha evalsha_ro fcall fcall_ro "
	 "function|delete function|dump function|kill function|list function|load function|restore "
	 "function|stats script "},
	{"has no HyperLogLogs yet", " pfadd pfcount pfmerge "},
	{"does not have this command",
	 " bgrewriteaof bgsave bitfield bitfield_ro bitop dump lastsave lolwut memory migrate "
	 "module "
	 "move pfdebug pfselftest restore role save sort sort_ro swapdb "},
	{"has no replicas to wait for: what it acknowledged is on disk", " wait waitaof "},
};

/* Does the list, with blanks around each word, have this word? */
static bool has_word(const char *list, const char *word, size_t len)
{
	for (const char *at = list; (at = strchr(at, ' ')); at++)
		if (strncmp(at + 1, word, len) == 0 && at[1 + len] == ' ')
			return true;
	return false;
}

void hs_not_embedded_note(struct hs_bytes name, struct hs_buf *text)
{
	char lower[NAME_MAX_BYTES];
	const char *refused;

	if (name.len == 0 || name.len >= sizeof lower || memchr(name.data, ' ', name.len) ||
	    memchr(name.data, '\0', name.len))
		return;
	for (size_t i = 0; i < name.len; i++) {
		char c = name.data[i];

		lower[i] = c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
	}
	lower[name.len] = '\0';
	/* A subcommand of our own containers (CLIENT, CONFIG) is unknown, not refused. */
	refused = strchr(lower, '|') ? NULL : hs_builtin_refused(lower);
	if (refused) {
		hs_buf_printf(text, "(heatsink refuses it on every engine: %s)", refused);
		return;
	}
	for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
		if (has_word(groups[i].names, lower, name.len)) {
			hs_buf_printf(text,
				      "(the embedded engine %s; with --engine, in front of a Redis "
				      "server, it works)",
				      groups[i].lack);
			return;
		}
}
