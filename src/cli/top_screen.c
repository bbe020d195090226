/* The terminal: shows a grid and reads keys. The only file that uses ncurses, which sends only the differences
 * between two frames: little data for a slow line. */
#define NCURSES_NOMACROS
#include "cli/top.h"

#include "base/mem.h"

#include <ncurses.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <term.h>
#include <unistd.h>

enum { ESCAPE_MS = 25 }; /* bytes that come later after an Esc are not part of a key code */

struct hs_top_screen {
	SCREEN *screen;
	short pairs[HS_TOP_STYLES]; /* colour pairs; 0: the terminal's default */
};

/* Attributes must do without colours: bold for important text, reversed for the selection. */
static const struct {
	attr_t attributes;
	short ink; /* colour; 0: none */
} looks[HS_TOP_STYLES] = {
	[HS_TOP_DIM] = {A_DIM, 0},
	[HS_TOP_STRONG] = {A_BOLD, 0},
	[HS_TOP_HEAD] = {A_REVERSE, COLOR_CYAN},
	[HS_TOP_COOL] = {0, COLOR_GREEN},
	[HS_TOP_WARM] = {A_BOLD, COLOR_YELLOW},
	[HS_TOP_HOT] = {A_BOLD, COLOR_RED},
	[HS_TOP_SELECTED] = {A_REVERSE, 0},
	[HS_TOP_ALERT] = {A_REVERSE | A_BOLD, COLOR_RED},
};

static void set_colours(struct hs_top_screen *screen)
{
	const char *off = getenv("NO_COLOR");
	short paper;

	if ((off && *off) || !has_colors() || start_color() == ERR)
		return;
	paper = use_default_colors() == OK ? -1 : COLOR_BLACK;
	for (int style = 1; style < HS_TOP_STYLES; style++) {
		if (looks[style].ink && init_pair((short)style, looks[style].ink, paper) == OK)
			screen->pairs[style] = (short)style;
	}
}

/* The reason why a terminal of this name cannot be used, or NULL. Checked before ncurses starts: on a terminal that
 * cannot move its cursor, such as "dumb", ncurses would show nothing and report no error. */
static const char *no_use(const char *term)
{
	const char *move;
	int why;

	if (!term || !*term || setupterm(NULL, STDOUT_FILENO, &why) != OK)
		return "is not known";
	move = tigetstr("cup");
	if (move == (const char *)-1)
		move = NULL;
	del_curterm(cur_term);
	return move ? NULL : "cannot move its cursor";
}

struct hs_top_screen *hs_top_screen_open(char error[HS_TOP_ERROR_MAX])
{
	const char *term = getenv("TERM"), *why;
	struct hs_top_screen *screen;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		snprintf(error, HS_TOP_ERROR_MAX,
			 "standard input or output is not a terminal; use --once to print one "
			 "frame");
		return NULL;
	}
	why = no_use(term);
	screen = hs_mem_zalloc(sizeof *screen);
	if (!why)
		screen->screen = newterm(NULL, stdout, stdin);
	if (!screen->screen) {
		snprintf(error, HS_TOP_ERROR_MAX,
			 "the terminal type '%.64s' %s; set TERM (xterm, vt100), or use --once",
			 term ? term : "", why ? why : "cannot be opened");
		hs_mem_free(&screen);
		return NULL;
	}
	cbreak();
	noecho();
	nonl();
	intrflush(stdscr, FALSE); /* Ctrl-C and Ctrl-Z must not discard output */
	keypad(stdscr, TRUE);
	define_key("\033[A", KEY_UP); /* also from terminals that do not match TERM */
	define_key("\033[B", KEY_DOWN);
	nodelay(stdscr, TRUE);
	set_escdelay(ESCAPE_MS);
	curs_set(0);
	set_colours(screen);
	return screen;
}

void hs_top_screen_close(struct hs_top_screen **screen)
{
	if (!*screen)
		return;
	hs_top_screen_leave(*screen);
	delscreen((*screen)->screen);
	hs_mem_free(screen);
}

void hs_top_screen_leave(struct hs_top_screen *screen)
{
	(void)screen;
	curs_set(1);
	endwin();
}

void hs_top_screen_size(const struct hs_top_screen *screen, size_t *rows, size_t *cols)
{
	(void)screen;
	*rows = (size_t)getmaxy(stdscr);
	*cols = (size_t)getmaxx(stdscr);
}

void hs_top_screen_redraw(struct hs_top_screen *screen)
{
	(void)screen;
	clearok(curscr, TRUE);
}

void hs_top_screen_resize(struct hs_top_screen *screen)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col)
		resizeterm(size.ws_row, size.ws_col);
	hs_top_screen_redraw(screen); /* the content of the screen is unknown */
}

void hs_top_screen_show(struct hs_top_screen *screen, const struct hs_top_grid *grid)
{
	bool cursor = grid->cursor_row < grid->rows && grid->cursor_col < grid->cols;

	erase();
	for (size_t i = 0; i < grid->rows * grid->cols; i++) {
		const struct hs_top_cell *cell = &grid->cells[i];
		wchar_t text[2] = {(wchar_t)cell->character, L'\0'};
		cchar_t piece;

		if (cell->character == 0)
			continue;
		setcchar(&piece, text, looks[cell->style].attributes, screen->pairs[cell->style],
			 NULL);
		mvadd_wch((int)(i / grid->cols), (int)(i % grid->cols), &piece);
	}
	curs_set(cursor ? 1 : 0);
	if (cursor)
		move((int)grid->cursor_row, (int)grid->cursor_col);
	refresh();
}

/* The key for an ncurses key code. */
static uint32_t function_key(wint_t code)
{
	static const struct {
		wint_t code;
		uint32_t key;
	} keys[] = {
		{KEY_UP, HS_TOP_KEY_UP},	 {KEY_DOWN, HS_TOP_KEY_DOWN},
		{KEY_PPAGE, HS_TOP_KEY_PAGE_UP}, {KEY_NPAGE, HS_TOP_KEY_PAGE_DOWN},
		{KEY_HOME, HS_TOP_KEY_HOME},	 {KEY_END, HS_TOP_KEY_END},
		{KEY_ENTER, HS_TOP_KEY_ENTER},	 {KEY_BACKSPACE, HS_TOP_KEY_BACKSPACE},
	};

	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		if (keys[i].code == code)
			return keys[i].key;
	}
	return HS_TOP_KEY_NONE;
}

/* After an Esc: skips an escape sequence that ncurses does not know, so that its letters do not count as keys. True
 * if there was none: Esc was typed by itself. */
static bool lone_escape(void)
{
	wint_t code;

	if (get_wch(&code) == ERR || code == HS_TOP_KEY_ESCAPE)
		return true;
	if (code == '[' || code == 'O') {
		while (get_wch(&code) != ERR && (code < '@' || code > '~'))
			continue;
	}
	return false;
}

uint32_t hs_top_screen_key(struct hs_top_screen *screen)
{
	wint_t code;
	int kind;

	(void)screen;
	while ((kind = get_wch(&code)) != ERR) {
		uint32_t key = kind == KEY_CODE_YES ? function_key(code) : (uint32_t)code;

		if (key == '\n')
			key = HS_TOP_KEY_ENTER;
		if (key == '\b')
			key = HS_TOP_KEY_BACKSPACE;
		if (key == HS_TOP_KEY_ESCAPE && !lone_escape())
			continue;
		if (key != HS_TOP_KEY_NONE)
			return key;
	}
	return HS_TOP_KEY_NONE;
}
