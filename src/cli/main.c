/* heatsink: one binary with subcommands (cli.h). Without a subcommand it serves. */
#include "base/nearest.h"
#include "base/version.h"
#include "cli/cli.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	int (*run)(int argc, char **argv); /* argv[0] is the subcommand */
	const char *help;
} subcommands[] = {
	{"serve", hs_cli_serve, "run the server (the default)"},
	{"top", hs_cli_top, "show a server's hottest keys and partitions, live"},
	{"storm", hs_cli_storm, "send skewed load to a Redis endpoint and measure it"},
	{"check", hs_cli_check, "read everything in a data folder and report damage"},
	{"repair", hs_cli_repair, "drop damaged data in a data folder and keep the rest"},
	{"sim", hs_cli_sim, "run the core in a simulated world and check its laws"},
};

static void help(void)
{
	printf("heatsink %s: a Redis server that takes the heat off hot keys\n\n", HS_VERSION);
	printf("usage: heatsink <subcommand> [flags]\n\n");
	for (size_t i = 0; i < sizeof subcommands / sizeof *subcommands; i++)
		printf("  %-8s %s\n", subcommands[i].name, subcommands[i].help);
	printf("  %-8s %s\n", "version", "print the version (also -v, --version)");
	printf("  %-8s %s\n", "help",
	       "print this help (also -h, --help); help <subcommand>: its flags");
	printf("\nheatsink <subcommand> --help lists its flags.\n");
}

/* True if the word is `name`, -n or --name: for help and version. */
static bool is_word(const char *word, const char *name)
{
	return strcmp(word, name) == 0 || (word[0] == '-' && word[1] == name[0] && !word[2]) ||
	       (strncmp(word, "--", 2) == 0 && strcmp(word + 2, name) == 0);
}

/* Runs the subcommand argv[0]. */
static int run_subcommand(int argc, char **argv)
{
	struct hs_nearest nearest = hs_nearest_to(hs_bytes_of(argv[0]));

	for (size_t i = 0; i < sizeof subcommands / sizeof *subcommands; i++) {
		if (strcmp(argv[0], subcommands[i].name) == 0)
			return subcommands[i].run(argc, argv);
		hs_nearest_try(&nearest, subcommands[i].name);
	}
	hs_nearest_try(&nearest, "version");
	hs_nearest_try(&nearest, "help");
	fprintf(stderr, "heatsink: '%s' is not a subcommand", argv[0]);
	if (nearest.name)
		fprintf(stderr, "; did you mean '%s'?", nearest.name);
	fprintf(stderr, " (heatsink help lists them)\n");
	return 1;
}

int main(int argc, char **argv)
{
	if (argc > 1 && is_word(argv[1], "version")) {
		printf("heatsink %s\n", HS_VERSION);
		return 0;
	}
	if (argc > 2 && strcmp(argv[1], "help") == 0) {
		char *words[] = {argv[2], "--help", NULL};

		return run_subcommand(2, words);
	}
	if (argc > 1 && is_word(argv[1], "help")) {
		help();
		return 0;
	}
	/* Flags without a subcommand are the server's. */
	if (argc == 1 || argv[1][0] == '-')
		return hs_cli_serve(argc, argv);
	return run_subcommand(argc - 1, argv + 1);
}
