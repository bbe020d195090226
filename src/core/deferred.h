/* Deferred commands: those of a transaction that run after its commit (SUBSCRIBE, PUBLISH, INFO, CLIENT LIST
 * …). The head of deferred.c says which and why. Worker's thread only. */
#ifndef HS_CORE_DEFERRED_H
#define HS_CORE_DEFERRED_H

#include "core/state.h"

/* Whether the core answers the command itself, at once. */
bool hs_deferred_is_local(const struct hs_command *command);
/* True: the command always runs after the commit. */
bool hs_deferred_begins(const struct hs_core *core, const struct hs_command *command);
/* True: the command runs after the commit, also because of an earlier one. Called for each command of a
 * transaction in order; `*begun` is in/out: false before the first, or true if all local commands are deferred. */
bool hs_deferred_is(const struct hs_core *core, const struct hs_command *command, bool *begun);
/* For a deferred command: whether the engine runs it inside the transaction as well, and only its reply is
 * completed after the commit. */
bool hs_deferred_in_engine(const struct hs_core *core, const struct hs_command *command);
/* The engine has answered EXEC. True: deferred commands run, and EXEC is finished later. */
bool hs_deferred_begin(struct hs_core *core, struct hs_request *exec);
void hs_deferred_finished(struct hs_core *core,
			  struct hs_request *request); /* a deferred command is answered */
/* Push messages from others, to be sent after EXEC's reply. */
struct hs_buf *hs_deferred_messages(struct hs_deferred *deferred);
void hs_deferred_drop(struct hs_deferred **deferred);
/* EXEC is answered: counts the commands that ran inside it, each with an equal share of its time. */
void hs_deferred_account(struct hs_core *core, const struct hs_request *exec, uint64_t time_us);

#endif
