/* What the files of `heatsink top` share; nobody else includes this. Top asks a server for its heat
 * again and again and shows it, or once and prints it.
 *
 *     top.c          entry: the one frame, or the loop of keys, ticks and answers
 *     top_options.c  the table of options, the help
 *     top_client.c   one connection: what is asked, connecting again; never waits
 *     top_model.c    replies to rows, by field name
 *     top_view.c     what the operator chose, and what a key does to it
 *     top_text.c     numbers for people
 *     top_grid.c     a rectangle of characters: keys that no terminal can be hurt by
 *     top_table.c    which columns fit
 *     top_columns.c  the columns of partitions, keys, prefixes, slots
 *     top_frame.c    the whole frame: model and view to a grid
 *     top_screen.c   a grid to the terminal, keys from it; the only file that knows ncurses
 *
 *     keys ──▶ view ──▶ question ──▶ client ◀──▶ server
 *                │                      │ replies
 *                └──────▶ frame ◀── model
 *                           │ grid
 *                           └──▶ screen, or standard output
 *
 * One thread. Everything between client and screen is pure: it has no clock, no file descriptor. */
#ifndef HS_CLI_TOP_H
#define HS_CLI_TOP_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/check.h"
#include "cli/target.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
	HS_TOP_PREFIX_MAX = 256,	   /* bytes of a filter */
	HS_TOP_ROWS_MAX = 1000,		   /* what HEAT TOP gives at most */
	HS_TOP_PARTITIONS_MAX = 4096,	   /* rows of HEAT PARTITIONS that are looked at */
	HS_TOP_PREFIX_ROWS = 5,		   /* hottest prefixes in the line above the keys */
	HS_TOP_REPLY_BYTES_MAX = 16 << 20, /* of all replies to one question */
	HS_TOP_ERROR_MAX = 1024,
};

/* ---- what is asked ---- */

enum hs_top_dimension { HS_TOP_KEYS, HS_TOP_PREFIXES, HS_TOP_SLOTS, HS_TOP_DIMENSIONS };
enum hs_top_sort {
	HS_TOP_BY_OPS,
	HS_TOP_BY_READS,
	HS_TOP_BY_WRITES,
	HS_TOP_BY_BYTES,
	HS_TOP_BY_LATENCY,
	HS_TOP_SORTS,
};
/* AUTO leaves it to the server: the short window while enough happens in it. */
enum hs_top_window { HS_TOP_AUTO, HS_TOP_SHORT, HS_TOP_LONG, HS_TOP_WINDOWS };

struct hs_top_query {
	enum hs_top_dimension dimension;
	enum hs_top_sort sort;
	enum hs_top_window window;
	uint64_t count;
	char prefix[HS_TOP_PREFIX_MAX]; /* only names that start like this */
	size_t prefix_len;
};

/* The words of HEAT and of the flags, up to a NULL. */
extern const char *const hs_top_dimensions[], *const hs_top_sorts[], *const hs_top_windows[];

/* ---- options ---- */

struct hs_top_options {
	struct hs_target target;
	uint64_t interval_us;
	uint64_t timeout_us;
	struct hs_top_query query;
	bool once;
};

/* Reads the words into *options, as hs_flags_read does. */
int hs_top_options_read(struct hs_top_options *options, int argc, char **argv,
			FILE *err) HS_MUSTCHECK;

/* ---- the client ---- */

/* One connection, made when something is asked and made again after it was lost. Its calls never
 * wait: run the loop, until its deadline at the latest, and call `step`. */
struct hs_top_client;

enum hs_top_outcome { HS_TOP_WAITING, HS_TOP_ANSWERED, HS_TOP_FAILED };

struct hs_top_client *hs_top_client_create(const struct hs_top_options *options,
					   struct uv_loop_s *loop);
/* Its handles are closed when the loop has run on. */
void hs_top_client_destroy(struct hs_top_client **client);

/* Asks; not while it is asking. */
void hs_top_client_send(struct hs_top_client *client, const struct hs_top_query *query,
			uint64_t now_us);
bool hs_top_client_is_waiting(const struct hs_top_client *client);
/* What was asked last. */
const struct hs_top_query *hs_top_client_query(const struct hs_top_client *client);
uint64_t hs_top_client_deadline_us(const struct hs_top_client *client);
/* What has come of it. FAILED: the connection is closed, and hs_top_client_error says what happened and what to do.
 * ANSWERED: the replies can be taken. */
enum hs_top_outcome hs_top_client_poll(struct hs_top_client *client, uint64_t now_us);
const char *hs_top_client_error(const struct hs_top_client *client);

/* The replies to one question, one after the other as they came: INFO, HEAT PARTITIONS, the rows,
 * HEAT PREFIXES (not when the rows are prefixes). None of them is an error but INFO's may be. */
enum { HS_TOP_REPLIES_MAX = 4 };
struct hs_top_replies {
	struct hs_buf bytes;
	size_t ends[HS_TOP_REPLIES_MAX]; /* in `bytes` */
	size_t count;
};
/* Until the next `ask`. */
const struct hs_top_replies *hs_top_client_replies(const struct hs_top_client *client);

/* ---- the model ---- */

/* clang-format off */
/* Fields of HEAT's rows, by the names that the server gives them. */
#define HS_TOP_ROW_NUMBERS(FIELD) \
	FIELD(ops) FIELD(ops_low) FIELD(reads) FIELD(writes) FIELD(bytes) FIELD(p99_us) FIELD(share) \
	FIELD(partition) FIELD(slot)
#define HS_TOP_PARTITION_TEXTS(FIELD) \
	FIELD(id) FIELD(address) FIELD(state) FIELD(trouble) FIELD(slots) FIELD(top_key)
#define HS_TOP_PARTITION_NUMBERS(FIELD) \
	FIELD(ops) FIELD(reads) FIELD(writes) FIELD(bytes) FIELD(load) FIELD(inflight) FIELD(queued) \
	FIELD(p50_us) FIELD(p99_us) FIELD(errors) FIELD(commit_p99_us) FIELD(memory) \
	FIELD(top_key_share) FIELD(cpu) FIELD(replica_lag)
#define HS_TOP_NUMBER(name) double name;
#define HS_TOP_TEXT(name) struct hs_bytes name;
/* clang-format on */

/* A number that the server did not send is NAN, a text is empty. Fields that are not known here are
 * passed over. */
struct hs_top_row {
	struct hs_bytes name; /* key or prefix; empty for a slot */
	HS_TOP_ROW_NUMBERS(HS_TOP_NUMBER)
};

struct hs_top_partition {
	HS_TOP_PARTITION_TEXTS(HS_TOP_TEXT)
	HS_TOP_PARTITION_NUMBERS(HS_TOP_NUMBER)
};

struct hs_top_model {
	struct hs_buf bytes; /* the replies; texts point into it */
	bool loaded;	     /* something was read since the start */
	enum hs_top_dimension dimension;
	struct hs_top_row *rows;
	size_t rows_count;
	struct hs_top_row *prefixes;
	size_t prefixes_count;
	struct hs_top_partition *partitions; /* without the median */
	size_t partitions_count;
	struct hs_top_partition median; /* ops NAN: there is none */
	struct hs_bytes version;
	double uptime_s;
};

/* It has said so, as servers from before there was a state do not. */
static inline bool hs_top_is_unhealthy(const struct hs_top_partition *partition)
{
	return partition->state.len > 0 && !hs_bytes_equal(partition->state, HS_LIT("ok"));
}

/* The number at this offset of a row. */
static inline double hs_top_number(const void *row, size_t field)
{
	double value;

	memcpy(&value, (const char *)row + field, sizeof value);
	return value;
}

void hs_top_model_init(struct hs_top_model *model);
void hs_top_model_deinit(struct hs_top_model *model);
/* Copies the replies and reads them. HS_EPROTO, and the model as it was, when they do not have the
 * shape of an answer to `question`. */
int hs_top_model_read(struct hs_top_model *model, const struct hs_top_query *query,
		      const struct hs_top_replies *replies) HS_MUSTCHECK;
/* Where a row has the number that it is sorted by. */
extern const size_t hs_top_sort_fields[HS_TOP_SORTS];
/* Puts the rows in another order: for a frozen model. The server's own order is by what is certain;
 * so is this one, where the bound is known. */
void hs_top_model_sort(struct hs_top_model *model, enum hs_top_sort sort);

/* ---- the view ---- */

/* A key is a character, or one of these, above all characters. */
enum hs_top_key {
	HS_TOP_KEY_NONE = 0,
	HS_TOP_KEY_REDRAW = 12, /* Ctrl-L */
	HS_TOP_KEY_ENTER = '\r',
	HS_TOP_KEY_ESCAPE = 27,
	HS_TOP_KEY_BACKSPACE = 127,
	HS_TOP_KEY_UP = 0x110000,
	HS_TOP_KEY_DOWN,
	HS_TOP_KEY_PAGE_UP,
	HS_TOP_KEY_PAGE_DOWN,
	HS_TOP_KEY_HOME,
	HS_TOP_KEY_END,
};

/* What they do: of --help, and on the screen. */
#define HS_TOP_KEYS_HELP                                                                           \
	"  o r w b l   sort by ops, reads, writes, bytes, latency\n"                               \
	"  k p s       show keys, prefixes, slots\n"                                               \
	"  Tab or W    the window: auto, short (80 ms), long (10 s)\n"                             \
	"  /           show only what starts with the text typed, up to Enter; Esc: all\n"         \
	"  space       pause and go on; sorting works on the frozen rows\n"                        \
	"  arrows      move; Page Up, Page Down, Home, End too; the last line has the\n"           \
	"              selected key in full\n"                                                     \
	"  + -         a longer, a shorter interval\n"                                             \
	"  Ctrl-L      paint everything anew\n"                                                    \
	"  h or ?      help          q   quit\n"

struct hs_top_view {
	const char *target;
	struct hs_top_query query;
	uint64_t interval_us;
	bool paused;
	bool help;
	bool editing; /* the filter, in `edit` */
	char edit[HS_TOP_PREFIX_MAX];
	size_t edit_len;
	bool interactive;	 /* a screen: a selected row, a status line */
	bool unicode;		 /* the terminal shows UTF-8 */
	size_t selected, scroll; /* rows of the table */
	size_t lines;		 /* rows of the table that the last frame had room for */
	const char *error;	 /* one line; "": all is well */
	double waiting_s;	 /* for an answer that takes long; 0: not */
	bool stale;		 /* what is shown is old: no answer comes any more */
	double age_s;		 /* of the last answer */
};

/* What must happen after a key, beside painting. */
enum hs_top_action {
	HS_TOP_ACTION_NONE,
	HS_TOP_ACTION_QUIT,
	HS_TOP_ACTION_QUERY, /* another question: at once, even while paused */
	HS_TOP_ACTION_SORT,  /* another order: ask, or sort what is there while paused */
	HS_TOP_ACTION_REDRAW,
	HS_TOP_ACTION_INTERVAL, /* another interval, or not paused any more */
};

void hs_top_view_init(struct hs_top_view *view, const struct hs_top_options *options);
/* `rows` is how many the model has. */
enum hs_top_action hs_top_view_key(struct hs_top_view *view, uint32_t key, size_t rows);

/* ---- numbers for people ---- */

enum { HS_TOP_TEXT_MAX = 16 };

/* At most six characters each, "-" for what is not known: 12.3k 4.50M; 850us 1.20ms; 41% 4.1%
 * <0.1%; 1.20MB; 2.31x. k is 1000. */
void hs_top_text_count(double value, char text[HS_TOP_TEXT_MAX]);
void hs_top_text_bytes(double value, char text[HS_TOP_TEXT_MAX]);
void hs_top_text_time_us(double value, char text[HS_TOP_TEXT_MAX]); /* 0 is not known */
void hs_top_text_share(double value, char text[HS_TOP_TEXT_MAX]);
void hs_top_text_ratio(double value, char text[HS_TOP_TEXT_MAX]);
void hs_top_text_split(double reads, double writes, char text[HS_TOP_TEXT_MAX]); /* 90:10 */
void hs_top_text_plain(double value, char text[HS_TOP_TEXT_MAX]);		 /* an integer */
void hs_top_text_uptime(double seconds, char text[HS_TOP_TEXT_MAX]);		 /* 3d04h */
/* The UTF-8 of a character; returns its length. */
size_t hs_top_text_utf8(uint32_t character, char text[4]);

/* ---- the grid ---- */

enum hs_top_style {
	HS_TOP_PLAIN,
	HS_TOP_DIM,
	HS_TOP_STRONG,
	HS_TOP_HEAD, /* a table's heading */
	HS_TOP_COOL,
	HS_TOP_WARM,
	HS_TOP_HOT,
	HS_TOP_SELECTED,
	HS_TOP_ALERT,
	HS_TOP_STYLES,
};

struct hs_top_cell {
	uint32_t character; /* 0: the right half of the wide one before it */
	enum hs_top_style style;
};

struct hs_top_grid {
	size_t rows, cols;
	bool unicode;
	struct hs_top_cell *cells;
	size_t cursor_row, cursor_col; /* where to type; SIZE_MAX: nowhere */
};

enum { HS_TOP_COLS_MIN = 20, HS_TOP_COLS_MAX = 1000 };

void hs_top_grid_init(struct hs_top_grid *grid, size_t rows, size_t cols, bool unicode);
void hs_top_grid_deinit(struct hs_top_grid *grid);
void hs_top_grid_clear(struct hs_top_grid *grid, size_t row);
void hs_top_grid_style(struct hs_top_grid *grid, size_t row, size_t col, size_t cols,
		       enum hs_top_style style);
/* Our own words, plain ASCII or UTF-8 that is known to be one column wide. They end at `col` +
 * `cols`. Return the column behind them. */
size_t hs_top_grid_put(struct hs_top_grid *grid, size_t row, size_t col, size_t cols,
		       enum hs_top_style style, const char *text);
size_t hs_top_grid_put_right(struct hs_top_grid *grid, size_t row, size_t col, size_t cols,
			     enum hs_top_style style, const char *text);
/* A client's bytes, escaped (base/escape.h); besides, what has no width of its own is \xNN, and
 * without Unicode all that is not ASCII. What is too long loses its middle, where a mark stands. */
size_t hs_top_grid_put_key(struct hs_top_grid *grid, size_t row, size_t col, size_t cols,
			   enum hs_top_style style, struct hs_bytes key);
void hs_top_grid_print(const struct hs_top_grid *grid, FILE *out); /* no blanks at line ends */

/* ---- tables ---- */

/* Where the bars of partitions end, and the median that they are held against. */
struct hs_top_scale {
	double end, median;
};

/* A cell's part of the grid. */
struct hs_top_cell_area {
	struct hs_top_grid *grid;
	size_t row, col, cols;
	const struct hs_top_scale *scale; /* of partitions */
};

/* Where a column is shown: its `tables` are a set of these. */
enum hs_top_table {
	HS_TOP_TABLE_KEYS = 1 << HS_TOP_KEYS,
	HS_TOP_TABLE_PREFIXES = 1 << HS_TOP_PREFIXES,
	HS_TOP_TABLE_SLOTS = 1 << HS_TOP_SLOTS,
	HS_TOP_TABLE_SERVERS =
		1
		<< HS_TOP_DIMENSIONS, /* partitions that are servers: the embedded engine has no such value */
};

struct hs_top_column {
	const char *title;
	int rank;	 /* the order in which they get a place; 1 is first */
	unsigned tables; /* that have it; 0: all */
	bool optional;	 /* only where every other one has what it wants */
	size_t width;	 /* at least */
	size_t wanted;	 /* of one that grows: so much before an optional column gets a place */
	size_t most;	 /* of one that grows */
	size_t grow;	 /* its parts of what is left over; 0: it has its width */
	bool left;	 /* set at the left */
	size_t field;	 /* offset into the item: of its number, or what `write` takes */
	size_t second;	 /* of another number that `write` takes */
	void (*text)(double value, char text[HS_TOP_TEXT_MAX]);
	enum hs_top_style (*style)(double value); /* NULL: plain */
	/* Writes its cell of this item; NULL: the number as `text` has it. */
	void (*write)(const struct hs_top_cell_area *at, const struct hs_top_column *column,
		      const void *item);
};

enum { HS_TOP_COLUMNS_MAX = 20 };

struct hs_top_layout {
	const struct hs_top_column *columns;
	size_t count;
	size_t at[HS_TOP_COLUMNS_MAX];
	size_t width[HS_TOP_COLUMNS_MAX]; /* 0: has no place */
};

void hs_top_layout_init(struct hs_top_layout *layout, const struct hs_top_column *columns,
			size_t count, unsigned table, size_t cols);
/* The heading of the number at `sorted` stands out; SIZE_MAX: none does. */
void hs_top_layout_head(const struct hs_top_layout *layout, struct hs_top_grid *grid, size_t row,
			size_t sorted);
/* `scale` is for partitions. */
void hs_top_layout_row(const struct hs_top_layout *layout, struct hs_top_grid *grid, size_t row,
		       const void *item, const struct hs_top_scale *scale);

void hs_top_columns_partitions(struct hs_top_layout *layout, bool servers, size_t cols);
void hs_top_columns_rows(struct hs_top_layout *layout, enum hs_top_dimension dimension,
			 size_t cols);

/* ---- the frame ---- */

/* Makes a grid of this size; `rows` 0 makes it as high as what is shown. Scrolls the view so that
 * the selected row is visible. */
void hs_top_frame(struct hs_top_grid *grid, struct hs_top_view *view,
		  const struct hs_top_model *model, size_t rows, size_t cols);

/* ---- the screen ---- */

struct hs_top_screen;

/* Takes the terminal; NULL with one line in `error` when it cannot. `close` gives it back as it
 * was. The process's locale must be set. */
struct hs_top_screen *hs_top_screen_open(char error[HS_TOP_ERROR_MAX]);
void hs_top_screen_close(struct hs_top_screen **screen);
void hs_top_screen_leave(struct hs_top_screen *screen); /* until the next `show` */
void hs_top_screen_size(const struct hs_top_screen *screen, size_t *rows, size_t *cols);
void hs_top_screen_resize(struct hs_top_screen *screen); /* the terminal has another size */
void hs_top_screen_redraw(struct hs_top_screen *screen); /* the next `show` paints everything */
void hs_top_screen_show(struct hs_top_screen *screen, const struct hs_top_grid *grid);
/* The next key that was typed; HS_TOP_KEY_NONE: no more for now. */
uint32_t hs_top_screen_key(struct hs_top_screen *screen);

#endif
