/* The fields of keys, prefixes and slots. Rounding keeps bounds true: lower bounds are rounded down, upper ones
 * up. */
#include "telemetry/internal.h"

#include <math.h>

const char *const hs_board_by_words[] = {
	[HS_HEAT_BY_OPS] = "ops",
	[HS_HEAT_BY_READS] = "reads",
	[HS_HEAT_BY_WRITES] = "writes",
	[HS_HEAT_BY_BYTES] = "bytes",
	[HS_HEAT_BY_LATENCY] = "latency",
	[HS_HEAT_BY_MISSES] = "misses",
	[HS_HEAT_BY_CONFLICTS] = "conflicts",
	NULL,
};
const char *const hs_board_window_words[] = {
	[HS_HEAT_SHORT] = "short", [HS_HEAT_LONG] = "long", NULL};
const char *const hs_board_second_words[] = {
	[HS_BOARD_SECOND_PARTITIONS] = "partitions",
	[HS_BOARD_SECOND_TOP] = "top",
	[HS_BOARD_SECOND_RANGES] = "ranges",
	NULL,
};

static struct hs_field_value integer(double value)
{
	/* Real rates never come near this; an unknown upper bound (infinity) becomes the largest number. */
	if (!(value > -9e18 && value < 9e18))
		value = value > 0 ? 9e18 : 0;
	return (struct hs_field_value){.integer = (int64_t)value};
}

static struct hs_field_value decimals(double value)
{
	const double scale = 1e4;

	_Static_assert(HS_FIELD_DECIMALS == 4, "the scale is 10 to the power of it");
	return (struct hs_field_value){.real = round(value * scale) / scale};
}

static int64_t whole_at(const char *at, size_t size)
{
	uint16_t small;
	uint32_t middle;
	int64_t large;

	switch (size) {
	case sizeof small:
		memcpy(&small, at, sizeof small);
		return small;
	case sizeof middle:
		memcpy(&middle, at, sizeof middle);
		return middle;
	default:
		memcpy(&large, at, sizeof large);
		return large;
	}
}

double hs_field_member(const struct hs_field *field, const void *row)
{
	const char *at = (const char *)row + field->at;
	float single;
	double real;

	if (field->member == HS_MEMBER_WHOLE)
		return (double)whole_at(at, field->size);
	if (field->size == sizeof single) {
		memcpy(&single, at, sizeof single);
		return (double)single;
	}
	memcpy(&real, at, sizeof real);
	return real;
}

struct hs_field_value hs_field_get(const struct hs_field *field, const void *row)
{
	const char *at = (const char *)row + field->at;

	switch (field->member) {
	case HS_MEMBER_NONE:
		break;
	case HS_MEMBER_WHOLE:
		return (struct hs_field_value){.integer = whole_at(at, field->size)};
	case HS_MEMBER_WORDS:
		return (struct hs_field_value){.bytes = hs_bytes_of(at)};
	case HS_MEMBER_FLOOR:
		return integer(floor(hs_field_member(field, row)));
	case HS_MEMBER_CEIL:
		return integer(ceil(hs_field_member(field, row)));
	case HS_MEMBER_REAL:
		return field->kind == HS_FIELD_INT ? integer(round(hs_field_member(field, row)))
						   : decimals(hs_field_member(field, row));
	}
	return field->get(row);
}

#define GET(function, expression)                                                                  \
	static struct hs_field_value function(const void *data)                                    \
	{                                                                                          \
		const struct hs_board_row *row = data;                                             \
                                                                                                   \
		return expression;                                                                 \
	}

/* Values in the row's window. */
GET(get_name, ((struct hs_field_value){.bytes = hs_board_name(row)}))
GET(get_ops, integer(ceil(row->heat.window[row->window].ops_high)))
GET(get_ops_low, integer(floor(row->heat.window[row->window].ops_low)))
GET(get_reads, integer(floor(row->heat.window[row->window].reads)))
GET(get_writes, integer(floor(row->heat.window[row->window].writes)))
GET(get_bytes, integer(floor(row->heat.window[row->window].bytes_low)))
GET(get_misses, integer(floor(row->heat.window[row->window].misses)))
GET(get_conflicts, integer(floor(row->heat.window[row->window].conflicts)))
GET(get_tracked, ((struct hs_field_value){.integer = row->heat.workers > 0}))
GET(get_window, ((struct hs_field_value){.bytes = hs_bytes_of(hs_board_window_words[row->window])}))
GET(get_total_us, integer((double)row->heat.total_ns / 1000))

#define MEMBER(kind, path) HS_MEMBER(struct hs_board_row, kind, path)

/* clang-format off */
#define RATE_FIELDS                                                                                \
	{.name = "ops", .kind = HS_FIELD_INT, .get = get_ops,                                      \
	 .help = "Requests per second, upper bound"},                                              \
	{.name = "ops_low", .kind = HS_FIELD_INT, .get = get_ops_low,                              \
	 .help = "Requests per second, lower bound"},                                              \
	{.name = "reads", .kind = HS_FIELD_INT, .get = get_reads,                                  \
	 .help = "Requests of ops_low that only read"},                                            \
	{.name = "writes", .kind = HS_FIELD_INT, .get = get_writes,                                \
	 .help = "Requests of ops_low that write"},                                                \
	{.name = "bytes", .kind = HS_FIELD_INT, .get = get_bytes,                                  \
	 .help = "Bytes per second of requests and replies, lower bound"},                         \
	{.name = "p99_us", .kind = HS_FIELD_INT, MEMBER(REAL, heat.p99_us),                \
	 .help = "99th percentile of request times in microseconds, over the long window; "        \
		 "0 if not known"}

#define SHARE_OF_PARTITION                                                                         \
	{.name = "share", .kind = HS_FIELD_REAL, MEMBER(REAL, share),                      \
	 .help = "ops_low as a share of its partition's requests, 0 to 1"}

static const struct hs_field key_fields[] = {
	{.name = "key", .kind = HS_FIELD_BYTES, .get = get_name,
	 .help = "The key; if it is longer than 80 bytes: its beginning, length and hash"},
	RATE_FIELDS,
	SHARE_OF_PARTITION,
	{.name = "partition", .kind = HS_FIELD_INT, MEMBER(WHOLE, heat.partition),
	 .help = "The partition it is on"},
	{.name = "slot", .kind = HS_FIELD_INT, MEMBER(WHOLE, heat.slot),
	 .help = "Its slot, 0 to 16383"},
};

static const struct hs_field prefix_fields[] = {
	{.name = "prefix", .kind = HS_FIELD_BYTES, .get = get_name,
	 .help = "The beginning of its keys, up to and including their first, second or third colon"},
	RATE_FIELDS,
	{.name = "share", .kind = HS_FIELD_REAL, MEMBER(REAL, share),
	 .help = "ops_low as a share of the requests for all keys, 0 to 1"},
};

static const struct hs_field slot_fields[] = {
	{.name = "slot", .kind = HS_FIELD_INT, MEMBER(WHOLE, heat.slot),
	 .help = "The slot, 0 to 16383"},
	RATE_FIELDS,
	SHARE_OF_PARTITION,
	{.name = "partition", .kind = HS_FIELD_INT, MEMBER(WHOLE, heat.partition),
	 .help = "The partition it is on"},
};

/* Rates of a key in both windows. */
#define WINDOW_FIELDS(ROW)                                                                         \
	ROW("ops_low", FLOOR, ops_low, "Requests per second, lower bound")                         \
	ROW("reads", FLOOR, reads, "Requests of ops_low that only read")                           \
	ROW("writes", FLOOR, writes, "Requests of ops_low that write")                             \
	ROW("bytes", FLOOR, bytes_low,                                                             \
	    "Bytes per second of requests and replies, lower bound")                               \
	ROW("bytes_high", CEIL, bytes_high,                                                        \
	    "Bytes per second of requests and replies, upper bound")                               \
	ROW("misses", FLOOR, misses,                                                               \
	    "Reads per second that did not find the key, lower bound")                             \
	ROW("conflicts", FLOOR, conflicts,                                                         \
	    "Conditional writes and watched transactions per second that did not take place, "     \
	    "lower bound")
#define IN_WINDOW(NAME, WINDOW, ROUNDING, RATE, HELP)                                              \
	{.name = NAME, .kind = HS_FIELD_INT, .help = HELP,                                         \
	 MEMBER(ROUNDING, heat.window[WINDOW].RATE)},
#define IN_SHORT(NAME, ROUNDING, RATE, HELP)                                                       \
	IN_WINDOW(NAME "_short", HS_HEAT_SHORT, ROUNDING, RATE, HELP)
#define IN_LONG(NAME, ROUNDING, RATE, HELP)                                                        \
	IN_WINDOW(NAME "_long", HS_HEAT_LONG, ROUNDING, RATE, "As " NAME "_short")

static const struct hs_field one_key_fields[] = {
	{.name = "key", .kind = HS_FIELD_BYTES, .get = get_name,
	 .help = "The key; if it is longer than 80 bytes: its beginning, length and hash"},
	{.name = "tracked", .kind = HS_FIELD_INT, .get = get_tracked,
	 .help = "1 if a worker counts it by itself; 0: it is not hot, and only upper bounds are "
		 "known"},
	{.name = "slot", .kind = HS_FIELD_INT, MEMBER(WHOLE, heat.slot),
	 .help = "Its slot, 0 to 16383"},
	{.name = "partition", .kind = HS_FIELD_INT, MEMBER(WHOLE, heat.partition),
	 .help = "The partition it is on"},
	IN_WINDOW("ops_short", HS_HEAT_SHORT, CEIL, ops_high,
		  "Requests per second, upper bound")
	WINDOW_FIELDS(IN_SHORT)
	IN_WINDOW("ops_long", HS_HEAT_LONG, CEIL, ops_high,
		  "As ops_short, over the long window; so are all fields that end in _long")
	WINDOW_FIELDS(IN_LONG)
	{.name = "window", .kind = HS_FIELD_TEXT, .get = get_window,
	 .help = "The window of share: the one that HEAT TOP shows by default"},
	SHARE_OF_PARTITION,
	{.name = "p50_us", .kind = HS_FIELD_INT, MEMBER(REAL, heat.p50_us),
	 .help = "Median of request times in microseconds, over the long window; "
		 "0 if not known"},
	{.name = "p99_us", .kind = HS_FIELD_INT, MEMBER(REAL, heat.p99_us),
	 .help = "99th percentile of request times in microseconds, over the long window; "
		 "0 if not known"},
	{.name = "total_reads", .kind = HS_FIELD_INT, MEMBER(WHOLE, heat.total_reads),
	 .help = "Reads since the key became hot, exact; restarts at 0 if it cools and becomes hot "
		 "again"},
	{.name = "total_writes", .kind = HS_FIELD_INT, MEMBER(WHOLE, heat.total_writes),
	 .help = "Writes since the key became hot"},
	{.name = "total_bytes", .kind = HS_FIELD_INT, MEMBER(WHOLE, heat.total_bytes),
	 .help = "Bytes of requests and replies since the key became hot"},
	{.name = "total_us", .kind = HS_FIELD_INT, .get = get_total_us,
	 .help = "Microseconds that its requests took since the key became hot"},
	{.name = "total_s", .kind = HS_FIELD_REAL, MEMBER(REAL, total_s),
	 .help = "Seconds since the key became hot; 0 if there are no totals"},
	{.name = "workers", .kind = HS_FIELD_INT, MEMBER(WHOLE, heat.workers),
	 .help = "Number of workers that count it by itself"},
	{.name = "hash", .kind = HS_FIELD_TEXT, MEMBER(WORDS, hash),
	 .help = "Hash that identifies it where its name is cut; changes when heatsink restarts"},
};
/* clang-format on */

const struct hs_fields *hs_board_fields(enum hs_heat_what what)
{
	static const struct hs_fields fields[HS_HEAT_TABLES] = {
		[HS_HEAT_KEYS] = HS_FIELDS(key_fields),
		[HS_HEAT_PREFIXES] = HS_FIELDS(prefix_fields),
		[HS_HEAT_SLOTS] = HS_FIELDS(slot_fields),
	};

	return &fields[what];
}

/* Extra field for lists sorted by it. */
static const struct hs_field sorted_by[] = {
	[HS_HEAT_BY_MISSES] = {.name = "misses",
			       .kind = HS_FIELD_INT,
			       .get = get_misses,
			       .help = "Reads per second that did not find the key, lower bound"},
	[HS_HEAT_BY_CONFLICTS] = {.name = "conflicts",
				  .kind = HS_FIELD_INT,
				  .get = get_conflicts,
				  .help = "Conditional writes and watched transactions per second "
					  "that did not take place, lower bound"},
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

const struct hs_fields hs_board_key_fields = HS_FIELDS(one_key_fields);
