/* Numbers for people: three significant digits and a unit, never wider than six characters, so that columns line
 * up. */
#include "cli/top.h"

#include <math.h>
#include <string.h>

static bool unknown(double value, char text[HS_TOP_TEXT_MAX])
{
	if (isfinite(value) && value >= 0)
		return false;
	snprintf(text, HS_TOP_TEXT_MAX, "-");
	return true;
}

/* Three digits: 1.23 12.3 123. A value that would round up to four digits loses a decimal. */
static void three_digits(double value, const char *unit, char text[HS_TOP_TEXT_MAX])
{
	int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;

	snprintf(text, HS_TOP_TEXT_MAX, "%.*f%s", decimals, value, unit);
}

/* Picks the unit in which the value has at most three digits before the point; "huge" beyond all units. */
static void scaled(double value, const char *const *units, size_t count, char text[HS_TOP_TEXT_MAX])
{
	for (size_t i = 0; i < count; i++) {
		if (value < 999.5) {
			three_digits(value, units[i], text);
			return;
		}
		value /= 1000;
	}
	snprintf(text, HS_TOP_TEXT_MAX, "huge");
}

/* Below the first unit: whole numbers; one decimal below ten. */
static void small(double value, const char *unit, char text[HS_TOP_TEXT_MAX])
{
	if (value == 0 || value >= 9.95)
		snprintf(text, HS_TOP_TEXT_MAX, "%.0f%s", value, unit);
	else if (value < 0.05)
		snprintf(text, HS_TOP_TEXT_MAX, "<0.1%s", unit);
	else
		snprintf(text, HS_TOP_TEXT_MAX, "%.1f%s", value, unit);
}

void hs_top_text_count(double value, char text[HS_TOP_TEXT_MAX])
{
	static const char *const units[] = {"k", "M", "G", "T"};

	if (unknown(value, text))
		return;
	if (value < 10 && value == floor(value)) /* small counts: 3, not 3.0 */
		snprintf(text, HS_TOP_TEXT_MAX, "%.0f", value);
	else if (value < 999.5)
		small(value, "", text);
	else
		scaled(value / 1000, units, 4, text);
}

void hs_top_text_bytes(double value, char text[HS_TOP_TEXT_MAX])
{
	static const char *const units[] = {"kB", "MB", "GB", "TB"};

	if (unknown(value, text))
		return;
	if (value < 999.5)
		snprintf(text, HS_TOP_TEXT_MAX, "%.0fB", value);
	else
		scaled(value / 1000, units, 4, text);
}

void hs_top_text_time_us(double value, char text[HS_TOP_TEXT_MAX])
{
	static const char *const units[] = {"ms", "s", "ks"};

	if (unknown(value, text))
		return;
	if (value == 0)
		snprintf(text, HS_TOP_TEXT_MAX, "-");
	else if (value < 999.5)
		snprintf(text, HS_TOP_TEXT_MAX, "%.0fus", value < 1 ? 1 : value);
	else
		scaled(value / 1000, units, 3, text);
}

void hs_top_text_share(double value, char text[HS_TOP_TEXT_MAX])
{
	double percent = value * 100;

	if (unknown(value, text))
		return;
	if (percent > 999)
		snprintf(text, HS_TOP_TEXT_MAX, "huge");
	else
		small(percent, "%", text);
}

void hs_top_text_ratio(double value, char text[HS_TOP_TEXT_MAX])
{
	if (unknown(value, text))
		return;
	if (value < 999.5)
		three_digits(value, "x", text);
	else
		snprintf(text, HS_TOP_TEXT_MAX, ">999x");
}

void hs_top_text_split(double reads, double writes, char text[HS_TOP_TEXT_MAX])
{
	double sum = reads + writes;
	int percent;

	if (unknown(sum, text) || unknown(reads, text) || unknown(writes, text))
		return;
	if (sum == 0) {
		snprintf(text, HS_TOP_TEXT_MAX, "-");
		return;
	}
	percent = (int)lround(reads / sum * 100);
	/* 100 and 0 only if they are exact. */
	if (percent == 100 && writes > 0)
		percent = 99;
	if (percent == 0 && reads > 0)
		percent = 1;
	snprintf(text, HS_TOP_TEXT_MAX, "%d:%d", percent, 100 - percent);
}

void hs_top_text_plain(double value, char text[HS_TOP_TEXT_MAX])
{
	if (unknown(value, text))
		return;
	if (value < 1e6)
		snprintf(text, HS_TOP_TEXT_MAX, "%.0f", value);
	else
		hs_top_text_count(value, text);
}

void hs_top_text_uptime(double seconds, char text[HS_TOP_TEXT_MAX])
{
	uint32_t s;

	if (unknown(seconds, text))
		return;
	s = seconds < UINT32_MAX ? (uint32_t)seconds : UINT32_MAX;
	if (s < 60)
		snprintf(text, HS_TOP_TEXT_MAX, "%us", s);
	else if (s < 3600)
		snprintf(text, HS_TOP_TEXT_MAX, "%um%02us", s / 60, s % 60);
	else if (s < 86400)
		snprintf(text, HS_TOP_TEXT_MAX, "%uh%02um", s / 3600, s / 60 % 60);
	else
		snprintf(text, HS_TOP_TEXT_MAX, "%ud%02uh", s / 86400, s / 3600 % 24);
}

size_t hs_top_text_utf8(uint32_t c, char text[4])
{
	static const unsigned char heads[] = {0, 0, 0xc0, 0xe0, 0xf0};
	size_t len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	for (size_t i = len; i-- > 1; c >>= 6)
		text[i] = (char)(0x80 | (c & 0x3f));
	text[0] = (char)(heads[len] | c);
	return len;
}
