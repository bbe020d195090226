/* The subcommands of the one binary. Each takes the words behind its own name (argv[0] is the
 * subcommand's name) and returns the process's exit code. */
#ifndef HS_CLI_CLI_H
#define HS_CLI_CLI_H

int hs_cli_serve(int argc, char **argv);
int hs_cli_storm(int argc, char **argv);
int hs_cli_top(int argc, char **argv);
int hs_cli_sim(int argc, char **argv);
int hs_cli_check(int argc, char **argv);
int hs_cli_repair(int argc, char **argv);

#endif
