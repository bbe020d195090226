/* The process around the workers: starts all threads, listens, deals connections out evenly, takes
 * signals, and ends everything in order. Runs on the main thread's loop. */
#ifndef HS_SERVE_SERVER_H
#define HS_SERVE_SERVER_H

#include "base/log.h"
#include "serve/options.h"

/* Starts, serves until told to stop, and returns the process's exit code. `flags` are what came
 * from the command line, for reading the configuration again. */
int hs_server_run(struct hs_options *options, int flags_count, char **flags, struct hs_log *log);

#endif
