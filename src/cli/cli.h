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
 * storm and top). storm and top are clients: they know the protocol, and connect with upstream/ (connections,
 * backoff, TLS, URLs, name lookups), as the redis engine does. storm also uses the parser of CLUSTER SLOTS
 * (engine/redis/topology.h), one function that writes a file (engine/embedded/files.h), and the simulator's
 * checker of histories (sim/).
 *
 * Each subcommand runs on the main thread. These add to it:
 *
 *     serve                  the threads of serve/server.h
 *     storm --threads N      N - 1 threads, started anew for each phase; worker 0 runs on the main thread
 *     storm, top             detached threads that look up host names (upstream/names.h)
 *     sim, check, repair     forked processes
 *
 * Bad input gets one line on standard error that names the flag, and a non-zero exit code. Only `sim` without
 * `check` prints its whole help instead. --help lists the codes, except for serve: 0 after a shutdown, 1 on bad
 * options, if it cannot start, or on a second signal. */
#ifndef HS_CLI_CLI_H
#define HS_CLI_CLI_H

int hs_cli_serve(int argc, char **argv);
int hs_cli_storm(int argc, char **argv);
int hs_cli_top(int argc, char **argv);
int hs_cli_sim(int argc, char **argv);
int hs_cli_check(int argc, char **argv);
int hs_cli_repair(int argc, char **argv);

#endif
