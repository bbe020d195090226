/* The operator's choices, and what each key changes. */
#include "cli/top.h"

/* The intervals that + and - go through, in ms. */
static const uint64_t intervals_ms[] = {100,  200,   500,   1000,  2000,
					5000, 10000, 30000, 60000, 300000};
enum { INTERVALS = sizeof intervals_ms / sizeof *intervals_ms };

void hs_top_view_init(struct hs_top_view *view, const struct hs_top_options *options)
{
	*view = (struct hs_top_view){
		.target = options->target.text,
		.query = options->query,
		.interval_us = options->interval_us,
		.interactive = !options->once,
		.error = "",
	};
}

/* ---- the filter ---- */

static void type(struct hs_top_view *view, uint32_t key)
{
	char text[4];
	size_t len = hs_top_text_utf8(key, text);

	if (len > sizeof view->edit - view->edit_len)
		return;
	memcpy(view->edit + view->edit_len, text, len);
	view->edit_len += len;
}

/* Removes one character, which may be several bytes. */
static void erase(struct hs_top_view *view)
{
	while (view->edit_len > 0) {
		view->edit_len--;
		if ((view->edit[view->edit_len] & 0xc0) != 0x80)
			return;
	}
}

static enum hs_top_action set_filter(struct hs_top_view *view, const char *text, size_t len)
{
	struct hs_top_query *query = &view->query;

	view->editing = false;
	if (len == query->prefix_len && memcmp(text, query->prefix, len) == 0)
		return HS_TOP_ACTION_NONE;
	memcpy(query->prefix, text, len);
	query->prefix_len = len;
	view->selected = 0;
	return HS_TOP_ACTION_QUERY;
}

static enum hs_top_action edit_key(struct hs_top_view *view, uint32_t key)
{
	if (key == HS_TOP_KEY_ESCAPE)
		return set_filter(view, "", 0);
	if (key == HS_TOP_KEY_ENTER)
		return set_filter(view, view->edit, view->edit_len);
	if (key == HS_TOP_KEY_BACKSPACE)
		erase(view);
	else if (key >= ' ' && key < HS_TOP_KEY_UP)
		type(view, key);
	return HS_TOP_ACTION_NONE;
}

static void begin_edit(struct hs_top_view *view)
{
	view->editing = true;
	view->edit_len = view->query.prefix_len;
	memcpy(view->edit, view->query.prefix, view->edit_len);
}

/* ---- choices ---- */

static enum hs_top_action set_sort(struct hs_top_view *view, enum hs_top_sort sort)
{
	if (view->query.sort == sort)
		return HS_TOP_ACTION_NONE;
	view->query.sort = sort;
	return HS_TOP_ACTION_SORT;
}

static enum hs_top_action set_dimension(struct hs_top_view *view, enum hs_top_dimension dimension)
{
	if (view->query.dimension == dimension)
		return HS_TOP_ACTION_NONE;
	view->query.dimension = dimension;
	view->selected = 0;
	return HS_TOP_ACTION_QUERY;
}

static enum hs_top_action next_window(struct hs_top_view *view)
{
	view->query.window = (enum hs_top_window)((view->query.window + 1) % (int)HS_TOP_WINDOWS);
	return HS_TOP_ACTION_QUERY;
}

static enum hs_top_action change_interval(struct hs_top_view *view, bool longer)
{
	uint64_t now_ms = view->interval_us / 1000, best_ms = now_ms;

	for (int i = 0; i < INTERVALS; i++) {
		if (longer && intervals_ms[i] > now_ms && best_ms == now_ms)
			best_ms = intervals_ms[i];
		if (!longer && intervals_ms[i] < now_ms)
			best_ms = intervals_ms[i];
	}
	view->interval_us = best_ms * 1000;
	return HS_TOP_ACTION_INTERVAL;
}

/* ---- moving ---- */

static void move(struct hs_top_view *view, uint32_t key, size_t rows)
{
	size_t page = view->lines > 1 ? view->lines - 1 : 1, last = rows ? rows - 1 : 0;
	size_t at = view->selected < last ? view->selected : last;

	switch (key) {
	case HS_TOP_KEY_UP:
		at = at ? at - 1 : 0;
		break;
	case HS_TOP_KEY_DOWN:
		at++;
		break;
	case HS_TOP_KEY_PAGE_UP:
		at = at > page ? at - page : 0;
		break;
	case HS_TOP_KEY_PAGE_DOWN:
		at += page;
		break;
	case HS_TOP_KEY_HOME:
		at = 0;
		break;
	case HS_TOP_KEY_END:
		at = last;
		break;
	default:
		break;
	}
	view->selected = at < last ? at : last;
}

static enum hs_top_action plain_key(struct hs_top_view *view, uint32_t key, size_t rows)
{
	switch (key) {
	case 'q':
		return HS_TOP_ACTION_QUIT;
	case 'o':
		return set_sort(view, HS_TOP_BY_OPS);
	case 'r':
		return set_sort(view, HS_TOP_BY_READS);
	case 'w':
		return set_sort(view, HS_TOP_BY_WRITES);
	case 'b':
		return set_sort(view, HS_TOP_BY_BYTES);
	case 'l':
		return set_sort(view, HS_TOP_BY_LATENCY);
	case 'k':
		return set_dimension(view, HS_TOP_KEYS);
	case 'p':
		return set_dimension(view, HS_TOP_PREFIXES);
	case 's':
		return set_dimension(view, HS_TOP_SLOTS);
	case '\t':
	case 'W':
		return next_window(view);
	case ' ':
		view->paused = !view->paused;
		return view->paused ? HS_TOP_ACTION_NONE : HS_TOP_ACTION_INTERVAL;
	case '+':
	case '=': /* the same key without shift */
		return change_interval(view, true);
	case '-':
		return change_interval(view, false);
	case '/':
		begin_edit(view);
		return HS_TOP_ACTION_NONE;
	case HS_TOP_KEY_ESCAPE:
		return set_filter(view, "", 0);
	case 'h':
	case '?':
		view->help = true;
		return HS_TOP_ACTION_NONE;
	default:
		move(view, key, rows);
		return HS_TOP_ACTION_NONE;
	}
}

enum hs_top_action hs_top_view_key(struct hs_top_view *view, uint32_t key, size_t rows)
{
	if (key == HS_TOP_KEY_REDRAW)
		return HS_TOP_ACTION_REDRAW;
	if (view->editing)
		return edit_key(view, key);
	if (view->help) { /* any key closes the help; q only closes it, too */
		view->help = false;
		return HS_TOP_ACTION_NONE;
	}
	return plain_key(view, key, rows);
}
