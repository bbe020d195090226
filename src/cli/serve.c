/* `heatsink serve`: options from file and flags, then the server. */
#include "base/log.h"
#include "base/version.h"
#include "cli/cli.h"
#include "serve/options.h"
#include "serve/server.h"
#include "serve/tls_options.h"

#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

/* The log: one line per event with time (UTC), level and text. Any thread: fprintf locks the stream. */
static void print_line(void *context, enum hs_log_level level, const char *line)
{
	static const char *const names[] = {"debug", "info", "warn", "error"};
	struct timeval now;
	struct tm utc;
	char stamp[32];

	(void)context;
	gettimeofday(&now, NULL);
	gmtime_r(&now.tv_sec, &utc);
	strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &utc);
	fprintf(stdout, "%s.%03dZ %-5s %s\n", stamp, (int)(now.tv_usec / 1000), names[level], line);
	fflush(stdout);
}

static void help(void)
{
	struct hs_buf text = {0};

	hs_options_help(&text);
	printf("usage: heatsink serve [flags]\n\n%.*s", (int)text.len, text.data);
	printf("  %-40s %s\n", "--check-config", "Read and check the options, then exit.");
	printf("  %-40s %s\n", "-v, --version", "Print the version, then exit.");
	printf("  %-40s %s\n", "-h, --help", "Print this help, then exit.");
	printf("\nEvery flag is also an option of the configuration file, without --: `port "
	       "6380`.\n");
	hs_buf_deinit(&text);
}

/* Removes a word from the flags; false if it is not there. */
static bool take(int *argc, char **argv, const char *word)
{
	for (int i = 0; i < *argc; i++) {
		if (strcmp(argv[i], word) != 0)
			continue;
		memmove(argv + i, argv + i + 1, (size_t)(*argc - i - 1) * sizeof *argv);
		*argc -= 1;
		return true;
	}
	return false;
}

/* Flags win over the file, and --config is a flag: so the flags are read before and after the file. */
static int read_options(struct hs_options *options, int argc, char **argv, char *error, size_t size)
{
	int status = hs_options_parse(options, argc, argv, error, size);

	if (status == 0 && options->config[0]) {
		status = hs_options_load(options, options->config, error, size);
		if (status == 0)
			status = hs_options_parse(options, argc, argv, error, size);
	}
	if (status == 0)
		status = hs_options_check(options, error, size);
	return status;
}

/* Checks what a start would check, without opening a port or the data. */
static int check_config(const struct hs_options *options)
{
	struct hs_tls_context *context = NULL;
	char error[640];

	if (options->tls_port && hs_tls_options_read(options, &context, error, sizeof error) < 0) {
		fprintf(stderr, "heatsink: %s\n", error);
		return 1;
	}
	hs_tls_context_release(&context);
	printf("the configuration is valid\n");
	return 0;
}

int hs_cli_serve(int argc, char **argv)
{
	struct hs_log log = {.sink = print_line};
	struct hs_options options;
	char error[1024];
	bool check_only;
	int code;

	argc--;
	argv++;
	if (take(&argc, argv, "--help") || take(&argc, argv, "-h")) {
		help();
		return 0;
	}
	if (take(&argc, argv, "--version") || take(&argc, argv, "-v")) {
		printf("heatsink %s\n", HS_VERSION);
		return 0;
	}
	check_only = take(&argc, argv, "--check-config");
	hs_options_init(&options);
	if (read_options(&options, argc, argv, error, sizeof error) < 0) {
		fprintf(stderr, "heatsink: %s\n", error);
		code = 1;
	} else if (check_only) {
		code = check_config(&options);
	} else {
		log.level = (int)options.log_level;
		code = hs_server_run(&options, argc, argv, &log);
	}
	hs_options_deinit(&options);
	return code;
}
