/* A command of a client, parsed and looked up once; the functions of the request path hand it to each other.
 * The worker's thread owns it. `argv` and `raw` point into the client's input while the command is dispatched.
 * Once the command waits they point into the request's own copy (hs_request_copy_call).
 *
 * The slot and the key's hash are computed when first asked for, because a cache hit needs no slot. */
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
	HS_CALL_SLOTS_UNKNOWN, /* not computed yet */
	HS_CALL_SLOTS_NONE,    /* the command has no keys */
	HS_CALL_SLOTS_ONE,     /* all its keys share `slot` */
	HS_CALL_SLOTS_SEVERAL,
};

struct hs_call {
	const struct hs_command *command; /* its row in the command table, or a learned one */
	const struct hs_bytes *argv;
	size_t argc;
	struct hs_bytes raw; /* as the client sent it; empty: an inline command */
	/* Number of the command among all of this core, from 1; 0: an internal call. */
	uint64_t number;
	size_t pipelined_bytes;	  /* input of the same client that is behind it in the buffer */
	enum hs_call_slots slots; /* read it with hs_call_slots() */
	uint16_t slot;		  /* of the first key; 0: no keys, or not computed yet */
	uint64_t key_hash;	  /* read it with hs_call_hash(); 0: not computed yet */
	bool admitted;		  /* it passed every check and was offered to the stages */
	bool reserved;		  /* a key has a reserved name (core/reserved.h) */
};

/* A call that heatsink composes; the caller owns `argv`. */
static inline struct hs_call hs_call_of(const struct hs_command *command, size_t argc,
					const struct hs_bytes *argv)
{
	return (struct hs_call){.command = command, .argv = argv, .argc = argc};
}

/* A queued command of a transaction. */
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

/* Computes how many slots the keys lie in; sets `slot` and `reserved`. */
enum hs_call_slots hs_call_slots_find(struct hs_call *call);

static inline enum hs_call_slots hs_call_slots(struct hs_call *call)
{
	return call->slots != HS_CALL_SLOTS_UNKNOWN ? call->slots : hs_call_slots_find(call);
}

/* The hash of the only key with the workers' seed (hs_core_world.key_seed). The hot-key table, the cache and
 * the versions find the key by it. */
static inline uint64_t hs_call_hash(struct hs_call *call, struct hs_bytes key, uint64_t seed)
{
	if (call->key_hash == 0)
		call->key_hash = hs_hash(key, seed);
	return call->key_hash;
}

/* Whether a key has a reserved name. Computes no slot if the command has one key at a fixed position. */
bool hs_call_is_reserved(struct hs_call *call);
/* The slot argument of CLUSTER COUNTKEYSINSLOT or GETKEYSINSLOT. Returns an error text if the arguments are
 * wrong, else NULL. */
const char *hs_call_named_slot(const struct hs_call *call, uint16_t *slot);

/* The index of the only key in argv; 0: no key, or several. Unlike hs_keys_single it looks at the arguments
 * where the row alone does not tell. */
size_t hs_call_only_key(const struct hs_call *call);

#endif
