/* The signature of a read: a number to look its cache entry up by. Computed for every read under a cache
 * contract: one look at the command's row and one hash of the key; each further argument costs one more hash. */
#include "absorb/entry.h"
#include "base/hash.h"
#include "core/call.h"

/* Signatures choose cells and buckets, so similar numbers must be spread far apart. */
static uint64_t mix(uint64_t number)
{
	number ^= number >> 32;
	number *= UINT64_C(0xd6e8feb86659fd93);
	number ^= number >> 32;
	number *= UINT64_C(0xd6e8feb86659fd93);
	return number ^ number >> 32;
}

/* Lengths are hashed too, so that equal bytes split differently give another signature. The command's name is
 * not: its case is free. */
static void sign(struct hs_cache_query *query, uint64_t hash)
{
	query->key_hash = hash;
	for (size_t i = 2; i < query->argc; i++)
		hash = hs_hash(query->argv[i], mix(hash + query->argv[i].len));
	query->signature = mix(hash + query->command->id);
}

bool hs_cache_query_fits(const struct hs_command *command, size_t argc)
{
	size_t least = (size_t)(command->arity < 0 ? -command->arity : command->arity);

	return command->cacheable && hs_command_arity_fits(command, argc) &&
	       (!(command->cacheable & HS_CACHEABLE_WITHOUT_OPTIONS) || argc == least);
}

bool hs_cache_query_of_call(struct hs_cache_query *query, uint64_t seed, struct hs_call *call)
{
	if (!hs_cache_query_fits(call->command, call->argc))
		return false;
	/* The key is the first argument of every cacheable command. */
	*query = (struct hs_cache_query){
		.command = call->command,
		.argv = call->argv,
		.argc = call->argc,
		.key = call->argv[1],
	};
	sign(query, hs_call_hash(call, query->key, seed));
	return true;
}

void hs_cache_query_get(struct hs_cache_query *query, uint64_t hash, struct hs_bytes key,
			struct hs_bytes argv[2])
{
	argv[0] = HS_LIT("GET");
	argv[1] = key;
	*query = (struct hs_cache_query){
		.command = hs_command_by_id(HS_CMD_ID_GET),
		.argv = argv,
		.argc = 2,
		.key = key,
	};
	sign(query, hash);
}
