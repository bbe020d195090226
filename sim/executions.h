/* In which order an engine ran what each client asked of a partition: that of the asking (law 2,
 * "pipelined clients included"), over all keys. What clients see of one key at a time does not tell.
 * Of a Cluster the order is promised key by key: a slot that moves may be later than others, and is on two
 * servers meanwhile. A single server is all one.
 *
 *     server ── ran ──► its connection remembers the place ── reply ──► the operation has it
 *
 * Noted when an operation comes back, for every request that it stands for; the last time counts, when
 * something was run again. What was refused, or is unknown, is not noted: it may run at any time or
 * never. One thread. */
#ifndef HS_SIM_EXECUTIONS_H
#define HS_SIM_EXECUTIONS_H

#include "core/core.h"
#include "core/op.h"
#include "sim/check.h"

enum { HS_SIM_EXECUTIONS_KEYS = 0x8000 };

struct hs_sim_execution {
	uint64_t client;
	uint64_t number;    /* of the request, among its client's */
	uint64_t at;	    /* in the order of all that was run */
	uint16_t partition; /* or slot, or HS_SIM_EXECUTIONS_KEYS + number of the key */
};

struct hs_sim_executions {
	struct hs_sim_execution *all;
	size_t count;
	size_t cap;
	uint64_t ran; /* by servers */
};

struct hs_sim_ran;
struct hs_sim_connection;

void hs_sim_executions_deinit(struct hs_sim_executions *executions);
/* A server has run something for a heatsink; a heatsink has its reply on this connection (NULL: on none), and
 * op->engine_order says from here on when it ran; 0: nobody knows, or it need not keep an order. */
void hs_sim_executions_ran(struct hs_sim_executions *executions, const struct hs_sim_ran *ran);
void hs_sim_executions_find(struct hs_sim_connection *connection, struct hs_op *op);
/* The operation was answered; op->engine_order says when it ran, `where` among what its order is kept. */
void hs_sim_executions_note(struct hs_sim_executions *executions, const struct hs_core *core,
			    const struct hs_op *op, uint16_t where);
/* Sorts them. */
int hs_sim_check_executions(struct hs_sim_executions *executions,
			    struct hs_sim_verdict *verdict) HS_MUSTCHECK;

#endif
