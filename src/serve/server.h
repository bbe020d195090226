/* The process around the workers: starts all threads, listens, deals connections out evenly, takes
 * signals, and ends everything in order. Runs on the main thread's loop. */
#ifndef HS_SERVE_SERVER_H
#define HS_SERVE_SERVER_H

#include "base/log.h"
#include "core/op.h"
#include "serve/options.h"
#include "serve/worker.h"

struct hs_server;

/* Starts, serves until told to stop, and returns the process's exit code. `flags` are what came
 * from the command line, for reading the configuration again. */
int hs_server_run(struct hs_options *options, int flags_count, char **flags, struct hs_log *log);

/* For workers: any thread. */
struct hs_worker *hs_server_worker(struct hs_server *server, uint32_t index);
uint32_t hs_server_workers(const struct hs_server *server);
struct hs_heat *const *hs_server_heats(const struct hs_server *server);
struct hs_shared *hs_server_shared(const struct hs_server *server);
/* Any thread: all workers are told. Takes the reference over. */
void hs_server_tell(struct hs_server *server, struct hs_news *news); /* one per worker */
const char *hs_server_run_id(const struct hs_server *server);	     /* 40 hex digits */
/* The commands of the servers behind the engine, as last learned; NULL: none. */
const struct hs_learned *hs_server_learned(const struct hs_server *server);
const struct hs_log *hs_server_log(const struct hs_server *server);
void hs_server_ask(struct hs_server *server, struct hs_op *op);

#endif
