/* One reply out of several: how the parts of a command that went to many partitions are put
 * together. Works on reply bytes alone. Whatever part is an error, the first such is the reply
 * (unless one success is enough); parts that do not fit together, or are no replies, become an error
 * that names the command. */
#ifndef HS_ROUTE_MERGE_H
#define HS_ROUTE_MERGE_H

#include "base/bytes.h"
#include "command/command.h"
#include "wire/reply.h"

#include <stdint.h>

struct hs_merge {
	enum hs_command_merge how;
	const char *name;	      /* of the command, for errors */
	const struct hs_bytes *parts; /* the reply of each part */
	uint32_t count;
	const uint32_t *key_part; /* HS_MERGE_BY_KEY: which part holds the answer to key i */
	size_t keys;
	uint32_t first; /* HS_MERGE_FIRST: where to begin looking */
};

void hs_merge_replies(const struct hs_merge *merge, struct hs_reply *reply);

/* SCAN's reply with another cursor in it when its own is 0 and `next` is not. */
void hs_merge_cursor(struct hs_bytes part, uint64_t next, struct hs_reply *reply);

/* SCAN's reply of partition number `partition` of `count`, each with cursors of its own: ours is
 * theirs times HS_PARTITIONS_MAX and the number; behind its last key comes the next partition. */
void hs_merge_partition_cursor(struct hs_bytes part, uint16_t partition, uint16_t count,
			       struct hs_reply *reply);

#endif
