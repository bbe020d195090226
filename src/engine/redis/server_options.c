#include "engine/redis/server_options.h"

#include <string.h>

const struct hs_engine_option hs_server_options[HS_SERVER_OPTIONS] = {
	{"appendfsync", .settable = true},
	{"appendonly", .settable = true},
	{"cluster-require-full-coverage", .settable = false},
	{"hash-max-listpack-entries", .settable = true},
	{"hash-max-listpack-value", .settable = true},
	{"lfu-decay-time", .settable = true},
	{"lfu-log-factor", .settable = true},
	{"list-max-listpack-size", .settable = true},
	{"maxmemory", .settable = true},
	{"maxmemory-policy", .settable = true},
	{"maxmemory-samples", .settable = true},
	{"min-replicas-max-lag", .settable = true},
	{"min-replicas-to-write", .settable = true},
	{"notify-keyspace-events", .settable = true},
	{"save", .settable = true},
	{"set-max-intset-entries", .settable = true},
	{"stream-node-max-bytes", .settable = true},
	{"stream-node-max-entries", .settable = true},
	{"zset-max-listpack-entries", .settable = true},
	{"zset-max-listpack-value", .settable = true},
};

size_t hs_server_option_find(struct hs_bytes name)
{
	size_t at = 0;

	while (at < HS_SERVER_OPTIONS && !hs_bytes_is_word(name, hs_server_options[at].name))
		at++;
	return at;
}
