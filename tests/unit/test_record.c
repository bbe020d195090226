/* Goal: physical keys sort by slot and hash, and the client's key can be read from them. Records are read back
 * as written; malformed records are refused, and the reader never reads beyond their end.
 *
 * Method: round trips over the lengths where the layout changes; and each record cut at every length, in an
 * allocation of exactly that length, so that a sanitizer reports a read beyond the end. */
#include "keyspace/record.h"

#include "base/err.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static struct hs_bytes bytes_of(const struct hs_physical_key *physical)
{
	return (struct hs_bytes){physical->data, physical->len};
}

static void test_slot_and_hash_come_first(void **state)
{
	struct hs_physical_key low, high, again;

	(void)state;
	hs_record_physical(&low, 1, 5, HS_LIT("zzz"));
	hs_record_physical(&high, 1, 0x1234, HS_LIT("aaa"));
	hs_record_physical(&again, 1, 0x1234, HS_LIT("aaa"));
	assert_true(hs_bytes_compare(bytes_of(&low), bytes_of(&high)) < 0);
	assert_true(hs_bytes_equal(bytes_of(&high), bytes_of(&again)));
	assert_int_equal((unsigned char)high.data[0], 0x12);
	assert_int_equal((unsigned char)high.data[1], 0x34);
	hs_record_physical(&again, 2, 0x1234, HS_LIT("aaa"));
	assert_false(hs_bytes_equal(bytes_of(&high), bytes_of(&again)));
}

static void test_keys_of_every_length_come_back(void **state)
{
	static const size_t lengths[] = {0, 1, 249, 250, 251, 255, 256, 5000};
	char *text = hs_mem_zalloc(5000);

	(void)state;
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		struct hs_bytes key = {text, lengths[i]}, back;
		bool is_long = lengths[i] > HS_RECORD_KEY_INLINE_MAX;
		struct hs_record record = {
			.type = HS_TYPE_STRING,
			.flags = is_long ? HS_RECORD_LONG_KEY : 0,
			.long_key = is_long ? key : (struct hs_bytes){NULL, 0},
		};
		struct hs_physical_key physical;

		hs_record_physical(&physical, 9, 77, key);
		assert_true(physical.len <= HS_PHYSICAL_KEY_MAX);
		assert_int_equal(hs_record_key(bytes_of(&physical), &record, &back), 0);
		assert_true(hs_bytes_equal(key, back));
	}
	hs_mem_free(&text);
}

static void test_long_keys_differ_by_hash(void **state)
{
	struct hs_physical_key one, other;
	char text[300] = {0};

	(void)state;
	hs_record_physical(&one, 9, 77, (struct hs_bytes){text, sizeof text});
	text[299] = 1;
	hs_record_physical(&other, 9, 77, (struct hs_bytes){text, sizeof text});
	assert_int_equal(one.len, other.len);
	assert_false(hs_bytes_equal(bytes_of(&one), bytes_of(&other)));
}

static char *encode(const struct hs_record *record, size_t *len)
{
	char *bytes = hs_mem_alloc(*len = hs_record_size(record));
	char *payload = hs_record_encode(record, bytes);

	assert_ptr_equal(payload + record->payload.len, bytes + *len);
	memcpy(payload, record->payload.data, record->payload.len);
	return bytes;
}

static const unsigned flag_sets[] = {
	0,
	HS_RECORD_EXPIRES,
	HS_RECORD_LONG_KEY,
	HS_RECORD_EXPIRES | HS_RECORD_LONG_KEY | HS_RECORD_RAW,
	HS_RECORD_NO_INT | HS_RECORD_UNSHARED,
};

static void test_records_come_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof flag_sets / sizeof *flag_sets; i++) {
		bool expires = flag_sets[i] & HS_RECORD_EXPIRES;
		bool is_long = flag_sets[i] & HS_RECORD_LONG_KEY;
		struct hs_record record = {
			.type = HS_TYPE_STRING,
			.flags = flag_sets[i],
			.written_s = 0xfedcba98,
			.expire_ms = expires ? 0x1122334455667788 : -1,
			.long_key = is_long ? HS_LIT("a key") : (struct hs_bytes){NULL, 0},
			.payload = HS_LIT("payload"),
		};
		struct hs_record back;
		size_t len;
		char *bytes = encode(&record, &len);

		assert_int_equal(hs_record_decode((struct hs_bytes){bytes, len}, &back), 0);
		assert_int_equal(back.type, record.type);
		assert_int_equal(back.flags, record.flags);
		assert_int_equal(back.written_s, record.written_s);
		assert_int_equal(back.expire_ms, record.expire_ms);
		assert_true(hs_bytes_equal(back.long_key, record.long_key));
		assert_true(hs_bytes_equal(back.payload, record.payload));
		hs_mem_free(&bytes);
	}
}

static void test_cut_records_are_refused(void **state)
{
	struct hs_record back, record = {
				       .type = HS_TYPE_STRING,
				       .flags = HS_RECORD_EXPIRES | HS_RECORD_LONG_KEY,
				       .expire_ms = 5,
				       .long_key = HS_LIT("a key"),
				       .payload = {"", 0},
			       };
	size_t len;
	char *bytes = encode(&record, &len);

	(void)state;
	for (size_t cut = 0; cut < len; cut++) {
		char *piece = hs_mem_alloc(cut);

		memcpy(piece, bytes, cut);
		assert_int_equal(hs_record_decode((struct hs_bytes){piece, cut}, &back),
				 HS_ECORRUPT);
		hs_mem_free(&piece);
	}
	hs_mem_free(&bytes);
}

/* The checksum detects a change of any byte of a record, and of the slot or hash of its key. A long record has
 * one checksum for its head and one for each part. */
static void test_every_byte_is_covered(void **state)
{
	static const size_t sizes[] = {0, 1, 7, 16, 100, 300, 3 * HS_RECORD_PART_BYTES + 5};

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		char *value = hs_mem_zalloc(sizes[i] + 1);
		struct hs_record back, record = {
					       .type = HS_TYPE_STRING,
					       .flags = HS_RECORD_EXPIRES | HS_RECORD_LONG_KEY,
					       .expire_ms = 5,
					       .long_key = HS_LIT("a key"),
					       .payload = {value, sizes[i]},
				       };
		size_t len, step;
		char *bytes = encode(&record, &len);
		struct hs_bytes all = {bytes, len};

		hs_record_seal(bytes, len, 77);
		assert_true(hs_record_checksum_fits(all, 77));
		assert_int_equal(hs_record_decode(all, &back), 0);
		assert_int_equal(back.payload.len, sizes[i]);
		assert_true(hs_record_parts_checksum_fits(&back, 77, 0, SIZE_MAX));
		assert_false(hs_record_checksum_fits(all, 78));
		step = len > 10000 ? 997 : 1;
		for (size_t at = 0; at < len; at += step) {
			bool head;

			bytes[at] ^= 0x40;
			head = hs_record_checksum_fits(all, 77);
			if (head) {
				size_t from = at - (len - sizes[i]);

				assert_false(hs_record_parts_checksum_fits(&back, 77, 0, SIZE_MAX));
				assert_false(
					hs_record_parts_checksum_fits(&back, 77, from, from + 1));
				/* The same offset in the neighbouring part. */
				from ^= HS_RECORD_PART_BYTES;
				assert_true(
					hs_record_parts_checksum_fits(&back, 77, from, from + 1));
			}
			bytes[at] ^= 0x40;
		}
		hs_mem_free(&bytes);
		hs_mem_free(&value);
	}
}

static void test_unknown_types_and_flags_are_of_another_version(void **state)
{
	struct hs_record record;

	(void)state;
	assert_int_equal(hs_record_decode(HS_LIT("ssss"
						 "\0\0wwww"),
					  &record),
			 HS_EVERSION);
	assert_int_equal(hs_record_decode(HS_LIT("ssss"
						 "\7\0wwww"),
					  &record),
			 HS_EVERSION);
	assert_int_equal(hs_record_decode(HS_LIT("ssss"
						 "\1\x80wwww"),
					  &record),
			 HS_EVERSION);
	assert_int_equal(hs_record_decode(HS_LIT("ssss"
						 "\6\0wwww"),
					  &record),
			 0);
}

static void test_damaged_physical_keys_are_refused(void **state)
{
	struct hs_record record = {.type = HS_TYPE_STRING};
	struct hs_bytes key;

	(void)state;
	assert_int_equal(hs_record_key(HS_LIT("sshhhhhh"), &record, &key), HS_ECORRUPT);
	assert_int_equal(hs_record_key(HS_LIT("sshhhhhh\3ab"), &record, &key), HS_ECORRUPT);
	assert_int_equal(hs_record_key(HS_LIT("sshhhhhh\xff"), &record, &key), HS_ECORRUPT);
	assert_int_equal(hs_record_key(HS_LIT("sshhhhhh\2ab"), &record, &key), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slot_and_hash_come_first),
		cmocka_unit_test(test_keys_of_every_length_come_back),
		cmocka_unit_test(test_long_keys_differ_by_hash),
		cmocka_unit_test(test_records_come_back),
		cmocka_unit_test(test_every_byte_is_covered),
		cmocka_unit_test(test_cut_records_are_refused),
		cmocka_unit_test(test_unknown_types_and_flags_are_of_another_version),
		cmocka_unit_test(test_damaged_physical_keys_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
