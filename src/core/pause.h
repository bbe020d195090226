/* CLIENT PAUSE on one worker: commands of its clients wait until a time. local/client_admin.c starts it on
 * every worker. Worker's thread only. */
#ifndef HS_CORE_PAUSE_H
#define HS_CORE_PAUSE_H

#include <stdbool.h>
#include <stdint.h>

struct hs_call;
struct hs_command;
struct hs_core;
struct hs_session;

enum hs_pause_mode { HS_PAUSE_NONE, HS_PAUSE_WRITES, HS_PAUSE_ALL };

struct hs_pause {
	enum hs_pause_mode mode;
	uint64_t until_us; /* monotonic time */
	uint32_t sessions; /* held by the pause */
};

void hs_pause_begin(struct hs_core *core, enum hs_pause_mode mode, uint64_t until_us);
void hs_pause_end(struct hs_core *core);
/* During a pause: whether this command must wait. If so, the session is held. */
bool hs_pause_holds(struct hs_core *core, struct hs_session *session, const struct hs_call *call);
/* Ends the session's hold by the pause. */
void hs_pause_release(struct hs_core *core, struct hs_session *session);
bool hs_pause_is_write(const struct hs_command *command);

#endif
