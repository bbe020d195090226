/* The control thread: a libuv loop of its own for everything that is not a data command, so that no worker is blocked
 * by it. It answers CONFIG, INFO, SHUTDOWN, HEAT (except HEAT PLAN, which the workers answer), HOTKEYS and changes of
 * users, serves HTTP, reloads the configuration on SIGHUP, and samples rates and heat. It owns the options from start
 * to join; workers and the main thread get copies. Other threads reach it like this:
 *
 *     workers ─── host_ops: CONFIG, INFO … ─┐
 *     engine ──── recounted ────────────────┤
 *     main ────── reload ───────────────────┼──▶ one wake-up ──▶ the control thread's loop
 *     joiner ──── end ──────────────────────┘
 *
 * It never touches a client's socket: an answer goes back to the worker that asked. Its queue is bounded
 * by maxclients and HS_SESSION_INFLIGHT_MAX. While the control thread is busy (a long /metrics
 * page), CONFIG and INFO wait; data commands do not.
 *
 * Order: init, start, join, deinit. Call join when no worker can ask any more, and free the host's parts only after
 * it. */
#ifndef HS_SERVE_CONTROL_H
#define HS_SERVE_CONTROL_H

#include "base/mpsc.h"
#include "core/op.h"
#include "serve/host.h"
#include "serve/http_loop.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

struct hs_control {
	struct hs_host host;
	uv_thread_t thread;
	uv_loop_t loop;
	uv_async_t wake;
	uv_timer_t rate_timer, heat_timer;
	struct hs_http_loop http;
	struct hs_mpsc host_ops; /* of struct hs_op, linked by `next` */
	_Atomic bool reload;
	_Atomic bool end;
};

/* The caller fills control->host first; `init` creates board, facts and hotkeys from host->heats, which are read
 * until `join`. */
void hs_control_init(struct hs_control *control);
void hs_control_start(struct hs_control *control);
void hs_control_join(struct hs_control *control); /* ends it and waits */
void hs_control_deinit(struct hs_control *control);

/* Any thread, until join: hands over an operation of the kind HS_OP_HOST. `host` is a control's. */
void hs_control_ask(struct hs_host *host, struct hs_op *op);
/* Any thread, until join: SIGHUP. */
void hs_control_reload(struct hs_control *control);
/* Any thread, until deinit: the engine has counted keys (engine.h: recounted). `host` is a control's. */
void hs_control_recounted(void *host, uint64_t number);

#endif
