/* Bits: GETBIT, SETBIT, BITCOUNT, BITPOS. Bit 0 is the highest of the first byte. */
#include "base/limits.h"
#include "keyspace/internal.h"

static int bit_offset(struct hs_run *run, size_t *offset)
{
	static const char error[] = "ERR bit offset is not an integer or out of range";
	int64_t value;
	int err = hs_run_integer(run, 2, error, &value);

	if (err)
		return err;
	if (value < 0 || (size_t)value / 8 >= HS_BULK_BYTES_MAX)
		return hs_run_fail(run, error);
	*offset = (size_t)value;
	return 0;
}

static unsigned bit_at(struct hs_bytes value, size_t offset)
{
	if (offset / 8 >= value.len)
		return 0;
	return (unsigned char)value.data[offset / 8] >> (7 - offset % 8) & 1;
}

int hs_run_getbit(struct hs_run *run)
{
	struct hs_entry entry;
	size_t offset = 0;
	int err = bit_offset(run, &offset);

	if (!err)
		err = hs_entry_read_string_head(run, run->argv[1], &entry);
	if (!err)
		err = hs_entry_check(run, &entry, offset / 8, offset / 8 + 1);
	if (!err)
		hs_reply_int(run->reply, bit_at(hs_entry_value(&entry), offset));
	return err;
}

static int write_bit(struct hs_run *run, struct hs_entry *entry, size_t offset, bool on)
{
	struct hs_bytes old = hs_entry_value(entry);
	struct hs_attributes attributes = {HS_RECORD_RAW, hs_entry_expiry(entry)};
	size_t len = offset / 8 + 1 > old.len ? offset / 8 + 1 : old.len;
	unsigned mask = 1u << (7 - offset % 8);
	struct hs_value_copy copied;
	char *room;
	int err;

	if (entry->live && len == old.len && bit_at(old, offset) == on) {
		/* The value stays, but in Redis its encoding becomes raw. */
		if (hs_record_encoding(&entry->record) == HS_ENCODING_RAW)
			return 0;
		return hs_entry_change_quietly(run, entry, attributes);
	}
	hs_value_copy_init(&copied, old);
	err = hs_entry_reserve(run, entry, attributes, len, &room);
	if (!err) {
		memcpy(room, copied.bytes.data, copied.bytes.len);
		memset(room + copied.bytes.len, 0, len - copied.bytes.len);
		room[offset / 8] =
			(char)(((unsigned char)room[offset / 8] & ~mask) | (on ? mask : 0));
		hs_entry_seal(entry);
	}
	hs_value_copy_deinit(&copied);
	return err;
}

int hs_run_setbit(struct hs_run *run)
{
	static const char error[] = "ERR bit is not an integer or out of range";
	struct hs_entry entry;
	size_t offset = 0;
	int64_t on;
	int err = bit_offset(run, &offset);

	if (!err)
		err = hs_run_integer(run, 3, error, &on);
	if (!err && on != 0 && on != 1)
		err = hs_run_fail(run, error);
	if (!err)
		err = hs_entry_find_string(run, run->argv[1], &entry);
	if (err)
		return err;

	unsigned old = bit_at(hs_entry_value(&entry), offset);

	err = write_bit(run, &entry, offset, on);
	if (!err)
		hs_reply_int(run->reply, old);
	return err;
}

/* A range of bits, both ends included; start > end is empty. */
struct range {
	int64_t start, end;
};

/* The unit word BYTE or BIT. */
static int parse_unit(struct hs_run *run, size_t index, bool *bits)
{
	*bits = hs_run_word(run, index, "BIT");
	return *bits || hs_run_word(run, index, "BYTE") ? 0 : hs_run_fail_syntax(run);
}

/* Resolves negative ends, cuts the range to `len` bytes, and converts it to bits. */
static struct range bit_range(int64_t start, int64_t end, bool bits, size_t len)
{
	int64_t total = (int64_t)(bits ? len * 8 : len);

	if (start < 0)
		start = start + total < 0 ? 0 : start + total;
	if (end < 0)
		end = end + total < 0 ? 0 : end + total;
	if (end >= total)
		end = total - 1;
	if (start > end)
		return (struct range){1, 0};
	return bits ? (struct range){start, end} : (struct range){start * 8, end * 8 + 7};
}

/* The bits of byte `at` that lie in the range, the others zero. */
static unsigned masked(struct hs_bytes value, size_t at, struct range range)
{
	unsigned byte = (unsigned char)value.data[at];

	if (at == (size_t)range.start / 8)
		byte &= 0xffu >> (range.start % 8);
	if (at == (size_t)range.end / 8)
		byte &= 0xffu << (7 - range.end % 8);
	return byte;
}

static int64_t count_bits(struct hs_bytes value, struct range range)
{
	size_t at = (size_t)range.start / 8, last = (size_t)range.end / 8;
	int64_t count = __builtin_popcount(masked(value, at, range));

	if (at == last)
		return count;
	count += __builtin_popcount(masked(value, last, range));
	for (at++; at + 8 <= last; at += 8) {
		uint64_t word;

		memcpy(&word, value.data + at, sizeof word);
		count += __builtin_popcountll(word);
	}
	for (; at < last; at++)
		count += __builtin_popcount((unsigned char)value.data[at]);
	return count;
}

int hs_run_bitcount(struct hs_run *run)
{
	int64_t start = 0, end = -1;
	bool bits = false;
	struct hs_entry entry;
	int err = hs_entry_read_string(run, run->argv[1], &entry);

	if (err)
		return err;
	if (!entry.live) {
		hs_reply_int(run->reply, 0);
		return 0;
	}
	if (run->argc == 4 || run->argc == 5) {
		err = hs_run_integer(run, 2, NULL, &start);
		if (!err)
			err = hs_run_integer(run, 3, NULL, &end);
		if (err)
			return err;
		if (start < 0 && end < 0 && start > end) {
			hs_reply_int(run->reply, 0);
			return 0;
		}
		if (run->argc == 5)
			err = parse_unit(run, 4, &bits);
	} else if (run->argc != 2) {
		err = hs_run_fail_syntax(run);
	}
	if (err)
		return err;

	struct hs_bytes value = entry.record.payload;
	struct range range = bit_range(start, end, bits, value.len);

	hs_reply_int(run->reply, range.start > range.end ? 0 : count_bits(value, range));
	return 0;
}

/* The first bit in the range that equals `bit`; -1: none. */
static int64_t find_bit(struct hs_bytes value, struct range range, bool bit)
{
	size_t last = (size_t)range.end / 8;
	uint64_t skip = bit ? 0 : UINT64_MAX;

	for (size_t at = (size_t)range.start / 8; at <= last; at++) {
		uint64_t word;

		/* Skips eight bytes at a time that cannot hold it; the ends are checked below. */
		while (at > (size_t)range.start / 8 && at + 8 <= last) {
			memcpy(&word, value.data + at, sizeof word);
			if (word != skip)
				break;
			at += 8;
		}
		for (int i = 0; i < 8; i++) {
			int64_t position = (int64_t)at * 8 + i;

			if (position >= range.start && position <= range.end &&
			    bit_at(value, (size_t)position) == bit)
				return position;
		}
	}
	return -1;
}

static int parse_bitpos_range(struct hs_run *run, int64_t *start, int64_t *end, bool *bits)
{
	int err = 0;

	if (run->argc > 6)
		return hs_run_fail_syntax(run);
	if (run->argc >= 4)
		err = hs_run_integer(run, 3, NULL, start);
	if (!err && run->argc == 6)
		err = parse_unit(run, 5, bits);
	if (!err && run->argc >= 5)
		err = hs_run_integer(run, 4, NULL, end);
	return err;
}

int hs_run_bitpos(struct hs_run *run)
{
	int64_t bit, start = 0, end = -1;
	bool bits = false;
	struct hs_entry entry;
	int err = hs_run_integer(run, 2, NULL, &bit);

	if (err)
		return err;
	if (bit != 0 && bit != 1)
		return hs_run_fail(run, "ERR The bit argument must be 1 or 0.");
	err = hs_entry_read_string(run, run->argv[1], &entry);
	if (err)
		return err;
	if (!entry.live) {
		hs_reply_int(run->reply, bit ? -1 : 0);
		return 0;
	}
	err = parse_bitpos_range(run, &start, &end, &bits);
	if (err)
		return err;

	struct hs_bytes value = entry.record.payload;
	struct range range = bit_range(start, end, bits, value.len);
	int64_t position = -1;

	if (range.start <= range.end) {
		position = find_bit(value, range, bit);
		/* Without an end argument, zeros follow the value. */
		if (position < 0 && bit == 0 && run->argc < 5)
			position = (int64_t)value.len * 8;
	}
	hs_reply_int(run->reply, position);
	return 0;
}
