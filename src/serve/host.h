/* What the process answers for all its workers: CONFIG, INFO, SHUTDOWN, changes of users. The control thread's
 * (control.h), but for the few fields that say otherwise. */
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
	/* the main thread's */ \
	ROW(rejected_connections, HS_COUNTER, "Stats", "rejected_connections", "rejected_connections_total", \
	    "Client connections refused because of maxclients") \
	/* the control thread's */ \
	ROW(memory_returns, HS_TOTAL, "Memory", "memory_returns", "memory_returns_total", \
	    "Times that memory was given back to the system after a burst")
/* clang-format on */

struct hs_host_stats {
	HS_HOST_COUNTERS(HS_COUNTER_FIELD)
};

/* What threads share: copies of options that may change, as last published, for the main thread; and the
 * numbers of the client and of the SLOWLOG entry that came last. */
struct hs_host_live {
	_Atomic uint64_t client_ids, slowlog_ids;
	_Atomic uint64_t maxclients;
	_Atomic uint64_t shutdown_timeout_us;
};

struct hs_reply;

struct hs_host {
	struct hs_options *options;
	char **flags; /* the command line: it wins over the file, also when that is read again */
	int flags_count;
	struct hs_log *log;
	struct hs_engine *engine;
	/* The commands of a server behind it; or NULL. */
	_Atomic(const struct hs_learned *) learned;
	/* All sets ever learned, the engine's thread's: requests under way may go on with rows of an
	 * old one. They are few: a set comes only when a server has other commands than before. */
	struct hs_learned **learned_all;
	size_t learned_count;
	struct hs_worker *workers;
	uint32_t workers_count;
	_Atomic bool started; /* the workers are there */
	char run_id[41];
	int port;			  /* really listened on; 0: none */
	int tls_port;			  /* the same */
	struct hs_tls_context *tls;	  /* for new clients of tls_port; NULL: there is none */
	struct hs_http *http;		  /* http/http.h; NULL: none */
	struct hs_key_reader *key_reader; /* serve/key_reader.h; NULL: none */
	int http_port;			  /* really listened on; 0: none */
	int64_t started_wall_us;
	uint64_t started_mono_us;
	struct hs_host_live live;
	struct hs_host_stats stats;
	uint64_t memory_bytes; /* of the heap, as counted at memory_us */
	uint64_t memory_us;
	uint64_t peak_memory_bytes;
	struct hs_memory memory;
	uint64_t sampled_commands; /* at the last sample */
	uint64_t ops_per_s;	   /* between the last two */
	struct hs_totals baseline; /* what had been counted at CONFIG RESETSTAT */
	struct hs_heat **heats;	   /* by worker: it counts, the control thread reads */
	struct hs_shared *shared;  /* absorb/shared.h */
	struct hs_board *board;	   /* telemetry/board.h */
	struct hs_engine_partition
		*facts;		    /* what the engine says of each partition, as last sampled */
	struct hs_hotkeys *hotkeys; /* telemetry/hotkeys.h */
	/* INFO with the section Keyspace that waits until the engine has counted (engine.h: recount): by
	 * `next`, oldest first, with the engine's number in engine_mark. */
	struct hs_op *info_waiting, *info_waiting_last;
	_Atomic uint64_t recounted; /* the engine's last number; its threads set it */
	_Atomic bool stopping;	    /* the main thread sets it when it is told to end it all */
	void *context;
	void (*stop)(void *context); /* SHUTDOWN: asks the main thread to end it all */
};

/* Writes the answer to op->out. False: the engine completes the op, or hs_host_answer_counted does. */
bool hs_host_answer(struct hs_host *host, struct hs_op *op);
/* Answers and completes each INFO for which the engine has counted keys; `all`: all, with what is known. */
void hs_host_answer_counted(struct hs_host *host, bool all);

/* sample.c: the rate of commands, once a second. */
void hs_host_sample(struct hs_host *host);
/* The board and HOTKEYS, with the engine's facts of now: every 50 ms, and before each answer that
 * shows heat. */
void hs_host_sample_heat(struct hs_host *host);
/* Whether clients may be sent here: not while it shuts down, when a worker is stuck, when the engine's
 * last commit failed, or when not one partition is served. Lines of text say why not, and which
 * partitions are not well in any case. */
bool hs_host_ready(struct hs_host *host, struct hs_buf *why);

/* Hands changed options to every worker and to the main thread. */
void hs_host_publish(struct hs_host *host);
void hs_host_publish_to_main(struct hs_host *host); /* to the main thread alone */
/* Whether anything is kept: to the shared cache and the engine, before any worker keeps something. */
void hs_host_publish_caching(struct hs_host *host);
/* SIGHUP: reads the file again, takes over what may change while running, says what may not. */
void hs_host_reload(struct hs_host *host);

/* A command whose row names a function of serve/ (command/rows.def). One that hands the op on, to be completed
 * by the engine or by hs_host_answer_counted, sets reply->out to NULL and does not touch the op any more. */
typedef void hs_host_run(struct hs_host *host, struct hs_op *op, struct hs_reply *reply);
#define OTHER
#define HOST(function) hs_host_run function;
#define ROW(identifier, function, ...) function
#include "command/rows.def"

/* heat_command.c: a field of a row: its name and its value. */
struct hs_field;
void hs_heat_reply_field(struct hs_reply *reply, const struct hs_field *field, const void *row);

/* One of some names, by its number. False: the error is in the reply. */
bool hs_heat_take_name(const char *command, const char *word, struct hs_bytes value,
		       const char *const *names, int64_t *chosen, struct hs_reply *reply);

/* hotkeys_command.c: HOTKEYS' part of each sample. */
void hs_hotkeys_harvest(struct hs_host *host, struct hs_now now);

/* info.c: the sections asked for (argv[1…]), in INFO's text form. */
void hs_info_compose(struct hs_host *host, size_t argc, const struct hs_bytes *argv,
		     struct hs_buf *text);
bool hs_info_asks_keyspace(size_t argc, const struct hs_bytes *argv);

#endif
