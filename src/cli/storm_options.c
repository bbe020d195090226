/* The options of `heatsink storm`, one row each. */
#include "cli/storm.h"

#include "base/err.h"
#include "base/num.h"

#include <math.h>
#include <stdlib.h>

static bool parse_share(const char *word, double *share)
{
	const char *behind;

	return hs_flag_decimal(word, share, &behind) && *behind == '\0' && *share <= 1;
}

static bool read_writes(const struct hs_flag *row, void *to, const char *word)
{
	struct hs_storm_options *options = to;

	(void)row;
	if (*word == '\0') { /* not given: the default of the command */
		options->writes = -1;
		return true;
	}
	return parse_share(word, &options->writes);
}

const char *const hs_storm_commands[] = {
	[HS_STORM_COMMAND_GET] = "get",	  [HS_STORM_COMMAND_SET] = "set",
	[HS_STORM_COMMAND_INCR] = "incr", [HS_STORM_COMMAND_MIXED] = "mixed",
	[HS_STORM_COMMAND_ALL] = "all",	  [HS_STORM_COMMANDS] = NULL,
};

/* The share of writes when --writes is not given. */
static const double writes[HS_STORM_COMMANDS] = {
	[HS_STORM_COMMAND_SET] = 1,
	[HS_STORM_COMMAND_INCR] = 1,
	[HS_STORM_COMMAND_MIXED] = 0.1,
	[HS_STORM_COMMAND_ALL] = 0.6,
};

/* The text after "name:"; "" for the bare name; NULL for another name. */
static const char *behind_name(const char *text, const char *name)
{
	size_t len = strlen(name);

	if (strncmp(text, name, len) != 0 || (text[len] != ':' && text[len] != '\0'))
		return NULL;
	if (text[len] == ':' && text[len + 1] == '\0')
		return NULL;
	return text[len] ? text + len + 1 : text + len;
}

/* "80/20": percent of the requests, percent of the keys. */
static bool parse_hot(const char *text, struct hs_storm_shape *shape)
{
	const char *behind;
	double requests, keys;

	if (!hs_flag_decimal(text, &requests, &behind) || *behind != '/' ||
	    !hs_flag_decimal(behind + 1, &keys, &behind) || *behind)
		return false;
	shape->kind = HS_STORM_HOT;
	shape->share = requests / 100;
	shape->hot = keys / 100;
	return shape->share <= 1 && shape->hot > 0 && shape->hot <= 1;
}

/* Parses "REQUESTS[:SHARE]". */
static bool parse_flash(const char *text, struct hs_storm_shape *shape)
{
	double requests;
	const char *behind;

	if (!hs_flag_decimal(text, &requests, &behind) || requests < 1 || requests > 1e12 ||
	    floor(requests) != requests)
		return false;
	shape->move_requests = (uint64_t)requests;
	return !*behind || (*behind == ':' && parse_share(behind + 1, &shape->share));
}

bool hs_storm_shape_read(struct hs_storm_shape *shape, const char *text)
{
	const char *more, *behind;

	*shape = (struct hs_storm_shape){
		.exponent = 0.99, .share = 0.4, .move_us = 2000000, .move_requests = 5000};
	if (strcmp(text, "uniform") == 0) {
		shape->kind = HS_STORM_UNIFORM;
		return true;
	}
	if ((more = behind_name(text, "zipf"))) {
		shape->kind = HS_STORM_ZIPF;
		return !*more || (hs_flag_decimal(more, &shape->exponent, &behind) && !*behind &&
				  shape->exponent > 0 && shape->exponent <= 20);
	}
	if ((more = behind_name(text, "viral"))) {
		shape->kind = HS_STORM_VIRAL;
		return !*more || parse_share(more, &shape->share);
	}
	if ((more = behind_name(text, "moving"))) {
		shape->kind = HS_STORM_MOVING;
		if (!*more)
			return true;
		if (!hs_flag_duration(more, ':', &shape->move_us, &behind) || shape->move_us == 0)
			return false;
		return !*behind || parse_share(behind + 1, &shape->share);
	}
	if ((more = behind_name(text, "flash"))) {
		shape->kind = HS_STORM_FLASH;
		shape->share = 0.99;
		return !*more || parse_flash(more, shape);
	}
	return parse_hot(text, shape);
}

static bool read_shape(const struct hs_flag *row, void *to, const char *word)
{
	struct hs_storm_options *options = to;

	(void)row;
	options->shape_text = word;
	return hs_storm_shape_read(&options->shape, word);
}

#define FIELD(name) HS_FLAG_AT(struct hs_storm_options, name)

static const struct hs_flag rows[] = {
	HS_TARGET_ROWS(struct hs_storm_options, target,
		       "server to load: HOST:PORT, a port of this machine, "
		       "redis://[USER:PASSWORD@]HOST[:PORT][/DB], or some nodes of a Cluster: "
		       "cluster://[USER:PASSWORD@]HOST[:PORT],HOST... With TLS: rediss://, "
		       "clusters://"),
	{"cluster", NULL, "no", "the target is a node of a Cluster, as with cluster://",
	 hs_flag_read_switch, FIELD(cluster)},
	{"resend-timeout", "TIME", "30s",
	 "Cluster: for how long a request that no node has run is sent again (its slot migrates or "
	 "its node is down); then its last error counts as its reply",
	 hs_flag_read_duration, FIELD(resend_timeout_us), .min = 1, .max = UINT32_MAX},
	{"shape", "SHAPE", "uniform",
	 "distribution of keys: uniform, zipf:EXPONENT, viral:SHARE (one key gets that share), "
	 "moving:TIME[:SHARE] (the viral key changes), flash:REQUESTS[:SHARE] (it changes after "
	 "that "
	 "many requests), 80/20 (80 % of the requests for 20 % of the keys)",
	 read_shape, FIELD(shape)},
	{"keys", "N", "1000000", "number of keys", hs_flag_read_uint, FIELD(keys), .min = 1,
	 .max = 999999999999},
	{"prefix", "TEXT", "key:", "prefix of every key", hs_flag_read_text, FIELD(prefix),
	 .max = HS_STORM_PREFIX_MAX - 1},
	{"command", "WORD", "mixed",
	 "get, set, incr, mixed (strings and counters: every other key is a counter), or all "
	 "(every "
	 "command for a key that holds a number, with transactions and scripts)",
	 hs_flag_read_word, FIELD(command), .words = hs_storm_commands},
	{"request", "WORDS", "",
	 "send this request instead of a command: 'HGETALL big'; in a Cluster, to the owner of the "
	 "slot of its second word",
	 hs_flag_read_text, FIELD(request), .max = HS_STORM_PREFIX_MAX - 1},
	{"writes", "SHARE", "",
	 "share of writes, 0 to 1; the rest are GETs (default: mixed 0.1, get 0, set and incr 1; "
	 "--command all has fixed shares)",
	 read_writes, FIELD(writes)},
	{"value-size", "BYTES", "100", "length of written values", hs_flag_read_bytes,
	 FIELD(value_bytes), .max = 512u << 20},
	{"connections", "N", "50",
	 "number of clients, each with one connection (in a Cluster: one per node)",
	 hs_flag_read_uint, FIELD(connections), .min = 1, .max = 65536},
	{"pipeline", "N", "1", "requests in flight per client", hs_flag_read_uint, FIELD(pipeline),
	 .min = 1, .max = 65536},
	{"rate", "N", "0",
	 "open loop: requests per second in total; latency counts from when a request was due. "
	 "0: closed loop: a client sends when its last requests are answered",
	 hs_flag_read_uint, FIELD(rate), .max = 1000000000},
	{"duration", "TIME", "10s",
	 "duration of the run (500ms, 10s, 2m); no limit if only --count is given",
	 hs_flag_read_duration, FIELD(duration_us), .min = 1, .max = UINT64_MAX,
	 .given = offsetof(struct hs_storm_options, duration_given)},
	{"count", "N", "0", "number of requests; 0: no limit", hs_flag_read_uint, FIELD(count),
	 .max = UINT64_MAX},
	{"threads", "N", "1", "number of threads", hs_flag_read_uint, FIELD(threads), .min = 1,
	 .max = 64},
	{"seed", "N", "1", "seed of the random numbers: the same seed draws the same keys",
	 hs_flag_read_uint, FIELD(seed), .max = UINT64_MAX},
	{"retries", "N", "20",
	 "failed connects in a row before a client is given up; without this flag a failure at the "
	 "start ends storm at once",
	 hs_flag_read_uint, FIELD(retries), .max = 1000000,
	 .given = offsetof(struct hs_storm_options, retries_given)},
	{"load", NULL, "no", "write every key once before the run", hs_flag_read_switch,
	 FIELD(load)},
	{"verify", NULL, "no",
	 "check the replies: no acknowledged write is lost, no increment answered twice, sums are "
	 "right; with --command all: the history of every key is linearizable. Nothing else may "
	 "write to the keys",
	 hs_flag_read_switch, FIELD(verify)},
	{"no-final", NULL, "no", "--verify: do not read every written key again at the end",
	 hs_flag_read_switch, FIELD(no_final)},
	{"ordered", NULL, "no",
	 "send requests for one key in order: a write waits until all earlier requests are "
	 "answered, "
	 "later requests wait for the write, and reads run together. With --verify every read must "
	 "then return the last value written. Requests for other keys do not wait",
	 hs_flag_read_switch, FIELD(ordered)},
	{"window", "N", "4000",
	 "--command all --verify: operations per window; then storm waits for all replies and "
	 "checks "
	 "the histories of the window",
	 hs_flag_read_uint, FIELD(window), .min = 1, .max = 100000},
	{"history-folder", "DIR", ".",
	 "--command all --verify: folder for files of histories that are not linearizable",
	 hs_flag_read_text, FIELD(history_folder), .max = HS_STORM_FOLDER_MAX - 1},
	{"check-history", "FILE", "", "send nothing: check the history in such a file again",
	 hs_flag_read_text, FIELD(check_file), .max = HS_STORM_FOLDER_MAX - 1},
	{"json", NULL, "no", "print the result as JSON", hs_flag_read_switch, FIELD(json)},
};

static const struct hs_flag_renamed renamed[] = {
	{"judge", "check-history"},
	{"patience", "resend-timeout"},
};

static const struct hs_flags flags = {
	.program = "heatsink storm",
	.before = "heatsink storm: a load generator for any Redis endpoint\n\n",
	.after = "\nExit status: 0 replies came, and none was an error; 1 invalid flags, no\n"
		 "connection, no reply, replies stopped before --count was reached, or --verify\n"
		 "found a wrong reply or a key that it could not read; 2 --verify found no wrong\n"
		 "reply but could not decide every window; 3 some replies were errors. Requests\n"
		 "lost with their connection are counted, but do not change the status.\n",
	.rows = rows,
	.count = sizeof rows / sizeof *rows,
	.renamed = renamed,
	.renamed_count = sizeof renamed / sizeof *renamed,
};

/* Flags that contradict each other: the error, or NULL. */
static const char *complaint_about(const struct hs_storm_options *options)
{
	if (options->command == HS_STORM_COMMAND_GET && options->writes > 0)
		return "--command get writes nothing: use --command set or mixed with --writes";
	if (options->command == HS_STORM_COMMAND_ALL && (options->rate || options->load))
		return "--command all is a closed loop on keys that begin empty: it allows no "
		       "--rate and no "
		       "--load";
	if (*options->request && (options->verify || options->load))
		return "--request: storm does not know what it does: no --verify, no --load";
	if (options->verify && options->command == HS_STORM_COMMAND_ALL &&
	    options->keys > HS_STORM_HISTORY_KEYS_MAX)
		return "--command all --verify is for few keys: at most --keys 1000";
	if (options->ordered &&
	    (options->rate || *options->request || options->command == HS_STORM_COMMAND_ALL))
		return "--ordered is a closed loop of GET, SET and INCR: no --rate, --request or "
		       "--command all";
	if (options->ordered && options->threads > 1)
		return "--ordered works on one thread: use --threads 1";
	if (options->cluster && options->target.url.db != 0)
		return "--cluster: a Cluster has only database 0";
	if (options->no_final && !(options->verify && options->command != HS_STORM_COMMAND_ALL))
		return "--no-final needs --verify, and does not work with --command all";
	if (options->threads > options->connections)
		return "--threads: every thread needs a client: raise --connections";
	if (options->shape.kind == HS_STORM_FLASH && options->threads > 1)
		return "--shape flash works on one thread: use --threads 1, or --shape moving:TIME";
	if (options->verify && options->threads > 1)
		return "--verify works on one thread: use --threads 1";
	if ((options->verify || options->ordered) && options->keys > HS_STORM_VERIFY_KEYS_MAX)
		return "--verify and --ordered need memory for every key: at most --keys 10000000";
	if (options->verify && options->value_bytes < HS_STORM_VERIFY_VALUE_MIN)
		return "--verify writes a tag into every value: at least --value-size 32";
	return NULL;
}

int hs_storm_options_read(struct hs_storm_options *options, int argc, char **argv, FILE *err)
{
	const char *complaint;
	int rc;

	*options = (struct hs_storm_options){0};
	rc = hs_flags_read(&flags, options, argc, argv, err);
	if (rc == 0)
		rc = hs_target_read(&options->target, flags.program, err);
	if (rc != 0)
		return rc;
	options->cluster |= options->target.url.kind == HS_REDIS_CLUSTER;
	if (options->count && !options->duration_given)
		options->duration_us = 0;
	if (options->writes < 0)
		options->writes = writes[options->command];
	complaint = complaint_about(options);
	return complaint ? hs_flags_error(err, flags.program, "%s", complaint) : 0;
}
