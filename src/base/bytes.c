#include "base/bytes.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

int hs_bytes_compare(struct hs_bytes a, struct hs_bytes b)
{
	size_t common = a.len < b.len ? a.len : b.len;
	int order = common ? memcmp(a.data, b.data, common) : 0;

	if (order != 0)
		return order;
	return (a.len > b.len) - (a.len < b.len);
}

bool hs_bytes_is_word(struct hs_bytes a, const char *word)
{
	return strlen(word) == a.len && strncasecmp(a.data, word, a.len) == 0;
}

char hs_bytes_escape_letter(char byte)
{
	static const char letters[256] = {
		['\\'] = '\\', ['"'] = '"', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};

	return letters[(unsigned char)byte];
}

char *hs_bytes_escape(struct hs_bytes a, char *text, size_t size)
{
	size_t at = 0;

	for (size_t i = 0; i < a.len; i++) {
		unsigned char c = (unsigned char)a.data[i];
		char letter = hs_bytes_escape_letter(a.data[i]), piece[5];

		if (letter)
			snprintf(piece, sizeof piece, "\\%c", letter);
		else if (isprint(c))
			snprintf(piece, sizeof piece, "%c", c);
		else
			snprintf(piece, sizeof piece, "\\x%02x", c);
		if (at + strlen(piece) + 1 > size)
			break;
		memcpy(text + at, piece, strlen(piece));
		at += strlen(piece);
	}
	if (size > 0)
		text[at] = '\0';
	return text;
}
