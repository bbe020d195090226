/* Private to core/copied*.c and plan.c: the keys of a worker whose values lie in several places, or would
 * if that could be. copied.c tells the whole story. */
#ifndef HS_CORE_COPIED_H
#define HS_CORE_COPIED_H

#include "absorb/copies.h"
#include "core/session.h"

enum hs_copied_state {
	HS_COPIED_WATCHED, /* hot; no copies */
	HS_COPIED_MAKING,
	HS_COPIED_SPREAD,  /* there are copies, and reads go to them */
	HS_COPIED_RESTING, /* not now: `why` */
};

struct hs_copied {
	struct hs_link link; /* in copying->keys */
	struct hs_hot *hot;  /* its key; NULL: not among the keys any more */
	const struct hs_rule *rule;
	uint16_t slot;
	uint64_t key_hash;
	enum hs_copied_state state;
	uint64_t since_us;	/* when that began */
	uint64_t rest_until_us; /* no copies are made before */
	uint32_t asked;		/* reads that the engine had to answer, halved with each tick */
	uint32_t under_way;	/* requests about it: it stays until they are answered */
	struct hs_copies_pace pace;
	uint32_t places_before; /* of the last set */

	struct hs_copies *copies; /* the set in use; NULL: none */
	bool ours;		  /* it was made here, and is renewed and taken away here */
	uint64_t renew_us;	  /* when it is to be renewed */
	uint64_t used_us;	  /* when it was last used here */

	struct hs_copies *making; /* a set on its way; NULL: none, or not named yet */
	struct hs_stamp stamp;	  /* before the original was read */

	char why[128]; /* it has no copies; "" */
	size_t key_len;
	char key[];
};

struct hs_copying {
	bool any;     /* a rule wants copies, and they may be made */
	bool stopped; /* for good */
	struct hs_link keys;
	uint32_t count;
	struct hs_copies_id id;	    /* of the set made last */
	struct hs_request *sending; /* one that is just being sent; or NULL */
	/* What each partition had to do, sampled now and then. */
	uint64_t sampled_us;
	uint64_t counted[HS_PARTITIONS_MAX];
	struct hs_copies_loads loads;
};

static inline struct hs_bytes hs_copied_key(const struct hs_copied *copied)
{
	return (struct hs_bytes){copied->key, copied->key_len};
}

/* Whether the engine has places to put copies. */
static inline bool hs_copied_can(const struct hs_core *core)
{
	return core->world.slots && core->world.together == HS_TOGETHER_SLOT;
}

/* Whether names of copies have to be taken out of what it answers. */
static inline bool hs_copied_hides(const struct hs_core *core, const struct hs_command *command)
{
	return hs_copied_can(core) &&
	       (command->id == HS_CMD_ID_KEYS || command->id == HS_CMD_ID_SCAN ||
		command->id == HS_CMD_ID_RANDOMKEY ||
		command->id == HS_CMD_ID_CLUSTER_GETKEYSINSLOT);
}

/* copied.c */
struct hs_copied *hs_copied_find(const struct hs_core *core, uint16_t slot, struct hs_bytes key);
/* Whether reads may go to the copies now. A set that is over is dropped. */
bool hs_copied_valid(struct hs_core *core, struct hs_copied *copied);
/* A read finds none: perhaps some are made. */
void hs_copied_want(struct hs_core *core, struct hs_copied *copied);
void hs_copied_rest(struct hs_core *core, struct hs_copied *copied, uint64_t us, const char *format,
		    ...) __attribute__((format(printf, 4, 5)));
/* The set in use is over. */
void hs_copied_drop(struct hs_core *core, struct hs_copied *copied);
/* A set is complete, or another worker's was found. */
void hs_copied_adopt(struct hs_core *core, struct hs_copied *copied, struct hs_copies *copies,
		     bool ours);
/* A request about the key is answered. It may be gone when this returns. */
void hs_copied_release(struct hs_core *core, struct hs_copied *copied);

/* copied_make.c */
void hs_copied_make(struct hs_core *core, struct hs_copied *copied);
void hs_copied_renew(struct hs_core *core, struct hs_copied *copied);
void hs_copied_unlink(struct hs_core *core, const struct hs_copies *copies);
/* What another worker has made; true: it is in use, or about to be. */
bool hs_copied_look(struct hs_core *core, struct hs_copied *copied);

#endif
