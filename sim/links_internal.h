/* Private to sim/links*.c: connections as the simulated engine sees them. */
#ifndef HS_SIM_LINKS_INTERNAL_H
#define HS_SIM_LINKS_INTERNAL_H

#include "sim/fills.h"
#include "sim/links.h"

/* Operations in a row, linked by op->next. */
struct hs_sim_row {
	struct hs_op *first, *last;
	uint32_t count;
};

/* One connection. Events name it and its `epoch`: those of a connection that has ended since find
 * another one there and are forgotten. */
struct hs_sim_pipe {
	uint32_t worker;
	uint16_t partition;
	bool own; /* of one watcher */
	bool up;
	bool mute;     /* no reply comes through any more */
	bool given_up; /* it was tried in vain: what comes is refused */
	uint64_t watcher;
	uint64_t epoch;
	struct hs_sim_row waiting;
	struct hs_sim_row flying;  /* the first `ran` of them have run, `arrived` are there */
	struct hs_op *next_to_run; /* the first that has not */
	uint32_t arrived, ran;
	uint64_t arrive_us, reply_us; /* of the last one planned: they keep their order */
	struct hs_sim_pipe *next;     /* own ones */
	struct hs_sim_fill *fill;     /* it is the one of this, or NULL */
};

struct hs_sim_server {
	uint64_t lives; /* counts its crashes */
	uint64_t up_us; /* down until then */
	bool stalled;
};

/* A request that a server has in its hands though its connection is gone. */
struct hs_sim_ghost {
	struct hs_op op;
	struct hs_bytes *argv; /* one piece of memory, with the bytes */
	struct hs_buf out;
	uint64_t life; /* of its server */
	struct hs_sim_ghost *next;
};

struct hs_sim_links {
	struct hs_sim_links_options options;
	struct hs_sim_engine_host host;
	struct hs_prng prng;
	uint32_t workers;
	uint16_t partitions;
	bool calm;
	struct hs_sim_server *servers;
	struct hs_sim_pipe *pipes;   /* by worker, partition and dialect */
	struct hs_sim_fill *fills;   /* by worker and partition */
	struct hs_sim_pipe *owned;   /* all there ever were: events may name them */
	struct hs_sim_ghost *ghosts; /* all there ever were */
	const struct hs_op *running; /* or NULL, and on which connection */
	const struct hs_sim_pipe *running_on;
};

void hs_sim_row_push(struct hs_sim_row *row, struct hs_op *op);
struct hs_op *hs_sim_row_pop(struct hs_sim_row *row); /* NULL: empty */

/* links.c */
bool hs_sim_links_is_read(const struct hs_op *op);
/* `pipe`: on which it came; NULL: that is gone. */
void hs_sim_links_run(struct hs_sim_links *links, struct hs_sim_pipe *pipe, struct hs_op *op);
/* When something sent now gets to the other side: not before what was sent earlier. */
uint64_t hs_sim_links_travel(struct hs_sim_links *links, const struct hs_sim_pipe *pipe,
			     uint64_t *last_us);
/* Answers with an error, from an event: not from inside a submit. */
void hs_sim_links_fail(struct hs_sim_links *links, struct hs_op *op, const char *text);
void hs_sim_links_plan(struct hs_sim_links *links, uint64_t at_us, hs_sim_event_run *run,
		       void *target, uint64_t number);
uint64_t hs_sim_links_soon(struct hs_sim_links *links, uint32_t us_max); /* a time from now */
/* Runs what has arrived, if the server does. */
void hs_sim_links_serve(struct hs_sim_links *links, struct hs_sim_pipe *pipe);
/* Sends what waits, if it can. */
void hs_sim_links_pump(struct hs_sim_links *links, struct hs_sim_pipe *pipe);

/* links_faults.c: perhaps something goes wrong now. False: the connection has ended. */
bool hs_sim_links_strike(struct hs_sim_links *links, struct hs_sim_pipe *pipe);

#endif
