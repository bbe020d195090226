/* Commands of a transaction that run when it has committed. */
#ifndef HS_CORE_DEFERRED_H
#define HS_CORE_DEFERRED_H

#include "core/state.h"

/* Whether the core answers it by itself, at once. */
bool hs_deferred_is_local(const struct hs_command *command);
/* Whether it runs behind the commit whatever stands before it. */
bool hs_deferred_begins(const struct hs_core *core, const struct hs_command *command);
/* Whether this one does, behind those before it (`*begun` begins as false, or as true for all). */
bool hs_deferred_is(const struct hs_core *core, const struct hs_command *command, bool *begun);
/* Of one that does: whether the engine runs it in the transaction as well, and the reply is only
 * completed behind the commit. */
bool hs_deferred_in_engine(const struct hs_core *core, const struct hs_command *command);
/* The engine has answered EXEC. True: it is finished later. */
bool hs_deferred_begin(struct hs_core *core, struct hs_request *exec);
void hs_deferred_finished(struct hs_core *core,
			  struct hs_request *request); /* one of its commands */
struct hs_buf *hs_deferred_messages(
	struct hs_deferred *deferred); /* where messages of others go meanwhile */
void hs_deferred_drop(struct hs_deferred **deferred);
/* EXEC is answered: counts the commands that ran inside it, each with an even share of its time. */
void hs_deferred_account(struct hs_core *core, const struct hs_request *exec, uint64_t time_us);

#endif
