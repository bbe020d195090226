/* Fuzz target: the conversion of replies from RESP3 to RESP2 (wire/resp3_to_resp2.h). It must read only inside the
 * given bytes; its output is one whole RESP2 reply, or nothing.
 *
 * Input: the first byte selects the form of the output; the rest is the reply, in a heap copy of exactly the right
 * size. The head of fuzz_request.c says how targets run and how to replay a crash. */
#include "base/check.h"
#include "base/mem.h"
#include "wire/parse_reply.h"
#include "wire/resp3_to_resp2.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Checks that the reply is whole and that RESP2 has the type of every element. */
static void check_resp2(struct hs_bytes reply)
{
	struct hs_parse_reply_scan scan = {0};
	struct hs_parsed_reply answer;
	size_t at = 0;

	hs_check(hs_parse_reply_scan(&scan, reply.data, reply.len) == (int64_t)reply.len);
	while (at < reply.len) {
		int64_t used = hs_parse_reply_head(&answer, reply.data + at, reply.len - at);

		hs_check(used > 0);
		hs_check(memchr("+-:$*", reply.data[at], 5));
		at += (size_t)used;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hs_buf out = {0}, again = {0};
	unsigned how = size > 0 ? data[0] : 0;
	size_t len = size > 0 ? size - 1 : 0;
	char *copy = hs_mem_alloc(len ? len : 1);
	struct hs_bytes resp3 = {copy, len};
	int result;

	if (len > 0)
		memcpy(copy, data + 1, len);
	hs_buf_append(&out, "x", 1);
	result = hs_resp3_to_resp2(resp3, how, &out);
	if (result > 0) {
		struct hs_bytes resp2 = {out.data + 1, out.len - 1};

		hs_check(hs_parse_reply_length(copy, len) == (int64_t)len);
		check_resp2(resp2);
		/* A RESP2 reply needs no conversion: the result is 0. */
		hs_check(hs_resp3_to_resp2(resp2, how, &again) == 0);
	} else {
		hs_check(out.len == 1);
		if (result == 0)
			check_resp2(resp3);
	}
	hs_buf_deinit(&out);
	hs_buf_deinit(&again);
	hs_mem_free(&copy);
	return 0;
}
