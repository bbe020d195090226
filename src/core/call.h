/* A command of a client, parsed and looked up once: what the request path hands from function to
 * function. `argv` and `raw` point into the client's input while the command is dispatched, and into
 * the request's own copy once it waits (hs_request_copy_call).
 *
 * The slot and the key's hash are worked out when they are first asked for: an answer from the cache needs no
 * slot. */
#ifndef HS_CORE_CALL_H
#define HS_CORE_CALL_H

#include "base/bytes.h"
#include "base/hash.h"
#include "command/command.h"
#include "core/op.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hs_call_slots {
	HS_CALL_SLOTS_UNKNOWN, /* not worked out yet */
	HS_CALL_SLOTS_NONE,    /* the command has no keys */
	HS_CALL_SLOTS_ONE,     /* all its keys share `slot` */
	HS_CALL_SLOTS_SEVERAL,
};

struct hs_call {
	const struct hs_command *command; /* its row */
	const struct hs_bytes *argv;
	size_t argc;
	struct hs_bytes raw;	  /* as the client sent it; empty: it did not come as an array */
	uint64_t number;	  /* among all that the core was asked; 0: an internal call */
	size_t pipelined_bytes;	  /* input of the same client behind it */
	enum hs_call_slots slots; /* read it by hs_call_slots */
	uint16_t slot;		  /* of the first key; 0 without keys */
	uint64_t key_hash;	  /* read it by hs_call_hash; 0: not worked out yet */
	bool admitted;		  /* it passed every check, and was offered to the stages */
	bool reserved;		  /* one of its keys is not for clients (hs_is_reserved) */
};

/* A call that heatsink composes itself; `argv` is the caller's. */
static inline struct hs_call hs_call_of(const struct hs_command *command, size_t argc,
					const struct hs_bytes *argv)
{
	return (struct hs_call){.command = command, .argv = argv, .argc = argc};
}

/* One of a transaction's. */
static inline struct hs_call hs_call_queued(const struct hs_op_tx_command *queued)
{
	return hs_call_of(queued->command, queued->argc, queued->argv);
}

static inline void hs_call_keys(const struct hs_call *call, struct hs_key_walk *walk)
{
	hs_keys_begin(walk, call->command, call->argc, call->argv);
}

static inline bool hs_call_blocks(const struct hs_call *call)
{
	return hs_command_blocks(call->command, call->argc, call->argv);
}

/* How many slots the keys lie in; sets `slot` and `reserved`. */
enum hs_call_slots hs_call_slots_find(struct hs_call *call);

static inline enum hs_call_slots hs_call_slots(struct hs_call *call)
{
	return call->slots != HS_CALL_SLOTS_UNKNOWN ? call->slots : hs_call_slots_find(call);
}

/* The hash of the only key by the workers' seed (hs_core_world.key_seed), under which the table of hot keys, the cache
 * and versions know the key. */
static inline uint64_t hs_call_hash(struct hs_call *call, struct hs_bytes key, uint64_t seed)
{
	if (call->key_hash == 0)
		call->key_hash = hs_hash(key, seed);
	return call->key_hash;
}

/* Whether one of its keys is not for clients. Needs no slot where the row has one key. */
bool hs_call_is_reserved(struct hs_call *call);
/* The slot that CLUSTER COUNTKEYSINSLOT or GETKEYSINSLOT names. Returns what is wrong with the arguments, or
 * NULL. */
const char *hs_call_named_slot(const struct hs_call *call, uint16_t *slot);

/* The position of the only key; 0: the command has none, or several. Unlike hs_keys_single it looks at
 * the arguments where the row alone does not tell. */
size_t hs_call_only_key(const struct hs_call *call);

#endif
