/* The control thread: a libuv loop beside those of the workers, for what concerns the process as a
 * whole and must be in no request's way. It answers CONFIG, INFO, SHUTDOWN, HEAT and
 * HOTKEYS, serves HTTP, reads the configuration again, and samples the heat of workers and
 * partitions. The options are its own from start to join. Others reach it like this:
 *
 *     workers ─── asked: CONFIG, INFO … ───┐
 *     engine ──── recounted ───────────────┤
 *     main ────── reload, end ─────────────┴──▶ one wake-up ──▶ the control thread's loop
 *
 * init, start, …, join, deinit. It answers until `join`: call that when no worker can ask any more,
 * and free what the host points to only after it. */
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
	struct hs_mpsc host_ops; /* of hs_op, by `next` */
	_Atomic bool reload;
	_Atomic bool end;
};

/* The host is filled by the caller, but for what `init` makes from its heats: board, facts and
 * hotkeys. The heats are read until `join`. */
void hs_control_init(struct hs_control *control);
void hs_control_start(struct hs_control *control);
void hs_control_join(struct hs_control *control); /* has it end, and waits */
void hs_control_deinit(struct hs_control *control);

/* Any thread, until it is joined. */
void hs_control_ask(struct hs_host *host, struct hs_op *op); /* HS_OP_HOST; of a control's host */
void hs_control_reload(struct hs_control *control);	     /* SIGHUP */
/* Any thread, until hs_control_deinit: the engine has counted keys (engine.h: recounted). `host` is
 * the control's. */
void hs_control_recounted(void *host, uint64_t number);

#endif
