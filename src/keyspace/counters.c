/* Numbers: INCR, DECR, INCRBY, DECRBY, INCRBYFLOAT. */
#include "base/num.h"
#include "command/texts.h"
#include "keyspace/internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int add(struct hs_run *run, int64_t by)
{
	char text[HS_NUM_TEXT_MAX];
	struct hs_attributes attributes = {0, HS_EXPIRE_NEVER};
	struct hs_entry entry;
	int64_t value = 0;
	int err = hs_entry_find_string(run, run->argv[1], &entry);

	if (err)
		return err;
	if (entry.live && !hs_num_parse_int(entry.record.payload, &value))
		return hs_run_fail(run, HS_TEXT_NOT_INTEGER);
	if (__builtin_add_overflow(value, by, &value))
		return hs_run_fail(run, HS_TEXT_ADD_OVERFLOW);
	attributes.expire_ms = hs_entry_expiry(&entry);
	err = hs_entry_put(run, &entry, attributes,
			   (struct hs_bytes){text, hs_num_format_int(value, text)});
	if (!err)
		hs_reply_int(run->reply, value);
	return err;
}

int hs_run_incr(struct hs_run *run)
{
	return add(run, run->command->id == HS_CMD_ID_INCR ? 1 : -1);
}

int hs_run_incrby(struct hs_run *run)
{
	int64_t by;
	int err = hs_run_integer(run, 2, NULL, &by);

	if (err)
		return err;
	if (run->command->id == HS_CMD_ID_INCRBY)
		return add(run, by);
	if (by == INT64_MIN)
		return hs_run_fail(run, "ERR decrement would overflow");
	return add(run, -by);
}

/* Room for any long double written out in full: 4933 digits before the point and 17 behind it. */
enum { FLOAT_TEXT_MAX = 5 * 1024 };

/* Accepts what Redis accepts: everything that strtold takes, hexadecimal and "inf" included, but no
 * leading space, no nan, and nothing that over- or underflows. */
static bool parse_float(struct hs_bytes text, long double *value)
{
	char copy[FLOAT_TEXT_MAX];
	char *end;

	if (text.len == 0 || text.len >= sizeof copy)
		return false;
	memcpy(copy, text.data, text.len);
	copy[text.len] = '\0';
	if (strchr(" \t\n\v\f\r",
		   copy[0])) /* strchr also finds the zero byte, which is no number either */
		return false;
	errno = 0;
	*value = strtold(copy, &end);
	if (end != copy + text.len)
		return false;
	if (errno == ERANGE && (isinf(*value) || *value == 0))
		return false;
	return !isnan(*value);
}

/* Formats as decimal digits without trailing zeros, and without "-0". */
static size_t format_float(long double value, char text[FLOAT_TEXT_MAX])
{
	int printed = snprintf(text, FLOAT_TEXT_MAX, "%.17Lf", value);

	hs_check(printed > 0);
	hs_check(printed < FLOAT_TEXT_MAX);

	size_t len = (size_t)printed;

	while (text[len - 1] == '0')
		len--;
	if (text[len - 1] == '.')
		len--;
	if (len == 2 && text[0] == '-' && text[1] == '0') {
		text[0] = '0';
		len = 1;
	}
	return len;
}

int hs_run_incrbyfloat(struct hs_run *run)
{
	char text[FLOAT_TEXT_MAX];
	struct hs_attributes attributes = {HS_RECORD_NO_INT, HS_EXPIRE_NEVER};
	struct hs_bytes sum;
	struct hs_entry entry;
	long double value = 0, by;
	int err = hs_entry_find_string(run, run->argv[1], &entry);

	if (err)
		return err;
	if (entry.live && !parse_float(entry.record.payload, &value))
		return hs_run_fail(run, "ERR value is not a valid float");
	if (!parse_float(run->argv[2], &by))
		return hs_run_fail(run, "ERR value is not a valid float");
	value += by;
	if (isnan(value) || isinf(value))
		return hs_run_fail(run, "ERR increment would produce NaN or Infinity");
	sum = (struct hs_bytes){text, format_float(value, text)};
	attributes.expire_ms = hs_entry_expiry(&entry);
	err = hs_entry_put(run, &entry, attributes, sum);
	if (!err)
		hs_reply_bulk(run->reply, sum);
	return err;
}
