/* What the operator chose, and what a key does to it. */
#include "cli/top.h"

/* The intervals that + and - go through, in ms. */
static const uint64_t rhythm_ms[] = {100, 200, 500, 1000, 2000, 5000, 10000, 30000, 60000, 300000};
enum { RHYTHMS = sizeof rhythm_ms / sizeof *rhythm_ms };

void hs_top_view_init(struct hs_top_view *view, const struct hs_top_options *options)
{
	*view = (struct hs_top_view){
		.target = options->target.text,
		.question = options->question,
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

/* A whole character, not one byte of it. */
static void erase(struct hs_top_view *view)
{
	while (view->edit_len > 0) {
		view->edit_len--;
		if ((view->edit[view->edit_len] & 0xc0) != 0x80)
			return;
	}
}

static enum hs_top_wish set_filter(struct hs_top_view *view, const char *text, size_t len)
{
	struct hs_top_question *question = &view->question;

	view->editing = false;
	if (len == question->prefix_len && memcmp(text, question->prefix, len) == 0)
		return HS_TOP_WISH_NOTHING;
	memcpy(question->prefix, text, len);
	question->prefix_len = len;
	view->selected = 0;
	return HS_TOP_WISH_ASK;
}

static enum hs_top_wish edit_key(struct hs_top_view *view, uint32_t key)
{
	if (key == HS_TOP_KEY_ESCAPE)
		return set_filter(view, "", 0);
	if (key == HS_TOP_KEY_ENTER)
		return set_filter(view, view->edit, view->edit_len);
	if (key == HS_TOP_KEY_BACKSPACE)
		erase(view);
	else if (key >= ' ' && key < HS_TOP_KEY_UP)
		type(view, key);
	return HS_TOP_WISH_NOTHING;
}

static void begin_edit(struct hs_top_view *view)
{
	view->editing = true;
	view->edit_len = view->question.prefix_len;
	memcpy(view->edit, view->question.prefix, view->edit_len);
}

/* ---- choices ---- */

static enum hs_top_wish set_sort(struct hs_top_view *view, enum hs_top_sort sort)
{
	if (view->question.sort == sort)
		return HS_TOP_WISH_NOTHING;
	view->question.sort = sort;
	return HS_TOP_WISH_SORT;
}

static enum hs_top_wish set_what(struct hs_top_view *view, enum hs_top_what what)
{
	if (view->question.what == what)
		return HS_TOP_WISH_NOTHING;
	view->question.what = what;
	view->selected = 0;
	return HS_TOP_WISH_ASK;
}

static enum hs_top_wish next_window(struct hs_top_view *view)
{
	view->question.window =
		(enum hs_top_window)((view->question.window + 1) % (int)HS_TOP_WINDOWS);
	return HS_TOP_WISH_ASK;
}

static enum hs_top_wish change_rhythm(struct hs_top_view *view, bool longer)
{
	uint64_t now_ms = view->interval_us / 1000, best_ms = now_ms;

	for (int i = 0; i < RHYTHMS; i++) {
		if (longer && rhythm_ms[i] > now_ms && best_ms == now_ms)
			best_ms = rhythm_ms[i];
		if (!longer && rhythm_ms[i] < now_ms)
			best_ms = rhythm_ms[i];
	}
	view->interval_us = best_ms * 1000;
	return HS_TOP_WISH_RHYTHM;
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

static enum hs_top_wish plain_key(struct hs_top_view *view, uint32_t key, size_t rows)
{
	switch (key) {
	case 'q':
		return HS_TOP_WISH_QUIT;
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
		return set_what(view, HS_TOP_KEYS);
	case 'p':
		return set_what(view, HS_TOP_PREFIXES);
	case 's':
		return set_what(view, HS_TOP_SLOTS);
	case '\t':
	case 'W':
		return next_window(view);
	case ' ':
		view->paused = !view->paused;
		return view->paused ? HS_TOP_WISH_NOTHING : HS_TOP_WISH_RHYTHM;
	case '+':
	case '=': /* the same key without shift */
		return change_rhythm(view, true);
	case '-':
		return change_rhythm(view, false);
	case '/':
		begin_edit(view);
		return HS_TOP_WISH_NOTHING;
	case HS_TOP_KEY_ESCAPE:
		return set_filter(view, "", 0);
	case 'h':
	case '?':
		view->help = true;
		return HS_TOP_WISH_NOTHING;
	default:
		move(view, key, rows);
		return HS_TOP_WISH_NOTHING;
	}
}

enum hs_top_wish hs_top_view_key(struct hs_top_view *view, uint32_t key, size_t rows)
{
	if (key == HS_TOP_KEY_REDRAW)
		return HS_TOP_WISH_REDRAW;
	if (view->editing)
		return edit_key(view, key);
	if (view->help) { /* any key closes it; q does not quit by surprise */
		view->help = false;
		return HS_TOP_WISH_NOTHING;
	}
	return plain_key(view, key, rows);
}
