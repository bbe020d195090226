/* Goal: every valid notation of servers has the documented meaning; an invalid one is refused with the
 * position, the reason and an example, and no output shows a password.
 *
 * Method: tables of URLs. Each invalid URL contains a password; the test checks that the error does not. */
#include "upstream/url.h"

#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct hs_redis_url parse(const char *text)
{
	struct hs_redis_url url;
	char why[HS_REDIS_WHY_BYTES] = "";

	if (hs_redis_url_parse(&url, hs_bytes_of(text), why, sizeof why) != 0)
		fail_msg("%s: %s", text, why);
	assert_string_equal(why, "");
	return url;
}

static void test_valid_urls(void **state)
{
	static const struct {
		const char *text;
		enum hs_redis_kind kind;
		bool tls, auth;
		const char *user, *pass;
		unsigned db, seeds;
		const char *host; /* host and port of the last seed */
		unsigned port;
		const char *shown;
	} cases[] = {
		{"redis://h", HS_REDIS_SINGLE, false, false, "", "", 0, 1, "h", 6379,
		 "redis://h:6379"},
		{"redis://h/", HS_REDIS_SINGLE, false, false, "", "", 0, 1, "h", 6379,
		 "redis://h:6379"},
		{"REDIS://10.0.0.1:1/15", HS_REDIS_SINGLE, false, false, "", "", 15, 1, "10.0.0.1",
		 1, "redis://10.0.0.1:1/15"},
		{"rediss://me:se%40c%2Fr%25et@db-1.x_y.example:65535/65535", HS_REDIS_SINGLE, true,
		 true, "me", "se@c/r%et", 65535, 1, "db-1.x_y.example", 65535,
		 "rediss://me:***@db-1.x_y.example:65535/65535"},
		{"redis://:secret@h", HS_REDIS_SINGLE, false, true, "", "secret", 0, 1, "h", 6379,
		 "redis://:***@h:6379"},
		{"redis://alice:@h", HS_REDIS_SINGLE, false, true, "alice", "", 0, 1, "h", 6379,
		 "redis://alice:***@h:6379"},
		{"redis://:@h", HS_REDIS_SINGLE, false, true, "", "", 0, 1, "h", 6379,
		 "redis://:***@h:6379"},
		/* The first ':' ends the user name, the last '@' ends the password. */
		{"redis://%c3%a9:a:b@c@h", HS_REDIS_SINGLE, false, true, "\xc3\xa9", "a:b@c", 0, 1,
		 "h", 6379, "redis://%C3%A9:***@h:6379"},
		{"redis://[::1]", HS_REDIS_SINGLE, false, false, "", "", 0, 1, "::1", 6379,
		 "redis://[::1]:6379"},
		{"redis://[fe80::1%eth0]:7/1", HS_REDIS_SINGLE, false, false, "", "", 1, 1,
		 "fe80::1%eth0", 7, "redis://[fe80::1%eth0]:7/1"},
		{"cluster://a:1", HS_REDIS_CLUSTER, false, false, "", "", 0, 1, "a", 1,
		 "cluster://a:1"},
		{"cluster://a:1/", HS_REDIS_CLUSTER, false, false, "", "", 0, 1, "a", 1,
		 "cluster://a:1"},
		{"clusters://u:p@a:1,b,[::2]:3", HS_REDIS_CLUSTER, true, true, "u", "p", 0, 3,
		 "::2", 3, "clusters://u:***@a:1,b:6379,[::2]:3"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hs_redis_url url = parse(cases[i].text);
		char text[HS_REDIS_URL_TEXT_BYTES];

		assert_int_equal(url.kind, cases[i].kind);
		assert_int_equal(url.tls, cases[i].tls);
		assert_int_equal(url.auth, cases[i].auth);
		assert_string_equal(url.user, cases[i].user);
		assert_string_equal(url.pass, cases[i].pass);
		assert_int_equal(url.db, cases[i].db);
		assert_int_equal(url.seeds_count, cases[i].seeds);
		assert_string_equal(url.seeds[url.seeds_count - 1].host, cases[i].host);
		assert_int_equal(url.seeds[url.seeds_count - 1].port, cases[i].port);
		assert_string_equal(hs_redis_url_text(&url, text, sizeof text), cases[i].shown);
	}
}

static void test_invalid_urls(void **state)
{
	static const struct {
		const char *text;
		unsigned at;
		const char *what;
	} cases[] = {
		{"", 1, "must start with"},
		{"secret", 1, "must start with"},
		{"http://secret", 1, "must start with"},
		{"redis:/secret", 1, "must start with"},
		{"redis://", 9, "a host is missing"},
		{"redis://u:secret@", 18, "a host is missing"},
		{"redis://u:secret@:6379", 18, "a host is missing"},
		{"redis://secret@h", 9, "no ':' before the '@'"},
		/* If the host is missing or the password is not encoded, the parser sees the password as
		 * another part of the URL; the error must not show it. */
		{"redis://u:secret", 11, "a port is a number from 1 to 65535"},
		{"redis://:secret", 9, "a host is missing"},
		{"redis://u:se/secret@h", 13, "a '/' before the '@'"},
		{"redis://u:se?secret@h", 13, "'?' or '#'"},
		{"redis://u:se#secret@h", 13, "'?' or '#'"},
		{"redis://u:se secret@h", 13, "a space"},
		{"redis://u:secret@h\n", 19, "a control character"},
		{"redis://u:secret%@h", 17, "two hexadecimal digits"},
		{"redis://u:secret%4@h", 17, "two hexadecimal digits"},
		{"redis://u:secret%4g@h", 17, "two hexadecimal digits"},
		{"redis://u%:secret@h", 10, "two hexadecimal digits"},
		{"redis://u:secret%00@h", 19, "a zero byte in the password"},
		{"redis://u:secret@h:", 20, "a ':' without a port"},
		{"redis://u:secret@h:0", 20, "a port is a number"},
		{"redis://u:secret@h:65536", 20, "a port is a number"},
		{"redis://u:secret@h:+1", 20, "a port is a number"},
		{"redis://u:secret@::1", 18, "in brackets"},
		{"redis://u:secret@[::1", 18, "a '[' without its ']'"},
		{"redis://u:secret@[h]:1", 19, "must be an IPv6 address"},
		{"redis://u:secret@[]", 19, "must be an IPv6 address"},
		{"redis://u:secret@[::1%]", 19, "must be an IPv6 address"},
		{"redis://u:secret@[::1]1", 23, "only a ':' and a port"},
		{"redis://u:secret@h*", 19, "letters, digits"},
		{"redis://u:secret@h,i", 19, "several nodes are a cluster://"},
		{"redis://u:secret@h/x", 20, "a database is a number"},
		{"redis://u:secret@h/-1", 20, "a database is a number"},
		{"redis://u:secret@h/65536", 20, "a database is a number"},
		{"redis://u:secret@h/1/", 20, "a database is a number"},
		{"cluster://u:secret@h:1/1", 24, "a cluster has database 0 alone"},
		{"cluster://u:secret@h:1,", 24, "a host is missing"},
		{"cluster://u:secret@h:1,,i:1", 24, "a host is missing"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hs_redis_url url;
		char why[HS_REDIS_WHY_BYTES] = "", place[32];

		if (hs_redis_url_parse(&url, hs_bytes_of(cases[i].text), why, sizeof why) !=
		    HS_EINVAL)
			fail_msg("%s is taken", cases[i].text);
		snprintf(place, sizeof place, "character %u of", cases[i].at);
		if (!strstr(why, place) || !strstr(why, cases[i].what) ||
		    !strstr(why, "example: ") || strchr(why, '\n') || strlen(why) + 1 >= sizeof why)
			fail_msg("%s: %s", cases[i].text, why);
		if (strstr(why, "secret"))
			fail_msg("tells the password: %s", why);
	}
}

static void test_an_example_is_right(void **state)
{
	static const char *const wrong[] = {"redis://", "cluster://"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct hs_redis_url url;
		char why[HS_REDIS_WHY_BYTES];

		assert_true(hs_redis_url_parse(&url, hs_bytes_of(wrong[i]), why, sizeof why) < 0);
		url = parse(strstr(why, "example: ") + strlen("example: "));
		assert_int_equal(url.kind, i == 0 ? HS_REDIS_SINGLE : HS_REDIS_CLUSTER);
	}
}

/* Each part at its maximal length is accepted, and one byte longer is refused. */
static void test_limits(void **state)
{
	static const struct {
		const char *before, *after, *what;
		size_t max;
	} cases[] = {
		{"redis://", ":p@h", "the user is longer", HS_REDIS_USER_BYTES - 1},
		{"redis://u:", "@h", "the password is longer", HS_REDIS_PASS_BYTES - 1},
		{"redis://", ":1", "the host is longer", HS_REDIS_HOST_BYTES - 1},
	};
	char text[4096], part[2048], why[HS_REDIS_WHY_BYTES];
	struct hs_redis_url url;

	(void)state;
	memset(part, 'x', sizeof part);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		snprintf(text, sizeof text, "%s%.*s%s", cases[i].before, (int)cases[i].max, part,
			 cases[i].after);
		url = parse(text);
		snprintf(text, sizeof text, "%s%.*s%s", cases[i].before, (int)cases[i].max + 1,
			 part, cases[i].after);
		assert_int_equal(hs_redis_url_parse(&url, hs_bytes_of(text), why, sizeof why),
				 HS_ELIMIT);
		assert_non_null(strstr(why, cases[i].what));
	}
	size_t len = (size_t)snprintf(text, sizeof text, "cluster://h");

	for (int i = 1; i < HS_REDIS_SEEDS_MAX; i++)
		len += (size_t)snprintf(text + len, sizeof text - len, ",h");
	url = parse(text);
	assert_int_equal(url.seeds_count, HS_REDIS_SEEDS_MAX);
	snprintf(text + len, sizeof text - len, ",h");
	assert_int_equal(hs_redis_url_parse(&url, hs_bytes_of(text), why, sizeof why), HS_ELIMIT);
	assert_non_null(strstr(why, "more than 16 nodes"));
}

static void test_text_is_cut_to_fit(void **state)
{
	struct hs_redis_url url = parse("cluster://user:secret@a.example:1,b.example:2");
	char whole[HS_REDIS_URL_TEXT_BYTES], text[64];

	(void)state;
	hs_redis_url_text(&url, whole, sizeof whole);
	for (size_t size = 1; size < sizeof text; size++) {
		memset(text, '#', sizeof text);
		hs_redis_url_text(&url, text, size);
		assert_true(strlen(text) < size);
		assert_memory_equal(text, whole, strlen(text));
		if (size < sizeof text)
			assert_int_equal(text[size], '#');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_valid_urls),	    cmocka_unit_test(test_invalid_urls),
		cmocka_unit_test(test_an_example_is_right), cmocka_unit_test(test_limits),
		cmocka_unit_test(test_text_is_cut_to_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
