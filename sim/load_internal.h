/* Private to sim/load*.c: a random client, and a request of it that is under way. */
#ifndef HS_SIM_LOAD_INTERNAL_H
#define HS_SIM_LOAD_INTERNAL_H

#include "sim/load.h"
#include "sim/names.h"

enum {
	HS_SIM_IN_FLIGHT_MAX = 64,  /* requests of one client; a power of two */
	HS_SIM_REQUEST_OPS_MAX = 4, /* operations of one request */
	HS_SIM_COMPOSE_MAX = 8,	    /* requests that one step of composing adds at most */
};

enum hs_sim_expect {
	HS_SIM_EXPECT_SILENCE, /* muted by CLIENT REPLY SKIP */
	HS_SIM_EXPECT_STATUS,  /* `text` */
	HS_SIM_EXPECT_NUMBER,  /* any integer */
	HS_SIM_EXPECT_ANSWER,  /* what the operation answers */
	HS_SIM_EXPECT_ANSWERS, /* one for each operation */
	HS_SIM_EXPECT_ECHO,    /* `number` */
	HS_SIM_EXPECT_MAP,     /* HELLO */
	HS_SIM_EXPECT_EXEC,
};

enum hs_sim_outcome { HS_SIM_OUTCOME_ANSWERED, HS_SIM_OUTCOME_REFUSED, HS_SIM_OUTCOME_UNKNOWN };

/* A request under way. */
struct hs_sim_request {
	enum hs_sim_expect expect;
	const char *text;
	uint64_t number;
	bool watched;	  /* EXEC: its first operation stands for the GET behind WATCH */
	bool keeps_watch; /* GET behind WATCH: remembered for EXEC */
	enum hs_sim_outcome outcome;
	bool lost;	       /* EXEC: a watched key had changed */
	uint64_t watched_from; /* EXEC: when its WATCH was asked */
	uint64_t end;	       /* its last byte's position in all that the connection sends */
	struct hs_sim_op ops[HS_SIM_REQUEST_OPS_MAX];
	uint32_t ops_count;
	size_t first;	  /* of its operations in the history */
	bool tracks;	  /* CLIENT TRACKING (sim/client_caches.c) */
	bool keeps;	  /* its client keeps the values that it reads (sim/client_caches.c) */
	bool may_fail;	  /* though it is about no key */
	bool touches;	  /* WATCH, DBSIZE: `touched`, and no operation says so */
	uint32_t touched; /* a key, or HS_SIM_NO_KEY */
	bool flushes; /* FLUSHALL: its operations say what it does to keys, which nobody counts */
	size_t access_first; /* of its accesses */
	uint32_t access_count;
	uint64_t switches; /* how often rules had been turned when it was asked */
	/* Law 9: when its answer must be here, not counting what comes in between; 0: nobody can say. */
	uint64_t due_us;
	struct hs_sim_progress before; /* of its heatsink, when it was asked */
	struct hs_buf instead;	       /* a mistake: what its client hears; empty: what is said */
};

struct hs_sim_actor {
	struct hs_sim_load *load;
	struct hs_sim_client *client; /* NULL: not connected now */
	uint32_t number;	      /* in the history: a new one for every connection */
	uint32_t requests_left;
	uint32_t depth;
	struct hs_sim_request in_flight[HS_SIM_IN_FLIGHT_MAX];
	uint32_t in_flight_head, in_flight_sent,
		in_flight_tail; /* oldest, first not sent whole, next free */
	uint32_t
		silent_to; /* asks_head is still here: nobody knows whether those in silence are done */
	struct hs_buf outgoing;
	uint64_t sent;
	uint64_t watch_asked; /* the last one, in steps */
	int64_t watch_read;   /* what the GET behind WATCH said */
	bool watch_known;     /* it said something */
	bool planned;
	bool watch_refused;
	char last_error[120]; /* the last error that it was answered */
};

struct hs_sim_load {
	struct hs_sim_load_options options;
	struct hs_sim_world *world;
	struct hs_sim_history history;
	struct hs_sim_accesses accesses;
	struct hs_sim_verdict verdict;
	struct hs_prng prng;
	uint32_t numbers;  /* of connections */
	int64_t values;	   /* last value set */
	uint64_t requests; /* composed */
	uint64_t lost;	   /* a bit for each key of which a failover or a restart has lost writes */
	bool fold;	   /* as it is now */
	uint32_t external_left; /* writes past the process */
	bool off;		/* everything is turned off, for the last reads */
	int64_t *finals;	/* of each key, what they saw; NULL: there were none */
	struct hs_sim_actor *actors;
	struct hs_sim_companions *companions;
	/* Judges what else must be true when all is calm, with what each key holds; NULL: nothing. */
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

/* Whether one command or transaction may have both. In a Cluster they are of one slot: slots have no order between
 * them. */
static inline bool hs_sim_load_goes_with(const struct hs_sim_load *load, uint32_t key,
					 uint32_t other)
{
	const struct hs_sim_world *world = load->world;

	return (key <= world->options.tied && other <= world->options.tied) ||
	       (!world->options.servers.cluster && hs_sim_world_same_partition(world, key, other));
}

/* load.c: a client for the last reads, which does not act by itself. */
void hs_sim_actor_connect(struct hs_sim_actor *actor); /* to any heatsink that is there */
void hs_sim_actor_connect_to(struct hs_sim_actor *actor, uint32_t worker);
void hs_sim_actor_send(struct hs_sim_actor *actor); /* some of what it has composed */
void hs_sim_actor_on_reply(void *actor, struct hs_sim_client *client, struct hs_bytes reply);
void hs_sim_actor_pop_silent(struct hs_sim_actor *actor);
bool hs_sim_actor_was_cut(const struct hs_sim_actor *actor);

/* load_compose.c: puts a request, words split at spaces, into the outgoing bytes. */
struct hs_sim_request *hs_sim_actor_request(struct hs_sim_actor *actor, const char *request,
					    enum hs_sim_expect expect);
/* A random request, or a few that belong together. */
void hs_sim_actor_compose(struct hs_sim_actor *actor);
void hs_sim_actor_compose_get(struct hs_sim_actor *actor, uint32_t key);
struct hs_sim_request *hs_sim_actor_compose_single(struct hs_sim_actor *actor,
						   enum hs_sim_kind kind, uint32_t key);
void hs_sim_actor_compose_several(struct hs_sim_actor *actor, bool set);
void hs_sim_actor_compose_transaction(struct hs_sim_actor *actor);
void hs_sim_actor_compose_in_exec(struct hs_sim_actor *actor, enum hs_sim_kind kind, uint32_t key);
void hs_sim_actor_add_op(struct hs_sim_actor *actor, struct hs_sim_request *sent_request,
			 const struct hs_sim_op *op);
int64_t hs_sim_load_value(struct hs_sim_load *load); /* one that nobody had before */

/* load_rules.c: where keys have contracts. A random request; what it may be answered; that it is; and what
 * happens beside the clients. */
bool hs_sim_load_has_rules(const struct hs_sim_load *load);
void hs_sim_actor_compose_ruled(struct hs_sim_actor *actor);
void hs_sim_actor_compose_flush(struct hs_sim_actor *actor);
void hs_sim_actor_asked_ruled(struct hs_sim_actor *actor, struct hs_sim_request *sent_request);
void hs_sim_actor_answered_ruled(struct hs_sim_actor *actor,
				 const struct hs_sim_request *sent_request);
void hs_sim_load_meddle_ruled(struct hs_sim_load *load);
void hs_sim_load_begin_ruled(struct hs_sim_load *load);

/* load_delay.c: a request was sent; its client stops reading; it was answered. */
void hs_sim_delay_sent(struct hs_sim_actor *actor, struct hs_sim_request *sent_request);
void hs_sim_delay_reading_paused(struct hs_sim_actor *actor);
void hs_sim_delay_answered(struct hs_sim_actor *actor, const struct hs_sim_request *sent_request);

/* load_check.c: every heatsink is asked for every key, and says what it holds. */
void hs_sim_load_read(struct hs_sim_load *load, int64_t *finals);

/* load_replies.c: whether this reply fits the request; what it says goes to the history. */
bool hs_sim_actor_reply_fits(struct hs_sim_actor *actor, struct hs_sim_request *sent_request,
			     struct hs_bytes reply);

#endif
