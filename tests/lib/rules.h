/* Makes rule sets for unit tests from lines in the form of the configuration file. There is no state: each thread
 * may make sets of its own. The caller owns a set and releases it with hs_rules_unref. */
#ifndef HS_TESTS_LIB_RULES_H
#define HS_TESTS_LIB_RULES_H

#include "base/buf.h"
#include "contract/contract.h"
#include "wire/request.h"

#include <stdio.h>

/* Replaces the set by one with an additional rule. On an error, returns it, fills `error`, and leaves the set. */
static inline int rules_add(const struct hs_rules **rules, struct hs_bytes line, char *error,
			    size_t error_size)
{
	struct hs_wire_request words;
	struct hs_buf text = {0};
	struct hs_rules *with;
	int status;

	hs_wire_request_init(&words);
	hs_buf_append(&text, " ", 1); /* so that a rule that begins with * is no RESP array */
	hs_buf_append_bytes(&text, line);
	hs_buf_append(&text, "\n", 1);
	hs_check(hs_wire_request_parse(&words, text.data, text.len, true) > 0);
	status = hs_rules_with(*rules, words.argc, words.argv, &with, error, error_size);
	if (status == 0) {
		hs_rules_unref(rules);
		*rules = with;
	}
	hs_wire_request_deinit(&words);
	hs_buf_deinit(&text);
	return status;
}

/* A set of valid lines; an invalid one aborts. The caller owns the set. */
static inline const struct hs_rules *rules_of(size_t count, const char *const *lines)
{
	const struct hs_rules *rules = hs_rules_create();
	char error[512];

	for (size_t i = 0; i < count; i++)
		hs_check(rules_add(&rules, hs_bytes_of(lines[i]), error, sizeof error) == 0);
	return rules;
}

#define RULES(...)                                                                                 \
	rules_of(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *),                \
		 (const char *const[]){__VA_ARGS__})

#endif
