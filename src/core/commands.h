/* Commands that the core knows by name only: about the connection, for all workers, and about push messages.
 * local/ and push/ implement them above the core, which gets them as a table of functions
 * (hs_core_world.commands); transactions are in core/multi.c. All run on the worker's thread. */
#ifndef HS_CORE_COMMANDS_H
#define HS_CORE_COMMANDS_H

#include "base/buf.h"
#include "base/bytes.h"
#include "command/command.h"

#include <stdbool.h>

struct hs_call;
struct hs_core;
struct hs_op;
struct hs_reply;
struct hs_request;
struct hs_session;

/* A command that writes its reply at once, without an engine. */
typedef void hs_local_run(struct hs_core *core, struct hs_session *session,
			  const struct hs_call *call, struct hs_reply *reply);

/* A command that makes a request for itself and answers it when it is done: SUBSCRIBE, PUBLISH, EXEC. `exec`: the
 * transaction in which it runs, or NULL. `element`: the engine's reply to it inside that transaction; empty:
 * the engine did not get it. */
typedef void hs_start_run(struct hs_core *core, struct hs_session *session, struct hs_request *exec,
			  const struct hs_call *call, struct hs_bytes element);

/* A command that every worker runs a part of (HS_PLACE_WORKERS, HS_OP_PEER). */
struct hs_workers_run {
	/* Checks the arguments on the receiving worker, before any part runs. False: the error is written.
	 * NULL: nothing to check. */
	bool (*check)(const struct hs_core *core, const struct hs_call *call,
		      struct hs_reply *reply);
	/* Runs on each worker; writes the part's reply to op->out. */
	void (*part)(struct hs_core *core, struct hs_op *op);
	void (*merge)(const struct hs_core *core, struct hs_request *request,
		      struct hs_reply *reply);
};

#define OTHER
#define LOCAL(function) hs_local_run function;
#define WORKERS(run) extern const struct hs_workers_run run;
#define START(function, besides)                                                                   \
	hs_start_run function;                                                                     \
	besides
#define ROW(identifier, function, ...) function
#include "command/rows.def"

struct hs_core_commands {
	/* Indexed by command id; NULL: the command is of another kind. */
	hs_local_run *const *run;
	hs_start_run *const *start;
	const struct hs_workers_run *const *workers;

	/* Whether a pub/sub command must wait for its client's requests in flight. */
	bool (*waits)(const struct hs_core *core, const struct hs_session *session,
		      struct hs_call *call);

	/* Appends the session's line of CLIENT LIST. */
	void (*describe)(const struct hs_core *core, const struct hs_session *session,
			 struct hs_buf *text);
};

#endif
