/* Goal: the checksum is CRC-32C, with and without the processor's instruction.
 *
 * Method: known answers (RFC 3720, B.4), and both implementations over many lengths, alignments and splits. */

#include "base/crc32c.h"

#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void known_answers(void **state)
{
	unsigned char bytes[32];

	(void)state;
	assert_int_equal(hs_crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(hs_crc32c_plain(0, "123456789", 9), 0xe3069283);
	assert_int_equal(hs_crc32c(0, "", 0), 0);
	memset(bytes, 0, sizeof bytes);
	assert_int_equal(hs_crc32c(0, bytes, sizeof bytes), 0x8a9136aa);
	memset(bytes, 0xff, sizeof bytes);
	assert_int_equal(hs_crc32c(0, bytes, sizeof bytes), 0x62a8ab43);
	for (unsigned char i = 0; i < 32; i++)
		bytes[i] = i;
	assert_int_equal(hs_crc32c(0, bytes, sizeof bytes), 0x46dd794e);
}

static void both_ways_agree(void **state)
{
	unsigned char bytes[300];
	struct hs_prng prng;

	(void)state;
	hs_prng_init(&prng, 1);
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (unsigned char)hs_prng_next(&prng);
	for (size_t len = 0; len < 200; len++) {
		for (size_t at = 0; at < 9; at++) {
			uint32_t plain = hs_crc32c_plain(7, bytes + at, len);
			uint32_t half = hs_crc32c(7, bytes + at, len / 2);

			assert_int_equal(hs_crc32c(7, bytes + at, len), plain);
			assert_int_equal(hs_crc32c(half, bytes + at + len / 2, len - len / 2),
					 plain);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_answers),
		cmocka_unit_test(both_ways_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
