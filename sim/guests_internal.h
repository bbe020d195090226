/* Private to sim/guests*.c. */
#ifndef HS_SIM_GUESTS_INTERNAL_H
#define HS_SIM_GUESTS_INTERNAL_H

#include "sim/guests.h"

enum {
	HS_SIM_GUEST_LISTS = 2,
	HS_SIM_GUEST_CHANNELS = 2,  /* the second one is a shard's */
	HS_SIM_GUEST_UNDER_WAY = 8, /* a power of two */
	HS_SIM_GUEST_DEPTH = 3,	    /* of those who push and publish */
};

/* What is listened to: the channel, the shard channel, and a pattern that fits the channel. */
enum hs_sim_guest_topic {
	HS_SIM_GUEST_CHANNEL,
	HS_SIM_GUEST_SHARD,
	HS_SIM_GUEST_PATTERN,
	HS_SIM_GUEST_TOPICS,
};

struct hs_sim_guest_words {
	const char *name, *subscribe, *unsubscribe, *message;
	uint32_t channel; /* whose messages it brings */
};

extern const struct hs_sim_guest_words hs_sim_guest_words[HS_SIM_GUEST_TOPICS];

enum hs_sim_guest_role {
	HS_SIM_POPPER,
	HS_SIM_PUSHER,
	HS_SIM_LISTENER,
	HS_SIM_PUBLISHER,
	HS_SIM_USHER
};

/* An element or a message. */
struct hs_sim_guest_item {
	bool message;
	bool acked;	/* its command was answered, not with an error */
	bool taken;	/* an element was popped */
	uint32_t where; /* the list or the channel */
	uint32_t by;	/* the connection that pushed or published it */
	uint8_t node;	/* a message: to which it was published */
	uint64_t asked; /* in steps */
};

enum hs_sim_guest_what {
	HS_SIM_GUEST_POP,
	HS_SIM_GUEST_PUSH,
	HS_SIM_GUEST_PUBLISH,
	HS_SIM_GUEST_SUBSCRIBE,
	HS_SIM_GUEST_UNSUBSCRIBE,
	HS_SIM_GUEST_UNBLOCK,
	HS_SIM_GUEST_HELLO,
};

/* A request under way. */
struct hs_sim_guest_ask {
	enum hs_sim_guest_what what;
	uint32_t item;	   /* PUSH, PUBLISH */
	uint32_t where;	   /* POP: the list; SUBSCRIBE, UNSUBSCRIBE: the topic */
	uint64_t until_us; /* POP: when its time is up; UINT64_MAX: never */
};

struct hs_sim_guest {
	struct hs_sim_guests *guests;
	struct hs_sim_client *client; /* NULL: it has gone */
	enum hs_sim_guest_role role;
	uint32_t number;
	uint32_t connection; /* a new one each time */
	uint32_t left;	     /* requests */
	struct hs_sim_guest_ask asks[HS_SIM_GUEST_UNDER_WAY];
	uint32_t head, tail;
	bool planned;
	/* POPPER: who may tell it to wait no longer; USHER: whom it may tell. */
	struct hs_sim_guest *other;
	bool unblocked; /* somebody was answered that it waits no longer */
	bool stays;	/* LISTENER: until the end */
	/* LISTENER: since when it hears what, in steps; 0: it does not. */
	uint64_t hears[HS_SIM_GUEST_TOPICS];
	uint64_t heard[HS_SIM_GUEST_TOPICS]; /* a bit for each message, since then */
	uint64_t popped;		     /* and for each element */
};

struct hs_sim_guests {
	struct hs_sim_guests_options options;
	struct hs_sim_world *world;
	struct hs_prng prng;
	struct hs_sim_verdict verdict; /* what was wrong at once */
	struct hs_sim_guest *all;
	uint32_t count;
	struct hs_sim_guest_item items[HS_SIM_GUEST_ITEMS_MAX];
	uint32_t items_count;
	uint32_t unknown[HS_SIM_GUEST_LISTS]; /* pops whose answer nobody heard */
	uint64_t requests;
	uint64_t heat[2]; /* of them PUBLISH and SPUBLISH; BLPOP and RPUSH */
	uint32_t connections;
	bool ending; /* the lists are emptied */
};

/* guests_check.c: replies, and what comes without being asked for. */
void hs_sim_guest_hear(void *context, struct hs_sim_client *client, struct hs_bytes reply);
void hs_sim_guest_forget(struct hs_sim_guest *guest); /* its connection has ended */
/* guests.c */
void hs_sim_guest_plan(struct hs_sim_guest *guest, uint64_t in_us);
void hs_sim_guest_pop(struct hs_sim_guest *guest, uint32_t list, uint64_t timeout_us);

#endif
