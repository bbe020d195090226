/* Private to sim/load*.c and client_caches.c: a random client ("actor"), its requests in flight, and the load. */
#ifndef HS_SIM_LOAD_INTERNAL_H
#define HS_SIM_LOAD_INTERNAL_H

#include "sim/load.h"
#include "sim/names.h"

enum {
	HS_SIM_IN_FLIGHT_MAX = 64,  /* requests in flight of one client; a power of two */
	HS_SIM_REQUEST_OPS_MAX = 4, /* operations of one request */
	HS_SIM_COMPOSE_MAX = 8,	    /* requests that one hs_sim_actor_compose adds at most */
};

enum hs_sim_expect {
	HS_SIM_EXPECT_SILENCE, /* no reply: CLIENT REPLY SKIP */
	HS_SIM_EXPECT_STATUS,  /* a status: `text` */
	HS_SIM_EXPECT_NUMBER,  /* any integer */
	HS_SIM_EXPECT_ANSWER,  /* the answer of the operation */
	HS_SIM_EXPECT_ANSWERS, /* an array with the answer of each operation */
	HS_SIM_EXPECT_ECHO,    /* the bulk string `number` */
	HS_SIM_EXPECT_MAP,     /* HELLO */
	HS_SIM_EXPECT_EXEC,    /* the reply of EXEC, for all operations of the transaction */
};

enum hs_sim_outcome { HS_SIM_OUTCOME_ANSWERED, HS_SIM_OUTCOME_REFUSED, HS_SIM_OUTCOME_UNKNOWN };

/* A request in flight: what reply it expects, and which operations and accesses it stands for. */
struct hs_sim_request {
	enum hs_sim_expect expect;
	const char *text; /* HS_SIM_EXPECT_STATUS: the status */
	uint64_t number;  /* HS_SIM_EXPECT_ECHO: the number that comes back */
	bool watched;	  /* EXEC: its first operation is the GET that followed WATCH */
	bool keeps_watch; /* the GET that follows WATCH: EXEC uses its answer */
	enum hs_sim_outcome outcome;
	bool lost;	       /* EXEC: it did not run because a watched key had changed */
	uint64_t watched_from; /* EXEC: the step of its WATCH request */
	uint64_t end;	       /* offset of its last byte in the connection's output */
	struct hs_sim_op ops[HS_SIM_REQUEST_OPS_MAX];
	uint32_t ops_count;
	size_t first;  /* index of its first operation in the history */
	bool tracks;   /* CLIENT TRACKING */
	bool keeps;    /* its client caches the values that it reads (sim/client_caches.c) */
	bool may_fail; /* it may be answered with an error though it names no key */
	bool touches;  /* WATCH, DBSIZE: heat counts `touched`, though no operation stands for it */
	uint32_t touched;
	/* FLUSHALL: it has a CLEAR operation for each key, but no accesses that heat counts. */
	bool flushes;
	size_t access_first; /* index of its first access */
	uint32_t access_count;
	uint64_t switches; /* the world's `switches` when it was sent */
	/* Law 9: the deadline of its answer, not counting what `before` allows for; 0: none. */
	uint64_t due_us;
	struct hs_sim_progress before; /* the progress of its heatsink when it was sent */
	/* A planted bug: the reply that its client gets in place of the real one; empty: none. */
	struct hs_buf instead;
};

struct hs_sim_actor {
	struct hs_sim_load *load;
	struct hs_sim_client *client; /* NULL: not connected */
	uint32_t number;	      /* in the history: a new number for every connection */
	uint32_t requests_left;
	uint32_t depth; /* requests that it has in flight at most */
	struct hs_sim_request in_flight[HS_SIM_IN_FLIGHT_MAX];
	/* In `in_flight`: the oldest request, the first one that is not sent completely, the next free place. */
	uint32_t in_flight_head, in_flight_sent, in_flight_tail;
	uint32_t silent_to; /* its requests up to here expect no reply, and may have run or not */
	struct hs_buf outgoing;
	uint64_t sent;	      /* bytes sent on this connection */
	uint64_t watch_asked; /* the step of the last WATCH request */
	int64_t watch_read;   /* the answer of the GET that followed WATCH */
	bool watch_known;     /* that GET was answered */
	bool planned;
	bool watch_refused;   /* the last WATCH was refused */
	char last_error[120]; /* the last error reply */
};

struct hs_sim_load {
	struct hs_sim_load_options options;
	struct hs_sim_world *world;
	struct hs_sim_history history;
	struct hs_sim_accesses accesses;
	struct hs_sim_verdict verdict;
	struct hs_prng prng;
	uint32_t numbers;  /* gives connections their numbers */
	int64_t values;	   /* the last value that was set */
	uint64_t requests; /* composed so far */
	uint64_t lost;	   /* a bit for each key that has lost writes in a failover or restart */
	bool fold;	   /* whether folding is on */
	uint32_t external_left; /* external writes still to be made */
	bool off;		/* all mitigations are off: the last reads are being made */
	int64_t *finals;	/* of each key, the answer of the last read; NULL: none was made */
	struct hs_sim_actor *actors;
	struct hs_sim_companions *companions;
	/* A further check when all faults are over, with what each key holds; may be NULL. */
	void (*judge)(void *context, const int64_t *finals);
	void *judge_context;
};

static inline bool hs_sim_request_is_watch(const struct hs_sim_request *sent_request)
{
	return sent_request->touches && sent_request->expect == HS_SIM_EXPECT_STATUS;
}

static inline uint64_t hs_sim_load_draw(struct hs_sim_load *load, uint64_t bound)
{
	return hs_prng_below(&load->prng, bound);
}

static inline const char *hs_sim_load_name(const struct hs_sim_load *load, uint32_t key,
					   char text[HS_SIM_NAME_BYTES_MAX])
{
	return hs_sim_name(load->world->options.tied, key, text);
}

/* Whether one command or transaction may name both keys. In a Cluster they must share a slot: there is no order
 * across slots. */
static inline bool hs_sim_load_goes_with(const struct hs_sim_load *load, uint32_t key,
					 uint32_t other)
{
	const struct hs_sim_world *world = load->world;

	return (key <= world->options.tied && other <= world->options.tied) ||
	       (!world->options.servers.cluster && hs_sim_world_same_partition(world, key, other));
}

/* load.c: a client that sends only what its caller composes, as for the last reads. */
void hs_sim_actor_connect(struct hs_sim_actor *actor); /* to any heatsink that runs */
void hs_sim_actor_connect_to(struct hs_sim_actor *actor, uint32_t worker);
void hs_sim_actor_send(
	struct hs_sim_actor *actor); /* sends a random part of what it has composed */
void hs_sim_actor_on_reply(void *actor, struct hs_sim_client *client, struct hs_bytes reply);
void hs_sim_actor_pop_silent(struct hs_sim_actor *actor);
bool hs_sim_actor_was_cut(const struct hs_sim_actor *actor);

/* load_compose.c: appends a request, given as words, to the outgoing bytes, and records what reply it expects. */
struct hs_sim_request *hs_sim_actor_request(struct hs_sim_actor *actor, const char *request,
					    enum hs_sim_expect expect);
/* Composes a random request, or a few that belong together. */
void hs_sim_actor_compose(struct hs_sim_actor *actor);
void hs_sim_actor_compose_get(struct hs_sim_actor *actor, uint32_t key);
struct hs_sim_request *hs_sim_actor_compose_single(struct hs_sim_actor *actor,
						   enum hs_sim_kind kind, uint32_t key);
void hs_sim_actor_compose_several(struct hs_sim_actor *actor, bool set);
void hs_sim_actor_compose_transaction(struct hs_sim_actor *actor);
void hs_sim_actor_compose_in_exec(struct hs_sim_actor *actor, enum hs_sim_kind kind, uint32_t key);
void hs_sim_actor_add_op(struct hs_sim_actor *actor, struct hs_sim_request *sent_request,
			 const struct hs_sim_op *op);
int64_t hs_sim_load_value(struct hs_sim_load *load); /* a value that was never set before */

/* load_rules.c: for keys with contracts. Composes a random request; sets which answers it may get; records its
 * answer; switches, flushes and writes beside the clients. */
bool hs_sim_load_has_rules(const struct hs_sim_load *load);
void hs_sim_actor_compose_ruled(struct hs_sim_actor *actor);
void hs_sim_actor_compose_flush(struct hs_sim_actor *actor);
void hs_sim_actor_asked_ruled(struct hs_sim_actor *actor, struct hs_sim_request *sent_request);
void hs_sim_actor_answered_ruled(struct hs_sim_actor *actor,
				 const struct hs_sim_request *sent_request);
void hs_sim_load_disturb_ruled(struct hs_sim_load *load);
void hs_sim_load_begin_ruled(struct hs_sim_load *load);

/* load_delay.c (law 9): a request was sent; its client stops reading; the request was answered. */
void hs_sim_delay_sent(struct hs_sim_actor *actor, struct hs_sim_request *sent_request);
void hs_sim_delay_reading_paused(struct hs_sim_actor *actor);
void hs_sim_delay_answered(struct hs_sim_actor *actor, const struct hs_sim_request *sent_request);

/* load_check.c: reads every key through every heatsink. */
void hs_sim_load_read(struct hs_sim_load *load, int64_t *finals);

/* load_replies.c: whether this reply fits the request; records its answer in the history. */
bool hs_sim_actor_reply_fits(struct hs_sim_actor *actor, struct hs_sim_request *sent_request,
			     struct hs_bytes reply);

#endif
