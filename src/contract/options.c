/* The options of the contract `cache`, one row each: name, default, bounds, help. Parsing, HEAT RULE and
 * docs/CONTRACTS.md use these rows. */
#include "contract/internal.h"

#include "base/num.h"

#include <math.h>

/* The field's type for each kind: hs_rule_option_put writes through the offset. A row whose field has another
 * type does not compile. */
#define TYPE_TIME uint64_t
#define TYPE_PERCENT double
#define TYPE_REAL double
#define TYPE_WORD bool
#define TYPE_COPIES uint8_t

#define ROW(kind_, name_, field, fallback_, argument_)                                             \
	.name = (name_), .kind = HS_RULE_##kind_,                                                  \
	.offset = _Generic(((struct hs_rule *)0)->field, TYPE_##kind_                              \
			   : offsetof(struct hs_rule, field)),                                     \
	.fallback = (fallback_), .argument = (argument_)

/* clang-format off */
const struct hs_rule_option hs_rule_option_table[] = {
	{ROW(TIME, "stale", stale_us, "100ms", "TIME"), .min = "1ms", .max = "1d",
	 .help = "Upper bound of staleness: no reply shows a value that any client overwrote longer ago "
		 "than this. `stale-while-revalidate` and `stale-if-error` allow more."},
	{ROW(TIME, "ttl", ttl_us, "1m", "TIME"), .min = "1ms", .max = "30d",
	 .help = "Maximum time in the cache. Then the value is fetched again, changed or not."},
	{ROW(TIME, "negative-ttl", negative_ttl_us, "1s", "TIME"), .min = "0", .max = "1d",
	 .at_most_stale = true,
	 .help = "The same for a key that does not exist. 0: its absence is not cached."},
	{ROW(TIME, "stale-while-revalidate", stale_while_revalidate_us, "0", "TIME"), .min = "0", .max = "1d",
	 .help = "For this long after its end a cache entry is still served while one request fetches "
		 "the value again. 0: readers wait for the fetch."},
	{ROW(TIME, "stale-if-error", stale_if_error_us, "0", "TIME"), .min = "0", .max = "30d",
	 .help = "For this long after its end a cache entry is still served while the value cannot be "
		 "fetched; a key that is not cached (`admit`) gets the error. 0: readers get the error."},
	{ROW(PERCENT, "jitter", jitter, "10%", "SHARE"), .min = "0%", .max = "90%",
	 .help = "`ttl` and `negative-ttl` are reduced per cache entry by a random share of up to this, so "
		 "that entries fetched together do not end together."},
	{ROW(REAL, "refresh-ahead", refresh_ahead, "1", "NUMBER"), .min = "0", .max = "10",
	 .help = "How early a read may fetch the value again before its cache entry ends, at random: more "
		 "likely close to the end, for slow fetches and for larger numbers. 0: never before the end."},
	{ROW(WORD, "admit", admit_all, "hot", "HOT|ALL"), .words = HS_WORDS("hot", "all"),
	 .help = "Which keys are cached: hot ones only, or all that are read."},
	{ROW(COPIES, "copies", copies, "0", "N|AUTO|0"), .min = "2", .max = "64",
	 .help = "Number of partitions on which a hot value is stored, the original included; reads are "
		 "spread over them. auto: as many as its load needs. 0: no copies."},
	{ROW(WORD, "replica-reads", replica_reads, "no", "YES|NO"), .words = HS_WORDS("no", "yes"),
	 .help = "On a Cluster, hot values that are too large for the cache are read from replicas, if "
		 "those are known to be within `stale` and to have every write made through heatsink."},
	{ROW(WORD, "public", is_public, "no", "YES|NO"), .words = HS_WORDS("no", "yes"),
	 .help = "Every client that reaches the HTTP port may read these keys there."},
};
/* clang-format on */
const size_t hs_rule_option_count = sizeof hs_rule_option_table / sizeof *hs_rule_option_table;

_Static_assert(HS_COPIES_MAX == 64, "as its row says");

const struct hs_rule_renamed_option hs_rule_renamed_option_table[] = {
	{"swr", "stale-while-revalidate"},
	{"negative", "negative-ttl"},
	{"ahead", "refresh-ahead"},
};
const size_t hs_rule_renamed_option_count =
	sizeof hs_rule_renamed_option_table / sizeof *hs_rule_renamed_option_table;

/* ---- numbers and units ---- */

static const struct hs_num_unit units[] = {
	/* µs, largest first */
	{"d", UINT64_C(86400000000)},
	{"h", UINT64_C(3600000000)},
	{"m", 60000000},
	{"s", 1000000},
	{"ms", 1000},
	{"us", 1},
	{NULL, 0},
};

enum { THOUSAND = 1000, PERCENT_THOUSANDTHS = 100000 };

static size_t digits_of(struct hs_bytes text)
{
	size_t digits = 0;

	while (digits < text.len && text.data[digits] >= '0' && text.data[digits] <= '9')
		digits++;
	return digits;
}

static bool parse_time(struct hs_bytes text, uint64_t *us)
{
	*us = 0;
	return hs_bytes_equal(text, HS_LIT("0")) || hs_num_parse_units(text, units, us);
}

/* In the largest unit that gives a whole number. */
static void format_time(uint64_t us, struct hs_buf *text)
{
	size_t i = 0;

	if (us == 0) {
		hs_buf_printf(text, "0");
		return;
	}
	while (us % units[i].factor != 0)
		i++;
	hs_buf_printf(text, "%llu%s", (unsigned long long)(us / units[i].factor), units[i].name);
}

/* Parses a number with up to three decimals into thousandths, so that it is written back as it was read. */
static bool parse_decimal(struct hs_bytes text, uint64_t *thousandths)
{
	size_t whole = digits_of(text), decimals;
	struct hs_bytes behind = {text.data + whole, text.len - whole};
	uint64_t number;

	if (!hs_num_parse_uint((struct hs_bytes){text.data, whole}, &number) ||
	    __builtin_mul_overflow(number, (uint64_t)THOUSAND, thousandths))
		return false;
	if (behind.len == 0)
		return true;
	behind = (struct hs_bytes){behind.data + 1, behind.len - 1};
	decimals = digits_of(behind);
	if (text.data[whole] != '.' || decimals == 0 || decimals > 3 || decimals < behind.len)
		return false;
	number = 0;
	for (size_t i = 0; i < 3; i++)
		number = number * 10 + (i < decimals ? (uint64_t)(behind.data[i] - '0') : 0);
	return !__builtin_add_overflow(*thousandths, number, thousandths);
}

static void format_decimal(uint64_t thousandths, struct hs_buf *text)
{
	hs_buf_printf(text, "%llu", (unsigned long long)(thousandths / THOUSAND));
	if (thousandths % THOUSAND == 0)
		return;
	hs_buf_printf(text, ".%03u", (unsigned)(thousandths % THOUSAND));
	while (text->data[text->len - 1] == '0')
		text->len--;
}

static bool parse_percent(struct hs_bytes text, uint64_t *value)
{
	if (text.len > 1 && text.data[text.len - 1] == '%')
		return parse_decimal((struct hs_bytes){text.data, text.len - 1}, value);
	return parse_decimal(text, value) && *value == 0;
}

static bool parse_copies(struct hs_bytes text, uint64_t *value)
{
	*value = HS_COPIES_AUTO;
	return hs_bytes_is_word(text, "auto") ||
	       (hs_num_parse_uint(text, value) && *value < HS_COPIES_AUTO);
}

bool hs_rule_option_parse(const struct hs_rule_option *option, struct hs_bytes text,
			  uint64_t *value)
{
	int index;

	switch (option->kind) {
	case HS_RULE_TIME:
		return parse_time(text, value);
	case HS_RULE_PERCENT:
		return parse_percent(text, value);
	case HS_RULE_REAL:
		return parse_decimal(text, value);
	case HS_RULE_WORD:
		index = hs_words_index(option->words, text);
		*value = (uint64_t)index;
		return index >= 0;
	case HS_RULE_COPIES:
		return parse_copies(text, value);
	}
	return false;
}

bool hs_rule_option_fits(const struct hs_rule_option *option, uint64_t value)
{
	uint64_t min, max;

	if (option->kind == HS_RULE_WORD ||
	    (option->kind == HS_RULE_COPIES && (value == 0 || value == HS_COPIES_AUTO)))
		return true;
	hs_check(hs_rule_option_parse(option, hs_bytes_of(option->min), &min));
	hs_check(hs_rule_option_parse(option, hs_bytes_of(option->max), &max));
	return value >= min && value <= max;
}

/* ---- values in a rule ---- */

static void *field_of(const struct hs_rule *rule, const struct hs_rule_option *option)
{
	return (char *)(uintptr_t)rule + option->offset;
}

void hs_rule_option_put(struct hs_rule *rule, const struct hs_rule_option *option, uint64_t value)
{
	void *field = field_of(rule, option);

	switch (option->kind) {
	case HS_RULE_TIME:
		*(uint64_t *)field = value;
		break;
	case HS_RULE_PERCENT:
		*(double *)field = (double)value / PERCENT_THOUSANDTHS;
		break;
	case HS_RULE_REAL:
		*(double *)field = (double)value / THOUSAND;
		break;
	case HS_RULE_WORD:
		*(bool *)field = value == 1;
		break;
	case HS_RULE_COPIES:
		*(uint8_t *)field = (uint8_t)value;
		break;
	}
}

uint64_t hs_rule_option_get(const struct hs_rule *rule, const struct hs_rule_option *option)
{
	const void *field = field_of(rule, option);

	switch (option->kind) {
	case HS_RULE_TIME:
		return *(const uint64_t *)field;
	case HS_RULE_PERCENT:
		return (uint64_t)llround(*(const double *)field * PERCENT_THOUSANDTHS);
	case HS_RULE_REAL:
		return (uint64_t)llround(*(const double *)field * THOUSAND);
	case HS_RULE_WORD:
		return *(const bool *)field;
	case HS_RULE_COPIES:
		return *(const uint8_t *)field;
	}
	return 0;
}

uint64_t hs_rule_option_fallback(const struct hs_rule *rule, const struct hs_rule_option *option)
{
	uint64_t value;

	hs_check(hs_rule_option_parse(option, hs_bytes_of(option->fallback), &value));
	return option->at_most_stale && rule->stale_us < value ? rule->stale_us : value;
}

void hs_rule_option_format(const struct hs_rule *rule, const struct hs_rule_option *option,
			   struct hs_buf *text)
{
	uint64_t value = hs_rule_option_get(rule, option);

	switch (option->kind) {
	case HS_RULE_TIME:
		format_time(value, text);
		break;
	case HS_RULE_PERCENT:
		format_decimal(value, text);
		hs_buf_printf(text, "%%");
		break;
	case HS_RULE_REAL:
		format_decimal(value, text);
		break;
	case HS_RULE_WORD:
		hs_buf_append_bytes(text, hs_bytes_of(option->words[value]));
		break;
	case HS_RULE_COPIES:
		if (value == HS_COPIES_AUTO)
			hs_buf_printf(text, "auto");
		else
			hs_buf_printf(text, "%u", (unsigned)value);
		break;
	}
}
