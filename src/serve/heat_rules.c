/* HEAT RULE and HEAT MITIGATE: changing contracts at run time. Rules are options: a change creates a new set
 * (contract/contract.h), and every worker is handed the set before the reply goes out. */
#include "serve/host.h"

#include "base/nearest.h"
#include "serve/rule_rows.h"
#include "wire/reply.h"

/* ---- errors ---- */

static void refuse_glob(const struct hs_rules *rules, struct hs_bytes glob, struct hs_reply *reply)
{
	struct hs_nearest nearest = hs_nearest_to(glob);
	char names[2][256], shown[64];
	size_t spare = 0; /* the buffer that does not hold the nearest name */

	for (size_t i = 0; i < hs_rules_count(rules); i++) {
		hs_bytes_escape(hs_rules_at(rules, i)->glob, names[spare], sizeof names[spare]);
		hs_nearest_try(&nearest, names[spare]);
		if (nearest.name == names[spare])
			spare = !spare;
	}
	hs_reply_errorf(reply, "ERR HEAT RULE DEL: no rule has the glob '%s'%s%s%s",
			hs_bytes_escape(glob, shown, sizeof shown),
			nearest.name ? "; did you mean '" : "", nearest.name ? nearest.name : "",
			nearest.name ? "'?" : "");
}

/* ---- HEAT RULE ---- */

static void set_rule(struct hs_host *host, struct hs_op *op, struct hs_reply *reply)
{
	struct hs_rules *rules;
	char error[512];

	if (hs_rules_with(host->options->rules, op->argc - 3, op->argv + 3, &rules, error,
			  sizeof error) < 0) {
		hs_reply_errorf(reply, "ERR %s", error);
		return;
	}
	hs_options_set_rules(host->options, rules);
	hs_host_publish(host);
	hs_reply_ok(reply);
}

static void delete_rule(struct hs_host *host, struct hs_op *op, struct hs_reply *reply)
{
	struct hs_rules *rules;

	if (hs_rules_without(host->options->rules, op->argv[3], &rules) < 0) {
		refuse_glob(host->options->rules, op->argv[3], reply);
		return;
	}
	hs_options_set_rules(host->options, rules);
	hs_host_publish(host);
	hs_reply_ok(reply);
}

static void reply_text(const char *name, const struct hs_buf *text, struct hs_reply *reply)
{
	hs_reply_bulk_text(reply, name);
	hs_reply_bulk(reply, hs_buf_bytes(text));
}

/* The number of fields of a rule: its text, its contract, and every option with its effective value. */
static size_t rule_fields(const struct hs_rule *rule)
{
	return 2 + (rule->contract == HS_CONTRACT_CACHE ? hs_rule_option_count : 0);
}

static void reply_rule(const struct hs_rule *rule, struct hs_reply *reply)
{
	struct hs_buf text = {0};

	hs_rule_describe(rule, &text);
	reply_text("rule", &text, reply);
	hs_reply_pair_text(reply, "contract", hs_contract_name(rule->contract));
	for (size_t i = 0; i < rule_fields(rule) - 2; i++) {
		text.len = 0;
		hs_rule_option_format(rule, &hs_rule_option_table[i], &text);
		reply_text(hs_rule_option_table[i].name, &text, reply);
	}
	hs_buf_deinit(&text);
}

static void list_rules(struct hs_host *host, struct hs_op *op, struct hs_reply *reply)
{
	const struct hs_rules *rules = host->options->rules;
	const struct hs_fields *counted = &hs_rule_fields;

	(void)op;
	hs_reply_array(reply, hs_rules_count(rules));
	for (size_t i = 0; i < hs_rules_count(rules); i++) {
		const struct hs_rule *rule = hs_rules_at(rules, i);
		bool counts = rule->contract == HS_CONTRACT_CACHE;
		struct hs_rule_row row;

		hs_reply_map(reply, rule_fields(rule) + (counts ? counted->count : 0));
		reply_rule(rule, reply);
		hs_rule_row(host, rule->number, &row);
		for (size_t j = 0; counts && j < counted->count; j++)
			hs_heat_reply_field(reply, &counted->fields[j], &row);
	}
}

static void test_key(struct hs_host *host, struct hs_op *op, struct hs_reply *reply)
{
	const struct hs_rule *rule = hs_rules_match(host->options->rules, op->argv[3]);

	if (rule) {
		hs_reply_map(reply, rule_fields(rule));
		reply_rule(rule, reply);
		return;
	}
	hs_reply_map(reply, 2);
	hs_reply_bulk_text(reply, "rule");
	hs_reply_null(reply);
	hs_reply_pair_text(reply, "contract", hs_contract_name(HS_CONTRACT_STRICT));
}

static const struct {
	const char *name;
	size_t argc;	      /* words of the command, this one included */
	bool more;	      /* more words are allowed */
	const char *argument; /* for errors */
	hs_host_run *run;
} words[] = {
	{"DEL", 4, false, " glob", delete_rule},
	{"LIST", 3, false, "", list_rules},
	/* Not checked here: the error of the rule's parser names the missing word. */
	{"SET", 3, true, " glob contract [option=value ...]", set_rule},
	{"TEST", 4, false, " key", test_key},
};

enum { WORDS = sizeof words / sizeof *words };

void hs_host_heat_rule(struct hs_host *host, struct hs_op *op, struct hs_reply *reply)
{
	const char *names[WORDS + 1] = {NULL};
	int64_t word;

	for (size_t i = 0; i < WORDS; i++)
		names[i] = words[i].name;
	if (!hs_heat_take_name("HEAT RULE", "the first word", op->argv[2], names, &word, reply))
		return;
	if (op->argc < words[word].argc || (op->argc > words[word].argc && !words[word].more)) {
		hs_reply_errorf(reply,
				"ERR wrong number of arguments: HEAT RULE %s%s. Try HEAT HELP.",
				words[word].name, words[word].argument);
		return;
	}
	words[word].run(host, op, reply);
}

/* ---- HEAT MITIGATE: the option of this name ---- */

void hs_host_heat_mitigate(struct hs_host *host, struct hs_op *op, struct hs_reply *reply)
{
	const struct hs_option *option = hs_option_find(HS_LIT("mitigate"));
	struct hs_buf text = {0};
	char error[128];

	if (op->argc > 3) {
		hs_reply_errorf(reply,
				"ERR wrong number of arguments: HEAT MITIGATE %s. Try HEAT HELP.",
				op->command->arguments);
	} else if (op->argc == 2) {
		hs_option_format(host->options, option, &text);
		hs_reply_bulk(reply, hs_buf_bytes(&text));
	} else if (hs_option_set(host->options, option, op->argv[2], error, sizeof error) < 0) {
		hs_reply_errorf(reply, "ERR HEAT MITIGATE: %s. Try HEAT HELP.", error);
	} else {
		hs_host_publish(host);
		hs_reply_ok(reply);
	}
	hs_buf_deinit(&text);
}
