/* Matching runs left to right and remembers only the last '*'. When the text does not fit behind that star, the
 * star takes one more byte and matching goes on. An earlier star never needs another try, so a hostile pattern
 * costs at most pattern length times text length.
 *
 * Two oddities are Redis's own. An empty text matches only the empty pattern. A class without its closing
 * bracket ends at the end of the pattern. */
#include "base/glob.h"

static int fold(int c, bool ignore_case)
{
	return ignore_case && c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c;
}

/* As in Redis, bytes are compared as signed; it matters for ranges beyond 127. */
static int byte_at(struct hs_bytes pattern, size_t at)
{
	return (signed char)pattern.data[at];
}

static bool in_range(int from, int to, int c, bool ignore_case)
{
	if (from > to) {
		int swap = from;

		from = to;
		to = swap;
	}
	c = fold(c, ignore_case);
	return c >= fold(from, ignore_case) && c <= fold(to, ignore_case);
}

/* *at is behind '[' and ends behind the class. */
static bool class_fits(struct hs_bytes pattern, size_t *at, int c, bool ignore_case)
{
	size_t p = *at;
	bool inverted = p < pattern.len && pattern.data[p] == '^';
	bool fits = false;

	if (inverted)
		p++;
	for (; p < pattern.len && pattern.data[p] != ']'; p++) {
		size_t left = pattern.len - p;

		if (pattern.data[p] == '\\' && left >= 2) {
			p++;
			fits |= byte_at(pattern, p) == c;
		} else if (left >= 3 && pattern.data[p + 1] == '-') {
			fits |= in_range(byte_at(pattern, p), byte_at(pattern, p + 2), c,
					 ignore_case);
			p += 2;
		} else {
			fits |= fold(byte_at(pattern, p), ignore_case) == fold(c, ignore_case);
		}
	}
	*at = p < pattern.len ? p + 1 : p;
	return fits != inverted;
}

/* Whether the pattern element at *at, which is not a star, matches one byte. *at ends behind the element. */
static bool one_fits(struct hs_bytes pattern, size_t *at, int c, bool ignore_case)
{
	size_t p = *at;

	if (p >= pattern.len)
		return false;
	*at = p + 1;
	if (pattern.data[p] == '?')
		return true;
	if (pattern.data[p] == '[')
		return class_fits(pattern, at, c, ignore_case);
	if (pattern.data[p] == '\\' && pattern.len - p >= 2) {
		p++;
		*at = p + 1;
	}
	return fold(byte_at(pattern, p), ignore_case) == fold(c, ignore_case);
}

bool hs_glob_match(struct hs_bytes pattern, struct hs_bytes text, bool ignore_case)
{
	size_t p = 0, t = 0;
	/* Behind the last star in the pattern, and the end of the text it has taken. */
	size_t star_p = 0, star_t = 0;
	bool star = false;

	if (text.len == 0)
		return pattern.len == 0;
	while (t < text.len) {
		if (p < pattern.len && pattern.data[p] == '*') {
			p++;
			/* A trailing '*' matches the rest at once; most patterns are prefix*. */
			if (p == pattern.len)
				return true;
			star = true;
			star_p = p;
			star_t = t;
		} else if (one_fits(pattern, &p, byte_at(text, t), ignore_case)) {
			t++;
		} else if (star) {
			p = star_p;
			t = ++star_t;
		} else {
			return false;
		}
	}
	while (p < pattern.len && pattern.data[p] == '*')
		p++;
	return p == pattern.len;
}

bool hs_glob_is_pattern(struct hs_bytes text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (strchr("*?[", text.data[i]))
			return true;
	}
	return false;
}
