/* CLIENT PAUSE: clients' commands wait until a time. */
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
	uint64_t until_us; /* mono */
	uint32_t sessions; /* that wait for it to end */
};

void hs_pause_begin(struct hs_core *core, enum hs_pause_mode mode, uint64_t until_us);
void hs_pause_end(struct hs_core *core);
/* While there is a pause: whether this command must wait; the session then waits with it. */
bool hs_pause_holds(struct hs_core *core, struct hs_session *session, const struct hs_call *call);
void hs_pause_release(struct hs_core *core, struct hs_session *session); /* it waits no more */
bool hs_pause_is_write(const struct hs_command *command);

#endif
