/* Fuzz target: the request parser (wire/request.h). It must read only inside the given bytes, and must find the same
 * requests however the bytes are cut into pieces.
 *
 * Input: the first byte says whether the client is trusted and how the rest is cut; the rest is what a client sends.
 * It is parsed twice, whole and in pieces. Every call gets a heap copy of exactly the right size, so that the address
 * sanitizer finds a read beyond the end and a pointer used too long.
 *
 * All targets, fuzz/fuzz_*.c, work in this way: one process and one thread per target, libFuzzer calls
 * LLVMFuzzerTestOneInput with bytes, and there is no network, clock or file; src/serve, src/http and src/cli are
 * not used. A failed check (hs_check), a sanitizer report or 2 GB of memory ends the process, and under
 * tools/run-fuzz also 25 s for one input. tools/run-fuzz has libFuzzer write the input to BUILD/crashes/TARGET-…,
 * reports the target as FAIL, shows the end of its log and exits with 1; other targets go on. To replay an input,
 * run `BUILD/fuzz/TARGET FILE`; `make fuzz-build` makes the programs, in build/clang-fuzz. Seeds are in
 * fuzz/corpus/TARGET: add the input of a fixed bug there. */
#include "base/buf.h"
#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/prng.h"
#include "wire/request.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Appends a request as text, so that two runs can be compared. */
static void note(struct hs_buf *notes, const struct hs_wire_request *request, int64_t used)
{
	hs_buf_printf(notes, "%lld bytes, %zu arguments:", (long long)used, request->argc);
	for (size_t i = 0; i < request->argc; i++) {
		hs_buf_printf(notes, " %zu ", request->argv[i].len);
		hs_buf_append_bytes(notes, request->argv[i]);
	}
	hs_buf_printf(notes, "\n");
}

static int64_t parse_copy(struct hs_wire_request *request, const char *data, size_t len,
			  bool trusted, struct hs_buf *notes)
{
	char *copy = hs_mem_alloc(len ? len : 1);
	int64_t used;

	if (len)
		memcpy(copy, data, len);
	used = hs_wire_request_parse(request, copy, len, trusted);
	hs_check(used <= (int64_t)len);
	if (used > 0)
		note(notes, request, used);
	if (used < 0) {
		hs_check(used == HS_EPROTO);
		hs_buf_printf(notes, "error: %s\n", request->error);
	}
	hs_mem_free(&copy);
	return used;
}

/* Parses in pieces of up to `piece_max` bytes, as a connection does. */
static void run(const char *data, size_t size, bool trusted, size_t piece_max, struct hs_buf *notes)
{
	struct hs_wire_request request;
	struct hs_prng prng;
	size_t start = 0, end = 0;
	int64_t used = 0;

	hs_prng_init(&prng, piece_max);
	hs_wire_request_init(&request);
	while (end < size && used >= 0) {
		end += 1 + hs_prng_below(&prng, piece_max);
		if (end > size)
			end = size;
		do {
			used = parse_copy(&request, data + start, end - start, trusted, notes);
			if (used > 0)
				start += (size_t)used;
		} while (used > 0 && start < end);
	}
	hs_wire_request_deinit(&request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hs_buf whole = {0}, pieces = {0};

	if (size < 1 || size > HS_INLINE_BYTES_MAX)
		return 0; /* whether a longer line is refused depends on its pieces, as in Redis */

	bool trusted = data[0] & 1;
	const char *text = (const char *)data + 1;

	run(text, size - 1, trusted, size, &whole);
	run(text, size - 1, trusted, 1 + (data[0] >> 1) % 32, &pieces);
	hs_check(hs_bytes_equal(hs_buf_bytes(&whole), hs_buf_bytes(&pieces)));
	hs_buf_deinit(&whole);
	hs_buf_deinit(&pieces);
	return 0;
}
