/* Fuzz target: the parser for rules and the matcher (contract/contract.h). The parser must read only inside the given
 * bytes; an accepted rule can be written and parsed again; and the matcher finds the same rule for a key as a linear
 * search over all rules.
 *
 * Input: lines. Each is a rule, split as in the configuration file, or "-" and the glob of a rule to remove, or "+"
 * and a key to look up. Keys and words are heap copies of exactly the right size, so that the address sanitizer finds
 * a read beyond the end. The head of fuzz_request.c says how targets run and how to replay a crash. */
#include "base/err.h"
#include "base/glob.h"
#include "base/limits.h"
#include "base/mem.h"
#include "contract/contract.h"
#include "wire/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct hs_bytes copy(struct hs_bytes bytes)
{
	char *data = hs_mem_alloc(bytes.len > 0 ? bytes.len : 1);

	if (bytes.len > 0)
		memcpy(data, bytes.data, bytes.len);
	return (struct hs_bytes){data, bytes.len};
}

/* A new set with one rule more; NULL: the line is invalid. */
static struct hs_rules *with_line(const struct hs_rules *rules, struct hs_bytes line)
{
	struct hs_wire_request words;
	struct hs_buf text = {0};
	struct hs_rules *with = NULL;
	char error[256] = "";

	hs_wire_request_init(&words);
	hs_buf_append(&text, " ", 1);
	hs_buf_append_bytes(&text, line);
	hs_buf_append(&text, "\n", 1);
	if (hs_wire_request_parse(&words, text.data, text.len, true) > 0) {
		struct hs_bytes *own = hs_mem_alloc((words.argc + 1) * sizeof *own);

		for (size_t i = 0; i < words.argc; i++)
			own[i] = copy(words.argv[i]);
		if (hs_rules_with(rules, words.argc, own, &with, error, sizeof error) < 0) {
			hs_check(error[0] != '\0');
			hs_check(strchr(error, '\n') == NULL);
			with = NULL;
		}
		for (size_t i = 0; i < words.argc; i++)
			hs_mem_release((char *)(uintptr_t)own[i].data);
		hs_mem_free(&own);
	}
	hs_wire_request_deinit(&words);
	hs_buf_deinit(&text);
	return with;
}

static void check_described(const struct hs_rule *rule)
{
	const struct hs_rules *none = hs_rules_create(), *again;
	struct hs_buf text = {0}, text_again = {0};

	hs_rule_describe(rule, &text);
	again = with_line(none, hs_buf_bytes(&text));
	hs_check(again != NULL);
	hs_check(hs_bytes_equal(hs_rules_at(again, 0)->glob, rule->glob));
	hs_rule_describe(hs_rules_at(again, 0), &text_again);
	hs_check(hs_bytes_equal(hs_buf_bytes(&text), hs_buf_bytes(&text_again)));
	hs_buf_deinit(&text);
	hs_buf_deinit(&text_again);
	hs_rules_unref(&none);
	hs_rules_unref(&again);
}

static void check_match(const struct hs_rules *rules, struct hs_bytes line)
{
	struct hs_bytes key = copy(line);
	const struct hs_rule *found = hs_rules_match(rules, key), *best = NULL;

	for (size_t i = 0; i < hs_rules_count(rules); i++) {
		const struct hs_rule *rule = hs_rules_at(rules, i);
		size_t prefix = hs_rule_prefix_len(rule->glob);
		size_t best_prefix = best ? hs_rule_prefix_len(best->glob) : 0;

		if (hs_glob_match(rule->glob, key, false) &&
		    (!best || prefix > best_prefix ||
		     (prefix == best_prefix && rule->glob.len >= best->glob.len)))
			best = rule;
	}
	hs_check(found == best);
	hs_mem_release((char *)(uintptr_t)key.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct hs_rules *rules = hs_rules_create();

	while (size > 0) {
		const uint8_t *end = memchr(data, '\n', size);
		struct hs_bytes line = {(const char *)data, end ? (size_t)(end - data) : size};
		struct hs_bytes behind = {line.data + 1, line.len - 1};
		struct hs_rules *changed = NULL;

		if (line.len > 0 && line.data[0] == '+')
			check_match(rules, behind);
		else if (line.len > 0 && line.data[0] == '-')
			changed = hs_rules_without(rules, behind, &changed) == 0 ? changed : NULL;
		else
			changed = with_line(rules, line);
		if (changed) {
			hs_rules_unref(&rules);
			rules = changed;
		}
		size -= line.len + (end != NULL);
		data += line.len + (end != NULL);
	}
	for (size_t i = 0; i < hs_rules_count(rules); i++)
		check_described(hs_rules_at(rules, i));
	hs_rules_unref(&rules);
	return 0;
}
