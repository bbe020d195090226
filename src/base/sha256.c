#include "base/sha256.h"

enum { BLOCK_BYTES = 64, ROUNDS = 64, LENGTH_BYTES = 8 };

/* FIPS 180-4: the fractional parts of the square roots of the first 8 primes. */
static const uint32_t first[8] = {
	0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
	0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
};

/* FIPS 180-4: the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t roots[ROUNDS] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static uint32_t turn(uint32_t word, int by)
{
	return word >> by | word << (32 - by);
}

/* Expands the 16 words of a block to the words of all rounds. */
static void schedule(const uint8_t block[BLOCK_BYTES], uint32_t words[ROUNDS])
{
	for (int i = 0; i < 16; i++)
		words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
			   (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (int i = 16; i < ROUNDS; i++) {
		uint32_t a = words[i - 15], b = words[i - 2];

		words[i] = words[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) + words[i - 7] +
			   (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
	}
}

static void mix(uint32_t state[8], const uint8_t block[BLOCK_BYTES])
{
	uint32_t words[ROUNDS], s[8];

	schedule(block, words);
	memcpy(s, state, sizeof s);
	for (int i = 0; i < ROUNDS; i++) {
		uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]);
		uint32_t majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
		uint32_t one = s[7] + (turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25)) + choice +
			       roots[i] + words[i];
		uint32_t two = (turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22)) + majority;

		memmove(s + 1, s, 7 * sizeof *s);
		s[4] += one;
		s[0] = one + two;
	}
	for (int i = 0; i < 8; i++)
		state[i] += s[i];
}

void hs_sha256(struct hs_bytes text, uint8_t digest[HS_SHA256_BYTES])
{
	/* The last bytes, a one bit, zeros, the length in bits. */
	uint8_t end[2 * BLOCK_BYTES] = {0};
	uint64_t bits = (uint64_t)text.len * 8;
	size_t whole = text.len / BLOCK_BYTES * BLOCK_BYTES;
	size_t rest = text.len - whole;
	size_t end_len = rest + 1 + LENGTH_BYTES <= BLOCK_BYTES ? BLOCK_BYTES : 2 * BLOCK_BYTES;
	uint32_t state[8];

	memcpy(state, first, sizeof state);
	for (size_t at = 0; at < whole; at += BLOCK_BYTES)
		mix(state, (const uint8_t *)text.data + at);
	if (rest > 0)
		memcpy(end, text.data + whole, rest);
	end[rest] = 0x80;
	for (int i = 0; i < LENGTH_BYTES; i++)
		end[end_len - 1 - (size_t)i] = (uint8_t)(bits >> (8 * i));
	for (size_t at = 0; at < end_len; at += BLOCK_BYTES)
		mix(state, end + at);
	for (int i = 0; i < HS_SHA256_BYTES; i++)
		digest[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
}
