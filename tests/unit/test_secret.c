/* Goal: output hides every password in a request, and no other argument.
 *
 * Method: requests of every kind that can contain a password, with the expectation for each argument. */
#include "command/secret.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* All requests that can contain a password; for each argument a dot (shown) or an x (hidden). */
static void test_which_arguments_are_secret(void **state)
{
	static const char *const cases[][2] = {
		{"AUTH p", ".x"},
		{"auth u p", ".xx"},
		{"HELLO 3 AUTH u p SETNAME n", "...xx.."},
		{"HELLO 3 SETNAME n AUTH u p", ".....xx"},
		{"ACL SETUSER u >p", "..xx"},
		{"ACL GETUSER u", "..."},
		{"ACL DRYRUN u AUTH p", "....x"},
		{"ACL DRYRUN u GET k", "....."},
		{"CONFIG SET requirepass p", "...x"},
		{"CONFIG SET port 1 tls-key-file-pass p timeout 1", ".....x.."},
		{"CONFIG SET tls-client-key-file-pass p", "...x"},
		{"CONFIG SET masterauth p masteruser u", "...x.x"},
		{"CONFIG SET engine-password p engine redis://p@h", "...x.x"},
		{"CONFIG SET engine-timeout 5", "...."},
		{"CONFIG GET requirepass", "..."},
		{"MIGRATE h 1 k 0 9 AUTH p", ".......x"},
		{"MIGRATE h 1 k 0 9 COPY REPLACE AUTH2 u p", ".........xx"},
		{"migrate h 1 ~ 0 9 auth2 u p KEYS auth k", ".......xx..."},
		{"MIGRATE h 1 ~ 0 9 KEYS auth k auth2 j", "..........."},
		{"MIGRATE h 1 auth 0 9", "......"},
		{"MIGRATE h 1 k 0 9 AUTH auth", ".......x"},
		{"COMMAND GETKEYS MIGRATE h 1 k 0 9 AUTH p", ".........x"},
		{"COMMAND GETKEYSANDFLAGS AUTH p", "...x"},
		{"SENTINEL SET m auth-pass p", "....x"},
		{"SET auth p", "..."},
		{"GET requirepass", ".."},
		{"AUTH", "."},
		{"CONFIG SET", ".."},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hs_bytes argv[16];
		char found[16] = "";
		size_t argc = 0;

		for (const char *at = cases[i][0]; *at; at += strspn(at, " ")) {
			argv[argc++] = (struct hs_bytes){at, strcspn(at, " ")};
			at += strcspn(at, " ");
		}
		for (size_t at = 0; at < argc; at++)
			found[at] = hs_secret_at(argc, argv, at) ? 'x' : '.';
		assert_string_equal(found, cases[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_which_arguments_are_secret),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
