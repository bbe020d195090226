/* Private to sim/companions*.c: a companion, its requests in flight, and the elements and messages of all
 * companions. */
#ifndef HS_SIM_COMPANIONS_INTERNAL_H
#define HS_SIM_COMPANIONS_INTERNAL_H

#include "sim/companions.h"

enum {
	HS_SIM_COMPANION_LISTS = 2,
	HS_SIM_COMPANION_CHANNELS = 2,	    /* the second one is a shard channel */
	HS_SIM_COMPANION_IN_FLIGHT_MAX = 8, /* a power of two */
	HS_SIM_COMPANION_DEPTH = 3,	    /* requests in flight of a pusher or publisher */
};

/* The topics of a subscriber: the channel, the shard channel, and a pattern that matches the channel. */
enum hs_sim_companion_topic {
	HS_SIM_COMPANION_CHANNEL,
	HS_SIM_COMPANION_SHARD,
	HS_SIM_COMPANION_PATTERN,
	HS_SIM_COMPANION_TOPICS,
};

struct hs_sim_companion_words {
	const char *name, *subscribe, *unsubscribe, *message;
	uint32_t channel; /* the channel whose messages it brings */
};

extern const struct hs_sim_companion_words hs_sim_companion_words[HS_SIM_COMPANION_TOPICS];

enum hs_sim_companion_role {
	HS_SIM_POPPER,
	HS_SIM_PUSHER,
	HS_SIM_SUBSCRIBER,
	HS_SIM_PUBLISHER,
	HS_SIM_UNBLOCKER
};

/* An element or a message. */
struct hs_sim_companion_item {
	bool message;
	bool acked;	/* its command was answered without an error */
	bool taken;	/* an element: it was popped */
	uint32_t where; /* the list or the channel */
	uint32_t by;	/* the number of the connection that pushed or published it */
	uint8_t node;	/* a message: the node that it was published to */
	uint64_t asked; /* the step of its request */
};

enum hs_sim_companion_request_kind {
	HS_SIM_COMPANION_POP,
	HS_SIM_COMPANION_PUSH,
	HS_SIM_COMPANION_PUBLISH,
	HS_SIM_COMPANION_SUBSCRIBE,
	HS_SIM_COMPANION_UNSUBSCRIBE,
	HS_SIM_COMPANION_UNBLOCK,
	HS_SIM_COMPANION_HELLO,
};

/* A request in flight. */
struct hs_sim_companion_request {
	enum hs_sim_companion_request_kind kind;
	uint32_t item;	   /* PUSH, PUBLISH */
	uint32_t where;	   /* POP: the list; SUBSCRIBE, UNSUBSCRIBE: the topic */
	uint64_t until_us; /* POP: when its timeout is over; UINT64_MAX: it has none */
};

struct hs_sim_companion {
	struct hs_sim_companions *companions;
	struct hs_sim_client *client; /* NULL: not connected */
	enum hs_sim_companion_role role;
	uint32_t number;
	uint32_t connection; /* a new number for each connection */
	uint32_t left;	     /* requests still to be sent */
	struct hs_sim_companion_request in_flight[HS_SIM_COMPANION_IN_FLIGHT_MAX];
	uint32_t head, tail;
	bool planned;
	/* POPPER: its unblocker. UNBLOCKER: its popper. */
	struct hs_sim_companion *other;
	bool unblocked; /* CLIENT UNBLOCK was answered with 1: the popper's wait has ended */
	bool stays;	/* SUBSCRIBER: stays subscribed until the end */
	/* SUBSCRIBER: the step at which it was subscribed to each topic; 0: it is not. */
	uint64_t subscribed_from[HS_SIM_COMPANION_TOPICS];
	uint64_t received[HS_SIM_COMPANION_TOPICS]; /* a bit for each message since then */
	uint64_t popped;			    /* POPPER: a bit for each element */
};

struct hs_sim_companions {
	struct hs_sim_companions_options options;
	struct hs_sim_world *world;
	struct hs_prng prng;
	struct hs_sim_verdict verdict; /* violations that were found at once */
	struct hs_sim_companion *all;
	uint32_t count;
	struct hs_sim_companion_item items[HS_SIM_COMPANION_ITEMS_MAX];
	uint32_t items_count;
	uint32_t unknown[HS_SIM_COMPANION_LISTS]; /* pops whose answer was lost */
	uint64_t requests;
	uint64_t heat[2]; /* of `requests`: PUBLISH and SPUBLISH; BLPOP and RPUSH */
	uint32_t connections;
	bool ending; /* hs_sim_companions_check is draining the lists */
};

/* companions_check.c: replies and pushes. */
void hs_sim_companion_on_reply(void *context, struct hs_sim_client *client, struct hs_bytes reply);
void hs_sim_companion_forget(struct hs_sim_companion *companion); /* its connection has ended */
/* companions.c */
void hs_sim_companion_plan(struct hs_sim_companion *companion, uint64_t in_us);
void hs_sim_companion_pop(struct hs_sim_companion *companion, uint32_t list, uint64_t timeout_us);

#endif
