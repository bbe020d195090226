/* What the process answers for all its workers: CONFIG, INFO, SHUTDOWN. Main thread only. */
#ifndef HS_SERVE_HOST_H
#define HS_SERVE_HOST_H

#include "core/op.h"
#include "engine/engine.h"
#include "serve/options.h"
#include "serve/worker.h"

/* All counters of all workers, added up. */
struct hs_totals {
	uint64_t sessions, connections, rejected_connections, commands, input_bytes, output_bytes;
	uint64_t errors, cut_output, cut_query, protocol_errors, inflight;
	struct {
		uint64_t calls, time_ns, rejected, failed;
	} command[HS_CMD_IDS];
};

struct hs_host {
	struct hs_options *options;
	char **flags; /* the command line: it wins over the file, also when that is read again */
	int flags_count;
	struct hs_log *log;
	struct hs_engine *engine;
	struct hs_worker *workers;
	uint32_t workers_count;
	char run_id[41];
	int port; /* really listened on */
	int64_t started_wall_us;
	uint64_t started_mono_us;
	uint64_t rejected_connections;
	uint64_t peak_memory_bytes;
	uint64_t sampled_commands; /* at the last sample */
	uint64_t ops_per_s;	   /* between the last two */
	struct hs_totals baseline; /* CONFIG RESETSTAT: what had been counted until then */
	void *context;
	void (*stop)(void *context, const char *why); /* SHUTDOWN */
};

/* Writes the answer to op->out. */
void hs_host_answer(struct hs_host *host, struct hs_op *op);

/* Once a second. */
void hs_host_sample(struct hs_host *host);

/* Hands changed options to every worker. */
void hs_host_publish(struct hs_host *host);
/* SIGHUP: reads the file again, takes over what may change while running, says what may not. */
void hs_host_reload(struct hs_host *host);

/* info.c: the sections asked for (argv[1…]), in INFO's text form. */
void hs_info_compose(struct hs_host *host, size_t argc, const struct hs_bytes *argv,
		     struct hs_buf *text);
void hs_info_totals(const struct hs_host *host, struct hs_totals *totals); /* never reset */

#endif
