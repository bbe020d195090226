/* The fields of keys, prefixes and slots. An interval that is shown as whole numbers must still
 * hold the truth: lower bounds are rounded down, upper ones up. */
#include "telemetry/internal.h"

#include <math.h>

static struct hs_field_value integer(double value)
{
	/* No rate comes near this; an upper bound that is not known is the largest there is. */
	if (!(value > -9e18 && value < 9e18))
		value = value > 0 ? 9e18 : 0;
	return (struct hs_field_value){.integer = (int64_t)value};
}

struct hs_field_value hs_board_whole(double value)
{
	return integer(round(value));
}

struct hs_field_value hs_board_decimals(double value)
{
	const double scale = 1e4;

	_Static_assert(HS_FIELD_DECIMALS == 4, "the scale is 10 to the power of it");
	return (struct hs_field_value){.real = round(value * scale) / scale};
}

struct hs_field_value hs_board_down(double value)
{
	return integer(floor(value));
}

static struct hs_field_value up(double value)
{
	return integer(ceil(value));
}

static struct hs_field_value text(const char *words)
{
	return (struct hs_field_value){.bytes = hs_bytes_of(words)};
}

#define GET(function, expression)                                                                  \
	static struct hs_field_value function(const void *data)                                    \
	{                                                                                          \
		const struct hs_board_row *row = data;                                             \
                                                                                                   \
		return expression;                                                                 \
	}

/* In the window shown. */
GET(get_name, ((struct hs_field_value){.bytes = hs_board_name(row)}))
GET(get_ops, up(row->heat.window[row->window].ops_high))
GET(get_ops_low, hs_board_down(row->heat.window[row->window].ops_low))
GET(get_reads, hs_board_down(row->heat.window[row->window].reads))
GET(get_writes, hs_board_down(row->heat.window[row->window].writes))
GET(get_bytes, hs_board_down(row->heat.window[row->window].bytes_low))
GET(get_misses, hs_board_down(row->heat.window[row->window].misses))
GET(get_conflicts, hs_board_down(row->heat.window[row->window].conflicts))
GET(get_p50_us, hs_board_whole(row->heat.p50_us))
GET(get_p99_us, hs_board_whole(row->heat.p99_us))
GET(get_share, hs_board_decimals(row->share))
GET(get_partition, ((struct hs_field_value){.integer = row->heat.partition}))
GET(get_slot, ((struct hs_field_value){.integer = row->heat.slot}))

/* In either window, for HEAT KEY. */
#define GET_BOTH(function, rounded, member)                                                        \
	GET(function##_short, rounded(row->heat.window[HS_HEAT_SHORT].member))                     \
	GET(function##_long, rounded(row->heat.window[HS_HEAT_LONG].member))
GET_BOTH(get_ops, up, ops_high)
GET_BOTH(get_ops_low, hs_board_down, ops_low)
GET_BOTH(get_reads, hs_board_down, reads)
GET_BOTH(get_writes, hs_board_down, writes)
GET_BOTH(get_bytes, hs_board_down, bytes_low)
GET_BOTH(get_bytes_high, up, bytes_high)
GET_BOTH(get_misses, hs_board_down, misses)
GET_BOTH(get_conflicts, hs_board_down, conflicts)

GET(get_tracked, ((struct hs_field_value){.integer = row->heat.workers > 0}))
GET(get_window, text(row->window == HS_HEAT_SHORT ? "short" : "long"))
GET(get_total_reads, integer((double)row->heat.total_reads))
GET(get_total_writes, integer((double)row->heat.total_writes))
GET(get_total_bytes, integer((double)row->heat.total_bytes))
GET(get_total_us, integer((double)row->heat.total_ns / 1000))
GET(get_total_s, hs_board_decimals(row->total_s))
GET(get_workers, ((struct hs_field_value){.integer = row->heat.workers}))
GET(get_hash, text(row->hash))

/* clang-format off */
#define RATE_FIELDS                                                                                \
	{.name = "ops", .kind = HS_FIELD_INT, .get = get_ops,                                      \
	 .help = "Requests per second: not more than this"},                                       \
	{.name = "ops_low", .kind = HS_FIELD_INT, .get = get_ops_low,                              \
	 .help = "Requests per second: not fewer than this"},                                      \
	{.name = "reads", .kind = HS_FIELD_INT, .get = get_reads,                                  \
	 .help = "Of ops_low, those that only read"},                                              \
	{.name = "writes", .kind = HS_FIELD_INT, .get = get_writes,                                \
	 .help = "Of ops_low, those that write"},                                                  \
	{.name = "bytes", .kind = HS_FIELD_INT, .get = get_bytes,                                  \
	 .help = "Bytes per second of requests and replies: not fewer than this"},                 \
	{.name = "p99_us", .kind = HS_FIELD_INT, .get = get_p99_us,                                \
	 .help = "Microseconds that 99 of 100 requests did not exceed, over the long window; "     \
		 "0 when not known"}

#define SHARE_OF_PARTITION                                                                         \
	{.name = "share", .kind = HS_FIELD_REAL, .get = get_share,                                 \
	 .help = "ops_low as a part of its partition's requests, 0 to 1"}

static const struct hs_field key_fields[] = {
	{.name = "key", .kind = HS_FIELD_BYTES, .get = get_name,
	 .help = "The key; of one longer than 80 bytes the beginning, its length and its hash"},
	RATE_FIELDS,
	SHARE_OF_PARTITION,
	{.name = "partition", .kind = HS_FIELD_INT, .get = get_partition,
	 .help = "The partition it is on"},
	{.name = "slot", .kind = HS_FIELD_INT, .get = get_slot,
	 .help = "Its slot, 0 to 16383"},
};

static const struct hs_field prefix_fields[] = {
	{.name = "prefix", .kind = HS_FIELD_BYTES, .get = get_name,
	 .help = "What its keys start with, up to and with their first, second or third colon"},
	RATE_FIELDS,
	{.name = "share", .kind = HS_FIELD_REAL, .get = get_share,
	 .help = "ops_low as a part of the requests for all keys, 0 to 1"},
};

static const struct hs_field slot_fields[] = {
	{.name = "slot", .kind = HS_FIELD_INT, .get = get_slot,
	 .help = "The slot, 0 to 16383"},
	RATE_FIELDS,
	SHARE_OF_PARTITION,
	{.name = "partition", .kind = HS_FIELD_INT, .get = get_partition,
	 .help = "The partition it is on"},
};

static const struct hs_field one_key_fields[] = {
	{.name = "key", .kind = HS_FIELD_BYTES, .get = get_name,
	 .help = "The key; of one longer than 80 bytes the beginning, its length and its hash"},
	{.name = "tracked", .kind = HS_FIELD_INT, .get = get_tracked,
	 .help = "1 when a worker has it in its table; 0: it is not hot, and only upper bounds are "
		 "known"},
	{.name = "slot", .kind = HS_FIELD_INT, .get = get_slot,
	 .help = "Its slot, 0 to 16383"},
	{.name = "partition", .kind = HS_FIELD_INT, .get = get_partition,
	 .help = "The partition it is on"},
	{.name = "ops_short", .kind = HS_FIELD_INT, .get = get_ops_short,
	 .help = "Requests per second: not more than this"},
	{.name = "ops_low_short", .kind = HS_FIELD_INT, .get = get_ops_low_short,
	 .help = "Requests per second: not fewer than this"},
	{.name = "reads_short", .kind = HS_FIELD_INT, .get = get_reads_short,
	 .help = "Of ops_low, those that only read"},
	{.name = "writes_short", .kind = HS_FIELD_INT, .get = get_writes_short,
	 .help = "Of ops_low, those that write"},
	{.name = "bytes_short", .kind = HS_FIELD_INT, .get = get_bytes_short,
	 .help = "Bytes per second of requests and replies: not fewer than this"},
	{.name = "bytes_high_short", .kind = HS_FIELD_INT, .get = get_bytes_high_short,
	 .help = "Bytes per second of requests and replies: not more than this"},
	{.name = "misses_short", .kind = HS_FIELD_INT, .get = get_misses_short,
	 .help = "Reads per second of a key that was not there: not fewer than this"},
	{.name = "conflicts_short", .kind = HS_FIELD_INT, .get = get_conflicts_short,
	 .help = "Conditional writes per second that did not take place, and transactions that lost "
		 "while they watched it: not fewer than this"},
	{.name = "ops_long", .kind = HS_FIELD_INT, .get = get_ops_long,
	 .help = "The same over the long window, as all that end in _long"},
	{.name = "ops_low_long", .kind = HS_FIELD_INT, .get = get_ops_low_long,
	 .help = "As ops_low_short"},
	{.name = "reads_long", .kind = HS_FIELD_INT, .get = get_reads_long,
	 .help = "As reads_short"},
	{.name = "writes_long", .kind = HS_FIELD_INT, .get = get_writes_long,
	 .help = "As writes_short"},
	{.name = "bytes_long", .kind = HS_FIELD_INT, .get = get_bytes_long,
	 .help = "As bytes_short"},
	{.name = "bytes_high_long", .kind = HS_FIELD_INT, .get = get_bytes_high_long,
	 .help = "As bytes_high_short"},
	{.name = "misses_long", .kind = HS_FIELD_INT, .get = get_misses_long,
	 .help = "As misses_short"},
	{.name = "conflicts_long", .kind = HS_FIELD_INT, .get = get_conflicts_long,
	 .help = "As conflicts_short"},
	{.name = "window", .kind = HS_FIELD_TEXT, .get = get_window,
	 .help = "The window that share is over: the one HEAT TOP shows when none is asked for"},
	SHARE_OF_PARTITION,
	{.name = "p50_us", .kind = HS_FIELD_INT, .get = get_p50_us,
	 .help = "Microseconds that half of the requests did not exceed, over the long window; "
		 "0 when not known"},
	{.name = "p99_us", .kind = HS_FIELD_INT, .get = get_p99_us,
	 .help = "Microseconds that 99 of 100 requests did not exceed, over the long window; "
		 "0 when not known"},
	{.name = "total_reads", .kind = HS_FIELD_INT, .get = get_total_reads,
	 .help = "Reads since the key became hot, exact; begins again when it has cooled and comes "
		 "back"},
	{.name = "total_writes", .kind = HS_FIELD_INT, .get = get_total_writes,
	 .help = "Writes since then"},
	{.name = "total_bytes", .kind = HS_FIELD_INT, .get = get_total_bytes,
	 .help = "Bytes of requests and replies since then"},
	{.name = "total_us", .kind = HS_FIELD_INT, .get = get_total_us,
	 .help = "Microseconds spent on them since then"},
	{.name = "total_s", .kind = HS_FIELD_REAL, .get = get_total_s,
	 .help = "How many seconds ago then is; 0 when there are no totals"},
	{.name = "workers", .kind = HS_FIELD_INT, .get = get_workers,
	 .help = "How many workers have it in their table"},
	{.name = "hash", .kind = HS_FIELD_TEXT, .get = get_hash,
	 .help = "What it is called where its name is too long; the same until the server restarts"},
};
/* clang-format on */

#define FIELDS(table)                                                                              \
	{                                                                                          \
		(table), sizeof(table) / sizeof *(table)                                           \
	}

const struct hs_fields *hs_board_fields(enum hs_heat_what what)
{
	static const struct hs_fields fields[HS_HEAT_TABLES] = {
		[HS_HEAT_KEYS] = FIELDS(key_fields),
		[HS_HEAT_PREFIXES] = FIELDS(prefix_fields),
		[HS_HEAT_SLOTS] = FIELDS(slot_fields),
	};

	return &fields[what];
}

/* What a list is sorted by is in it. */
static const struct hs_field sorted_by[] = {
	[HS_HEAT_BY_MISSES] = {.name = "misses",
			       .kind = HS_FIELD_INT,
			       .get = get_misses,
			       .help = "Reads per second that found nothing"},
	[HS_HEAT_BY_CONFLICTS] = {.name = "conflicts",
				  .kind = HS_FIELD_INT,
				  .get = get_conflicts,
				  .help = "Conditional writes and transactions per second that did "
					  "not take place"},
};

struct hs_fields hs_board_fields_by(enum hs_heat_what what, enum hs_heat_by by,
				    struct hs_field room[HS_BOARD_FIELDS_MAX])
{
	struct hs_fields fields = *hs_board_fields(what);

	if (!sorted_by[by].name)
		return fields;
	hs_check(fields.count < HS_BOARD_FIELDS_MAX);
	memcpy(room, fields.fields, fields.count * sizeof *room);
	room[fields.count] = sorted_by[by];
	return (struct hs_fields){room, fields.count + 1};
}

const struct hs_fields *hs_board_key_fields(void)
{
	static const struct hs_fields fields = FIELDS(one_key_fields);

	return &fields;
}
