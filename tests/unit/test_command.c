/* Goal: every command id has a correct row, every name finds only its own row, keys are at Redis's positions,
 * and COMMAND's answers are complete.
 *
 * Method: most tests walk over all rows, so a new command is tested as soon as it has a row.
 * tests/integration/test_command_table.py compares the rows with a real redis-server. */
#include "command/command.h"
#include "command/not_embedded.h"
#include "wire/parse_reply.h"
#include "wire/reply.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct hs_command *find(const char *name)
{
	return hs_command_find(hs_bytes_of(name));
}

static const struct hs_command *find_sub(const char *parent, const char *name)
{
	return hs_command_sub(find(parent), hs_bytes_of(name));
}

/* --- the rows ----------------------------------------------------------------------------------
 */

static void test_every_id_has_its_row(void **state)
{
	(void)state;
	assert_null(hs_command_by_id(HS_CMD_ID_NONE));
	for (unsigned id = 1; id < HS_CMD_IDS; id++) {
		const struct hs_command *row = hs_command_by_id(id);

		assert_non_null(row);
		assert_int_equal(row->id, id);
		assert_non_null(row->name);
		assert_int_not_equal(row->arity, 0);
		assert_non_null(row->group);
		assert_non_null(row->categories);
		assert_non_null(row->since);
		assert_non_null(row->summary);
		assert_non_null(row->complexity);
		assert_int_equal(!row->deprecated, !row->replaced_by);
	}
}

static void test_identifiers_spell_names(void **state)
{
	static const char *const identifiers[HS_CMD_IDS] = {
#define ROW(identifier, ...) [HS_CMD_ID_##identifier] = #identifier,
#include "command/rows.def"
	};

	(void)state;
	for (unsigned id = 1; id < HS_CMD_IDS; id++) {
		char spelled[64];
		size_t i;

		snprintf(spelled, sizeof(spelled), "%s", hs_command_by_id(id)->name);
		for (i = 0; spelled[i] != '\0'; i++)
			if (spelled[i] == '|' || spelled[i] == '-')
				spelled[i] = '_';
		assert_true(hs_bytes_is_word(hs_bytes_of(spelled), identifiers[id]));
	}
}

static void test_subcommands_stand_behind_their_container(void **state)
{
	(void)state;
	for (unsigned id = 1; id < HS_CMD_IDS; id++) {
		const struct hs_command *row = hs_command_by_id(id);
		const struct hs_command *parent, *before;
		size_t len;

		if (row->parent == HS_CMD_ID_NONE) {
			assert_null(strchr(row->name, '|'));
			continue;
		}
		parent = hs_command_by_id(row->parent);
		before = hs_command_by_id(id - 1);
		len = strlen(parent->name);
		assert_int_equal(parent->place, HS_PLACE_PARENT);
		assert_int_not_equal(row->place, HS_PLACE_PARENT);
		assert_memory_equal(row->name, parent->name, len);
		assert_int_equal(row->name[len], '|');
		assert_true(before->id == parent->id || before->parent == parent->id);
	}
}

/* Routing relies on these relations between a row's place, keys and merge. */
static void test_places_keys_and_merges_agree(void **state)
{
	(void)state;
	for (unsigned id = 1; id < HS_CMD_IDS; id++) {
		const struct hs_command *row = hs_command_by_id(id);
		bool many = row->place == HS_PLACE_SPLIT || row->place == HS_PLACE_ALL;
		bool keyed = row->place == HS_PLACE_SPLIT || row->place == HS_PLACE_PARTITION;

		assert_int_equal(row->merge != HS_MERGE_NONE, many);
		/* Shard channels are bound to a slot and stand at the positions of keys. */
		if (row->key_access && strcmp(row->key_access, "not_key") == 0) {
			assert_true(hs_command_is_pubsub(row));
			keyed = true;
		}
		assert_int_equal(row->key_first != 0, keyed);
		assert_int_equal(row->key_step != 0, keyed);
		assert_int_equal(row->key_access != NULL, keyed);
		if ((row->flags & HS_CMD_WRITE) && (row->flags & HS_CMD_READONLY))
			fail_msg("%s reads only and writes", row->name);
		/* A request with the fewest arguments that the arity allows still includes its first key. */
		if (keyed && row->id != HS_CMD_ID_SUNSUBSCRIBE)
			assert_true(abs(row->arity) > row->key_first);
	}
}

/* A row names a function of the component that runs the commands of the row's place. */
static void test_functions_stand_where_commands_run(void **state)
{
	static const char kinds[HS_CMD_IDS] = {
#define OTHER '-'
#define ENGINE(function) 'E'
#define LOCAL(function) 'L'
#define WORKERS(run) 'W'
#define HOST(function) 'H'
#define DESCRIBE(function) 'D'
#define START(function, besides) 'S'
#define ROW(identifier, function, ...) [HS_CMD_ID_##identifier] = function,
#include "command/rows.def"
	};

	(void)state;
	for (unsigned id = 1; id < HS_CMD_IDS; id++) {
		const struct hs_command *row = hs_command_by_id(id);
		const char *fit = "";

		switch (row->place) {
		case HS_PLACE_HOST:
			fit = "H";
			break;
		case HS_PLACE_CORE:
			fit = "LDS";
			break;
		case HS_PLACE_PARENT:
			fit = "D-"; /* '-': the container is no command by itself */
			break;
		case HS_PLACE_WORKERS:
			fit = "WS";
			break;
		case HS_PLACE_ANY:
			fit = "S";
			break;
		case HS_PLACE_PARTITION:
			fit = "ES";
			break;
		case HS_PLACE_SPLIT:
		case HS_PLACE_ALL:
		case HS_PLACE_CURSOR:
		case HS_PLACE_SLOT:
			fit = "E";
			break;
		default:
			break;
		}
		assert_int_equal(row->starts, kinds[id] == 'S');
		if (!strchr(fit, kinds[id]))
			fail_msg("%s has a function of kind %c", row->name, kinds[id]);
	}
}

/* --- find --------------------------------------------------------------------------------------
 */

static void check_found(const struct hs_command *row, const char *name)
{
	const struct hs_command *found = find(name);

	if (found != row)
		fail_msg("%s finds %s", name, found ? found->name : "nothing");
}

static void test_names_find_their_rows_in_any_case(void **state)
{
	(void)state;
	for (unsigned id = 1; id < HS_CMD_IDS; id++) {
		const struct hs_command *row = hs_command_by_id(id);
		char name[64];
		size_t len = strlen(row->name);

		assert_true(len < sizeof(name));
		memcpy(name, row->name, len + 1);
		if (row->parent != HS_CMD_ID_NONE) {
			/* The search does not accept "client|list" as one word. */
			assert_null(find(name));
			assert_true(hs_command_sub(hs_command_by_id(row->parent),
						   hs_bytes_of(strchr(name, '|') + 1)) == row);
			continue;
		}
		assert_true(len <= 16);
		check_found(row, name);
		for (size_t i = 0; i < len; i++) {
			name[i] = (char)(name[i] - 'a' + 'A');
			/* The name is found in every mix of cases: gEt, GEt, GET. */
			check_found(row, name);
		}
		assert_string_not_equal(name, row->name);
	}
}

static void test_names_are_unique(void **state)
{
	(void)state;
	for (unsigned a = 1; a < HS_CMD_IDS; a++)
		for (unsigned b = a + 1; b < HS_CMD_IDS; b++)
			assert_string_not_equal(hs_command_by_id(a)->name,
						hs_command_by_id(b)->name);
}

/* The test changes each byte of a name to every other value, cuts the name, or makes it longer. The search finds
 * no row, or the row with exactly the changed name. The bytes end with their allocation, so that a sanitizer
 * reports a read beyond them. */
static void test_near_names_find_nothing_wrong(void **state)
{
	(void)state;
	for (unsigned id = 1; id < HS_CMD_IDS; id++) {
		const struct hs_command *row = hs_command_by_id(id);
		size_t len = strlen(row->name);
		char *name;

		if (row->parent != HS_CMD_ID_NONE)
			continue;
		name = malloc(len);
		memcpy(name, row->name, len);
		for (size_t at = 0; at < len; at++) {
			for (int byte = 0; byte < 256; byte++) {
				struct hs_bytes changed = {name, len};
				const struct hs_command *found;

				name[at] = (char)byte;
				found = hs_command_find(changed);
				assert_true(!found || hs_bytes_is_word(changed, found->name));
			}
			name[at] = row->name[at];
		}
		for (size_t cut = 0; cut < len; cut++) {
			struct hs_bytes shorter = {name + cut, len - cut};
			const struct hs_command *found = hs_command_find(shorter);

			assert_true(!found || hs_bytes_is_word(shorter, found->name));
		}
		free(name);
	}
}

static void test_odd_names_find_nothing(void **state)
{
	static const struct hs_bytes odd[] = {
		{NULL, 0},
		{"", 0},
		{"\0", 1},
		{"get\0", 4},
		{"g\0t", 3},
		{"get ", 4},
		{" get", 4},
		{"incrbyfloat\0\0\0\0\0", 16},
		{"incrbyfloatincrbyfloat", 22},
		{"\xc7\xc5\xd4", 3}, /* GET with the top bits set */
		{"client|id", 9},
		{"client_id", 9},
		{"object_encoding", 15},
		{"config_resetstat", 16},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		assert_null(hs_command_find(odd[i]));
	assert_null(find_sub("client", "nosuch"));
	assert_null(find_sub("client", ""));
	assert_null(find_sub("client", "encoding")); /* a subcommand of OBJECT */
	assert_null(find_sub("get", "id"));
	assert_null(find_sub("time", "id")); /* a container in the last row of the table */
	assert_int_equal(find_sub("CLIENT", "No-Evict")->id, HS_CMD_ID_CLIENT_NO_EVICT);
}

/* --- arity and keys ----------------------------------------------------------------------------
 */

static void test_arity(void **state)
{
	(void)state;
	assert_false(hs_command_arity_fits(find("get"), 1));
	assert_true(hs_command_arity_fits(find("get"), 2));
	assert_false(hs_command_arity_fits(find("get"), 3));
	assert_false(hs_command_arity_fits(find("set"), 2));
	assert_true(hs_command_arity_fits(find("set"), 3));
	assert_true(hs_command_arity_fits(find("set"), 9));
	assert_true(hs_command_arity_fits(find("ping"), 1));
	assert_true(hs_command_arity_fits(find_sub("client", "setinfo"), 4));
}

static void test_keys(void **state)
{
	static const struct {
		const char *name;
		const char *sub;
		size_t argc;
		size_t count, first, step;
	} cases[] = {
		{"get", NULL, 2, 1, 1, 1},
		{"set", NULL, 7, 1, 1, 1}, /* arguments after the second are options, not keys */
		{"copy", NULL, 3, 2, 1, 1},
		{"copy", NULL, 6, 2, 1, 1}, /* copy a b db 0 replace has six words */
		{"lcs", NULL, 4, 2, 1, 1},
		{"rename", NULL, 3, 2, 1, 1},
		{"mget", NULL, 2, 1, 1, 1},
		{"mget", NULL, 6, 5, 1, 1},
		{"mset", NULL, 3, 1, 1, 2},
		{"mset", NULL, 7, 3, 1, 2},
		{"mset", NULL, 4, 2, 1, 2}, /* the last value is missing: its key still counts */
		{"msetnx", NULL, 5, 2, 1, 2},
		{"watch", NULL, 4, 3, 1, 1},
		{"object", "encoding", 3, 1, 2, 1},
		{"object", "help", 2, 0, 0, 0},
		{"ping", NULL, 1, 0, 0, 0},
		{"keys", NULL, 2, 0, 0, 0},
		{"scan", NULL, 4, 0, 0, 0},
		/* With too few arguments for the command, no key position is out of bounds. */
		{"get", NULL, 1, 0, 0, 0},
		{"get", NULL, 0, 0, 0, 0},
		{"mget", NULL, 1, 0, 0, 0},
		{"mget", NULL, 0, 0, 0, 0},
		{"copy", NULL, 2, 1, 1, 1},
		{"object", "encoding", 2, 0, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct hs_command *row =
			cases[i].sub ? find_sub(cases[i].name, cases[i].sub) : find(cases[i].name);
		size_t first = 0;
		size_t step = 0;

		assert_int_equal(hs_command_keys(row, cases[i].argc, &first, &step),
				 cases[i].count);
		if (cases[i].count > 0) {
			assert_int_equal(first, cases[i].first);
			assert_int_equal(step, cases[i].step);
		}
	}
}

/* --- COMMAND -----------------------------------------------------------------------------------
 */

/* Returns the answer to a request given as words. The text is valid until the next call. */
static const char *answer(int resp, const char *request)
{
	static char text[256 * 1024];
	struct hs_buf out = {0};
	struct hs_reply reply = {.out = &out, .resp = resp};
	const struct hs_command *command;
	struct hs_bytes argv[16];
	size_t argc = 0;

	while (*request != '\0') {
		size_t len = strcspn(request, " ");

		argv[argc++] = (struct hs_bytes){request, len};
		request += len + (request[len] == ' ');
	}
	command = hs_command_find(argv[0]);
	if (argc > 1)
		command = hs_command_sub(command, argv[1]);
	assert_non_null(command);
	assert_true(hs_command_arity_fits(command, argc));
	if (command->id == HS_CMD_ID_COMMAND_HELP)
		hs_command_help(hs_command_by_id(HS_CMD_ID_COMMAND), &reply);
	else
		hs_command_describe(command, NULL, &reply, argc, argv);
	assert_true(out.len < sizeof(text));
	memcpy(text, out.data, out.len);
	text[out.len] = '\0';
	hs_buf_deinit(&out);
	/* Every answer is exactly one reply, with no element too many or missing. */
	assert_int_equal(hs_parse_reply_length(text, strlen(text)), strlen(text));
	return text;
}

static void test_info_of_get(void **state)
{
	(void)state;
	assert_string_equal(answer(2, "command info GET"),
			    "*1\r\n*10\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n"
			    ":1\r\n:1\r\n:1\r\n*3\r\n+@read\r\n+@string\r\n+@fast\r\n*0\r\n"
			    "*1\r\n*6\r\n$5\r\nflags\r\n*2\r\n+RO\r\n+access\r\n"
			    "$12\r\nbegin_search\r\n*4\r\n$4\r\ntype\r\n$5\r\nindex\r\n"
			    "$4\r\nspec\r\n*2\r\n$5\r\nindex\r\n:1\r\n"
			    "$9\r\nfind_keys\r\n*4\r\n$4\r\ntype\r\n$5\r\nrange\r\n"
			    "$4\r\nspec\r\n*6\r\n$7\r\nlastkey\r\n:0\r\n$7\r\nkeystep\r\n:1\r\n"
			    "$5\r\nlimit\r\n:0\r\n*0\r\n");
	assert_string_equal(answer(3, "command info client|id"),
			    "*1\r\n*10\r\n$9\r\nclient|id\r\n:2\r\n"
			    "~3\r\n+noscript\r\n+loading\r\n+stale\r\n:0\r\n:0\r\n:0\r\n"
			    "~2\r\n+@slow\r\n+@connection\r\n~0\r\n~0\r\n~0\r\n");
	assert_string_equal(answer(2, "command info nosuch client|nosuch get|x |get get|"),
			    "*5\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n$-1\r\n");
	assert_string_equal(answer(3, "command info nosuch"), "*1\r\n_\r\n");
}

static void test_docs(void **state)
{
	(void)state;
	assert_string_equal(answer(3, "command docs nosuch"), "%0\r\n");
	assert_non_null(
		strstr(answer(3, "command docs EXPIRE nosuch"), "%1\r\n$6\r\nexpire\r\n%5"));
	assert_non_null(
		strstr(answer(2, "command docs expire"),
		       "$9\r\narguments\r\n*3\r\n"
		       "*6\r\n$4\r\nname\r\n$3\r\nkey\r\n$4\r\ntype\r\n$3\r\nkey\r\n"
		       "$14\r\nkey_spec_index\r\n:0\r\n"
		       "*4\r\n$4\r\nname\r\n$7\r\nseconds\r\n$4\r\ntype\r\n$7\r\ninteger\r\n"
		       "*8\r\n$4\r\nname\r\n$11\r\nnx_xx_gt_lt\r\n$4\r\ntype\r\n"
		       "$5\r\noneof\r\n$5\r\nflags\r\n*1\r\n+optional\r\n"
		       "$9\r\narguments\r\n*4\r\n"
		       "*6\r\n$4\r\nname\r\n$2\r\nnx\r\n$4\r\ntype\r\n"
		       "$10\r\npure-token\r\n$5\r\ntoken\r\n$2\r\nNX\r\n"));
	assert_non_null(strstr(answer(3, "command docs hello"),
			       "%5\r\n$4\r\nname\r\n$17\r\nusername_password\r\n$4\r\ntype\r\n"
			       "$5\r\nblock\r\n$5\r\ntoken\r\n$4\r\nAUTH\r\n"
			       "$5\r\nflags\r\n~1\r\n+optional\r\n$9\r\narguments\r\n*2\r\n"));
	assert_non_null(strstr(answer(3, "command docs info"),
			       "$5\r\nflags\r\n~2\r\n+optional\r\n+multiple\r\n"));
	assert_non_null(
		strstr(answer(3, "command docs rename"), "$14\r\nkey_spec_index\r\n:1\r\n"));
	assert_null(strstr(answer(3, "command docs lcs"), "$14\r\nkey_spec_index\r\n:1\r\n"));
	assert_null(strstr(answer(3, "command docs dbsize"), "arguments"));
	assert_non_null(strstr(answer(3, "command docs substr"), "$9\r\ndoc_flags\r\n~1\r\n"));
}

/* These requests print every row in both dialects; answer() checks that each reply is whole. */
static void test_all_commands_at_once(void **state)
{
	static const char *const requests[] = {"command", "command info", "command docs",
					       "command list", "command help"};

	(void)state;
	for (int resp = 2; resp <= 3; resp++)
		for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
			answer(resp, requests[i]);
	for (unsigned id = 1; id < HS_CMD_IDS; id++) {
		char wanted[64];

		snprintf(wanted, sizeof(wanted), "$%zu\r\n%s\r\n",
			 strlen(hs_command_by_id(id)->name), hs_command_by_id(id)->name);
		for (size_t i = 0; i + 1 < sizeof(requests) / sizeof(requests[0]); i++)
			assert_non_null(strstr(answer(2, requests[i]), wanted));
	}
}

static void test_count_and_list(void **state)
{
	char wanted[32];
	int whole = 0;

	(void)state;
	for (unsigned id = 1; id < HS_CMD_IDS; id++)
		whole += hs_command_by_id(id)->parent == HS_CMD_ID_NONE;
	snprintf(wanted, sizeof(wanted), ":%d\r\n", whole);
	assert_string_equal(answer(2, "command count"), wanted);
	snprintf(wanted, sizeof(wanted), "*%d\r\n", HS_CMD_IDS - 1);
	assert_memory_equal(answer(2, "command list"), wanted, strlen(wanted));

	assert_string_equal(answer(2, "command list filterby pattern G?T"), "*1\r\n$3\r\nget\r\n");
	assert_string_equal(answer(2, "command list filterby pattern object|e*"),
			    "*1\r\n$15\r\nobject|encoding\r\n");
	assert_string_equal(answer(2, "command list FILTERBY ACLCAT Transaction"),
			    "*5\r\n$7\r\ndiscard\r\n$4\r\nexec\r\n$5\r\nmulti\r\n"
			    "$7\r\nunwatch\r\n$5\r\nwatch\r\n");
	assert_string_equal(answer(2, "command list filterby aclcat @transaction"), "*0\r\n");
	assert_string_equal(answer(2, "command list filterby module any"), "*0\r\n");
}

static void test_list_wants_a_whole_filter(void **state)
{
	static const char *const wrong[] = {
		"command list filterby",
		"command list any",
		"command list filterby aclcat",
		"command list filterby any any",
		"command list filterby pattern a b",
		"command list filterby pattern a filterby pattern a",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_string_equal(answer(2, wrong[i]), "-ERR syntax error\r\n");
}

static void test_getkeys(void **state)
{
	(void)state;
	assert_string_equal(answer(2, "command getkeys mset a 1 b 2"),
			    "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
	assert_string_equal(answer(2, "command getkeys object encoding a"), "*1\r\n$1\r\na\r\n");
	assert_string_equal(answer(2, "command getkeys nosuch a"),
			    "-ERR Invalid command specified\r\n");
	assert_string_equal(answer(2, "command getkeys object nosuch a"),
			    "-ERR Invalid command specified\r\n");
	assert_string_equal(answer(2, "command getkeys ping a"),
			    "-ERR The command has no key arguments\r\n");
	assert_string_equal(answer(2, "command getkeys set a"),
			    "-ERR Invalid number of arguments specified for command\r\n");
}

static void test_help_of_every_container(void **state)
{
	static const char heading[] =
		"*17\r\n+COMMAND <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\r\n"
		"+(no subcommand)\r\n+    Describes all commands.\r\n";

	(void)state;
	for (unsigned id = 1; id < HS_CMD_IDS; id++) {
		const struct hs_command *row = hs_command_by_id(id);
		struct hs_buf out = {0};
		struct hs_reply reply = {.out = &out, .resp = 2};
		struct hs_parsed_reply head;

		if (row->place != HS_PLACE_PARENT)
			continue;
		hs_command_help(row, &reply);
		assert_int_equal(hs_parse_reply_length(out.data, out.len), out.len);
		assert_true(hs_parse_reply_head(&head, out.data, out.len) > 0);
		assert_true(head.count >= 3); /* a heading and one subcommand with its text */
		hs_buf_deinit(&out);
	}
	assert_memory_equal(answer(2, "command help"), heading, sizeof(heading) - 1);
	assert_non_null(strstr(answer(2, "command help"), "\r\n+COUNT\r\n+    "));
	/* As in Redis, HELP is the last line of its own text. */
	assert_non_null(
		strstr(answer(2, "command help"), "\r\n+HELP\r\n+    Shows this text.\r\n"));
}

/* A name may hold any bytes: the search does not read beyond the known names. */
static void test_names_with_zeros_are_known_nowhere(void **state)
{
	static const char zeros[64];
	struct hs_buf text = {0};

	(void)state;
	for (size_t len = 0; len <= sizeof zeros; len++)
		hs_not_embedded_note((struct hs_bytes){zeros, len}, &text);
	hs_not_embedded_note((struct hs_bytes){"llen\0", 5}, &text);
	assert_int_equal(text.len, 0);
	hs_not_embedded_note(HS_LIT("LLEN"), &text);
	assert_true(text.len > 0);
	hs_buf_deinit(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_id_has_its_row),
		cmocka_unit_test(test_identifiers_spell_names),
		cmocka_unit_test(test_subcommands_stand_behind_their_container),
		cmocka_unit_test(test_places_keys_and_merges_agree),
		cmocka_unit_test(test_functions_stand_where_commands_run),
		cmocka_unit_test(test_names_find_their_rows_in_any_case),
		cmocka_unit_test(test_names_are_unique),
		cmocka_unit_test(test_near_names_find_nothing_wrong),
		cmocka_unit_test(test_odd_names_find_nothing),
		cmocka_unit_test(test_arity),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_info_of_get),
		cmocka_unit_test(test_docs),
		cmocka_unit_test(test_all_commands_at_once),
		cmocka_unit_test(test_count_and_list),
		cmocka_unit_test(test_list_wants_a_whole_filter),
		cmocka_unit_test(test_getkeys),
		cmocka_unit_test(test_help_of_every_container),
		cmocka_unit_test(test_names_with_zeros_are_known_nowhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
