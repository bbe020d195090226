/* Goal: SHA-256 (base/sha256.h) is correct.
 *
 * Method: the standard's examples, and every length around the ends of blocks, where the padding needs one more
 * block. */
#include "base/sha256.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static const char *hex_of(struct hs_bytes text)
{
	static char hex[2 * HS_SHA256_BYTES + 1];
	uint8_t digest[HS_SHA256_BYTES];

	hs_sha256(text, digest);
	for (size_t i = 0; i < HS_SHA256_BYTES; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	return hex;
}

static void test_known_texts(void **state)
{
	static const char *const known[][2] = {
		{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
		 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
		{"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopq"
		 "klmnopqrlmnopqrsmnopqrstnopqrstu",
		 "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		assert_string_equal(hex_of(hs_bytes_of(known[i][0])), known[i][1]);
}

static void test_a_million_letters(void **state)
{
	static char text[1000000];

	(void)state;
	memset(text, 'a', sizeof text);
	assert_string_equal(hex_of((struct hs_bytes){text, sizeof text}),
			    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* The hash of the concatenated hashes of 0 to 200 times 'x'. The expected value comes from another
 * implementation. */
static void test_every_length(void **state)
{
	char all[201 * 2 * HS_SHA256_BYTES], text[200];
	size_t len = 0;

	(void)state;
	memset(text, 'x', sizeof text);
	for (size_t i = 0; i <= sizeof text; i++) {
		memcpy(all + len, hex_of((struct hs_bytes){text, i}), 2 * HS_SHA256_BYTES);
		len += 2 * HS_SHA256_BYTES;
	}
	assert_string_equal(hex_of((struct hs_bytes){all, len}),
			    "75013a3fd49991ead9d8a57ea80485c088443c3406a0e8fa003ed57144041eb4");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_texts),
		cmocka_unit_test(test_a_million_letters),
		cmocka_unit_test(test_every_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
