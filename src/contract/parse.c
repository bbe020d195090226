/* Parses one rule. An error names the rule, the position of the word, the word, and the closest valid word or,
 * if none is close, all valid ones or the range. The error for a rule without a contract shows an example
 * instead. */
#include "contract/internal.h"

#include "base/err.h"
#include "base/escape.h"
#include "base/nearest.h"

#include <stdarg.h>
#include <stdio.h>

static const char *const contracts[] = {
	[HS_CONTRACT_STRICT] = "strict",
	[HS_CONTRACT_CACHE] = "cache",
	NULL,
};

const char *hs_contract_name(enum hs_contract contract)
{
	return contracts[contract];
}

struct parse {
	struct hs_rule *rule;
	const struct hs_bytes *words;
	uint64_t said; /* bit set of the options that were given */
	char *error;
	size_t error_size;
};

static int wrong(struct parse *parse, size_t at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int wrong(struct parse *parse, size_t at, const char *format, ...)
{
	char glob[72], word[72], why[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(why, sizeof why, format, arguments);
	va_end(arguments);
	return hs_err_set(HS_EINVAL, parse->error, parse->error_size,
			  "rule '%s', word %zu '%s': %s",
			  hs_bytes_escape(parse->words[0], glob, sizeof glob), at + 1,
			  hs_bytes_escape(parse->words[at], word, sizeof word), why);
}

/* "; did you mean 'x'?", or the list of valid words if none is close. */
static const char *hint(const struct hs_nearest *nearest, const char *known, char *text,
			size_t size)
{
	if (nearest->name)
		snprintf(text, size, "; did you mean '%s'?", nearest->name);
	else
		snprintf(text, size, "; valid: %s", known);
	return text;
}

static int take_contract(struct parse *parse)
{
	struct hs_nearest nearest = hs_nearest_to(parse->words[1]);
	int contract = hs_words_index(contracts, parse->words[1]);
	char text[128];

	if (contract >= 0) {
		parse->rule->contract = (enum hs_contract)contract;
		return 0;
	}
	hs_nearest_try_words(&nearest, contracts);
	return wrong(parse, 1, "no such contract%s",
		     hint(&nearest, "strict and cache", text, sizeof text));
}

static int refuse_option(struct parse *parse, size_t at, struct hs_bytes name)
{
	struct hs_nearest nearest = hs_nearest_to(name);
	char known[160], text[200];
	size_t len = 0;

	for (size_t i = 0; i < hs_rule_renamed_option_count; i++) {
		const struct hs_rule_renamed_option *renamed = &hs_rule_renamed_option_table[i];

		if (hs_bytes_is_word(name, renamed->old_name))
			return wrong(parse, at, "option '%s' is now called '%s'", renamed->old_name,
				     renamed->name);
	}
	for (size_t i = 0; i < hs_rule_option_count; i++) {
		const char *other = hs_rule_option_table[i].name;

		hs_nearest_try(&nearest, other);
		len += (size_t)snprintf(known + len, sizeof known - len, "%s%s",
					i == 0				? ""
					: i + 1 == hs_rule_option_count ? " and "
									: ", ",
					other);
	}
	return wrong(parse, at, "no such option of cache%s",
		     hint(&nearest, known, text, sizeof text));
}

/* Writes the error for an invalid value: the allowed range or words. */
static int refuse_value(struct parse *parse, size_t at, const struct hs_rule_option *option,
			struct hs_bytes value)
{
	struct hs_nearest nearest = hs_nearest_to(value);
	char known[48], text[96];

	switch (option->kind) {
	case HS_RULE_TIME:
		return wrong(parse, at,
			     "a time is a whole number with us, ms, s, m, h or d, as in 100ms; "
			     "%s is from %s to %s",
			     option->name, option->min, option->max);
	case HS_RULE_PERCENT:
		return wrong(parse, at,
			     "a share is a number with %%, as in 10%%; %s is from %s to %s",
			     option->name, option->min, option->max);
	case HS_RULE_REAL:
		return wrong(parse, at,
			     "a number has up to three decimals, as in 1.5; %s is from %s to %s",
			     option->name, option->min, option->max);
	case HS_RULE_COPIES:
		hs_nearest_try(&nearest, "auto");
		snprintf(known, sizeof known, "0, %s to %s, and auto", option->min, option->max);
		break;
	case HS_RULE_WORD:
		hs_nearest_try_words(&nearest, option->words);
		hs_words_join(option->words, ", ", " and ", known, sizeof known);
		break;
	}
	return wrong(parse, at, "no such value%s", hint(&nearest, known, text, sizeof text));
}

static const struct hs_rule_option *find_option(struct hs_bytes name)
{
	for (size_t i = 0; i < hs_rule_option_count; i++) {
		if (hs_bytes_is_word(name, hs_rule_option_table[i].name))
			return &hs_rule_option_table[i];
	}
	return NULL;
}

static int take_option(struct parse *parse, size_t at)
{
	struct hs_bytes text = parse->words[at], name = hs_bytes_cut(&text, '=');
	bool equals = name.len < parse->words[at].len;
	const struct hs_rule_option *option = find_option(name);
	uint64_t value, bit;

	if (!option)
		return refuse_option(parse, at, name);
	if (!equals && option->kind == HS_RULE_WORD && strcmp(option->words[1], "yes") == 0)
		text = HS_LIT("yes"); /* a bare option name means yes */
	else if (!equals)
		return wrong(parse, at, "a value is missing: %s=%s", option->name,
			     option->fallback);
	bit = UINT64_C(1) << (option - hs_rule_option_table);
	if (parse->said & bit)
		return wrong(parse, at, "%s is given twice", option->name);
	if (!hs_rule_option_parse(option, text, &value) ||
	    (option->kind == HS_RULE_COPIES && !hs_rule_option_fits(option, value)))
		return refuse_value(parse, at, option, text);
	if (!hs_rule_option_fits(option, value))
		return wrong(parse, at, "out of bounds: %s is from %s to %s", option->name,
			     option->min, option->max);
	parse->said |= bit;
	hs_rule_option_put(parse->rule, option, value);
	return 0;
}

/* Options whose default depends on `stale` come after it in the table. */
static void apply_defaults(struct parse *parse)
{
	for (size_t i = 0; i < hs_rule_option_count; i++) {
		const struct hs_rule_option *option = &hs_rule_option_table[i];

		if (!(parse->said & UINT64_C(1) << i))
			hs_rule_option_put(parse->rule, option,
					   hs_rule_option_fallback(parse->rule, option));
	}
}

int hs_rule_parse(struct hs_rule *rule, size_t count, const struct hs_bytes *words, char *error,
		  size_t error_size)
{
	struct parse parse = {
		.rule = rule, .words = words, .error = error, .error_size = error_size};
	int status;

	*rule = (struct hs_rule){0};
	if (count < 2)
		return hs_err_set(HS_EINVAL, error, error_size,
				  "a rule needs a glob and a contract: user:* cache stale=100ms");
	rule->glob = words[0];
	if (rule->glob.len == 0)
		return wrong(&parse, 0, "the glob is empty; * matches all keys");
	if (rule->glob.len > HS_RULE_GLOB_BYTES_MAX)
		return wrong(&parse, 0, "a glob has at most %zu bytes", HS_RULE_GLOB_BYTES_MAX);
	status = take_contract(&parse);
	if (status == 0 && rule->contract == HS_CONTRACT_STRICT) {
		if (count > 2)
			return wrong(&parse, 2, "strict takes no options");
		return 0;
	}
	for (size_t at = 2; at < count && status == 0; at++)
		status = take_option(&parse, at);
	if (status == 0)
		apply_defaults(&parse);
	return status;
}

void hs_rule_describe(const struct hs_rule *rule, struct hs_buf *out)
{
	hs_escape_word(rule->glob, out);
	hs_buf_printf(out, " %s", contracts[rule->contract]);
	if (rule->contract == HS_CONTRACT_STRICT)
		return;
	for (size_t i = 0; i < hs_rule_option_count; i++) {
		const struct hs_rule_option *option = &hs_rule_option_table[i];

		if (hs_rule_option_get(rule, option) == hs_rule_option_fallback(rule, option))
			continue;
		hs_buf_printf(out, " %s=", option->name);
		hs_rule_option_format(rule, option, out);
	}
}
