/* src/cli: main() and the subcommands of the one binary. Each takes the words of the command line from its own name
 * on (argv[0] is the subcommand) and returns the process's exit code.
 *
 *     main.c                       which subcommand
 *     serve.c                      `serve`: options from file and flags, then src/serve
 *     storm*.c, storm.h            `storm`: a load generator and verifier for any Redis endpoint
 *     top*.c, top.h                `top`: a live view of a server's hottest keys and partitions
 *     sim*.c, sim.h                `sim`: runs the simulator (sim/)
 *     check.c, repair.c, folder.h  `check`, `repair`: a data folder while no server uses it
 *     flags.h, target.h            command-line flags; the server that storm and top connect to
 *
 * The top floor: it may include everything, and nothing in src/ or sim/ includes it (unit tests and bench/ include
 * storm and top). storm and top are clients: they know the protocol and share no code with the engine but parsers.
 * Each subcommand runs on the main thread; storm adds one thread per --threads, serve those of serve/server.h, sim
 * and check run processes.
 *
 * Bad input gets one line on standard error that names the flag, and a non-zero exit code; --help lists the codes. */
#ifndef HS_CLI_CLI_H
#define HS_CLI_CLI_H

int hs_cli_serve(int argc, char **argv);
int hs_cli_storm(int argc, char **argv);
int hs_cli_top(int argc, char **argv);
int hs_cli_sim(int argc, char **argv);
int hs_cli_check(int argc, char **argv);
int hs_cli_repair(int argc, char **argv);

#endif
