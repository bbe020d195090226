/* `heatsink top`: queries a server's heat again and again and shows it, or once and prints it. Shared by
 * src/cli/top*.c; besides them only unit tests include it.
 *
 *     top.c          entry: the one frame, or the loop of keys, ticks and answers
 *     top_options.c  the table of options, the help
 *     top_client.c   one connection: sends a query, reconnects; never blocks
 *     top_model.c    replies to rows, by field name
 *     top_view.c     the operator's choices, and what each key changes
 *     top_text.c     numbers for people
 *     top_grid.c     a rectangle of characters; makes bytes of keys harmless for the terminal
 *     top_table.c    which columns fit
 *     top_columns.c  the columns of partitions, keys, prefixes, slots
 *     top_frame.c    the whole frame: model and view to a grid
 *     top_screen.c   a grid to the terminal, keys from it; the only file that knows ncurses
 *
 *     keys ──▶ view ──▶ query ──▶ client ◀──▶ server
 *                │                   │ replies
 *                └──────▶ frame ◀── model
 *                           │ grid
 *                           └──▶ screen, or standard output
 *
 * One thread; name lookups run in detached threads (upstream/names.h). Everything between client and screen is
 * pure: it has no clock and no file descriptor. A server that hangs or dies blocks no key: the last figures stay,
 * marked as stale, and top reconnects at the next interval. */
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
	HS_TOP_PREFIX_MAX = 256,	   /* longest filter, in bytes */
	HS_TOP_ROWS_MAX = 1000,		   /* the most rows that HEAT TOP returns */
	HS_TOP_PARTITIONS_MAX = 4096,	   /* the most rows of HEAT PARTITIONS that are read */
	HS_TOP_PREFIX_ROWS = 5,		   /* prefixes in the line above the keys */
	HS_TOP_REPLY_BYTES_MAX = 16 << 20, /* of all replies to one query */
	HS_TOP_ERROR_MAX = 1024,
};

/* ---- the query ---- */

enum hs_top_dimension { HS_TOP_KEYS, HS_TOP_PREFIXES, HS_TOP_SLOTS, HS_TOP_DIMENSIONS };
enum hs_top_sort {
	HS_TOP_BY_OPS,
	HS_TOP_BY_READS,
	HS_TOP_BY_WRITES,
	HS_TOP_BY_BYTES,
	HS_TOP_BY_LATENCY,
	HS_TOP_SORTS,
};
/* AUTO: the server chooses; the short window if it has enough requests. */
enum hs_top_window { HS_TOP_AUTO, HS_TOP_SHORT, HS_TOP_LONG, HS_TOP_WINDOWS };

struct hs_top_query {
	enum hs_top_dimension dimension;
	enum hs_top_sort sort;
	enum hs_top_window window;
	uint64_t count;
	char prefix[HS_TOP_PREFIX_MAX]; /* only names with this prefix */
	size_t prefix_len;
};

/* The words for HEAT and for flags, up to a NULL. */
extern const char *const hs_top_dimensions[], *const hs_top_sorts[], *const hs_top_windows[];

/* ---- options ---- */

struct hs_top_options {
	struct hs_target target;
	uint64_t interval_us;
	uint64_t timeout_us;
	struct hs_top_query query;
	bool once;
};

/* Parses the flags as hs_flags_read does. */
int hs_top_options_read(struct hs_top_options *options, int argc, char **argv,
			FILE *err) HS_MUSTCHECK;

/* ---- the client ---- */

/* One connection, opened when a query is sent, and reopened by the next query after a loss. No call blocks: run the
 * loop, at most until the deadline, and call `poll`. */
struct hs_top_client;

enum hs_top_outcome { HS_TOP_WAITING, HS_TOP_ANSWERED, HS_TOP_FAILED };

struct hs_top_client *hs_top_client_create(const struct hs_top_options *options,
					   struct uv_loop_s *loop);
/* Its handles close when the loop runs again. */
void hs_top_client_destroy(struct hs_top_client **client);

/* Sends a query; not while it waits for another. */
void hs_top_client_send(struct hs_top_client *client, const struct hs_top_query *query,
			uint64_t now_us);
bool hs_top_client_is_waiting(const struct hs_top_client *client);
/* The last query. */
const struct hs_top_query *hs_top_client_query(const struct hs_top_client *client);
uint64_t hs_top_client_deadline_us(const struct hs_top_client *client);
/* The state of the query. FAILED: the connection is closed, and hs_top_client_error says what happened and what
 * to do. ANSWERED: the replies are there. Both are returned once. */
enum hs_top_outcome hs_top_client_poll(struct hs_top_client *client, uint64_t now_us);
const char *hs_top_client_error(const struct hs_top_client *client);

/* The replies to one query, in order: INFO, HEAT PARTITIONS, the rows, HEAT PREFIXES (unless the rows are prefixes).
 * Only the reply to INFO may be an error. */
enum { HS_TOP_REPLIES_MAX = 4 };
struct hs_top_replies {
	struct hs_buf bytes;
	size_t ends[HS_TOP_REPLIES_MAX]; /* in `bytes` */
	size_t count;
};
/* Valid until the next query. */
const struct hs_top_replies *hs_top_client_replies(const struct hs_top_client *client);

/* ---- the model ---- */

/* clang-format off */
/* Fields of HEAT's rows, by the server's names. */
#define HS_TOP_ROW_NUMBERS(FIELD) \
	FIELD(ops) FIELD(ops_low) FIELD(reads) FIELD(writes) FIELD(bytes) FIELD(p99_us) FIELD(share) \
	FIELD(partition) FIELD(slot)
#define HS_TOP_PARTITION_TEXTS(FIELD) \
	FIELD(id) FIELD(address) FIELD(state) FIELD(reason) FIELD(slots) FIELD(top_key)
#define HS_TOP_PARTITION_NUMBERS(FIELD) \
	FIELD(ops) FIELD(reads) FIELD(writes) FIELD(bytes) FIELD(load) FIELD(inflight) FIELD(queued) \
	FIELD(p50_us) FIELD(p99_us) FIELD(errors) FIELD(commit_p99_us) FIELD(memory) \
	FIELD(top_key_share) FIELD(cpu) FIELD(replica_lag)
#define HS_TOP_NUMBER(name) double name;
#define HS_TOP_TEXT(name) struct hs_bytes name;
/* clang-format on */

/* A number that the server did not send is NAN, a text is empty. Unknown fields are ignored. */
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
	bool loaded;	     /* a query has been answered since the start */
	enum hs_top_dimension dimension;
	struct hs_top_row *rows;
	size_t rows_count;
	struct hs_top_row *prefixes;
	size_t prefixes_count;
	struct hs_top_partition *partitions; /* rows of partitions; the row `median` is below */
	size_t partitions_count;
	struct hs_top_partition median; /* ops NAN: none */
	struct hs_bytes version;
	double uptime_s;
};

/* True if the server reports a state other than ok. Older servers send no state: false. */
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
/* Copies and parses the replies. HS_EPROTO, and an unchanged model, if they are not an answer to `query`. */
int hs_top_model_read(struct hs_top_model *model, const struct hs_top_query *query,
		      const struct hs_top_replies *replies) HS_MUSTCHECK;
/* By sort: the offset of the number in a row. */
extern const size_t hs_top_sort_fields[HS_TOP_SORTS];
/* Sorts the rows, for a paused view. By ops it uses the lower bound, if known, as the server does. */
void hs_top_model_sort(struct hs_top_model *model, enum hs_top_sort sort);

/* ---- the view ---- */

/* A key is a character, the ASCII control characters with a name included, or from UP on a number above all
 * characters. */
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

/* The keys, for --help and the help screen. */
#define HS_TOP_KEYS_HELP                                                                           \
	"  o r w b l   sort by ops, reads, writes, bytes, latency\n"                               \
	"  k p s       show keys, prefixes, slots\n"                                               \
	"  Tab or W    the window: auto, short (80 ms), long (10 s)\n"                             \
	"  /           show only names that start with a text; Enter ends it, Esc: all\n"          \
	"  space       pause and resume; while paused, sorting uses the shown rows\n"              \
	"  arrows      move, also Page Up, Page Down, Home, End; the last line shows the\n"        \
	"              selected key in full\n"                                                     \
	"  + -         a longer, a shorter interval\n"                                             \
	"  Ctrl-L      redraw the screen\n"                                                        \
	"  h or ?      help          q   quit\n"

struct hs_top_view {
	const char *target;
	struct hs_top_query query;
	uint64_t interval_us;
	bool paused;
	bool help;
	bool editing; /* the filter is being typed, in `edit` */
	char edit[HS_TOP_PREFIX_MAX];
	size_t edit_len;
	bool interactive;	 /* on a screen: with a selected row and a status line */
	bool unicode;		 /* the terminal shows UTF-8 */
	size_t selected, scroll; /* rows of the table */
	size_t lines;		 /* rows of the table that fit the last frame */
	const char *error;	 /* one line; "": none */
	double waiting_s;	 /* for a slow reply; 0: none */
	bool stale;		 /* the figures are old: queries fail or hang */
	double age_s;		 /* age of the figures */
};

/* The action that the caller takes after a key, besides painting. */
enum hs_top_action {
	HS_TOP_ACTION_NONE,
	HS_TOP_ACTION_QUIT,
	HS_TOP_ACTION_QUERY, /* query at once, even while paused */
	HS_TOP_ACTION_SORT,  /* another order: query, or sort the shown rows while paused */
	HS_TOP_ACTION_REDRAW,
	HS_TOP_ACTION_INTERVAL, /* another interval, or resumed */
};

void hs_top_view_init(struct hs_top_view *view, const struct hs_top_options *options);
/* `rows`: the number of rows of the model. */
enum hs_top_action hs_top_view_key(struct hs_top_view *view, uint32_t key, size_t rows);

/* ---- numbers for people ---- */

enum { HS_TOP_TEXT_MAX = 16 };

/* At most six characters each, "-" for unknown: 12.3k 4.50M; 850us 1.20ms; 41% 4.1% <0.1%; 1.20MB; 2.31x. k is
 * 1000. */
void hs_top_text_count(double value, char text[HS_TOP_TEXT_MAX]);
void hs_top_text_bytes(double value, char text[HS_TOP_TEXT_MAX]);
void hs_top_text_time_us(double value, char text[HS_TOP_TEXT_MAX]); /* 0: unknown */
void hs_top_text_share(double value, char text[HS_TOP_TEXT_MAX]);
void hs_top_text_ratio(double value, char text[HS_TOP_TEXT_MAX]);
void hs_top_text_split(double reads, double writes, char text[HS_TOP_TEXT_MAX]); /* 90:10 */
void hs_top_text_plain(double value, char text[HS_TOP_TEXT_MAX]);		 /* an integer */
void hs_top_text_uptime(double seconds, char text[HS_TOP_TEXT_MAX]);		 /* 3d04h */
/* Encodes a character as UTF-8; returns the length. */
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
	uint32_t character; /* 0: the right half of the wide character before it */
	enum hs_top_style style;
};

struct hs_top_grid {
	size_t rows, cols;
	bool unicode;
	struct hs_top_cell *cells;
	size_t cursor_row, cursor_col; /* the cursor; SIZE_MAX: hidden */
};

enum { HS_TOP_COLS_MIN = 20, HS_TOP_COLS_MAX = 1000 };

void hs_top_grid_init(struct hs_top_grid *grid, size_t rows, size_t cols, bool unicode);
void hs_top_grid_deinit(struct hs_top_grid *grid);
void hs_top_grid_clear(struct hs_top_grid *grid, size_t row);
void hs_top_grid_style(struct hs_top_grid *grid, size_t row, size_t col, size_t cols,
		       enum hs_top_style style);
/* Writes trusted text, ASCII or UTF-8 of one column per character, up to column `col` + `cols`. Returns the column
 * after it. */
size_t hs_top_grid_put(struct hs_top_grid *grid, size_t row, size_t col, size_t cols,
		       enum hs_top_style style, const char *text);
size_t hs_top_grid_put_right(struct hs_top_grid *grid, size_t row, size_t col, size_t cols,
			     enum hs_top_style style, const char *text);
/* Writes untrusted bytes, escaped (base/escape.h). Characters without a fixed width, and without Unicode all
 * characters other than ASCII, become \xNN. A text that is too long loses its middle, with a mark there. */
size_t hs_top_grid_put_key(struct hs_top_grid *grid, size_t row, size_t col, size_t cols,
			   enum hs_top_style style, struct hs_bytes key);
void hs_top_grid_print(const struct hs_top_grid *grid, FILE *out); /* without spaces at line ends */

/* ---- tables ---- */

/* The value at the right end of the bars, and the median mark. */
struct hs_top_scale {
	double end, median;
};

/* The part of the grid for one cell of a table. */
struct hs_top_cell_area {
	struct hs_top_grid *grid;
	size_t row, col, cols;
	const struct hs_top_scale *scale; /* for bars */
};

/* Bits of hs_top_column.tables: where a column is shown. */
enum hs_top_table {
	HS_TOP_TABLE_KEYS = 1 << HS_TOP_KEYS,
	HS_TOP_TABLE_PREFIXES = 1 << HS_TOP_PREFIXES,
	HS_TOP_TABLE_SLOTS = 1 << HS_TOP_SLOTS,
	HS_TOP_TABLE_SERVERS =
		1
		<< HS_TOP_DIMENSIONS, /* partitions that are servers; the embedded engine has no such value */
};

struct hs_top_column {
	const char *title;
	int rank;	 /* order in which columns get room; 1 is first */
	unsigned tables; /* tables that have the column; 0: all */
	bool optional;	 /* gets room only if all other columns have their `wanted` width */
	size_t width;	 /* the least width */
	size_t wanted;	 /* if it grows: width before an optional column gets room */
	size_t most;	 /* if it grows: the largest width */
	size_t grow;	 /* its weight when spare room is divided; 0: fixed width */
	bool left;	 /* aligned left */
	size_t field;	 /* offset in the item: of its number, or for `write` */
	size_t second;	 /* a second offset for `write` */
	void (*text)(double value, char text[HS_TOP_TEXT_MAX]);
	enum hs_top_style (*style)(double value); /* NULL: plain style */
	/* Writes the cell for this item; NULL: writes the number with `text`. */
	void (*write)(const struct hs_top_cell_area *at, const struct hs_top_column *column,
		      const void *item);
};

enum { HS_TOP_COLUMNS_MAX = 20 };

struct hs_top_layout {
	const struct hs_top_column *columns;
	size_t count;
	size_t at[HS_TOP_COLUMNS_MAX];
	size_t width[HS_TOP_COLUMNS_MAX]; /* 0: not shown */
};

void hs_top_layout_init(struct hs_top_layout *layout, const struct hs_top_column *columns,
			size_t count, unsigned table, size_t cols);
/* Highlights the heading of the number at offset `sorted`; SIZE_MAX: none. */
void hs_top_layout_head(const struct hs_top_layout *layout, struct hs_top_grid *grid, size_t row,
			size_t sorted);
/* `scale`: for partitions, else NULL. */
void hs_top_layout_row(const struct hs_top_layout *layout, struct hs_top_grid *grid, size_t row,
		       const void *item, const struct hs_top_scale *scale);

void hs_top_columns_partitions(struct hs_top_layout *layout, bool servers, size_t cols);
void hs_top_columns_rows(struct hs_top_layout *layout, enum hs_top_dimension dimension,
			 size_t cols);

/* ---- the frame ---- */

/* Creates a grid of this size; `rows` 0: as high as its content. Scrolls the view so that the selected row is
 * visible. */
void hs_top_frame(struct hs_top_grid *grid, struct hs_top_view *view,
		  const struct hs_top_model *model, size_t rows, size_t cols);

/* ---- the screen ---- */

struct hs_top_screen;

/* Takes over the terminal; NULL with one line in `error` if it cannot. `close` restores the terminal. The process
 * must have set its locale. */
struct hs_top_screen *hs_top_screen_open(char error[HS_TOP_ERROR_MAX]);
void hs_top_screen_close(struct hs_top_screen **screen);
void hs_top_screen_leave(
	struct hs_top_screen *screen); /* restores the terminal until the next `show` */
void hs_top_screen_size(const struct hs_top_screen *screen, size_t *rows, size_t *cols);
void hs_top_screen_resize(struct hs_top_screen *screen); /* the terminal's size has changed */
void hs_top_screen_redraw(struct hs_top_screen *screen); /* the next `show` paints everything */
void hs_top_screen_show(struct hs_top_screen *screen, const struct hs_top_grid *grid);
/* The next typed key; HS_TOP_KEY_NONE: none. */
uint32_t hs_top_screen_key(struct hs_top_screen *screen);

#endif
