/* INFO is lines "name:value" in sections that begin with "# Name". The parser looks only at a line's name, because
 * versions of Redis and Valkey differ in the sections and in the order of lines. Unknown lines are skipped. The
 * offsets of replicas are collected in struct reading and compared with the master's offset at the end. */
#include "engine/redis/node_info.h"

#include "base/err.h"
#include "base/num.h"

#include <stddef.h>

struct reading {
	struct hs_node_info *info;
	size_t known; /* lines with a known name */
	uint64_t offset, offset_online_min, offset_read, offset_applied;
};

static void set_uint(struct hs_bytes value, uint64_t *to)
{
	uint64_t number;

	if (hs_num_parse_uint(value, &number))
		*to = number;
}

static void set_text(struct hs_bytes value, char *to, size_t size)
{
	size_t len = value.len < size ? value.len : size - 1;

	for (size_t i = 0; i < len; i++)
		to[i] = value.data[i] > ' ' && value.data[i] <= '~' ? value.data[i] : '?';
	to[len] = '\0';
}

/* Reads seconds, such as "12.345678"; returns microseconds. 0: malformed. */
static uint64_t microseconds(struct hs_bytes value)
{
	enum { WHOLE_S_MAX = 1000000000 };
	uint64_t whole = 0, part = 0, unit = 100000;
	size_t i = 0;

	for (; i < value.len && value.data[i] >= '0' && value.data[i] <= '9'; i++) {
		whole = whole * 10 + (uint64_t)(value.data[i] - '0');
		if (whole > WHOLE_S_MAX)
			return 0;
	}
	if (i < value.len && value.data[i] == '.') {
		for (i++; i < value.len && value.data[i] >= '0' && value.data[i] <= '9'; i++) {
			part += unit * (uint64_t)(value.data[i] - '0');
			unit /= 10;
		}
	}
	return i == value.len ? whole * 1000000 + part : 0;
}

/* Cuts the next line off `text` and returns it without its line end. */
static struct hs_bytes cut_line(struct hs_bytes *text)
{
	struct hs_bytes line = hs_bytes_cut(text, '\n');

	if (line.len > 0 && line.data[line.len - 1] == '\r')
		line.len--;
	return line;
}

static bool starts_with_number(struct hs_bytes name, const char *word)
{
	size_t len = strlen(word);

	return name.len > len && memcmp(name.data, word, len) == 0 && name.data[len] >= '0' &&
	       name.data[len] <= '9';
}

/* ---- lines with several values: replicas, databases ---- */

/* Reads the line of a replica: slave0:ip=127.0.0.1,port=6380,state=online,offset=28,lag=1 */
static void read_replica(struct reading *reading, struct hs_bytes value)
{
	uint64_t offset = 0, lag_s = 0;
	bool online = false;

	while (value.len > 0) {
		struct hs_bytes pair = hs_bytes_cut(&value, ',');
		struct hs_bytes name = hs_bytes_cut(&pair, '=');

		if (hs_bytes_is_word(name, "state"))
			online = hs_bytes_is_word(pair, "online");
		else if (hs_bytes_is_word(name, "offset"))
			set_uint(pair, &offset);
		else if (hs_bytes_is_word(name, "lag"))
			set_uint(pair, &lag_s);
	}
	reading->info->replicas++;
	if (!online)
		return;
	if (reading->info->replicas_online++ == 0 || offset < reading->offset_online_min)
		reading->offset_online_min = offset;
	if (lag_s > reading->info->lag_s)
		reading->info->lag_s = lag_s;
}

/* Reads the line of a database: db0:keys=10,expires=2,avg_ttl=0 */
static void read_database(struct reading *reading, struct hs_bytes value)
{
	while (value.len > 0) {
		struct hs_bytes pair = hs_bytes_cut(&value, ',');
		struct hs_bytes name = hs_bytes_cut(&pair, '=');
		uint64_t count = 0;

		set_uint(pair, &count);
		if (hs_bytes_is_word(name, "keys"))
			reading->info->keys += count;
		else if (hs_bytes_is_word(name, "expires"))
			reading->info->expires += count;
	}
}

/* ---- lines with one value ---- */

static bool read_number(struct reading *reading, struct hs_bytes name, struct hs_bytes value)
{
	struct hs_node_info *info = reading->info;
	const struct {
		const char *name;
		uint64_t *to;
	} rows[] = {
		{"used_memory", &info->memory_bytes},
		{"connected_clients", &info->clients},
		{"instantaneous_ops_per_sec", &info->ops_per_s},
		{"evicted_keys", &info->evicted},
		{"master_repl_offset", &reading->offset},
		{"slave_read_repl_offset", &reading->offset_read},
		{"slave_repl_offset", &reading->offset_applied},
		{"master_last_io_seconds_ago", &info->lag_s},
		{"master_link_down_since_seconds", &info->lag_s},
	};

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (hs_bytes_equal(name, hs_bytes_of(rows[i].name))) {
			set_uint(value, rows[i].to);
			return true;
		}
	}
	return false;
}

static bool read_word(struct hs_node_info *info, struct hs_bytes name, struct hs_bytes value)
{
	if (hs_bytes_equal(name, HS_LIT("role"))) {
		info->role = hs_bytes_is_word(value, "master")	? HS_NODE_MASTER
			     : hs_bytes_is_word(value, "slave") ? HS_NODE_REPLICA
								: HS_NODE_UNKNOWN;
	} else if (hs_bytes_equal(name, HS_LIT("loading"))) {
		info->loading = !hs_bytes_is_word(value, "0");
	} else if (hs_bytes_equal(name, HS_LIT("master_link_status"))) {
		info->link_down = !hs_bytes_is_word(value, "up");
	} else if (hs_bytes_equal(name, HS_LIT("cluster_enabled"))) {
		info->cluster = hs_bytes_is_word(value, "1");
	} else if (hs_bytes_equal(name, HS_LIT("run_id"))) {
		set_text(value, info->run_id, sizeof info->run_id);
	} else if (hs_bytes_equal(name, HS_LIT("master_replid"))) {
		set_text(value, info->replication_id, sizeof info->replication_id);
	} else if (hs_bytes_equal(name, HS_LIT("valkey_version"))) {
		info->valkey = true;
		set_text(value, info->version, sizeof info->version);
	} else if (hs_bytes_equal(name, HS_LIT("redis_version"))) {
		/* Valkey also reports a redis_version that it is compatible with. */
		if (!info->valkey)
			set_text(value, info->version, sizeof info->version);
	} else if (hs_bytes_equal(name, HS_LIT("maxmemory"))) {
		if (!hs_num_parse_int(value, &info->maxmemory) || info->maxmemory < 0)
			info->maxmemory = -1;
	} else if (hs_bytes_equal(name, HS_LIT("maxmemory_policy"))) {
		set_text(value, info->maxmemory_policy, sizeof info->maxmemory_policy);
	} else if (hs_bytes_equal(name, HS_LIT("aof_enabled"))) {
		info->aof_enabled = hs_bytes_is_word(value, "1");
	} else if (hs_bytes_equal(name, HS_LIT("used_cpu_sys")) ||
		   hs_bytes_equal(name, HS_LIT("used_cpu_user"))) {
		info->cpu_us += microseconds(value);
	} else {
		return false;
	}
	return true;
}

static void read_line(struct reading *reading, struct hs_bytes name, struct hs_bytes value)
{
	if (read_word(reading->info, name, value) || read_number(reading, name, value))
		reading->known++;
	else if (starts_with_number(name, "slave"))
		read_replica(reading, value);
	else if (starts_with_number(name, "db"))
		read_database(reading, value);
}

int hs_node_info_parse(struct hs_node_info *info, struct hs_bytes text)
{
	struct reading reading = {.info = info};

	*info = (struct hs_node_info){.maxmemory = -1, .aof_enabled = -1};
	while (text.len > 0) {
		struct hs_bytes value = cut_line(&text), name;

		if (value.len == 0 || value.data[0] == '#' || !memchr(value.data, ':', value.len))
			continue;
		name = hs_bytes_cut(&value, ':');
		read_line(&reading, name, value);
	}
	info->offset = info->role == HS_NODE_REPLICA ? reading.offset_applied : reading.offset;
	if (info->role == HS_NODE_REPLICA)
		info->lag_bytes = reading.offset_read > reading.offset_applied
					  ? reading.offset_read - reading.offset_applied
					  : 0;
	else if (info->replicas_online && reading.offset > reading.offset_online_min)
		info->lag_bytes = reading.offset - reading.offset_online_min;
	return reading.known ? 0 : HS_EPROTO;
}

int hs_node_info_parse_keyspace(struct hs_node_info *info, struct hs_bytes text)
{
	struct hs_node_info counts = {0};
	struct reading reading = {.info = &counts};
	bool found = false;

	while (text.len > 0) {
		struct hs_bytes value = cut_line(&text), name;

		found = found || hs_bytes_is_word(value, "# keyspace");
		name = hs_bytes_cut(&value, ':');
		if (starts_with_number(name, "db"))
			read_database(&reading, value);
	}
	if (!found)
		return HS_EPROTO;
	info->keys = counts.keys;
	info->expires = counts.expires;
	return 0;
}

bool hs_node_says_cluster_down(struct hs_bytes reply)
{
	static const char words[] = "cluster_state:fail";

	return memmem(reply.data, reply.len, words, sizeof words - 1) != NULL;
}

double hs_node_info_cpu(const struct hs_node_info *before, const struct hs_node_info *after,
			uint64_t elapsed_us)
{
	if (elapsed_us == 0 || strcmp(before->run_id, after->run_id) != 0 ||
	    after->cpu_us < before->cpu_us)
		return 0;
	return (double)(after->cpu_us - before->cpu_us) / (double)elapsed_us;
}
