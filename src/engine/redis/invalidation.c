#include "engine/redis/invalidation.h"

int hs_invalidation_begin(struct hs_invalidation *invalidation, struct hs_walk walk)
{
	struct hs_answer head;

	*invalidation = (struct hs_invalidation){.walk = walk};
	if (hs_walk_next(&invalidation->walk, &head) < 0)
		return HS_EPROTO;
	invalidation->all = head.type == HS_ANSWER_NULL;
	if (head.type == HS_ANSWER_ARRAY)
		invalidation->left = head.count;
	return invalidation->all || head.type == HS_ANSWER_ARRAY ? 0 : HS_EPROTO;
}

int hs_invalidation_next(struct hs_invalidation *invalidation, struct hs_bytes *key)
{
	struct hs_answer head;

	if (invalidation->left == 0)
		return 0;
	invalidation->left--;
	if (hs_walk_next(&invalidation->walk, &head) < 0 || head.type != HS_ANSWER_BULK)
		return HS_EPROTO;
	*key = head.text;
	return 1;
}
