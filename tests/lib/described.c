#include "tests/lib/described.h"

#include <stdio.h>
#include <stdlib.h>

const char *const described_redis[] = {
	"get 2 readonly,fast 1 1 1 @read,@string,@fast - RO,access:1:0/1/0",
	"dump 2 readonly 1 1 1 @keyspace,@read,@slow nondeterministic_output RO,access:1:0/1/0",
	"restore -4 write,denyoom 1 1 1 @keyspace,@write,@slow,@dangerous - OW,update:1:0/1/0",
	"hget 3 readonly,fast 1 1 1 @read,@hash,@fast - RO,access:1:0/1/0",
	"hgetall 2 readonly 1 1 1 @read,@hash,@slow nondeterministic_output_order "
	"RO,access:1:0/1/0",
	"hlen 2 readonly,fast 1 1 1 @read,@hash,@fast - RO:1:0/1/0",
	"lpush -3 write,denyoom,fast 1 1 1 @write,@list,@fast - RW,insert:1:0/1/0",
	"lmove 5 write,denyoom 1 2 1 @write,@list,@slow - "
	"RW,access,delete:1:0/1/0;RW,insert:2:0/1/0",
	"blpop -3 write,noscript,blocking 1 -2 1 @write,@list,@slow,@blocking - "
	"RW,access,delete:1:-2/1/0",
	"bitop -4 write,denyoom 2 -1 1 @write,@bitmap,@slow - OW,update:2:0/1/0;RO,access:3:-1/1/0",
	"bitfield -2 write,denyoom 1 1 1 @write,@bitmap,@slow - "
	"RW,access,update,variable_flags:1:0/1/0",
	"eval -3 noscript,stale,skip_monitor,no_mandatory_keys,movablekeys 0 0 0 @slow,@scripting "
	"- RW,access,update:2:#0/1/1",
	"evalsha -3 noscript,stale,skip_monitor,may_replicate,no_mandatory_keys,movablekeys 0 0 0 "
	"@slow,@scripting - RW,access,update:2:#0/1/1",
	"pfcount -2 readonly,may_replicate 1 -1 1 @read,@hyperloglog,@slow - RW,access:1:-1/1/0",
	"blmpop -5 write,blocking,movablekeys 0 0 0 @write,@list,@slow,@blocking - "
	"RW,access,delete:2:#0/1/1",
	"zunionstore -4 write,denyoom,movablekeys 1 1 1 @write,@sortedset,@slow - "
	"OW,update:1:0/1/0;RO,access:2:#0/1/1",
	"georadius -6 write,denyoom,movablekeys 1 1 1 @write,@geo,@slow - "
	"RO,access:1:0/1/0;OW,update:STORE/6:0/1/0;OW,update:STOREDIST/6:0/1/0",
	"sort -2 write,denyoom,movablekeys 1 1 1 @write,@set,@sortedset,@list,@slow,@dangerous - "
	"RO,access:1:0/1/0;RO,access:?:?;OW,update:?:?",
	"migrate -6 write,movablekeys 3 3 1 @keyspace,@write,@slow,@dangerous "
	"nondeterministic_output "
	"RW,access,delete:3:0/1/0;RW,access,delete,incomplete:KEYS/-2:-1/1/0",
	"xread -4 readonly,blocking,movablekeys 0 0 0 @read,@stream,@slow,@blocking - "
	"RO,access:STREAMS/1:-1/1/2",
	"xreadgroup -7 write,blocking,movablekeys 0 0 0 @write,@stream,@slow,@blocking - "
	"RO,access:STREAMS/4:-1/1/2",
	"publish 3 pubsub,loading,stale,fast 0 0 0 @pubsub,@fast - -",
	"spublish 3 pubsub,loading,stale,fast 1 1 1 @pubsub,@fast - not_key:1:0/1/0",
	"subscribe -2 pubsub,noscript,loading,stale 0 0 0 @pubsub,@slow - -",
	"monitor 1 admin,noscript,loading,stale 0 0 0 @admin,@slow,@dangerous - -",
	"wait 3 noscript 0 0 0 @slow,@connection "
	"request_policy:all_shards,response_policy:agg_min -",
	"swapdb 3 write,fast 0 0 0 @keyspace,@write,@fast,@dangerous - -",
	"script -2 - 0 0 0 @slow - -",
	" exists -3 noscript 0 0 0 @slow,@scripting "
	"request_policy:all_shards,response_policy:agg_logical_and -",
	" load 3 noscript,stale 0 0 0 @slow,@scripting "
	"request_policy:all_nodes,response_policy:all_succeeded -",
	" kill 2 noscript,allow_busy 0 0 0 @slow,@scripting "
	"request_policy:all_shards,response_policy:one_succeeded -",
	" debug 3 noscript 0 0 0 @slow,@scripting - -",
	" help 2 loading,stale 0 0 0 @slow,@scripting - -",
	"memory -2 - 0 0 0 @slow - -",
	" usage -3 readonly 2 2 1 @read,@slow - RO:2:0/1/0",
	" stats 2 - 0 0 0 @slow "
	"nondeterministic_output,request_policy:all_shards,response_policy:special -",
	"function -2 - 0 0 0 @slow - -",
	" load -3 write,denyoom,noscript 0 0 0 @write,@slow,@scripting "
	"request_policy:all_shards,response_policy:all_succeeded -",
	" flush -2 write,noscript 0 0 0 @write,@slow,@scripting "
	"request_policy:all_shards,response_policy:all_succeeded -",
	"client -2 - 0 0 0 @slow - -",
	" id 2 noscript,loading,stale 0 0 0 @slow,@connection - -",
	" tracking -3 noscript,loading,stale 0 0 0 @slow,@connection - -",
};
const size_t described_redis_count = sizeof described_redis / sizeof *described_redis;

/* Removes the first field from a text, up to the separator, and returns it. */
static struct hs_bytes field(struct hs_bytes *rest, char separator)
{
	const char *end = rest->len ? memchr(rest->data, separator, rest->len) : NULL;
	struct hs_bytes taken = *rest;

	if (end)
		taken.len = (size_t)(end - rest->data);
	rest->data += taken.len + (end != NULL);
	rest->len -= taken.len + (end != NULL);
	return hs_bytes_equal(taken, HS_LIT("-")) ? (struct hs_bytes){"", 0} : taken;
}

static size_t count_of(struct hs_bytes text, char separator)
{
	size_t count = 0;

	for (; text.len > 0; count++)
		field(&text, separator);
	return count;
}

static void words(struct hs_reply *reply, struct hs_bytes text, bool status)
{
	hs_reply_set(reply, count_of(text, ','));
	while (text.len > 0) {
		struct hs_bytes word = field(&text, ',');

		if (status)
			hs_buf_printf(reply->out, "+%.*s\r\n", (int)word.len, word.data);
		else
			hs_reply_bulk(reply, word);
	}
}

static void number(struct hs_reply *reply, struct hs_bytes text)
{
	hs_reply_int(reply, strtoll(text.data, NULL, 10));
}

static void part(struct hs_reply *reply, const char *name, const char *type, size_t values)
{
	hs_reply_bulk_text(reply, name);
	hs_reply_map(reply, 2);
	hs_reply_bulk_text(reply, "type");
	hs_reply_bulk_text(reply, type);
	hs_reply_bulk_text(reply, "spec");
	hs_reply_map(reply, values);
}

static void pair(struct hs_reply *reply, const char *name, struct hs_bytes *rest)
{
	hs_reply_bulk_text(reply, name);
	number(reply, field(rest, '/'));
}

static void spec(struct hs_reply *reply, struct hs_bytes text)
{
	struct hs_bytes flags = field(&text, ':'), search = field(&text, ':'), find = text;

	hs_reply_map(reply, 3);
	hs_reply_bulk_text(reply, "flags");
	words(reply, flags, true);
	if (search.data[0] == '?') {
		part(reply, "begin_search", "unknown", 0);
	} else if (memchr(search.data, '/', search.len)) {
		part(reply, "begin_search", "keyword", 2);
		hs_reply_bulk_text(reply, "keyword");
		hs_reply_bulk(reply, field(&search, '/'));
		pair(reply, "startfrom", &search);
	} else {
		part(reply, "begin_search", "index", 1);
		pair(reply, "index", &search);
	}
	if (find.data[0] == '?') {
		part(reply, "find_keys", "unknown", 0);
	} else if (find.data[0] == '#') {
		find.data++, find.len--;
		part(reply, "find_keys", "keynum", 3);
		pair(reply, "keynumidx", &find);
		pair(reply, "firstkey", &find);
		pair(reply, "keystep", &find);
	} else {
		part(reply, "find_keys", "range", 3);
		pair(reply, "lastkey", &find);
		pair(reply, "keystep", &find);
		pair(reply, "limit", &find);
	}
}

static void entry(struct hs_reply *reply, const char *const *lines, size_t subs, int version,
		  const char *parent)
{
	struct hs_bytes rest = hs_bytes_of(lines[0] + (parent != NULL)), specs;
	char name[64];
	struct hs_bytes short_name = field(&rest, ' ');

	snprintf(name, sizeof name, "%s%s%.*s", parent ? parent : "", parent ? "|" : "",
		 (int)short_name.len, short_name.data);
	hs_reply_array(reply, version == 6 ? 7 : 10);
	hs_reply_bulk_text(reply, name);
	number(reply, field(&rest, ' '));
	words(reply, field(&rest, ' '), true);
	for (int i = 0; i < 3; i++)
		number(reply, field(&rest, ' '));
	words(reply, field(&rest, ' '), true);
	if (version == 6)
		return;
	words(reply, field(&rest, ' '), false);
	specs = field(&rest, ' ');
	hs_reply_set(reply, count_of(specs, ';'));
	while (specs.len > 0)
		spec(reply, field(&specs, ';'));
	hs_reply_array(reply, subs);
	for (size_t i = 1; i <= subs; i++)
		entry(reply, lines + i, 0, version, name);
}

void describe_commands(const char *const *lines, size_t count, int resp, int version,
		       struct hs_buf *out)
{
	struct hs_reply reply = {.out = out, .resp = resp};
	size_t whole = 0;

	for (size_t i = 0; i < count; i++)
		whole += lines[i][0] != ' ';
	hs_reply_array(&reply, whole);
	for (size_t i = 0; i < count;) {
		size_t subs = 0;

		while (i + subs + 1 < count && lines[i + subs + 1][0] == ' ')
			subs++;
		entry(&reply, lines + i, subs, version, NULL);
		i += subs + 1;
	}
}
