#include "wire/compose.h"

#include "wire/reply.h"

void hs_compose_header(struct hs_buf *out, size_t argc)
{
	hs_reply_array(&(struct hs_reply){.out = out}, argc);
}

void hs_compose_word(struct hs_buf *out, struct hs_bytes word)
{
	hs_reply_bulk(&(struct hs_reply){.out = out}, word);
}

void hs_compose(struct hs_buf *out, size_t argc, const struct hs_bytes *argv)
{
	hs_compose_header(out, argc);
	for (size_t i = 0; i < argc; i++)
		hs_compose_word(out, argv[i]);
}

static const char blanks[] = " \t\n";

struct hs_bytes hs_compose_next_word(const char *at)
{
	at += strspn(at, blanks);
	return (struct hs_bytes){at, strcspn(at, blanks)};
}

size_t hs_compose_line(struct hs_buf *out, const char *line)
{
	struct hs_bytes word;
	size_t count = 0;

	for (word = hs_compose_next_word(line); word.len > 0;
	     word = hs_compose_next_word(word.data + word.len))
		count++;
	if (count > 0)
		hs_compose_header(out, count);
	for (word = hs_compose_next_word(line); word.len > 0;
	     word = hs_compose_next_word(word.data + word.len))
		hs_compose_word(out, word);
	return count;
}
