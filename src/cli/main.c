/* heatsink: one binary, one subcommand each for what one does with it. */
#include "base/version.h"
#include "cli/cli.h"

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
	{"sim", hs_cli_sim, "run the core in a simulated world and check its laws"},
};

static void help(void)
{
	printf("heatsink %s: a Redis server that takes the heat off hot keys\n\n", HS_VERSION);
	printf("usage: heatsink <subcommand> [flags]\n\n");
	for (size_t i = 0; i < sizeof subcommands / sizeof *subcommands; i++)
		printf("  %-8s %s\n", subcommands[i].name, subcommands[i].help);
	printf("\nheatsink <subcommand> --help lists its flags.\n");
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "--version") == 0) {
		printf("heatsink %s\n", HS_VERSION);
		return 0;
	}
	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0)) {
		help();
		return 0;
	}
	/* Flags without a subcommand are the server's. */
	if (argc == 1 || argv[1][0] == '-')
		return hs_cli_serve(argc, argv);
	for (size_t i = 0; i < sizeof subcommands / sizeof *subcommands; i++) {
		if (strcmp(argv[1], subcommands[i].name) == 0)
			return subcommands[i].run(argc - 1, argv + 1);
	}
	fprintf(stderr, "heatsink: '%s' is not a subcommand; heatsink --help lists them\n",
		argv[1]);
	return 1;
}
