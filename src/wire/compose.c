#include "wire/compose.h"

#include "base/num.h"

static void append_number(struct hs_buf *out, char type, size_t number)
{
	char *at = hs_buf_reserve(out, 1 + HS_NUM_TEXT_MAX + 2);
	size_t len;

	at[0] = type;
	len = hs_num_format_int((int64_t)number, at + 1);
	memcpy(at + 1 + len, "\r\n", 2);
	out->len += 1 + len + 2;
}

void hs_compose_header(struct hs_buf *out, size_t argc)
{
	append_number(out, '*', argc);
}

void hs_compose_word(struct hs_buf *out, struct hs_bytes word)
{
	append_number(out, '$', word.len);
	hs_buf_append_bytes(out, word);
	hs_buf_append(out, "\r\n", 2);
}

void hs_compose(struct hs_buf *out, size_t argc, const struct hs_bytes *argv)
{
	hs_compose_header(out, argc);
	for (size_t i = 0; i < argc; i++)
		hs_compose_word(out, argv[i]);
}

static const char blanks[] = " \t\n";

/* The word at or behind `at`; empty at the end. */
static struct hs_bytes next_word(const char *at)
{
	at += strspn(at, blanks);
	return (struct hs_bytes){at, strcspn(at, blanks)};
}

size_t hs_compose_line(struct hs_buf *out, const char *line)
{
	struct hs_bytes word;
	size_t count = 0;

	for (word = next_word(line); word.len > 0; word = next_word(word.data + word.len))
		count++;
	if (count > 0)
		hs_compose_header(out, count);
	for (word = next_word(line); word.len > 0; word = next_word(word.data + word.len))
		hs_compose_word(out, word);
	return count;
}
