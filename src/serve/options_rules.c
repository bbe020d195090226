/* `rule` lines: contracts as options. A line is `rule GLOB CONTRACT OPTION=VALUE…`, one per rule; a later line with
 * the same glob replaces an earlier one. */
#include "serve/options.h"

#include "base/err.h"
#include "wire/request.h"

#include <stdio.h>

void hs_options_set_rules(struct hs_options *options, struct hs_rules *rules)
{
	hs_rules_unref(&options->rules);
	options->rules = rules;
}

int hs_options_add_rule(struct hs_options *options, const char *line, char *error,
			size_t error_size)
{
	struct hs_wire_request words;
	struct hs_buf text = {0};
	struct hs_rules *rules;
	int status = HS_EINVAL;

	if (!hs_options_split(line, &words, &text))
		snprintf(error, error_size, "rule: unbalanced quotes in the line");
	else
		status = hs_rules_with(options->rules, words.argc, words.argv, &rules, error,
				       error_size);
	if (status == 0)
		hs_options_set_rules(options, rules);
	hs_wire_request_deinit(&words);
	hs_buf_deinit(&text);
	return status;
}

void hs_options_format_rule(const struct hs_rule *rule, struct hs_buf *text)
{
	hs_buf_printf(text, "rule ");
	hs_rule_describe(rule, text);
	hs_buf_printf(text, "\n");
}

/* True if neither glob wins over the other by its literal prefix or length: then the later rule wins. CONFIG REWRITE
 * writes such rules into the lines that the file has for them, in order, so that the same rule wins after a
 * restart. */
static bool same_standing(struct hs_bytes a, struct hs_bytes b)
{
	size_t prefix = hs_rule_prefix_len(a);

	return a.len == b.len && prefix == hs_rule_prefix_len(b) &&
	       memcmp(a.data, b.data, prefix) == 0;
}

size_t hs_options_rule_for(const struct hs_rules *rules, const bool *written, const char *line)
{
	struct hs_wire_request words;
	struct hs_buf text = {0};
	size_t i = 0, count = hs_rules_count(rules);

	if (!hs_options_split(line, &words, &text) || words.argc == 0)
		i = count;
	while (i < count &&
	       (written[i] || !same_standing(hs_rules_at(rules, i)->glob, words.argv[0])))
		i++;
	hs_wire_request_deinit(&words);
	hs_buf_deinit(&text);
	return i;
}
