/* Merges the replies of the parts of a command that went to several partitions into one. It works on reply
 * bytes alone; it knows no connections, keys or engines. Pure functions: any thread, and the caller owns all
 * bytes.
 *
 * If any part is an error, the first error in part order is the reply. The exception is HS_MERGE_ONE_SUCCEEDED,
 * where one success is enough. Other parts are checked as far as the merge reads them: a part of the wrong type
 * or with truncated bytes becomes an error that names the command. HS_MERGE_OK (MSET, FLUSHALL) reads no part
 * that is not an error. HS_MERGE_FIRST (RANDOMKEY) reads up to the first part that is not null. HS_MERGE_BY_KEY
 * (MGET) takes one element for each key and ignores the rest. HS_MERGE_ALL_SUCCEEDED (SCRIPT LOAD) copies the
 * first part and reads no other. HS_MERGE_ONE_SUCCEEDED (SCRIPT KILL) copies the first part that is not an error;
 * if that part is truncated the reply is an error, even if a later part is whole. Without a success the reply is
 * the first error other than -NOTBUSY, or -NOTBUSY if every part is. */
#ifndef HS_ROUTE_MERGE_H
#define HS_ROUTE_MERGE_H

#include "base/bytes.h"
#include "command/command.h"
#include "wire/reply.h"

#include <stdint.h>

struct hs_merge {
	enum hs_command_merge how;
	const char *name;	      /* name of the command, for errors */
	const struct hs_bytes *parts; /* the reply of each part */
	uint32_t count;
	const uint32_t *key_part; /* HS_MERGE_BY_KEY: the part with the reply for key i */
	size_t keys;
	uint32_t first; /* HS_MERGE_FIRST: the part to begin with */
};

void hs_merge_replies(const struct hs_merge *merge, struct hs_reply *reply);

/* Copies a SCAN reply. If its cursor is 0 (this partition is finished) and `next` is not 0, writes `next`
 * instead. */
void hs_merge_cursor(struct hs_bytes part, uint64_t next, struct hs_reply *reply);

/* Copies the SCAN reply of partition number `partition` of `count`, each of which has cursors of its own. The
 * client's cursor is the server's times HS_PARTITIONS_MAX plus the partition's number. After a partition's last
 * key the cursor names the start of the next partition; after the last partition it is 0. */
void hs_merge_partition_cursor(struct hs_bytes part, uint16_t partition, uint16_t count,
			       struct hs_reply *reply);

#endif
