/* heatsink top: the hottest keys and partitions of a server, live or once.
 *
 * The live loop waits for four things at once: a key, a signal, the server's reply, and the time of the next query.
 * None of them blocks another. Signals come through a descriptor, so that the same few lines restore the terminal
 * however top ends. */
#include "cli/top.h"

#include "base/num.h"
#include "cli/cli.h"
#include "serve/clock.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <uv.h>

enum {
	ONCE_COLS = 80,
	SLOW_US = 2000000, /* a reply that takes longer gets a line on the screen */
	TICK_US = 1000000, /* interval of counters of seconds on the screen */
};

struct top {
	struct hs_top_options options;
	uv_loop_t loop;
	uv_timer_t alarm; /* ends a wait of the loop */
	uv_poll_t keyboard, signal;
	struct hs_top_client *client;
	struct hs_top_model model;
	struct hs_top_view view;
	struct hs_top_screen *screen;
	int keys;     /* descriptor: open_keys */
	int signals;  /* descriptor */
	int ended_by; /* the signal's number; 0: none */
	bool quit;
	bool query_due;	  /* send a query as soon as the client is free */
	bool changed;	  /* paint */
	uint64_t next_us; /* time of the next query */
	uint64_t sent_us; /* time of the last query */
	uint64_t answered_us;
	uint64_t painted_us;
	char error[HS_TOP_ERROR_MAX];
};

/* Reads the replies into the model. Returns 0, or -1 with a line in top->error. */
static int take_answer(struct top *top, enum hs_top_outcome step)
{
	if (step == HS_TOP_FAILED) {
		snprintf(top->error, sizeof top->error, "%s", hs_top_client_error(top->client));
		return -1;
	}
	if (hs_top_model_read(&top->model, hs_top_client_query(top->client),
			      hs_top_client_replies(top->client)) < 0) {
		snprintf(top->error, sizeof top->error,
			 "%s sends replies to HEAT that this version cannot read: use the heatsink "
			 "top "
			 "of the server's version",
			 top->options.target.text);
		return -1;
	}
	top->error[0] = '\0';
	return 0;
}

static void on_alarm(uv_timer_t *alarm)
{
	(void)alarm; /* it only makes the loop return */
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
	(void)poll, (void)status, (void)events;
}

/* Runs the loop until an event, or until that time. */
static void wait_until(struct top *top, uint64_t until_us)
{
	uint64_t now_us = hs_clock_mono_us();

	uv_update_time(&top->loop);
	/* Repeats every ms: uv_run runs a due timer before it waits. A timer that fired only once would be gone by
	 * then, and the wait for a key would have no limit. */
	if (until_us != UINT64_MAX)
		uv_timer_start(&top->alarm, on_alarm,
			       until_us > now_us ? (until_us - now_us + 999) / 1000 : 0, 1);
	uv_run(&top->loop, UV_RUN_ONCE);
	uv_timer_stop(&top->alarm);
}

/* ---- once ---- */

static size_t once_cols(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	uint64_t cols = ONCE_COLS;

	if (!columns || !hs_num_parse_uint(hs_bytes_of(columns), &cols)) {
		if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
		    size.ws_col)
			cols = size.ws_col;
	}
	if (cols < HS_TOP_COLS_MIN)
		return HS_TOP_COLS_MIN;
	return cols < HS_TOP_COLS_MAX ? (size_t)cols : HS_TOP_COLS_MAX;
}

static int run_once(struct top *top)
{
	struct hs_top_grid grid;
	enum hs_top_outcome step;

	hs_top_client_send(top->client, &top->options.query, hs_clock_mono_us());
	while ((step = hs_top_client_poll(top->client, hs_clock_mono_us())) == HS_TOP_WAITING)
		wait_until(top, hs_top_client_deadline_us(top->client));
	if (take_answer(top, step) < 0) {
		fprintf(stderr, "heatsink top: %s\n", top->error);
		return 1;
	}
	signal(SIGPIPE, SIG_DFL); /* a closed standard output ends top */
	hs_top_frame(&grid, &top->view, &top->model, 0, once_cols());
	hs_top_grid_print(&grid, stdout);
	hs_top_grid_deinit(&grid);
	if (fflush(stdout) != 0) {
		fprintf(stderr, "heatsink top: standard output: %s\n", strerror(errno));
		return 1;
	}
	return 0;
}

/* ---- live ---- */

static void paint(struct top *top, uint64_t now_us)
{
	struct hs_top_grid grid;
	size_t rows, cols;
	bool slow = hs_top_client_is_waiting(top->client) && now_us > top->sent_us + SLOW_US;

	hs_top_screen_size(top->screen, &rows, &cols);
	top->view.error = top->error;
	top->view.waiting_s = slow ? (double)(now_us - top->sent_us) / 1e6 : 0;
	top->view.stale = top->model.loaded && (slow || top->error[0]);
	top->view.age_s = (double)(now_us - top->answered_us) / 1e6;
	hs_top_frame(&grid, &top->view, &top->model, rows, cols);
	hs_top_screen_show(top->screen, &grid);
	hs_top_grid_deinit(&grid);
	top->changed = false;
	top->painted_us = now_us;
}

/* When a counter of seconds on the screen changes next. */
static uint64_t tick_us(const struct top *top)
{
	bool counting = hs_top_client_is_waiting(top->client) || top->error[0];

	return counting ? top->painted_us + TICK_US : UINT64_MAX;
}

/* Queries are due at fixed times; those missed while a reply was late are skipped. */
static void on_time(struct top *top, uint64_t now_us)
{
	if (now_us >= top->next_us) {
		top->next_us += top->view.interval_us;
		if (top->next_us <= now_us)
			top->next_us = now_us + top->view.interval_us;
		top->query_due |= !top->view.paused && !hs_top_client_is_waiting(top->client);
		top->changed = true;
	}
	top->changed |= now_us >= tick_us(top);
	if (top->query_due && !hs_top_client_is_waiting(top->client)) {
		hs_top_client_send(top->client, &top->view.query, now_us);
		top->sent_us = now_us;
		top->query_due = false;
	}
}

static void on_action(struct top *top, enum hs_top_action wish, uint64_t now_us)
{
	switch (wish) {
	case HS_TOP_ACTION_QUIT:
		top->quit = true;
		break;
	case HS_TOP_ACTION_SORT:
		if (top->view.paused) {
			hs_top_model_sort(&top->model, top->view.query.sort);
			break;
		}
		top->query_due = true;
		break;
	case HS_TOP_ACTION_QUERY:
		top->query_due = true;
		break;
	case HS_TOP_ACTION_REDRAW:
		hs_top_screen_redraw(top->screen);
		break;
	case HS_TOP_ACTION_INTERVAL:
		top->next_us = now_us;
		break;
	case HS_TOP_ACTION_NONE:
		break;
	}
	top->changed = true;
}

static void on_keys(struct top *top, uint64_t now_us)
{
	uint32_t key;

	while (!top->quit && (key = hs_top_screen_key(top->screen)) != HS_TOP_KEY_NONE)
		on_action(top, hs_top_view_key(&top->view, key, top->model.rows_count), now_us);
}

/* Ctrl-Z: restores the terminal and stops until the shell continues the process. It is handled here like other
 * signals, because a stop in the middle of painting would leave a torn screen. */
static void stop(struct top *top)
{
	struct sigaction ours, plain = {.sa_handler = SIG_DFL};
	sigset_t only;

	hs_top_screen_leave(top->screen);
	sigemptyset(&only);
	sigaddset(&only, SIGTSTP);
	sigaction(SIGTSTP, &plain, &ours);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &only, NULL); /* stops here */
	sigprocmask(SIG_BLOCK, &only, NULL);
	sigaction(SIGTSTP, &ours, NULL);
}

static void on_signal(struct top *top)
{
	struct signalfd_siginfo info;

	while (read(top->signals, &info, sizeof info) == sizeof info) {
		if (info.ssi_signo == SIGTSTP)
			stop(top);
		if (info.ssi_signo == SIGWINCH || info.ssi_signo == SIGTSTP) {
			hs_top_screen_resize(top->screen);
			top->changed = true;
		} else {
			top->ended_by = (int)info.ssi_signo;
			top->quit = true;
		}
	}
}

static void on_client(struct top *top, uint64_t now_us)
{
	enum hs_top_outcome step = hs_top_client_poll(top->client, now_us);

	if (step == HS_TOP_WAITING)
		return;
	if (take_answer(top, step) == 0) /* on failure top->error is shown by the next frame */
		top->answered_us = now_us;
	top->changed = true;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void wait_for_something(struct top *top)
{
	uint64_t until_us = earlier(hs_top_client_deadline_us(top->client),
				    earlier(top->next_us, tick_us(top)));
	struct pollfd waits[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
				  {.fd = top->signals, .events = POLLIN}};

	wait_until(top, until_us);
	if (poll(waits, 2, 0) < 0)
		return;
	if (waits[1].revents)
		on_signal(top);
	if (waits[0].revents & ~POLLIN) /* the terminal was closed */
		top->quit = true;
	else if (waits[0].revents)
		on_keys(top, hs_clock_mono_us());
}

/* libuv makes every descriptor that it polls non-blocking. The shell shares standard input: while top is stopped, and
 * after its end, reads by other programs would fail with EAGAIN. So the loop polls another descriptor: an epoll set
 * whose only member is standard input. */
static int open_keys(void)
{
	struct epoll_event event = {.events = EPOLLIN};
	int fd = epoll_create1(EPOLL_CLOEXEC);

	hs_check(fd >= 0);
	hs_check(epoll_ctl(fd, EPOLL_CTL_ADD, STDIN_FILENO, &event) == 0);
	return fd;
}

static void on_no_signal(int number)
{
	(void)number; /* never called: SIGTSTP is blocked */
}

/* Blocks the signals that the loop reads from a descriptor.
 *
 * ncurses sets SIGTSTP to SIG_IGN during every refresh, unless the program has set a handler before the screen is
 * opened. SIG_IGN makes the kernel discard a pending SIGTSTP, even a blocked one: a Ctrl-Z during the start, or after
 * the last read of the descriptor, would be lost. With the handler, which is never called, ncurses does not change
 * SIGTSTP. */
static int open_signals(void)
{
	struct sigaction handled = {.sa_handler = on_no_signal};
	sigset_t ours;
	int fd;

	sigemptyset(&ours);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGTERM);
	sigaddset(&ours, SIGHUP);
	sigaddset(&ours, SIGQUIT);
	sigaddset(&ours, SIGWINCH);
	sigaddset(&ours, SIGTSTP);
	sigprocmask(SIG_BLOCK, &ours, NULL);
	sigaction(SIGTSTP, &handled,
		  NULL); /* after blocking: the handler would swallow the signal */
	fd = signalfd(-1, &ours, SFD_NONBLOCK | SFD_CLOEXEC);
	hs_check(fd >= 0);
	return fd;
}

/* Makes the loop return when the descriptor is readable. */
static void watch(struct top *top, uv_poll_t *poll, int fd)
{
	hs_check(uv_poll_init(&top->loop, poll, fd) == 0);
	uv_poll_start(poll, UV_READABLE, on_ready);
}

static int run_live(struct top *top)
{
	/* Before the screen: no signal may arrive while the terminal is half set up. */
	top->signals = open_signals();
	top->screen = hs_top_screen_open(top->error);
	if (!top->screen) {
		fprintf(stderr, "heatsink top: %s\n", top->error);
		close(top->signals);
		return 1;
	}
	top->keys = open_keys();
	watch(top, &top->keyboard, top->keys);
	watch(top, &top->signal, top->signals);
	top->next_us = hs_clock_mono_us();
	while (!top->quit) {
		uint64_t now_us = hs_clock_mono_us();

		/* In this order: a due query is sent as soon as the last one is answered. */
		on_client(top, now_us);
		on_time(top, now_us);
		if (top->changed)
			paint(top, now_us);
		wait_for_something(top);
	}
	hs_top_screen_close(&top->screen);
	uv_close((uv_handle_t *)&top->keyboard, NULL);
	uv_close((uv_handle_t *)&top->signal, NULL);
	close(top->keys);
	close(top->signals);
	return top->ended_by ? 128 + top->ended_by : 0;
}

int hs_cli_top(int argc, char **argv)
{
	struct top top = {.keys = -1, .signals = -1};
	int code = hs_top_options_read(&top.options, argc, argv, stderr);

	if (code != 0)
		return code < 0 ? 1 : 0;
	if (hs_target_open(&top.options.target, "heatsink top", stderr) < 0)
		return 1;
	setlocale(LC_CTYPE, ""); /* only LC_CTYPE: numbers keep the decimal point */
	hs_top_view_init(&top.view, &top.options);
	top.view.unicode = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	hs_top_model_init(&top.model);
	hs_check(uv_loop_init(&top.loop) == 0);
	uv_timer_init(&top.loop, &top.alarm);
	signal(SIGPIPE, SIG_IGN);
	top.client = hs_top_client_create(&top.options, &top.loop);
	code = top.options.once ? run_once(&top) : run_live(&top);
	hs_top_client_destroy(&top.client);
	uv_close((uv_handle_t *)&top.alarm, NULL);
	uv_run(&top.loop, UV_RUN_DEFAULT);
	hs_check(uv_loop_close(&top.loop) == 0);
	hs_target_close(&top.options.target);
	hs_top_model_deinit(&top.model);
	return code;
}
