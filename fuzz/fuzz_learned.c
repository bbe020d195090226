/* Fuzz target: the parser for a server's COMMAND reply (command/learned.h). A reply is either accepted as a command
 * table or refused; keys are found only inside the arguments; and heatsink's own COMMAND replies about the table are
 * whole.
 *
 * Input: the first byte is the number of bytes at the end that are arguments of a request, one per line; the rest is
 * the server's reply, in a heap copy of exactly the right size. The head of fuzz_request.c says how targets run and
 * how to replay a crash. */
#include "base/buf.h"
#include "base/check.h"
#include "base/mem.h"
#include "command/learned.h"
#include "wire/parse_reply.h"
#include "wire/reply.h"

#include <stdint.h>

enum { WORDS_MAX = 32, ROWS_MAX = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk_keys(const struct hs_command *row, size_t argc, const struct hs_bytes *argv)
{
	struct hs_key_walk walk;
	size_t at, steps = 0;

	hs_keys_begin(&walk, row, argc, argv);
	while ((at = hs_keys_next(&walk)) > 0) {
		hs_check(at < argc);
		hs_check(++steps <= (argc + 1) * (row->key_specs_count + 1u));
		(void)hs_keys_access(&walk);
	}
	hs_check(hs_keys_next(&walk) == 0);
}

static void ask(const struct hs_learned *learned, size_t argc, const struct hs_bytes *argv)
{
	const struct hs_command *parent;
	const struct hs_command *command = hs_learned_resolve(learned, argc, argv, &parent);

	for (int resp = 2; resp <= 3; resp++) {
		struct hs_buf out = {0};
		struct hs_reply reply = {.out = &out, .resp = resp};

		hs_command_describe(command, learned, &reply, argc, argv);
		hs_check(hs_parse_reply_length(out.data, out.len) == (int64_t)out.len);
		hs_buf_deinit(&out);
	}
}

static void look_at(const struct hs_learned *learned, size_t argc, struct hs_bytes *argv)
{
	static const char *const questions[] = {"count", "list", "info", "docs"};
	size_t rows = hs_learned_count(learned);

	for (size_t i = 0; i < sizeof questions / sizeof *questions && rows <= ROWS_MAX; i++)
		ask(learned, 2, (struct hs_bytes[]){HS_LIT("command"), hs_bytes_of(questions[i])});
	for (size_t i = 0; i < rows; i++) {
		const struct hs_command *row = hs_learned_at(learned, i);
		struct hs_bytes words[WORDS_MAX + 2] = {HS_LIT("command"), HS_LIT("getkeys")};

		hs_check(row->id >= HS_CMD_IDS && row->id < HS_CMD_IDS_ALL);
		hs_check(hs_learned_name(learned, row->id));
		hs_check((row->place == HS_PLACE_REFUSED) <= (row->refused != NULL));
		walk_keys(row, argc, argv);
		if (row->parent != HS_CMD_ID_NONE)
			continue;
		argv[0] = hs_bytes_of(row->name);
		memcpy(words + 2, argv, argc * sizeof *argv);
		if (argc > 1)
			ask(learned, argc + 2, words);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hs_bytes argv[WORDS_MAX] = {HS_LIT("x")};
	size_t argc = 1, tail = size > 0 ? data[0] : 0, start, len;
	struct hs_learned *learned, *again;
	char error[128], *copy;

	if (size < 1 + tail)
		return 0;
	for (start = size - tail; start < size && argc < WORDS_MAX; start += len + 1) {
		const uint8_t *end = memchr(data + start, '\n', size - start);

		len = end ? (size_t)(end - data) - start : size - start;
		argv[argc++] = (struct hs_bytes){(const char *)data + start, len};
	}
	len = size - 1 - tail;
	copy = hs_mem_alloc(len ? len : 1);
	memcpy(copy, data + 1, len);
	learned = hs_learned_create((struct hs_bytes){copy, len}, NULL, error, sizeof error);
	hs_mem_free(&copy);
	if (!learned)
		return 0;
	look_at(learned, argc, argv);
	/* Learning the same reply a second time gives the same rows. */
	again = hs_learned_create((struct hs_bytes){(const char *)data + 1, len}, learned, error,
				  sizeof error);
	hs_check(again);
	hs_check(hs_learned_count(again) == hs_learned_count(learned));
	for (size_t i = 0; i < hs_learned_count(again); i++)
		hs_check(hs_learned_at(again, i) == hs_learned_at(learned, i));
	hs_learned_destroy(&learned);
	look_at(again, argc, argv);
	hs_learned_destroy(&again);
	return 0;
}
