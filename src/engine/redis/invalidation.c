#include "engine/redis/invalidation.h"

int hs_invalidation_begin(struct hs_invalidation *invalidation, struct hs_walk walk)
{
	struct hs_parsed_reply head;

	*invalidation = (struct hs_invalidation){.walk = walk};
	if (hs_walk_next(&invalidation->walk, &head) < 0)
		return HS_EPROTO;
	invalidation->all = head.type == HS_PARSED_NULL;
	if (head.type == HS_PARSED_ARRAY)
		invalidation->left = head.count;
	return invalidation->all || head.type == HS_PARSED_ARRAY ? 0 : HS_EPROTO;
}

int hs_invalidation_next(struct hs_invalidation *invalidation, struct hs_bytes *key)
{
	struct hs_parsed_reply head;

	if (invalidation->left == 0)
		return 0;
	invalidation->left--;
	if (hs_walk_next(&invalidation->walk, &head) < 0 || head.type != HS_PARSED_BULK)
		return HS_EPROTO;
	*key = head.text;
	return 1;
}
