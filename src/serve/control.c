/* The control thread's loop: one wake-up for requests of workers, reloads and the end; two timers for samples;
 * HTTP. */
#include "serve/control.h"

#include "base/list.h"
#include "base/mem.h"
#include "serve/worker.h"
#include "telemetry/board.h"
#include "telemetry/hotkeys.h"

#include <pthread.h>

enum { RATE_MS = 1000, HEAT_MS = 50 };

void hs_control_ask(struct hs_host *host, struct hs_op *op)
{
	struct hs_control *control = hs_list_entry(host, struct hs_control, host);

	hs_mpsc_push(&control->host_ops, op, op, offsetof(struct hs_op, next));
	uv_async_send(&control->wake);
}

void hs_control_reload(struct hs_control *control)
{
	atomic_store(&control->reload, true);
	uv_async_send(&control->wake);
}

void hs_control_recounted(void *host, uint64_t number)
{
	struct hs_control *control = hs_list_entry(host, struct hs_control, host);

	atomic_store(&control->host.recounted, number);
	uv_async_send(&control->wake);
}

static void answer_all(struct hs_control *control)
{
	hs_mpsc_each(struct hs_op, op, &control->host_ops, next)
	{
		op->next = NULL;
		if (hs_host_answer(&control->host, op))
			hs_worker_complete(&control->host.workers[op->worker], op);
	}
}

static void on_wake(uv_async_t *wake)
{
	struct hs_control *control = wake->data;
	bool end = atomic_load(&control->end);

	if (atomic_exchange(&control->reload, false))
		hs_host_reload(&control->host);
	answer_all(control);
	hs_host_answer_counted(&control->host, end);
	if (!end)
		return;
	uv_close((uv_handle_t *)&control->wake, NULL);
	uv_close((uv_handle_t *)&control->rate_timer, NULL);
	uv_close((uv_handle_t *)&control->heat_timer, NULL);
	hs_http_loop_stop(&control->http);
}

static void on_rate(uv_timer_t *timer)
{
	struct hs_control *control = timer->data;

	hs_host_sample(&control->host);
}

static void on_heat(uv_timer_t *timer)
{
	struct hs_control *control = timer->data;

	hs_host_sample_heat(&control->host);
}

static void create_boards(struct hs_host *host)
{
	uint16_t partitions = host->engine->calls->partitions(host->engine);

	host->board = hs_board_create(host->heats, host->workers_count, partitions);
	host->facts = hs_mem_zalloc(partitions * sizeof *host->facts);
	host->hotkeys = hs_hotkeys_create(host->heats, host->workers_count, partitions);
}

void hs_control_init(struct hs_control *control)
{
	create_boards(&control->host);
	hs_check(uv_loop_init(&control->loop) == 0);
	uv_async_init(&control->loop, &control->wake, on_wake);
	uv_timer_init(&control->loop, &control->rate_timer);
	uv_timer_init(&control->loop, &control->heat_timer);
	control->wake.data = control;
	control->rate_timer.data = control;
	control->heat_timer.data = control;
	uv_timer_start(&control->rate_timer, on_rate, RATE_MS, RATE_MS);
	uv_timer_start(&control->heat_timer, on_heat, HEAT_MS, HEAT_MS);
	hs_http_loop_start(&control->http, &control->loop);
}

static void run(void *argument)
{
	struct hs_control *control = argument;

	pthread_setname_np(pthread_self(), "control");
	uv_run(&control->loop, UV_RUN_DEFAULT);
}

void hs_control_start(struct hs_control *control)
{
	hs_check(uv_thread_create(&control->thread, run, control) == 0);
}

void hs_control_join(struct hs_control *control)
{
	atomic_store(&control->end, true);
	uv_async_send(&control->wake);
	uv_thread_join(&control->thread);
}

void hs_control_deinit(struct hs_control *control)
{
	hs_check(uv_loop_close(&control->loop) == 0);
	hs_hotkeys_destroy(&control->host.hotkeys);
	hs_board_destroy(&control->host.board);
	hs_mem_free(&control->host.facts);
}
