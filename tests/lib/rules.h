/* Sets of rules out of lines as the configuration file has them, for tests. */
#ifndef HS_TESTS_LIB_RULES_H
#define HS_TESTS_LIB_RULES_H

#include "base/buf.h"
#include "contract/contract.h"
#include "wire/request.h"

#include <stdio.h>

/* The set and one rule more, in the place of the set; on an error the set stays as it is. */
static inline int rules_add(const struct hs_rules **rules, struct hs_bytes line, char *error,
			    size_t error_size)
{
	struct hs_wire_request words;
	struct hs_buf text = {0};
	struct hs_rules *with;
	int status;

	hs_wire_request_init(&words);
	hs_buf_append(&text, " ", 1); /* a star that begins a line is no inline command */
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

/* The same of lines that are right. */
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
