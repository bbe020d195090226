/* The options of `heatsink top`, one row each, and its help. */
#include "cli/top.h"

#include "base/err.h"

#include <string.h>

const char *const hs_top_dimensions[] = {
	[HS_TOP_KEYS] = "keys", [HS_TOP_PREFIXES] = "prefixes", [HS_TOP_SLOTS] = "slots", NULL};
const char *const hs_top_sorts[] = {
	[HS_TOP_BY_OPS] = "ops",     [HS_TOP_BY_READS] = "reads",     [HS_TOP_BY_WRITES] = "writes",
	[HS_TOP_BY_BYTES] = "bytes", [HS_TOP_BY_LATENCY] = "latency", NULL,
};
const char *const hs_top_windows[] = {
	[HS_TOP_AUTO] = "auto", [HS_TOP_SHORT] = "short", [HS_TOP_LONG] = "long", NULL};

static bool read_prefix(const struct hs_flag *flag, void *to, const char *word)
{
	struct hs_top_query *query = hs_flag_field(flag, to);
	size_t len = strlen(word);

	if (len > sizeof query->prefix)
		return false;
	memcpy(query->prefix, word, len);
	query->prefix_len = len;
	return true;
}

#define FIELD(name) HS_FLAG_AT(struct hs_top_options, name)

static const struct hs_flag rows[] = {
	HS_TARGET_ROWS(struct hs_top_options, target,
		       "the heatsink server to look at: HOST:PORT, a port of this machine, "
		       "redis://[USER:PASSWORD@]HOST[:PORT] or, with TLS, rediss://"),
	{"once", NULL, "no",
	 "print one frame as text and end: 80 columns, those of the terminal, or $COLUMNS",
	 hs_flag_read_switch, FIELD(once)},
	{"interval", "SECONDS", "1", "time between two looks, 0.1 to 3600", hs_flag_read_duration,
	 FIELD(interval_us), .min = 100000, .max = 3600000000},
	{"window", "WORD", "auto",
	 "what rates are taken over: short (about 80 ms, to react), long (10 s, to look at), "
	 "auto: the server takes the short one while enough happens in it",
	 hs_flag_read_word, FIELD(query.window), .words = hs_top_windows},
	{"sort", "WORD", "ops", "ops, reads, writes, bytes, or latency", hs_flag_read_word,
	 FIELD(query.sort), .words = hs_top_sorts},
	{"show", "WORD", "keys", "the table: keys, prefixes, or slots", hs_flag_read_word,
	 FIELD(query.dimension), .words = hs_top_dimensions},
	{"prefix", "TEXT", "", "only keys and prefixes that start with it", read_prefix,
	 FIELD(query)},
	{"count", "N", "0", "rows to ask for, at most 1000; 0: 10 with --once, 100 without",
	 hs_flag_read_uint, FIELD(query.count), .max = HS_TOP_ROWS_MAX},
	{"timeout", "SECONDS", "5", "how long an answer may take, 0.1 to 3600",
	 hs_flag_read_duration, FIELD(timeout_us), .min = 100000, .max = 3600000000},
};

static const char before[] = "heatsink top: which key, which partition, how hot, as it happens\n"
			     "\n"
			     "usage: heatsink top [flags]\n"
			     "\n";

static const char after[] =
	"\n"
	"What is shown\n"
	"\n"
	"  Partitions, as bars. The mark in each bar is the fleet's median. LOAD is the\n"
	"  ratio to the mean, QUEUE what waits for the partition, TOP KEY its hottest key\n"
	"  and that key's share of its requests. All in order when there is room for all,\n"
	"  otherwise the hottest first.\n"
	"\n"
	"  Keys. OPS/S is the most a key can have had, LEAST what it had for certain: the\n"
	"  closer they are, the surer it is. SHARE is of its partition's requests (of all\n"
	"  requests, for prefixes), R:W reads and writes in percent, P99 the time that 99\n"
	"  of 100 requests do not exceed. Wider terminals show more columns. k is 1000,\n"
	"  MB a million bytes.\n"
	"\n"
	"Keys to press\n"
	"\n" HS_TOP_KEYS_HELP "\n"
	"Bytes of a key that are not text are escaped: \\n, \\xNN. Without a UTF-8 locale,\n"
	"all that is not ASCII is. NO_COLOR set to anything turns colours off. When the\n"
	"server goes away, top connects again by itself; until then the second line says\n"
	"how old the figures are.\n"
	"\n"
	"The exit code is 0, 1 when --once got no answer or the terminal is of no use, or\n"
	"128 and the number of the signal that ended it.\n";

static const struct hs_flags flags = {
	.program = "heatsink top",
	.before = before,
	.after = after,
	.rows = rows,
	.count = sizeof rows / sizeof *rows,
};

int hs_top_options_read(struct hs_top_options *options, int argc, char **argv, FILE *err)
{
	int rc;

	*options = (struct hs_top_options){0};
	rc = hs_flags_read(&flags, options, argc, argv, err);
	if (rc == 0)
		rc = hs_target_read(&options->target, flags.program, err);
	if (rc == 0 && options->target.url.kind == HS_REDIS_CLUSTER)
		return hs_flags_error(err, flags.program,
				      "--target: it looks at one heatsink server, not at a "
				      "Cluster: give redis:// or rediss://");
	if (rc == 0 && options->query.count == 0)
		options->query.count = options->once ? 10 : 100;
	return rc;
}
