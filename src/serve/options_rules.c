/* `rule` lines: contracts as options. A line is `rule GLOB CONTRACT OPTION=VALUE…`, as often as there
 * are rules; a later one for the same glob takes the place of an earlier one. */
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
		snprintf(error, error_size, "rule: unbalanced quotes");
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

/* Of two rules that a key fits, and neither wins by its glob, the later one does. Where a file has
 * lines for such rules, they take these places in their order. */
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
