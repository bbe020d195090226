/* The host: the state that all threads of the process share, and the commands that the process answers for all its
 * workers (CONFIG, INFO, SHUTDOWN, HEAT, HOTKEYS, changes of users). It knows no socket and no session.
 *
 * The control thread (control.h) owns every field, except where a field names another thread, and calls every
 * function. At the start, before that thread runs, the main thread calls hs_host_publish_to_main and
 * hs_host_publish_caching. Workers and the main thread never read `options` while the server runs: hs_host_publish
 * hands them copies.
 *
 * Bad days: an option that cannot be set changes nothing at all (all or nothing, as in Redis 7); a configuration file
 * that cannot be read on SIGHUP leaves the running configuration as it is, and one log line says why. */
#ifndef HS_SERVE_HOST_H
#define HS_SERVE_HOST_H

#include "base/counter.h"
#include "core/op.h"
#include "engine/engine.h"
#include "serve/memory.h"
#include "serve/options.h"
#include "serve/totals.h"
#include "serve/worker.h"

/* clang-format off */
#define HS_HOST_COUNTERS(ROW) \
	/* counted by the main thread */ \
	ROW(rejected_connections, HS_COUNTER, "Stats", "rejected_connections", "rejected_connections_total", \
	    "Client connections refused because maxclients was reached") \
	/* counted by the control thread */ \
	ROW(memory_returns, HS_TOTAL, "Memory", "memory_returns", "memory_returns_total", \
	    "Times that freed memory was returned to the system after a burst")
/* clang-format on */

struct hs_host_stats {
	HS_HOST_COUNTERS(HS_COUNTER_FIELD)
};

/* Read and written by several threads: copies of options for the main thread, and the last id of a client and of a
 * SLOWLOG entry. */
struct hs_host_live {
	_Atomic uint64_t client_ids, slowlog_ids;
	_Atomic uint64_t maxclients;
	_Atomic uint64_t shutdown_timeout_us;
};

struct hs_reply;

struct hs_host {
	struct hs_options *options;
	char **flags; /* the command line, which wins over the file on SIGHUP, too */
	int flags_count;
	struct hs_log *log;
	struct hs_engine *engine;
	/* The commands of the servers behind heatsink; NULL: not known yet, or the embedded engine. Any thread reads
	 * it. */
	_Atomic(const struct hs_learned *) learned;
	/* All sets ever learned, freed at the end: requests in flight may still point to rows of an old one.
	 * There are few: a new set comes only when a server's commands change. Written by the engine's thread. */
	struct hs_learned **learned_all;
	size_t learned_count;
	struct hs_worker *workers;
	uint32_t workers_count;
	_Atomic bool started; /* the workers are initialised */
	char run_id[41];
	int port;			  /* the port in use; 0: none */
	int tls_port;			  /* the port in use; 0: none */
	struct hs_tls_context *tls;	  /* for new clients of tls_port; NULL: no TLS port */
	struct hs_http *http;		  /* NULL: HTTP is disabled */
	struct hs_key_reader *key_reader; /* NULL: HTTP is disabled */
	int http_port;			  /* the port in use; 0: none */
	int64_t started_wall_us;
	uint64_t started_mono_us;
	struct hs_host_live live;
	struct hs_host_stats stats;
	uint64_t memory_bytes; /* of the heap, measured at memory_us */
	uint64_t memory_us;
	uint64_t peak_memory_bytes;
	struct hs_memory memory;
	uint64_t sampled_commands; /* executed until the last sample */
	uint64_t ops_per_s;	   /* between the last two samples */
	struct hs_totals baseline; /* the counters at the last CONFIG RESETSTAT */
	struct hs_heat **heats;	   /* one per worker, which writes it; the control thread reads */
	struct hs_shared *shared;  /* absorb/shared.h */
	struct hs_board *board;	   /* telemetry/board.h */
	/* By partition: the engine's figures at the last sample. */
	struct hs_engine_partition *facts;
	struct hs_hotkeys *hotkeys; /* telemetry/hotkeys.h */
	/* INFO requests that wait until the engine has counted keys (engine.h: recount), linked by `next`, oldest
	 * first; engine_mark is the count they wait for. */
	struct hs_op *info_waiting, *info_waiting_last;
	_Atomic uint64_t recounted; /* the last count that is done; the engine's threads set it */
	_Atomic bool stopping;	    /* shutdown has begun; the main thread sets it */
	void *context;
	void (*stop)(void *context); /* SHUTDOWN: asks the main thread to stop the process */
};

/* Writes the reply to op->out. False: no reply yet; the engine or hs_host_answer_counted completes the op. */
bool hs_host_answer(struct hs_host *host, struct hs_op *op);
/* Answers and completes each waiting INFO whose count is done; `all`: every one, with the counts known so far. */
void hs_host_answer_counted(struct hs_host *host, bool all);

/* sample.c: measures the rate of commands and returns unused memory. Once a second. */
void hs_host_sample(struct hs_host *host);
/* Samples partitions for the board and HOTKEYS: every 50 ms, and before each answer that shows heat. */
void hs_host_sample_heat(struct hs_host *host);
/* For /readyz. False while the process shuts down, when a worker is stuck, when the engine's last commit failed
 * or the engine says why it is unavailable, or when no partition is served: `why` gets one line, the first of
 * these. Unless one of the first two holds, a line for each partition that is neither ok nor unknown follows
 * (after 16 of them one line "and N more"), also if true. */
bool hs_host_ready(struct hs_host *host, struct hs_buf *why);

/* Hands the current options to every worker and to the main thread. */
void hs_host_publish(struct hs_host *host);
/* Sets the log level, and the main thread's copies of maxclients and shutdown-timeout. */
void hs_host_publish_to_main(struct hs_host *host);
/* Tells the shared cache and the engine whether any rule caches (mitigate, rule, cache-bytes). Must run before a
 * worker gets options with which it caches. */
void hs_host_publish_caching(struct hs_host *host);
/* SIGHUP: reads the configuration file again, applies options that may change while running, logs those that may
 * not. */
void hs_host_reload(struct hs_host *host);

/* The function of a command whose row names one of serve/ (command/rows.def). If it hands the op on, to be
 * completed by the engine or by hs_host_answer_counted, it sets reply->out to NULL and must not touch the op
 * afterwards. */
typedef void hs_host_run(struct hs_host *host, struct hs_op *op, struct hs_reply *reply);
#define OTHER
#define HOST(function) hs_host_run function;
#define ROW(identifier, function, ...) function
#include "command/rows.def"

/* heat_command.c: writes name and value of one field. */
struct hs_field;
void hs_heat_reply_field(struct hs_reply *reply, const struct hs_field *field, const void *row);

/* heat_command.c: *chosen is the index of `value` in `names`. False: the error is in the reply. */
bool hs_heat_take_name(const char *command, const char *word, struct hs_bytes value,
		       const char *const *names, int64_t *chosen, struct hs_reply *reply);

/* hotkeys_command.c: the sample for a HOTKEYS session that is running. */
void hs_hotkeys_harvest(struct hs_host *host, struct hs_now now);

/* info.c: the sections named in argv[1…], in INFO's text form. */
void hs_info_compose(struct hs_host *host, size_t argc, const struct hs_bytes *argv,
		     struct hs_buf *text);
bool hs_info_asks_keyspace(size_t argc, const struct hs_bytes *argv);

#endif
