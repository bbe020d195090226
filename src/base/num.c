#include "base/num.h"

#include <string.h>

bool hs_num_parse_uint(struct hs_bytes text, uint64_t *value)
{
	uint64_t sum = 0;

	if (text.len == 0 || text.len > 20)
		return false;
	if (text.data[0] == '0' && text.len > 1)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		unsigned digit = (unsigned char)text.data[i] - (unsigned)'0';

		if (digit > 9)
			return false;
		if (__builtin_mul_overflow(sum, 10u, &sum) ||
		    __builtin_add_overflow(sum, digit, &sum))
			return false;
	}
	*value = sum;
	return true;
}

bool hs_num_parse_int(struct hs_bytes text, int64_t *value)
{
	uint64_t size;
	bool negative = text.len > 0 && text.data[0] == '-';

	if (negative)
		text = (struct hs_bytes){text.data + 1, text.len - 1};
	if (!hs_num_parse_uint(text, &size))
		return false;
	if (negative) {
		if (size == 0 || size > (uint64_t)INT64_MAX + 1)
			return false;
		*value = (int64_t)(0 - size);
		return true;
	}
	if (size > INT64_MAX)
		return false;
	*value = (int64_t)size;
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int hs_num_hex_byte(const char digits[2])
{
	int high = hex_digit(digits[0]), low = hex_digit(digits[1]);

	return high < 0 || low < 0 ? -1 : high << 4 | low;
}

size_t hs_num_format_int(int64_t value, char text[HS_NUM_TEXT_MAX])
{
	char digits[HS_NUM_TEXT_MAX];
	size_t count = 0, at = 0;
	uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

	do {
		digits[count++] = (char)('0' + size % 10);
		size /= 10;
	} while (size);
	if (value < 0)
		text[at++] = '-';
	while (count)
		text[at++] = digits[--count];
	text[at] = '\0';
	return at;
}

bool hs_num_parse_units(struct hs_bytes text, const struct hs_num_unit *units, uint64_t *value)
{
	struct hs_bytes unit = text;
	uint64_t number;

	while (unit.len > 0 && unit.data[0] >= '0' && unit.data[0] <= '9')
		unit = (struct hs_bytes){unit.data + 1, unit.len - 1};
	if (!hs_num_parse_uint((struct hs_bytes){text.data, text.len - unit.len}, &number))
		return false;
	for (; units->name; units++) {
		if (hs_bytes_is_word(unit, units->name))
			return !__builtin_mul_overflow(number, units->factor, value);
	}
	return false;
}

bool hs_num_parse_bytes(struct hs_bytes text, uint64_t *value)
{
	static const struct hs_num_unit units[] = {
		{"", 1},	  {"b", 1},	     {"k", 1000},      {"kb", 1024}, {"m", 1000000},
		{"mb", 1u << 20}, {"g", 1000000000}, {"gb", 1u << 30}, {NULL, 0},
	};

	return hs_num_parse_units(text, units, value);
}
