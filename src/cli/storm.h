/* What the files of `heatsink storm` share; nobody else includes this. Storm makes load for any
 * Redis endpoint, measures it and, when asked, checks what comes back.
 *
 *     storm.c          entry: phases in order, threads
 *     storm_options.c  the table of options
 *     storm_keys.c     which key is next: the shapes of skew
 *     storm_wire.c     requests as bytes
 *     storm_client.c     a client's connections: connect, send, receive, connect again
 *     storm_map.c      a Cluster: its nodes, and which of them owns each slot
 *     storm_cluster.c  a Cluster: redirects, and what is sent again
 *     storm_load.c     one worker: what to send when, what a reply means
 *     storm_acts.c     `--command all`: every command on few keys, and what their replies mean
 *     storm_order.c    `--ordered`: requests of one key take turns
 *     storm_verify.c   were the replies possible
 *     storm_history.c  the same for `--command all`: everything that was seen, checked in windows
 *     storm_check.c    is there an order of one key's operations; files of those without
 *     storm_report.c   the table, the JSON, the progress line
 *
 * A worker is a thread with a loop, its connections and its counts; workers share only the options
 * (constant) and the stop flag. */
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
	double share; /* VIRAL, MOVING, FLASH: of all requests, for the viral key; HOT: for the hot */
	double hot;   /* HOT: their share of the keys */
	uint64_t move_us;	/* MOVING: how long a key stays viral */
	uint64_t move_requests; /* FLASH: the same, in requests */
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
	HS_STORM_FOLDER_MAX = 900,	     /* of a path given as an option */
	HS_STORM_VERIFY_KEYS_MAX = 10000000, /* every key costs memory then */
	HS_STORM_VERIFY_VALUE_MIN = 32,	     /* room for the tag that says which write it was */
	HS_STORM_HISTORY_KEYS_MAX = 1000,    /* --command all is for few keys */
	HS_STORM_TAG_KEYS = 4, /* --command all in a Cluster: so many have a slot in common */
};

struct hs_storm_options {
	struct hs_target target;
	bool cluster; /* the target is one */
	const char *prefix;
	const char *shape_text; /* as given */
	struct hs_storm_shape shape;
	enum hs_storm_command command;
	double writes; /* share; below 0: the command's own */
	uint64_t keys;
	uint64_t value_bytes;
	uint64_t connections;
	uint64_t pipeline;
	uint64_t rate;	      /* requests per second in all; 0: closed loop */
	uint64_t duration_us; /* 0: no limit */
	bool duration_given;
	uint64_t
		resend_timeout_us; /* a Cluster: so long a request that was not run is sent again */
	uint64_t count;		   /* requests in all; 0: no limit */
	uint64_t threads;
	uint64_t seed;
	uint64_t retries;    /* failed connects in a row before a connection is given up */
	bool retries_given;  /* --retries is on the command line: a refused start is retried, too */
	uint64_t window;     /* verify, ALL: operations from one quiet moment to the next */
	const char *request; /* sent instead of a command; "": none */
	const char *history_folder; /* verify, ALL: for histories that no order explains */
	const char *check_file;	    /* such a file, to be judged again; "": none */
	bool load;
	bool verify;
	bool no_final; /* verify: the keys are not read once more at the end */
	bool ordered;
	bool json;
};

/* Reads the words into *options, as hs_flags_read does. The options point into argv. */
int hs_storm_options_read(struct hs_storm_options *options, int argc, char **argv,
			  FILE *err) HS_MUSTCHECK;

/* "zipf:0.99" and the like; false when it is none. */
bool hs_storm_shape_read(struct hs_storm_shape *shape, const char *text);
extern const char *const hs_storm_commands[]; /* their names */

/* ---- keys ---- */

/* Draws key numbers 0 … keys-1 in a shape. Key 0 is the hottest of `zipf` and `viral`; the hot ones of
 * `80/20` are the first. */
struct hs_storm_keys {
	struct hs_storm_shape shape;
	uint64_t keys;
	uint64_t seed; /* the same for every worker: they agree on which key is viral */
	uint64_t era;  /* MOVING, FLASH: the stretch of the run that `viral` belongs to */
	uint64_t viral;
	uint64_t viral_below; /* a 64-bit draw below this is the viral key, or a hot one */
	uint64_t hot_keys;    /* HOT */
	uint64_t drawn;	      /* keys so far */
	double area_first, area_all, immediate; /* ZIPF: see storm_keys.c */
};

void hs_storm_keys_init(struct hs_storm_keys *keys, const struct hs_storm_shape *shape,
			uint64_t key_count, uint64_t seed);
/* `elapsed_us` is the time since the run began; only MOVING looks at it. */
uint64_t hs_storm_keys_next(struct hs_storm_keys *keys, struct hs_prng *prng, uint64_t elapsed_us);
/* The key that is viral at that time (VIRAL, MOVING), or for the next draw (FLASH). */
uint64_t hs_storm_keys_viral(const struct hs_storm_keys *keys, uint64_t elapsed_us);

/* ---- requests ---- */

enum hs_storm_kind {
	HS_STORM_GET,
	HS_STORM_SET,
	HS_STORM_INCR,
	HS_STORM_REQUEST, /* --request */
	HS_STORM_ACT,	  /* --command all: storm_acts.c knows more */
	/* A Cluster: storm's own, which nobody counts. */
	HS_STORM_ASKING,
	HS_STORM_MAP,
};

/* A request under way. One line of the processor's cache: there may be many. */
struct hs_storm_request {
	uint64_t due_ns; /* when it was, or should have been, sent */
	uint64_t key;
	uint64_t stamp;	 /* verify: its place in the order of all events */
	int64_t floor;	 /* verify, counters: the highest value known when it was sent */
	uint32_t bytes;	 /* of the request */
	uint32_t record; /* ACT, verify: the first of the `records` that it put into the history */
	uint32_t sequence;  /* a Cluster: among the client's requests; it wraps */
	uint32_t other_key; /* a Cluster: its second key, or its key, cut off */
	/* A Cluster: until then it is sent again, with its transaction if it is the first; 0: it was sent once. */
	uint32_t give_up_ms;
	uint16_t slot;
	enum hs_storm_kind kind : 8;
	uint8_t act;	     /* ACT: its row */
	uint8_t reply_shape; /* ACT: enum hs_storm_reply_shape */
	uint8_t records;
	uint8_t more; /* a Cluster: requests behind it that are sent with it, of a transaction */
	bool counter : 1;	   /* the key is a counter */
	bool read : 1;		   /* ACT: it is counted with the reads */
	bool is_watch : 1;	   /* ACT: the WATCH */
	bool depends_on_watch : 1; /* ACT: the GET behind a WATCH, or the EXEC that depends on it */
	/* A Cluster. */
	bool reply_counted : 1; /* its reply was dealt with; it is sent again with its transaction */
	bool asked : 1;		/* it was sent behind ASKING */
	bool was_resent : 1;	/* it came back before */
	bool pinned : 1;	/* it is good for its link alone */
};
_Static_assert(sizeof(struct hs_storm_request) == 64, "a flight is a line of the cache");

enum { HS_STORM_KEY_DIGITS = 12 };

/* A request composed once; each use copies it and writes the key's digits over it. */
struct hs_storm_template {
	struct hs_buf bytes;
	size_t key_at, digits_at;
	size_t value_at; /* SET */
};

struct hs_storm_wire {
	struct hs_storm_template templates[2][HS_STORM_INCR + 1]; /* of a counter or not; by kind */
	struct hs_buf request;					  /* --request */
	uint16_t request_slot;					  /* of its second word */
};

void hs_storm_wire_init(struct hs_storm_wire *wire, const struct hs_storm_options *options);
void hs_storm_wire_deinit(struct hs_storm_wire *wire);
/* Appends the request; a SET's value is at *value (a pointer into `out`) for whoever wants another
 * one there. */
void hs_storm_wire_append(const struct hs_storm_wire *wire, const struct hs_storm_request *request,
			  struct hs_buf *out, char **value);
/* The slot of the key that it is about. */
uint16_t hs_storm_wire_slot(const struct hs_storm_wire *wire, enum hs_storm_kind kind, bool counter,
			    uint64_t number);
/* "key:000000000012", zero terminated: for messages. */
void hs_storm_key_text(const struct hs_storm_options *options, uint64_t key, bool counter,
		       char *text, size_t size);
/* Whether the key with that number is a counter under this command. */
bool hs_storm_key_is_counter(const struct hs_storm_options *options, uint64_t key);

/* ---- phases ---- */

enum hs_storm_phase {
	HS_STORM_PHASE_CONNECT, /* every connection up or given up */
	HS_STORM_PHASE_LOAD,	/* every key written once */
	HS_STORM_PHASE_BASE,	/* verify: every counter read once */
	HS_STORM_PHASE_RUN,
	HS_STORM_PHASE_PROBE, /* ALL, verify: inside RUN, the keys read between two windows */
	HS_STORM_PHASE_FINAL, /* verify: every written key read once */
};

/* ---- verify ---- */

/* An error reply means that nothing was done, unless it says that nobody knows. */
bool hs_storm_outcome_is_unknown(struct hs_bytes text);

struct hs_storm_verify;

struct hs_storm_verify *hs_storm_verify_create(const struct hs_storm_options *options,
					       uint64_t run_tag);
void hs_storm_verify_destroy(struct hs_storm_verify **verify);

/* Before a request is composed: gives it its stamp. */
void hs_storm_verify_send(struct hs_storm_verify *verify, struct hs_storm_request *request);
/* Writes the value of a SET that was just stamped. */
void hs_storm_verify_value(const struct hs_storm_verify *verify,
			   const struct hs_storm_request *request, char *value);
/* What a GET of a counter answers is its start in BASE, and in FINAL the sum. Returns what the reply said about its
 * key: a counter's value, a string's write. A request behind it on the same connection and key must not see less:
 * raise its floor to this. */
int64_t hs_storm_verify_reply(struct hs_storm_verify *verify,
			      const struct hs_storm_request *request,
			      const struct hs_parsed_reply *answer, enum hs_storm_phase phase);
/* The connection died before the answer: the outcome is unknown. */
void hs_storm_verify_lost(struct hs_storm_verify *verify, const struct hs_storm_request *request);
/* It was not done: refused, or never sent. */
void hs_storm_verify_undone(struct hs_storm_verify *verify, const struct hs_storm_request *request);
/* No request stamped before this one is still under way: what only they could have read may be
 * forgotten. */
void hs_storm_verify_horizon(struct hs_storm_verify *verify, uint64_t stamp);
/* True when it is time to call that; *stamp is the newest there is. */
bool hs_storm_verify_wants_horizon(const struct hs_storm_verify *verify, uint64_t *stamp);

/* Whether the run wrote to the key: it is read once more at the end. */
bool hs_storm_verify_touched(const struct hs_storm_verify *verify, uint64_t key);
/* A key that could not be read at the end. */
void hs_storm_verify_unread(struct hs_storm_verify *verify, uint64_t key);

enum { HS_STORM_FINDINGS_MAX = 10, HS_STORM_FINDING_TEXT_MAX = 800 };

struct hs_storm_findings {
	uint64_t checked;   /* replies looked at */
	uint64_t unknown;   /* writes whose outcome is unknown */
	uint64_t windows;   /* ALL: judged, each of one key */
	uint64_t undecided; /* of them: the search took too long, nothing wrong was found */
	uint64_t failed;
	char text[HS_STORM_FINDINGS_MAX][HS_STORM_FINDING_TEXT_MAX]; /* the first ones */
};
const struct hs_storm_findings *hs_storm_verify_findings(const struct hs_storm_verify *verify);

/* How the reply to a request of `all` belongs to what the request put into the history. */
enum hs_storm_reply_shape {
	HS_STORM_REPLY_ONE,    /* it answers the one record */
	HS_STORM_REPLY_EACH,   /* an array with an element for each record: MGET, EXEC */
	HS_STORM_REPLY_SHARED, /* one +OK for all of them: MSET */
	HS_STORM_REPLY_NONE,   /* it put nothing there: MULTI, WATCH */
};

struct hs_storm_history; /* storm_history.h */
struct hs_storm_order;	 /* storm_order.h */

/* ---- counts ---- */

enum { HS_STORM_ERRORS_MAX = 16, HS_STORM_ERROR_WORD_MAX = 32, HS_STORM_LAST_ERROR_BYTES = 200 };

/* Errors by their first word; when all rows are taken the last one takes the rest. */
struct hs_storm_error {
	char word[HS_STORM_ERROR_WORD_MAX];
	char example[128]; /* the first text that came */
	uint64_t count;
};

/* Each is a field below, a field of the JSON and, where it has a text, a line of the table, unless it is 0.
 *
 * `answered` has errors, too. `lost`: the outcome is unknown. `unsent` is not in `sent`. `not_known`: answered "unknown
 * command" under --command all, which is no error of the run. `put_aside`: --ordered, had to wait for the turn of its
 * key. `behind`: of an open loop. */
#define HS_STORM_COUNTS(ROW)                                                                       \
	ROW(sent, NULL)                                                                            \
	ROW(answered, NULL)                                                                        \
	ROW(lost, "sent and never answered")                                                       \
	ROW(unsent, "taken back: a connection was lost before they were sent")                     \
	ROW(not_known, NULL)                                                                       \
	ROW(behind, "due and never sent: the target was too slow")                                 \
	ROW(put_aside, NULL)                                                                       \
	ROW(disconnects, "connections lost")                                                       \
	ROW(connect_failures, "connects failed")                                                   \
	ROW(given_up, "connections given up")

struct hs_storm_counts {
	struct hs_histogram reads_ns, writes_ns; /* answered without an error */
	struct hs_storm_error errors[HS_STORM_ERRORS_MAX];
	uint64_t error_total;
	HS_STORM_COUNTS(HS_COUNTER_NUMBER)
	char not_known_name[HS_STORM_ERROR_WORD_MAX]; /* the last such command */
	uint64_t first_ns, last_ns;
	char last_error[HS_STORM_LAST_ERROR_BYTES]; /* the last error of a connection */
};

void hs_storm_counts_error(struct hs_storm_counts *counts, struct hs_bytes text);
void hs_storm_counts_merge(struct hs_storm_counts *into, const struct hs_storm_counts *from);

/* ---- workers and connections ---- */

enum hs_storm_client_state {
	HS_STORM_CLIENT_OPENING, /* again and again */
	HS_STORM_CLIENT_READY,
	HS_STORM_CLIENT_GIVEN_UP,
};

struct hs_storm_worker;

/* ALL: a key that the connection watches. What it holds is known when the GET behind the WATCH is
 * answered; the next requests begin with the transaction that builds on it. */
struct hs_storm_watch {
	bool on;
	bool known;
	struct hs_storm_connection *connection; /* where it is; NULL: nowhere */
	uint64_t generation;			/* in which life of the link */
	bool asked;				/* the slot was on its way there */
	uint64_t key;
	uint64_t window; /* of the history */
	int64_t value;
};

/* In RUN: sent to a server; answered MOVED, ASK, and TRYAGAIN, CLUSTERDOWN or LOADING. Each is a field below, a
 * field of the JSON and a column of the table. */
#define HS_STORM_NODE_COUNTS(ROW)                                                                  \
	ROW(requests, "requests")                                                                  \
	ROW(moved, "MOVED")                                                                        \
	ROW(asked, "ASK")                                                                          \
	ROW(not_now, "not now")

/* A server. */
struct hs_storm_node {
	struct hs_redis_address at;
	bool owner; /* of slots */
	HS_STORM_NODE_COUNTS(HS_COUNTER_NUMBER)
};

/* What the first error of a request, or of a transaction, says is to be done. */
struct hs_storm_verdict {
	bool again, ask, later;
	uint32_t node; /* of ASK */
};

/* A connection, and what is under way on it. */
struct hs_storm_connection {
	struct hs_storm_client *client;
	uint32_t node;
	struct hs_upstream upstream;
	uint64_t generation;		   /* counts its openings */
	bool failed_for_good;		   /* too often in a row */
	struct hs_storm_request *requests; /* a ring: head is the oldest */
	uint32_t ring_head, ring_count, ring_mask;

	/* A Cluster. */
	bool wanted;		    /* though its node owns no slots */
	bool map_requested;	    /* it is asked for it */
	struct hs_buf resend_bytes; /* the requests under way, from resend_at on */
	size_t resend_at;
	uint32_t transaction_replies; /* of the transaction at the head */
	struct hs_storm_verdict verdict;
	struct hs_buf why; /* the error that it is about */
	/* Without a byte from a node that owns no slots. Ticks, not time: when storm itself was held up,
	 * the node's answer may lie unread in the socket. */
	unsigned silent_ticks;
};

struct hs_storm_parked;

/* What a worker knows of a Cluster. */
struct hs_storm_cluster {
	uint16_t slots[HS_SLOTS]; /* the node that owns each */
	bool known;
	bool wanted;	   /* a newer one */
	bool lost;	   /* no node is connected: any will do */
	uint64_t asked_ns; /* for the last time */
	uint64_t began_ms;
	uint64_t version; /* counts changes of `slots` */
	unsigned cursor;  /* the client that asks next */
	char why[HS_REDIS_WHY_BYTES];
};

/* A client. */
struct hs_storm_client {
	struct hs_storm_worker *worker;
	enum hs_storm_client_state state;
	struct hs_storm_connection **connections; /* by node */
	uint32_t connections_count;
	uint32_t in_flight; /* requests: on all links, and parked */
	struct hs_storm_watch watch;
	uint32_t client;		  /* ALL, verify: its number in the history */
	struct hs_storm_connection *from; /* of the reply that is dealt with; NULL: from none */

	/* The request that is being added. */
	struct hs_buf *out;
	size_t out_before;
	struct hs_storm_connection *adding; /* NULL: it is parked */
	struct hs_storm_request *added;
	uint16_t slot;

	/* A Cluster. */
	uint8_t transaction_added,
		transaction_left; /* of a transaction: requests added, and to be added */
	struct hs_storm_connection
		*pin; /* where requests go whatever the map says; NULL: as it says */
	struct hs_storm_parked *parked;	 /* by turn */
	struct hs_storm_parked *parking; /* the last of them that was added */
	uint32_t sequence;
	uint64_t
		settled_version; /* the map's version under which no slot has requests on two links */
};

struct hs_storm_worker {
	const struct hs_storm_options *options;
	atomic_bool *stop; /* the user wants an end */
	unsigned index;
	uv_loop_t loop;
	uv_timer_t tick;
	uv_timer_t reconnect;
	uv_poll_t pace; /* open loop: a timerfd, finer than the loop's own timers */
	int pace_fd;
	struct hs_storm_node *nodes; /* the seeds first */
	uint32_t nodes_count;
	struct hs_storm_cluster *cluster; /* NULL: one server */
	struct hs_storm_client *clients;
	unsigned clients_count;
	unsigned cursor;	      /* open loop: who sends next */
	struct hs_conn_driver driver; /* its buffer is larger: HS_STORM_INPUT_BYTES */

	struct hs_storm_wire wire;
	struct hs_storm_keys keys;
	struct hs_prng prng;
	struct hs_prng chance; /* for what must not change the draws of `prng` */
	uint64_t write_below;  /* a 64-bit draw below this is a write */

	enum hs_storm_phase phase;
	bool abandoned; /* the phase ended before everything was sent and answered */
	bool cut_short; /* so did the run, for want of an answer */
	uint64_t in_flight;
	uint64_t read_ns; /* when bytes last came */
	/* The last answer on any connection, or the beginning of the phase: all go on as long as one server
	 * answers, but a run of so many seconds. */
	uint64_t last_answer_ns;
	uint64_t start_ns, end_ns;   /* RUN; end 0: none */
	uint64_t quota;		     /* RUN: requests to send; UINT64_MAX: no limit */
	uint64_t stopped_ns;	     /* RUN: when the sending ended; 0: not yet */
	double interval_ns;	     /* open loop; 0: closed */
	uint64_t next_key, key_step; /* the other phases: which key is next */
	struct hs_buf again; /* keys, uint64_t each, whose request was lost with its connection */

	struct hs_storm_verify *verify;	  /* NULL: not asked for */
	struct hs_storm_history *history; /* verify, ALL; NULL: not asked for */
	struct hs_storm_order *order;	  /* --ordered; NULL: not asked for */
	uint64_t acts_missing;	       /* ALL: a bit for each act that the server does not know */
	int64_t value_last;	       /* ALL: of the values written */
	bool retry_paused;	       /* ALL: a key could not be read; wait for the tick */
	unsigned unread;	       /* times that happened in this phase */
	struct hs_buf last_array;      /* the last long reply: an equal one needs no reading */
	struct hs_storm_counts counts; /* of RUN */
	struct hs_storm_counts side_counts; /* of the other phases */
	_Atomic uint64_t progress;	    /* answers of RUN, for the progress line */
	void (*on_tick)(void *context, struct hs_storm_worker *worker);
	void *on_tick_context;
	uv_thread_t thread;
};

/* storm_load.c */
void hs_storm_worker_init(struct hs_storm_worker *worker, const struct hs_storm_options *options,
			  unsigned index, atomic_bool *stop);
void hs_storm_worker_deinit(struct hs_storm_worker *worker);
/* Sets the phase up; call it for all workers, then run them. */
void hs_storm_worker_prepare(struct hs_storm_worker *worker, enum hs_storm_phase phase);
/* Runs the loop until the phase is over. FINAL: keys left unread are failures of the check. */
void hs_storm_worker_run(struct hs_storm_worker *worker);
/* The counts that the phase under way goes to. */
struct hs_storm_counts *hs_storm_worker_counts(struct hs_storm_worker *worker);

/* storm_load.c, called by a connection */
void hs_storm_worker_on_answer(struct hs_storm_worker *worker, struct hs_storm_client *client,
			       const struct hs_storm_request *request, struct hs_bytes reply);
/* After all answers of one read, or when the connection became ready, lost or given up. */
void hs_storm_worker_on_progress(struct hs_storm_worker *worker, struct hs_storm_client *client);
/* Its connection was lost before the answer. */
void hs_storm_worker_on_lost(struct hs_storm_worker *worker, struct hs_storm_client *client,
			     const struct hs_storm_request *request, bool sent);

/* storm_acts.c */
enum { HS_STORM_ACT_REQUESTS_MAX = 8 }; /* one act is at most so many requests */
enum { HS_STORM_PROBE_REQUESTS = 2 };	/* that read a key of a history */
/* Composes acts until there are `count` requests, or a few more. Returns how many. */
uint64_t hs_storm_acts_fill(struct hs_storm_worker *worker, struct hs_storm_client *client,
			    uint64_t count, uint64_t now_ns);
/* The GET that pins the key's value before a window is closed. */
void hs_storm_acts_probe(struct hs_storm_worker *worker, struct hs_storm_client *client,
			 uint64_t key, uint64_t now_ns);
/* Counts an error reply. A command of --command all that the target does not know is counted apart. */
void hs_storm_acts_error(const struct hs_storm_request *request,
			 const struct hs_parsed_reply *answer, struct hs_storm_counts *counts);
void hs_storm_acts_answer(struct hs_storm_worker *worker, struct hs_storm_client *client,
			  const struct hs_storm_request *request,
			  const struct hs_parsed_reply *answer, struct hs_bytes body);

/* storm_client.c */
enum { HS_STORM_SIDE_PIPELINE = 64, HS_STORM_INPUT_BYTES = 256 * 1024 };
void hs_storm_worker_init_driver(struct hs_storm_worker *worker); /* sets its driver up */
void hs_storm_client_init(struct hs_storm_client *client, struct hs_storm_worker *worker);
void hs_storm_client_deinit(
	struct hs_storm_client *client); /* after its loop has closed its handles */
void hs_storm_client_start(struct hs_storm_client *client);
void hs_storm_client_stop(struct hs_storm_client *client); /* closes its handles; for good */
/* Drops its connections with what is under way and connects again after a pause. */
void hs_storm_client_drop(struct hs_storm_client *client, const char *why);
void hs_storm_client_update_state(
	struct hs_storm_client *client); /* at its links: sets its state */
/* The link to a node; made if there is none. */
struct hs_storm_connection *hs_storm_client_connection(struct hs_storm_client *client,
						       uint32_t node);
/* One more request: fill it, compose it into conn->out, say so, then flush. */
struct hs_storm_request *hs_storm_client_add(struct hs_storm_client *client, uint16_t slot);
void hs_storm_client_added(struct hs_storm_client *client);
void hs_storm_client_flush(struct hs_storm_client *client);
uint64_t hs_storm_client_oldest(const struct hs_storm_client *client); /* stamp; UINT64_MAX: none */
/* The floor of what is under way on a key is this, or higher. */
void hs_storm_client_raise_floor(struct hs_storm_client *client, uint64_t key, int64_t floor);
/* Connects again what waits for that, at this time at the latest. */
void hs_storm_worker_wake(struct hs_storm_worker *worker, uint64_t at_us);
struct hs_storm_request *hs_storm_connection_add(struct hs_storm_connection *connection);
/* Takes the oldest flight off the ring. */
struct hs_storm_request *hs_storm_connection_take(struct hs_storm_connection *connection);
/* The flight at this place of those under way; 0 is the oldest. */
static inline struct hs_storm_request *hs_storm_connection_request(
	const struct hs_storm_connection *connection, uint32_t place)
{
	return &connection->requests[(connection->ring_head + place) & connection->ring_mask];
}
void hs_storm_connection_open(
	struct hs_storm_connection *connection); /* if it is closed, and its pause over */
void hs_storm_connection_drop(struct hs_storm_connection *connection, const char *why);
void hs_storm_connection_retire(
	struct hs_storm_connection *connection); /* closes it if nothing is under way */

/* Says something that no reply is counted for. */
void hs_storm_connection_send_control(struct hs_storm_connection *connection,
				      enum hs_storm_kind kind, const char *words);

/* storm_map.c */
enum { HS_STORM_NODES_MAX = 2048 }; /* twice the shards of the largest Cluster (topology.h) */
/* The number of the node at this address, which is new if nobody has it. HS_STORM_NODES_MAX: there are too many. */
uint32_t hs_storm_node(struct hs_storm_worker *worker, const struct hs_redis_address *at);
bool hs_storm_connection_is_wanted(const struct hs_storm_connection *connection);
void hs_storm_map_set_owner(struct hs_storm_cluster *cluster, uint16_t slot, uint32_t node);
void hs_storm_map_read(struct hs_storm_connection *connection, struct hs_bytes reply);
void hs_storm_map_request(struct hs_storm_worker *worker); /* at once */
void hs_storm_map_tick(struct hs_storm_worker *worker);

/* storm_cluster.c */
/* Where the next request goes, which is about this slot: conn->adding (NULL: it is parked) and conn->out. */
void hs_storm_cluster_route(struct hs_storm_client *client, uint16_t slot);
struct hs_storm_request *hs_storm_cluster_park(struct hs_storm_client *client);
/* It is composed; its bytes are kept until its reply is there, because it may have to be sent again. */
void hs_storm_cluster_added(struct hs_storm_client *client, struct hs_storm_request *request);
void hs_storm_cluster_take(struct hs_storm_connection *connection, struct hs_bytes reply);
/* Sends what is parked, as far as it can go. */
void hs_storm_cluster_release(struct hs_storm_client *client);
void hs_storm_cluster_give_up(struct hs_storm_client *client); /* what is parked; it was not run */
/* Of what is parked: see hs_storm_client_oldest and hs_storm_client_raise_floor. */
uint64_t hs_storm_cluster_oldest(const struct hs_storm_client *client, uint64_t oldest);
void hs_storm_cluster_raise_floor(struct hs_storm_client *client, uint64_t key, int64_t floor);

/* storm_report.c */
struct hs_storm_result {
	const struct hs_storm_options *options;
	const struct hs_storm_counts *counts;
	const struct hs_storm_findings *findings; /* NULL: not verified */
	const struct hs_storm_node *nodes;	  /* of a Cluster */
	uint32_t nodes_count;
	double seconds;
	double cpu_seconds; /* of storm itself during the run */
};
void hs_storm_report_table(const struct hs_storm_result *result, FILE *out);
void hs_storm_report_json(const struct hs_storm_result *result, FILE *out);
/* One line that overwrites itself. */
void hs_storm_report_progress(FILE *out, double seconds, uint64_t answered, double per_second);
void hs_storm_report_progress_end(FILE *out);

#endif
