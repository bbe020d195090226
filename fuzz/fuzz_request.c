/* The request parser: whatever the bytes, it reads inside them only, and where they are cut in
 * pieces makes no difference to what it finds.
 *
 * The first byte says whether the client is trusted and how the pieces are cut; the rest is what a
 * client sends. It is parsed twice, whole and in pieces. Every call gets a copy of its own of just
 * the right size, so that the address sanitizer sees a read too far and a pointer kept too long. */
#include "base/buf.h"
#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/prng.h"
#include "wire/request.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Writes down a request, so that two runs can be compared. */
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

/* Feeds pieces of up to `piece_max` bytes, as a connection does. */
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
		return 0; /* longer lines are refused or not by how they arrive, as in Redis */

	bool trusted = data[0] & 1;
	const char *text = (const char *)data + 1;

	run(text, size - 1, trusted, size, &whole);
	run(text, size - 1, trusted, 1 + (data[0] >> 1) % 32, &pieces);
	hs_check(hs_bytes_equal(hs_buf_bytes(&whole), hs_buf_bytes(&pieces)));
	hs_buf_deinit(&whole);
	hs_buf_deinit(&pieces);
	return 0;
}
