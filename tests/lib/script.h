/* For unit tests written as scripts of requests and expected replies, in the simulated world (sim/world.h).
 * received() compares all bytes that a client has received since the last call, and discards them, so each line
 * of a script shows only new bytes. A difference fails the test with both texts. One thread, the
 * test's; the world owns the client and its bytes. */
#ifndef HS_TESTS_SCRIPT_H
#define HS_TESTS_SCRIPT_H

#include "sim/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Asserts the exact bytes received since the last call. `text` is a literal; it may contain zero bytes. */
#define received(client, text) received_bytes(client, (text), sizeof(text) - 1, __FILE__, __LINE__)
/* Asserts that the client has received nothing. */
#define silent(client) received(client, "")

static inline void received_bytes(struct hs_sim_client *client, const char *text, size_t len,
				  const char *file, int line)
{
	struct hs_buf *got = &client->received;

	if (got->len != len || (len > 0 && memcmp(got->data, text, len) != 0)) {
		char mine[4096], theirs[4096];

		hs_bytes_escape((struct hs_bytes){text, len}, mine, sizeof mine);
		hs_bytes_escape(hs_buf_bytes(got), theirs, sizeof theirs);
		print_error("expected \"%s\"\n   heard \"%s\"\n", mine, theirs);
		_fail(file, line);
	}
	got->len = 0;
}

#endif
