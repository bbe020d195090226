/* src/serve: the process around the cores. It opens the ports, reads from and writes to client sockets, runs the
 * threads, owns the options, and answers on the control thread CONFIG, INFO, SHUTDOWN, HEAT, HOTKEYS, changes of
 * users and HTTP. Only src/cli calls it, and it may include every folder of src/ except src/cli.
 *
 * It must not parse, order or run other commands, and must not decide when a hot key is mitigated: the core and
 * the stages do that. src/serve hands them their options and reads their counters.
 *
 *     main        server.c: listens, hands each connection to a worker, takes signals, starts and joins threads
 *     worker × N  worker.h: one libuv loop, one core, its clients' sockets (connection.c)
 *     control     control.h: owns the options; CONFIG, INFO, HEAT, users and rules, HTTP, samples
 *     joiner      at the end: join_all() in server.c, so that the main loop still takes a second signal
 *
 * The engine has threads of its own (engine/engine.h). Threads talk through queues and one wake-up per receiver: a
 * worker's in worker.h, the control thread's in control.h. They share struct hs_host (host.h), whose fields name
 * their writers.
 *
 * Bad days:
 *
 *     no port, no certificate, engine refuses    one line in the log, exit code 1, before any client is accepted
 *     maxclients reached                         the client gets -ERR (on the TLS port: nothing) and is closed; counted
 *     a client does not read its replies         it is cut off when more than output-limit bytes (default 64 MB)
 *                                                are unsent and more follows: a further command, reply or
 *                                                message. A single reply of any size waits for the client. Others
 *                                                do not notice
 *     a worker's event queue is full             events are dropped, logged and counted (event_queue.h)
 *
 * SIGTERM, SIGINT and SHUTDOWN:
 *
 *     1. the Redis ports are closed (HTTP stays open until the control thread ends; /readyz answers 503); every
 *        worker gets HS_WORKER_DRAIN with shutdown-timeout (default 10 s)
 *     2. a worker closes clients that block (BLPOP), without a reply, and clients with nothing in flight, once they
 *        have been silent for 50 ms. A client that has sent commands behind its BLPOP is closed after
 *        shutdown-timeout. The worker goes on serving the others. After shutdown-timeout it reads no more requests
 *        and closes each client as soon as its replies are sent. That has no time limit: one client that does not
 *        read keeps the process alive until it reads or disconnects.
 *     3. when all workers are empty: workers end, then the control thread, then the engine (its data is on disk)
 *
 * A second SIGTERM or SIGINT ends the process at once, with exit code 1. Acknowledged writes stay safe. */
#ifndef HS_SERVE_SERVER_H
#define HS_SERVE_SERVER_H

#include "base/log.h"
#include "serve/options.h"

/* Serves until a signal or SHUTDOWN and returns the process's exit code. The main thread. `flags` is the command
 * line: it wins over the file again when SIGHUP reloads it. All arguments are the caller's and outlive the call. */
int hs_server_run(struct hs_options *options, int flags_count, char **flags, struct hs_log *log);

#endif
