/* An engine that is like servers behind connections: each worker has a pipelined connection to each
 * partition (in each dialect), with latency both ways. Requests of one connection run in their
 * order; between connections anything goes.
 *
 *     submit ─ waiting ─ flying ─ (latency) ─ runs ─ (latency) ─ done
 *              └ while the connection is down, or full
 *
 * Things go wrong, all from the seed: a connection ends in the middle, replies stop coming, a
 * partition stalls, is slow, or crashes and comes back. What was under way on a connection that
 * ends was run up to some point, or will be, later, by a server that has it in its hands; what the
 * engine then does is what the real one does (engine/redis/flow.h): what was certainly not sent, and
 * reads that no later write of their client follows, are sent again; the rest is answered with
 * UNKNOWN. What cannot be sent at all is refused with words that say "not sent".
 *
 * What is to be kept (hs_op.track) goes by a connection of its own, whose server tells on it of every
 * change of what was read there (sim/fills.h).
 *
 * WATCH has a connection for itself until EXEC; when that is lost, EXEC answers that a key changed.
 *
 * One thread. */
#ifndef HS_SIM_LINKS_H
#define HS_SIM_LINKS_H

#include "sim/engine.h"

struct hs_sim_links_options {
	bool on;		 /* these instead of an engine like the embedded one */
	uint32_t latency_us_max; /* one way */
	uint32_t slow_us;	 /* more, for partition 0 */
	uint32_t flying_max;	 /* under way on one connection; more wait */
	uint32_t waiting_max;	 /* more are told BUSY */
	uint32_t down_us_max;	 /* until a connection is there again, or a partition */
	uint32_t timeout_us;	 /* until somebody who waits in vain gives up */
	/* One in so many events brings … ; 0: never */
	uint32_t lose_one_in;	/* the end of its connection */
	uint32_t mute_one_in;	/* no more replies on it */
	uint32_t stall_one_in;	/* a partition that does nothing for a while */
	uint32_t crash_one_in;	/* a partition that starts anew with what it has run so far */
	uint32_t forget_one_in; /* a server that says that a key changed, because it has no room */
	uint32_t prove_us;	/* how often somebody who vouches proves itself, if wanted */
	bool answers_prove;	/* the reply to a read does so, too */
	bool noloop;		/* a connection is not told of changes that it makes itself */
	enum hs_sim_mistake mistake; /* the world's */
};

struct hs_sim_links;

struct hs_sim_links *hs_sim_links_create(const struct hs_sim_links_options *options, uint64_t seed,
					 uint32_t workers, uint16_t partitions,
					 const struct hs_sim_engine_host *host);
/* No operation is under way any more. */
void hs_sim_links_destroy(struct hs_sim_links **links);

enum hs_submit hs_sim_links_submit(struct hs_sim_links *links, struct hs_op *op);

/* A key of a partition was changed by somebody, or all of them: who is to be told will be. */
void hs_sim_links_changed(struct hs_sim_links *links, uint16_t partition,
			  const struct hs_bytes *key);
/* After every call into a core: those of this worker who vouch prove themselves soon, if wanted. */
void hs_sim_links_prove(struct hs_sim_links *links, uint32_t worker);
/* From now on nothing comes through on the connection on which this worker reads what it keeps, until
 * somebody gives up. For scripts. */
void hs_sim_links_silence(struct hs_sim_links *links, uint32_t worker);
/* Whether the partition would take a request of somebody else now. */
bool hs_sim_links_serves(const struct hs_sim_links *links, uint16_t partition);

/* From now on nothing goes wrong any more. */
void hs_sim_links_calm(struct hs_sim_links *links);

#endif
