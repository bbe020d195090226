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
		       "heatsink server to watch: HOST:PORT, a port of this machine, "
		       "redis://[USER:PASSWORD@]HOST[:PORT] or, with TLS, rediss://"),
	{"once", NULL, "no",
	 "print one frame as text and exit; its width is $COLUMNS, the terminal's, or 80",
	 hs_flag_read_switch, FIELD(once)},
	{"interval", "SECONDS", "1", "interval between two queries, 0.1 to 3600",
	 hs_flag_read_duration, FIELD(interval_us), .min = 100000, .max = 3600000000},
	{"window", "WORD", "auto",
	 "time over which rates are measured: short (about 80 ms), long (10 s), or auto: the "
	 "server "
	 "uses the short window if it has enough requests",
	 hs_flag_read_word, FIELD(query.window), .words = hs_top_windows},
	{"sort", "WORD", "ops", "order of the rows: ops, reads, writes, bytes, or latency",
	 hs_flag_read_word, FIELD(query.sort), .words = hs_top_sorts},
	{"show", "WORD", "keys", "the table: keys, prefixes, or slots", hs_flag_read_word,
	 FIELD(query.dimension), .words = hs_top_dimensions},
	{"prefix", "TEXT", "", "show only keys and prefixes that start with this text", read_prefix,
	 FIELD(query)},
	{"count", "N", "0", "number of rows, at most 1000; 0: 10 with --once, else 100",
	 hs_flag_read_uint, FIELD(query.count), .max = HS_TOP_ROWS_MAX},
	{"timeout", "SECONDS", "5", "how long a reply may take, 0.1 to 3600", hs_flag_read_duration,
	 FIELD(timeout_us), .min = 100000, .max = 3600000000},
};

static const char before[] = "heatsink top: the hottest keys and partitions of a server, live\n"
			     "\n"
			     "usage: heatsink top [flags]\n"
			     "\n";

static const char after[] =
	"\n"
	"What is shown\n"
	"\n"
	"  Partitions, as bars. The mark in each bar is the median of all partitions.\n"
	"  LOAD is the ratio to the mean, QUEUE the requests that wait for the partition,\n"
	"  TOP KEY its hottest key and that key's share of its requests. If there is no\n"
	"  room for all partitions, the hottest are shown first.\n"
	"\n"
	"  Keys. OPS/S is the upper bound of a key's requests per second, LEAST the lower\n"
	"  bound. SHARE is the share of its partition's requests (for prefixes: of all\n"
	"  requests), R:W reads and writes in percent, P99 the 99th percentile of\n"
	"  latency. Wider terminals show more columns. k is 1000, MB a million bytes.\n"
	"\n"
	"Keys to press\n"
	"\n" HS_TOP_KEYS_HELP "\n"
	"Bytes of a key that are not text are escaped: \\n, \\xNN. Without a UTF-8 locale,\n"
	"all bytes other than ASCII are. NO_COLOR set to anything turns colours off. When\n"
	"the server is down, top reconnects by itself; until then the second line shows\n"
	"how old the figures are.\n"
	"\n"
	"Exit status: 0; 1 if --once got no reply or top cannot use the terminal; 128\n"
	"plus the number of the signal that ended it.\n";

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
				      "--target: top connects to one heatsink server, not to a "
				      "Cluster: use redis:// or rediss://");
	if (rc == 0 && options->query.count == 0)
		options->query.count = options->once ? 10 : 100;
	return rc;
}
