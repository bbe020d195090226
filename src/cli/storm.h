/* `heatsink storm`: sends load to any Redis endpoint, measures it and, with --verify, checks the replies. Shared
 * by src/cli/storm*.c; besides them only unit tests and bench/ include it. storm is a client: it knows the
 * protocol, and shares with the redis engine only upstream/ (connections, backoff, TLS, redirects) and the parser
 * of CLUSTER SLOTS (engine/redis/topology.h). Histories are checked by sim/check.h.
 *
 *     storm.c          entry: phases in order, threads
 *     storm_options.c  the table of options
 *     storm_keys.c     draws the next key: the shapes of skew
 *     storm_wire.c     requests as bytes
 *     storm_client.c   a client's connections: connect, send, receive, reconnect
 *     storm_map.c      a Cluster: its nodes, and which of them owns each slot
 *     storm_cluster.c  a Cluster: redirects, and requests that are sent again
 *     storm_load.c     one worker: what to send when, what a reply means
 *     storm_acts.c     `--command all`: every command on few keys, and what their replies mean
 *     storm_order.c    `--ordered`: requests for one key take turns
 *     storm_verify.c   `--verify`: were the replies possible
 *     storm_history.c  `--command all --verify`: the history of all operations, checked in windows
 *     storm_check.c    searches an order of one key's operations; files of histories without one
 *     storm_report.c   the table, the JSON, the progress line
 *
 * The words: a worker has clients; a client has a connection to the server, or one to each node of a Cluster; a
 * connection has requests in flight. An act (`--command all`) is one command, or several requests that belong
 * together, such as WATCH … EXEC. A stamp is the number of an event: a request sent or a reply received. A blind
 * write is one whose reply (OK, or a count) does not tell its place in the order.
 *
 * Threads: --threads N gives N workers, each with its own loop, clients and counts. Worker 0 runs on the main
 * thread, the others on N - 1 threads that are started anew for each phase; host names are looked up in detached
 * threads (upstream/names.h). Workers share the options (constant) and the stop flag. --verify and --ordered allow
 * one thread only, so `verify`, `history` and `order` have one user.
 *
 * Bad days. A connection is lost: requests of which the kernel took a byte have an unknown outcome (`lost`), the
 * others are taken back (`unsent`). The client reconnects after a backoff of 10 ms, doubling to 1 s, plus up to
 * half of it at random. It is given up after more than --retries failures in a row; with the default of 20, that
 * takes 14 to 21 s. At the start, unless --retries is given, the first failure is enough.
 *
 * The server dies for good: RUN ends at --duration, or earlier if all clients are given up (`abandoned`). FINAL
 * (--verify) then goes on with the clients that are left, and ends when all are given up, or after 30 s without a
 * reply. Every written key that FINAL could not read is a failure: exit status 1. Without --verify, or with
 * --no-final, lost requests alone leave the exit status 0. Measured, with the server killed 3 s into the run:
 * storm ends after 21 s, with --duration 10s as with 60s. Requests lost in FINAL are not in the report. */
#ifndef HS_CLI_STORM_H
#define HS_CLI_STORM_H

#include "base/buf.h"
#include "base/counter.h"
#include "base/histogram.h"
#include "base/limits.h"
#include "base/prng.h"
#include "cli/target.h"
#include "upstream/upstream.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <uv.h>

/* ---- options ---- */

enum hs_storm_shape_kind {
	HS_STORM_UNIFORM,
	HS_STORM_ZIPF,
	HS_STORM_VIRAL,
	HS_STORM_MOVING,
	HS_STORM_FLASH,
	HS_STORM_HOT,
};

struct hs_storm_shape {
	enum hs_storm_shape_kind kind;
	double exponent; /* ZIPF */
	double share; /* of all requests: VIRAL, MOVING, FLASH: for the viral key; HOT: for the hot keys */
	double hot;		/* HOT: share of keys that are hot */
	uint64_t move_us;	/* MOVING: time until the next key becomes viral */
	uint64_t move_requests; /* FLASH: the same in requests */
};

enum hs_storm_command {
	HS_STORM_COMMAND_GET,
	HS_STORM_COMMAND_SET,
	HS_STORM_COMMAND_INCR,
	HS_STORM_COMMAND_MIXED,
	HS_STORM_COMMAND_ALL,
	HS_STORM_COMMANDS,
};

enum {
	HS_STORM_PREFIX_MAX = 256,
	HS_STORM_FOLDER_MAX = 900,	     /* longest path in an option */
	HS_STORM_VERIFY_KEYS_MAX = 10000000, /* each key costs memory */
	HS_STORM_VERIFY_VALUE_MIN = 32,	     /* room for the tag that names the write */
	HS_STORM_HISTORY_KEYS_MAX = 1000,    /* --command all is for few keys */
	HS_STORM_TAG_KEYS = 4,		     /* --command all in a Cluster: keys per hash tag */
};

struct hs_storm_options {
	struct hs_target target;
	bool cluster; /* the target is a Cluster */
	const char *prefix;
	const char *shape_text; /* as given */
	struct hs_storm_shape shape;
	enum hs_storm_command command;
	double writes; /* share; below 0: the default of the command */
	uint64_t keys;
	uint64_t value_bytes;
	uint64_t connections;
	uint64_t pipeline;
	uint64_t rate;	      /* requests per second in total; 0: closed loop */
	uint64_t duration_us; /* 0: no limit */
	bool duration_given;
	/* Cluster: for how long a request that no node ran is sent again. */
	uint64_t resend_timeout_us;
	uint64_t count; /* requests in total; 0: no limit */
	uint64_t threads;
	uint64_t seed;
	uint64_t retries;    /* failed connects in a row before a client is given up */
	bool retries_given;  /* --retries was given: failures at the start are retried, too */
	uint64_t window;     /* verify, ALL: operations in one window */
	const char *request; /* sent instead of commands; "": none */
	const char *history_folder; /* verify, ALL: where histories without an order are written */
	const char *check_file;	    /* such a file, to be checked again; "": none */
	bool load;
	bool verify;
	bool no_final; /* verify: do not read the keys at the end */
	bool ordered;
	bool json;
};

/* Parses the flags as hs_flags_read does. The options point into argv. */
int hs_storm_options_read(struct hs_storm_options *options, int argc, char **argv,
			  FILE *err) HS_MUSTCHECK;

/* Parses "zipf:0.99" and the like; false: invalid. */
bool hs_storm_shape_read(struct hs_storm_shape *shape, const char *text);
extern const char *const hs_storm_commands[]; /* the names, up to a NULL */

/* ---- keys ---- */

/* Draws key numbers 0 … keys-1 in a shape. Key 0 is the hottest of `zipf` and `viral`; the hot keys of `80/20`
 * are the first ones. */
struct hs_storm_keys {
	struct hs_storm_shape shape;
	uint64_t keys;
	uint64_t seed; /* the same for all workers, so that they agree on the viral key */
	uint64_t era;  /* MOVING, FLASH: how often the viral key has changed */
	uint64_t viral;
	uint64_t viral_below; /* a 64-bit draw below this picks the viral key, or a hot key */
	uint64_t hot_keys;    /* HOT */
	uint64_t drawn;	      /* keys drawn so far */
	double area_first, area_all, immediate; /* ZIPF: see storm_keys.c */
};

void hs_storm_keys_init(struct hs_storm_keys *keys, const struct hs_storm_shape *shape,
			uint64_t key_count, uint64_t seed);
/* `elapsed_us`: since the run began; only MOVING needs it. */
uint64_t hs_storm_keys_next(struct hs_storm_keys *keys, struct hs_prng *prng, uint64_t elapsed_us);
/* The key that is viral at that time (VIRAL, MOVING), or for the next draw (FLASH). */
uint64_t hs_storm_keys_viral(const struct hs_storm_keys *keys, uint64_t elapsed_us);

/* ---- requests ---- */

enum hs_storm_kind {
	HS_STORM_GET,
	HS_STORM_SET,
	HS_STORM_INCR,
	HS_STORM_REQUEST, /* --request */
	HS_STORM_ACT,	  /* --command all: `act` has the row in storm_acts.c */
	/* Cluster: ASKING and CLUSTER SLOTS, which are not counted. */
	HS_STORM_ASKING,
	HS_STORM_MAP,
};

/* A request in flight. One cache line: there may be many. */
struct hs_storm_request {
	uint64_t due_ns; /* when it was, or should have been, sent: latency counts from here */
	uint64_t key;
	uint64_t stamp; /* verify: the number of the event at which it was sent */
	int64_t floor; /* verify: the lowest value (counter) or write (string) that the reply may show */
	uint32_t bytes;	    /* its length */
	uint32_t record;    /* ACT, verify: the first of its `records` in the history */
	uint32_t sequence;  /* Cluster: its number among the client's requests; wraps */
	uint32_t other_key; /* Cluster: its second key (MGET, MSET), else its key, cut to 32 bits */
	/* Cluster: time (ms) until which a request that no node ran is sent again; 0: it was sent only once. If it is
	 * the first of a transaction, the whole transaction is sent again. */
	uint32_t give_up_ms;
	uint16_t slot;
	enum hs_storm_kind kind : 8;
	uint8_t act;	     /* ACT: its row in storm_acts.c */
	uint8_t reply_shape; /* ACT: enum hs_storm_reply_shape */
	uint8_t records;
	uint8_t more;	   /* Cluster: how many later requests belong to the same transaction */
	bool counter : 1;  /* the key is a counter */
	bool read : 1;	   /* ACT: counted as a read */
	bool is_watch : 1; /* ACT: this is the WATCH */
	bool depends_on_watch : 1; /* ACT: the GET after a WATCH, or its EXEC */
	/* Cluster. */
	bool reply_counted : 1; /* already counted; resent only with its transaction */
	bool asked : 1;		/* it was sent after ASKING */
	bool was_resent : 1;	/* it was redirected or refused before */
	bool pinned : 1;	/* depends on a WATCH: never sent on another connection */
};
_Static_assert(sizeof(struct hs_storm_request) == 64, "a request is one cache line");

enum { HS_STORM_KEY_DIGITS = 12 };

/* A request composed once; each use copies it and writes the key's digits over it. */
struct hs_storm_template {
	struct hs_buf bytes;
	size_t key_at, digits_at;
	size_t value_at; /* SET */
};

struct hs_storm_wire {
	struct hs_storm_template templates[2][HS_STORM_INCR + 1]; /* [is a counter][kind] */
	struct hs_buf request;					  /* --request */
	uint16_t request_slot;					  /* the slot of its second word */
};

void hs_storm_wire_init(struct hs_storm_wire *wire, const struct hs_storm_options *options);
void hs_storm_wire_deinit(struct hs_storm_wire *wire);
/* Appends the request. *value points to a SET's value in `out`, so that the caller can overwrite it. */
void hs_storm_wire_append(const struct hs_storm_wire *wire, const struct hs_storm_request *request,
			  struct hs_buf *out, char **value);
/* The slot of the request's key. */
uint16_t hs_storm_wire_slot(const struct hs_storm_wire *wire, enum hs_storm_kind kind, bool counter,
			    uint64_t number);
/* Writes "key:000000000012", zero-terminated, for messages. */
void hs_storm_key_text(const struct hs_storm_options *options, uint64_t key, bool counter,
		       char *text, size_t size);
/* True if this command uses the key as a counter. */
bool hs_storm_key_is_counter(const struct hs_storm_options *options, uint64_t key);

/* ---- phases ---- */

enum hs_storm_phase {
	HS_STORM_PHASE_CONNECT, /* until every client is connected or given up */
	HS_STORM_PHASE_LOAD,	/* write every key once */
	HS_STORM_PHASE_BASE,	/* verify: read every counter once */
	HS_STORM_PHASE_RUN,
	HS_STORM_PHASE_PROBE, /* ALL, verify: within RUN, read the keys between two windows */
	HS_STORM_PHASE_FINAL, /* verify: read every written key once */
};

/* ---- verify ---- */

/* True if the error says that the outcome of the request is unknown. With any other error nothing was done. */
bool hs_storm_outcome_is_unknown(struct hs_bytes text);

struct hs_storm_verify;

struct hs_storm_verify *hs_storm_verify_create(const struct hs_storm_options *options,
					       uint64_t run_tag);
void hs_storm_verify_destroy(struct hs_storm_verify **verify);

/* Before a request is composed: sets its stamp and floor. */
void hs_storm_verify_send(struct hs_storm_verify *verify, struct hs_storm_request *request);
/* Writes the value of a SET, which names its stamp. */
void hs_storm_verify_value(const struct hs_storm_verify *verify,
			   const struct hs_storm_request *request, char *value);
/* Checks a reply. A GET of a counter sets the counter's start value in BASE, and is compared with the sum in FINAL.
 * Returns what the reply shows of its key: a counter's value, or the stamp of a string's write. Later requests of the
 * same client for the key must not see less: raise their floor to this. */
int64_t hs_storm_verify_reply(struct hs_storm_verify *verify,
			      const struct hs_storm_request *request,
			      const struct hs_parsed_reply *answer, enum hs_storm_phase phase);
/* The connection was lost before the reply: the outcome is unknown. */
void hs_storm_verify_lost(struct hs_storm_verify *verify, const struct hs_storm_request *request);
/* The request was refused or never sent: it did nothing. */
void hs_storm_verify_undone(struct hs_storm_verify *verify, const struct hs_storm_request *request);
/* All requests with a smaller stamp are answered: drops the writes that only those requests could still have read. */
void hs_storm_verify_horizon(struct hs_storm_verify *verify, uint64_t stamp);
/* True if it is time for hs_storm_verify_horizon; *stamp is the newest stamp. */
bool hs_storm_verify_wants_horizon(const struct hs_storm_verify *verify, uint64_t *stamp);

/* True if the run wrote to the key, so that FINAL reads it. */
bool hs_storm_verify_touched(const struct hs_storm_verify *verify, uint64_t key);
/* The key could not be read in FINAL: a failure. */
void hs_storm_verify_unread(struct hs_storm_verify *verify, uint64_t key);

enum { HS_STORM_FINDINGS_MAX = 10, HS_STORM_FINDING_TEXT_MAX = 800 };

struct hs_storm_findings {
	uint64_t checked;   /* replies checked */
	uint64_t unknown;   /* writes whose outcome is unknown */
	uint64_t windows;   /* ALL: windows checked, one per key that was used */
	uint64_t undecided; /* of them, not decided: the search took too long */
	uint64_t failed;
	char text[HS_STORM_FINDINGS_MAX][HS_STORM_FINDING_TEXT_MAX]; /* the first ones */
};
const struct hs_storm_findings *hs_storm_verify_findings(const struct hs_storm_verify *verify);

/* ALL: how the reply answers the records that the request put into the history. */
enum hs_storm_reply_shape {
	HS_STORM_REPLY_ONE,    /* one reply for one record */
	HS_STORM_REPLY_EACH,   /* an array with one element per record: MGET, EXEC */
	HS_STORM_REPLY_SHARED, /* one +OK for all records: MSET */
	HS_STORM_REPLY_NONE,   /* no record: MULTI, WATCH */
};

struct hs_storm_history; /* storm_history.h */
struct hs_storm_order;	 /* storm_order.h */

/* ---- counts ---- */

enum { HS_STORM_ERRORS_MAX = 16, HS_STORM_ERROR_WORD_MAX = 32, HS_STORM_LAST_ERROR_BYTES = 200 };

/* Errors by their first word. If all rows are taken, the last row counts the rest. */
struct hs_storm_error {
	char word[HS_STORM_ERROR_WORD_MAX];
	char example[256]; /* the first error text */
	uint64_t count;
};

/* Each is a field below, a field of the JSON, and, if it has a text and is not 0, a line of the table.
 *
 * `answered` includes errors. `lost`: the outcome is unknown. `unsent` is not part of `sent`. `unknown_command`:
 * answered "unknown command" under --command all, which is not an error of the run. `waited`: --ordered, had to
 * wait for earlier requests for its key. `overdue`: open loop only. */
#define HS_STORM_COUNTS(ROW)                                                                       \
	ROW(sent, NULL)                                                                            \
	ROW(answered, NULL)                                                                        \
	ROW(lost, "sent and not answered: outcome unknown")                                        \
	ROW(unsent, "not sent: the connection was lost first")                                     \
	ROW(unknown_command, NULL)                                                                 \
	ROW(overdue, "due and not sent: the target was too slow")                                  \
	ROW(waited, NULL)                                                                          \
	ROW(disconnects, "connections lost")                                                       \
	ROW(connect_failures, "connects failed")                                                   \
	ROW(given_up, "clients given up after --retries failures")

struct hs_storm_counts {
	struct hs_histogram reads_ns, writes_ns; /* answered without an error */
	struct hs_storm_error errors[HS_STORM_ERRORS_MAX];
	uint64_t error_total;
	HS_STORM_COUNTS(HS_COUNTER_NUMBER)
	char unknown_command_name[HS_STORM_ERROR_WORD_MAX]; /* the name of the last such command */
	uint64_t first_ns, last_ns;
	char last_error[HS_STORM_LAST_ERROR_BYTES]; /* the last error of a connection */
};

void hs_storm_counts_error(struct hs_storm_counts *counts, struct hs_bytes text);
void hs_storm_counts_merge(struct hs_storm_counts *into, const struct hs_storm_counts *from);

/* ---- workers and connections ---- */

enum hs_storm_client_state {
	HS_STORM_CLIENT_OPENING, /* connecting, with backoff */
	HS_STORM_CLIENT_READY,
	HS_STORM_CLIENT_GIVEN_UP,
};

struct hs_storm_worker;

/* ALL: a key that the client watches. Its value is known when the GET after the WATCH is answered; the next requests
 * begin with the transaction that builds on it. */
struct hs_storm_watch {
	bool on;
	bool known;
	struct hs_storm_connection *connection; /* where the WATCH is; NULL: nowhere */
	uint64_t generation;			/* that connection's generation */
	bool asked; /* the WATCH was sent after ASKING: the slot is migrating */
	uint64_t key;
	uint64_t window; /* number of the history's window */
	int64_t value;
};

/* In RUN: requests sent to a server; replies MOVED, ASK, and "not now" (TRYAGAIN, CLUSTERDOWN, LOADING and the like).
 * Each is a field below, a field of the JSON and a column of the table. */
#define HS_STORM_NODE_COUNTS(ROW)                                                                  \
	ROW(requests, "requests")                                                                  \
	ROW(moved, "MOVED")                                                                        \
	ROW(asked, "ASK")                                                                          \
	ROW(not_now, "not now")

/* A server. */
struct hs_storm_node {
	struct hs_redis_address at;
	bool owner; /* it owns slots */
	HS_STORM_NODE_COUNTS(HS_COUNTER_NUMBER)
};

/* The reaction to the first error of a request or transaction: send it again, with ASKING, after a pause. */
struct hs_storm_verdict {
	bool again, ask, later;
	uint32_t node; /* the node that ASK or MOVED names */
};

/* A connection to one node, and its requests in flight. */
struct hs_storm_connection {
	struct hs_storm_client *client;
	uint32_t node;
	struct hs_upstream upstream;
	uint64_t generation;		   /* the number of times it was opened */
	bool failed_for_good;		   /* more failures in a row than --retries */
	struct hs_storm_request *requests; /* a ring; the head is the oldest */
	uint32_t ring_head, ring_count, ring_mask;

	/* Cluster. */
	bool wanted;		    /* although its node owns no slots */
	bool map_requested;	    /* CLUSTER SLOTS is in flight on it */
	struct hs_buf resend_bytes; /* the bytes of the requests in flight, from resend_at on */
	size_t resend_at;
	/* Replies received for the transaction at the head of the ring. */
	uint32_t transaction_replies;
	struct hs_storm_verdict verdict;
	struct hs_buf why; /* the error reply that `verdict` is about */
	/* Ticks without a byte from a node that owns no slots. Not time: if storm itself was delayed, the node's
	 * reply may be unread in the socket. */
	unsigned silent_ticks;
};

struct hs_storm_parked;

/* A worker's map of a Cluster. */
struct hs_storm_cluster {
	uint16_t slots[HS_SLOTS]; /* by slot: the node that owns it */
	bool known;		  /* a map has been read */
	bool wanted;		  /* a newer map is needed */
	bool lost;		  /* no node is connected: connect to any node */
	uint64_t asked_ns;	  /* when the map was last requested */
	uint64_t began_ms;
	uint64_t version; /* counts changes of `slots` */
	unsigned cursor;  /* the client that requests the map next */
	char why[HS_REDIS_WHY_BYTES];
};

/* A client: its requests keep their order per key. */
struct hs_storm_client {
	struct hs_storm_worker *worker;
	enum hs_storm_client_state state;
	struct hs_storm_connection **connections; /* by node */
	uint32_t connections_count;
	uint32_t in_flight; /* requests: on all connections, and parked */
	struct hs_storm_watch watch;
	uint32_t history_client; /* ALL, verify: its number in the history */
	/* Where the reply being handled came from; NULL: from no connection. */
	struct hs_storm_connection *from;

	/* The request being added. */
	struct hs_buf *out;
	size_t out_before;
	struct hs_storm_connection *adding; /* NULL: the request is parked */
	struct hs_storm_request *added;
	uint16_t slot;

	/* Cluster. */
	uint8_t transaction_added,
		transaction_left;	 /* requests of a transaction: added, and still to add */
	struct hs_storm_connection *pin; /* requests must go here (WATCH); NULL: as the map says */
	struct hs_storm_parked *parked;	 /* a list, smallest `sequence` first */
	struct hs_storm_parked *parking; /* the one that was parked last */
	uint32_t sequence;		 /* of the next request */
	/* No slot has requests on two connections under this version of the map. UINT64_MAX: not known. */
	uint64_t settled_version;
};

struct hs_storm_worker {
	const struct hs_storm_options *options;
	atomic_bool *stop; /* SIGINT or SIGTERM: send no more */
	unsigned index;
	uv_loop_t loop;
	uv_timer_t tick;
	uv_timer_t reconnect;
	uv_poll_t pace; /* open loop: a timerfd, finer than libuv's timers */
	int pace_fd;
	struct hs_storm_node *nodes; /* the seeds come first */
	uint32_t nodes_count;
	struct hs_storm_cluster *cluster; /* NULL: one server */
	struct hs_storm_client *clients;
	unsigned clients_count;
	unsigned cursor;	      /* open loop: the client that sends next */
	struct hs_conn_driver driver; /* with a larger buffer: HS_STORM_INPUT_BYTES */

	struct hs_storm_wire wire;
	struct hs_storm_keys keys;
	struct hs_prng prng;
	struct hs_prng chance; /* for draws that must not change the sequence of `prng` */
	uint64_t write_below;  /* a 64-bit draw below this is a write */

	enum hs_storm_phase phase;
	bool abandoned; /* the phase ended before everything was sent and answered */
	bool cut_short; /* RUN ended because no reply came */
	uint64_t in_flight;
	uint64_t read_ns; /* when bytes were last received */
	/* The last reply on any connection, or the start of the phase. A phase without a time limit goes on as long
	 * as any server replies. */
	uint64_t last_answer_ns;
	uint64_t start_ns, end_ns;   /* RUN; end 0: none */
	uint64_t quota;		     /* RUN: requests to send; UINT64_MAX: no limit */
	uint64_t stopped_ns;	     /* RUN: when sending ended; 0: not yet */
	double interval_ns;	     /* open loop; 0: closed */
	uint64_t next_key, key_step; /* the other phases: the next key */
	struct hs_buf again; /* keys (uint64_t) to request again: their connection was lost */

	struct hs_storm_verify *verify;	  /* NULL: no --verify, or ALL */
	struct hs_storm_history *history; /* NULL: not --verify with ALL */
	struct hs_storm_order *order;	  /* NULL: no --ordered */
	uint64_t acts_missing;	  /* ALL: bit mask of acts whose command the server does not know */
	int64_t value_last;	  /* ALL: the last value written */
	bool retry_paused;	  /* ALL: a key could not be read; wait for the next tick */
	unsigned unread;	  /* failed reads in this phase */
	struct hs_buf last_array; /* the last long array: an equal reply is not parsed again */
	struct hs_storm_counts counts;	    /* of RUN */
	struct hs_storm_counts side_counts; /* of the other phases */
	_Atomic uint64_t progress;	    /* replies in RUN, for the progress line */
	void (*on_tick)(void *context, struct hs_storm_worker *worker);
	void *on_tick_context;
	uv_thread_t thread;
};

/* storm_load.c */
void hs_storm_worker_init(struct hs_storm_worker *worker, const struct hs_storm_options *options,
			  unsigned index, atomic_bool *stop);
void hs_storm_worker_deinit(struct hs_storm_worker *worker);
/* Prepares the phase. Call it for all workers before any runs. */
void hs_storm_worker_prepare(struct hs_storm_worker *worker, enum hs_storm_phase phase);
/* Runs the loop until the phase is over. In FINAL, keys that were not read are failures. */
void hs_storm_worker_run(struct hs_storm_worker *worker);
/* The counts of the current phase. */
struct hs_storm_counts *hs_storm_worker_counts(struct hs_storm_worker *worker);

/* storm_load.c, called by a connection */
void hs_storm_worker_on_answer(struct hs_storm_worker *worker, struct hs_storm_client *client,
			       const struct hs_storm_request *request, struct hs_bytes reply);
/* After all replies of one read, or when the client became ready, lost a connection, or was given up. */
void hs_storm_worker_on_progress(struct hs_storm_worker *worker, struct hs_storm_client *client);
/* The connection was lost before the reply; `sent`: the kernel had taken a byte of the request. */
void hs_storm_worker_on_lost(struct hs_storm_worker *worker, struct hs_storm_client *client,
			     const struct hs_storm_request *request, bool sent);

/* storm_acts.c */
enum { HS_STORM_ACT_REQUESTS_MAX = 8 }; /* most requests of one act */
enum { HS_STORM_PROBE_REQUESTS = 2 };	/* requests that read a key of a history: GET, PTTL */
/* Composes acts until there are at least `count` requests. Returns their number. */
uint64_t hs_storm_acts_fill(struct hs_storm_worker *worker, struct hs_storm_client *client,
			    uint64_t count, uint64_t now_ns);
/* Composes the requests that read a key before its window is closed. */
void hs_storm_acts_probe(struct hs_storm_worker *worker, struct hs_storm_client *client,
			 uint64_t key, uint64_t now_ns);
/* Counts an error reply. "unknown command" under --command all is counted as unknown_command. */
void hs_storm_acts_error(const struct hs_storm_request *request,
			 const struct hs_parsed_reply *answer, struct hs_storm_counts *counts);
void hs_storm_acts_answer(struct hs_storm_worker *worker, struct hs_storm_client *client,
			  const struct hs_storm_request *request,
			  const struct hs_parsed_reply *answer, struct hs_bytes body);

/* storm_client.c */
enum { HS_STORM_SIDE_PIPELINE = 64, HS_STORM_INPUT_BYTES = 256 * 1024 };
void hs_storm_worker_init_driver(struct hs_storm_worker *worker);
void hs_storm_client_init(struct hs_storm_client *client, struct hs_storm_worker *worker);
/* After the loop has closed its handles. */
void hs_storm_client_deinit(struct hs_storm_client *client);
void hs_storm_client_start(struct hs_storm_client *client);
void hs_storm_client_stop(struct hs_storm_client *client); /* for good: closes its handles */
/* Drops its connections with the requests in flight, and reconnects after a pause. */
void hs_storm_client_drop(struct hs_storm_client *client, const char *why);
/* Sets the state of the client from the states of its connections. */
void hs_storm_client_update_state(struct hs_storm_client *client);
/* The connection to a node; created if there is none. */
struct hs_storm_connection *hs_storm_client_connection(struct hs_storm_client *client,
						       uint32_t node);
/* Adds a request: the caller sets its fields, composes it into client->out, calls `added`, and later `flush`. */
struct hs_storm_request *hs_storm_client_add(struct hs_storm_client *client, uint16_t slot);
void hs_storm_client_added(struct hs_storm_client *client);
void hs_storm_client_flush(struct hs_storm_client *client);
/* The smallest stamp of the requests in flight; UINT64_MAX: none. */
uint64_t hs_storm_client_oldest(const struct hs_storm_client *client);
/* Raises the floor of the requests in flight for the key. */
void hs_storm_client_raise_floor(struct hs_storm_client *client, uint64_t key, int64_t floor);
/* Makes the reconnect timer fire at this time at the latest. */
void hs_storm_worker_wake(struct hs_storm_worker *worker, uint64_t at_us);
struct hs_storm_request *hs_storm_connection_add(struct hs_storm_connection *connection);
/* Takes the oldest request off the ring; valid until the next add. */
struct hs_storm_request *hs_storm_connection_take(struct hs_storm_connection *connection);
/* The request at this place of the ring; 0 is the oldest. */
static inline struct hs_storm_request *hs_storm_connection_request(
	const struct hs_storm_connection *connection, uint32_t place)
{
	return &connection->requests[(connection->ring_head + place) & connection->ring_mask];
}
/* Opens the connection if it is closed and its backoff is over. */
void hs_storm_connection_open(struct hs_storm_connection *connection);
void hs_storm_connection_drop(struct hs_storm_connection *connection, const char *why);
/* The node owns no slots: closes the connection if no request is in flight. */
void hs_storm_connection_retire(struct hs_storm_connection *connection);

/* Sends ASKING or CLUSTER SLOTS, whose replies are not counted. */
void hs_storm_connection_send_control(struct hs_storm_connection *connection,
				      enum hs_storm_kind kind, const char *words);

/* storm_map.c */
enum { HS_STORM_NODES_MAX = 2048 }; /* twice the shards of the largest Cluster (topology.h) */
/* The index of the node at this address; a new one is added. HS_STORM_NODES_MAX: the table is full. */
uint32_t hs_storm_node(struct hs_storm_worker *worker, const struct hs_redis_address *at);
bool hs_storm_connection_is_wanted(const struct hs_storm_connection *connection);
void hs_storm_map_set_owner(struct hs_storm_cluster *cluster, uint16_t slot, uint32_t node);
void hs_storm_map_read(struct hs_storm_connection *connection, struct hs_bytes reply);
void hs_storm_map_request(struct hs_storm_worker *worker);
void hs_storm_map_tick(struct hs_storm_worker *worker);

/* storm_cluster.c */
/* Chooses where the next request, for this slot, goes: sets client->adding (NULL: it is parked) and client->out. */
void hs_storm_cluster_route(struct hs_storm_client *client, uint16_t slot);
struct hs_storm_request *hs_storm_cluster_park(struct hs_storm_client *client);
/* The request is composed: keeps its bytes until its reply comes, in case it must be sent again. */
void hs_storm_cluster_added(struct hs_storm_client *client, struct hs_storm_request *request);
void hs_storm_cluster_take(struct hs_storm_connection *connection, struct hs_bytes reply);
/* Sends parked requests, as far as the order allows. */
void hs_storm_cluster_release(struct hs_storm_client *client);
/* Ends all parked requests with their last error: no node ran them. */
void hs_storm_cluster_give_up(struct hs_storm_client *client);
/* hs_storm_client_oldest and hs_storm_client_raise_floor for parked requests. */
uint64_t hs_storm_cluster_oldest(const struct hs_storm_client *client, uint64_t oldest);
void hs_storm_cluster_raise_floor(struct hs_storm_client *client, uint64_t key, int64_t floor);

/* storm_report.c */
struct hs_storm_result {
	const struct hs_storm_options *options;
	const struct hs_storm_counts *counts;
	const struct hs_storm_findings *findings; /* NULL: no --verify */
	const struct hs_storm_node *nodes;	  /* Cluster only */
	uint32_t nodes_count;
	double seconds;
	double cpu_seconds; /* of storm itself during the run */
};
void hs_storm_report_table(const struct hs_storm_result *result, FILE *out);
void hs_storm_report_json(const struct hs_storm_result *result, FILE *out);
/* Prints a line that overwrites itself. */
void hs_storm_report_progress(FILE *out, double seconds, uint64_t answered, double per_second);
void hs_storm_report_progress_end(FILE *out);

#endif
