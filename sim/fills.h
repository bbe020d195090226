/* The connections on which values are read that are to be kept: one of each worker to each partition.
 * Their servers remember which keys were read on them, and say once when such a key changes, by whomever
 * (or by whomever but the connection itself: NOLOOP); then it has to be read again to be told of again. What a server says
 * comes in the order in which it happened, with the replies.
 *
 *     GET k ──────► runs, k is remembered          SET k (by others) ──► "k changed" ──┐
 *     ◄────────────────────────────────────────────────────────────── in this order ───┘
 *
 * A connection that ends forgets all: its vouch has another epoch. One that falls silent loses what it
 * would have said, and cannot prove itself any more. Private to sim/links*.c and sim/fills.c. */
#ifndef HS_SIM_FILLS_H
#define HS_SIM_FILLS_H

#include "base/vouch.h"
#include "core/op.h"

#include <stdbool.h>
#include <stdint.h>

struct hs_sim_links;
struct hs_sim_fill;
struct hs_sim_pipe;
struct hs_sim_row;

struct hs_sim_fill *hs_sim_fills_create(uint32_t workers, uint16_t partitions);
/* Nothing is under way any more. */
void hs_sim_fills_destroy(struct hs_sim_fill **fills, size_t count);
struct hs_sim_pipe *hs_sim_fill_pipe(struct hs_sim_fill *fills, size_t number);

/* A proof under way among the operations: not to be run, not to be answered. */
bool hs_sim_fill_is_proof(const struct hs_op *op);
/* How many of the last `count` in a row are. */
uint32_t hs_sim_fill_proofs(const struct hs_sim_row *row, uint32_t count);

/* It has run on this connection: its key is remembered. */
void hs_sim_fill_ran(struct hs_sim_links *links, struct hs_sim_fill *fill, struct hs_op *op);
/* Before one runs: a server that has no room for more keys gives one up, and says that it changed. */
void hs_sim_fill_run_short(struct hs_sim_links *links, struct hs_sim_fill *fill);
/* Its reply is here, and says who vouches. False: it was a proof, and is no more. */
bool hs_sim_fill_answered(struct hs_sim_links *links, struct hs_sim_fill *fill, struct hs_op *op);
/* The connection has ended. */
void hs_sim_fill_lost(struct hs_sim_links *links, struct hs_sim_fill *fill);

#endif
