#include "base/escape.h"

#include "base/mem.h"

size_t hs_escape_utf8(struct hs_bytes bytes, uint32_t *character)
{
	/* The smallest character for each sequence length. A longer sequence than necessary is invalid UTF-8: a
	 * character must have one encoding. */
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	unsigned char first = bytes.len > 0 ? (unsigned char)bytes.data[0] : 0xff;
	size_t len;
	uint32_t value;

	if (first < 0x80) {
		*character = first;
		return 1;
	}
	if (first >= 0xc0 && first < 0xe0)
		len = 2;
	else if (first >= 0xe0 && first < 0xf0)
		len = 3;
	else if (first >= 0xf0 && first < 0xf8)
		len = 4;
	else
		return 0;
	if (bytes.len < len)
		return 0;
	value = first & (0x7fu >> len);
	for (size_t i = 1; i < len; i++) {
		unsigned char next = (unsigned char)bytes.data[i];

		if ((next & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (next & 0x3f);
	}
	if (value < smallest[len] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000))
		return 0;
	*character = value;
	return len;
}

/* Characters that move the cursor, end a line or change the writing direction. */
static bool is_control(uint32_t character)
{
	return character < 0x20 || (character >= 0x7f && character < 0xa0) || character == 0x61c ||
	       character == 0x200e || character == 0x200f ||
	       (character >= 0x2028 && character <= 0x202e) ||
	       (character >= 0x2066 && character <= 0x2069);
}

static void append_hex(unsigned char byte, struct hs_buf *text)
{
	static const char digits[] = "0123456789abcdef";
	char escape[HS_ESCAPE_GROWTH] = {'\\', 'x', digits[byte >> 4], digits[byte & 15]};

	hs_buf_append(text, escape, sizeof escape);
}

void hs_escape(struct hs_bytes bytes, struct hs_buf *text)
{
	while (bytes.len > 0) {
		uint32_t character = 0;
		size_t len = hs_escape_utf8(bytes, &character);
		char letter = hs_bytes_escape_letter(bytes.data[0]);

		if (letter) {
			char escape[2] = {'\\', letter};

			hs_buf_append(text, escape, sizeof escape);
		} else if (len > 0 && !is_control(character)) {
			hs_buf_append(text, bytes.data, len);
		} else {
			len = len > 0 ? len : 1;
			for (size_t i = 0; i < len; i++)
				append_hex((unsigned char)bytes.data[i], text);
		}
		bytes.data += len;
		bytes.len -= len;
	}
}

void hs_escape_word(struct hs_bytes bytes, struct hs_buf *text)
{
	size_t size = bytes.len * HS_ESCAPE_GROWTH + 1;
	char *escaped = hs_mem_alloc(size);
	bool plain;

	hs_bytes_escape(bytes, escaped, size);
	/* An escaped text is longer; a space and a single quote are not escaped. */
	plain = bytes.len > 0 && strlen(escaped) == bytes.len && !strpbrk(escaped, " '");
	hs_buf_printf(text, plain ? "%s" : "\"%s\"", escaped);
	hs_mem_free(&escaped);
}
