/* Commands that the core hands to others: those that concern the connection, all workers, or what clients are
 * told without asking. local/ and push/ implement them above the core, which gets them as a table. */
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

/* A command that is answered at once, without an engine. */
typedef void hs_local_run(struct hs_core *core, struct hs_session *session,
			  const struct hs_call *call, struct hs_reply *reply);

/* A command that makes its request itself and answers it when it is done: SUBSCRIBE, PUBLISH, EXEC. `exec`: the
 * transaction that it runs in, whose engine answered `element` to it (empty: it was not sent there); or NULL. */
typedef void hs_start_run(struct hs_core *core, struct hs_session *session, struct hs_request *exec,
			  const struct hs_call *call, struct hs_bytes element);

/* A command to which every worker contributes (HS_PLACE_WORKERS, HS_OP_PEER). */
struct hs_workers_run {
	/* Looks at the arguments before any worker is asked. False: the error is written. NULL: they are right. */
	bool (*check)(const struct hs_core *core, const struct hs_call *call,
		      struct hs_reply *reply);
	void (*part)(struct hs_core *core, struct hs_op *op); /* what this worker has to say */
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
	/* By identifier: the function of each command whose row has one of the kind, or NULL. */
	hs_local_run *const *run;
	hs_start_run *const *start;
	const struct hs_workers_run *const *workers;

	/* Whether a command about channels must wait for what its client has in flight. */
	bool (*waits)(const struct hs_core *core, const struct hs_session *session,
		      struct hs_call *call);

	/* The session's line of CLIENT LIST. */
	void (*describe)(const struct hs_core *core, const struct hs_session *session,
			 struct hs_buf *text);
};

#endif
