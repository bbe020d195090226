/* What clients subscribed to, and news to those whom they concern. */
#include "core/session.h"

void hs_core_news(struct hs_core *core, struct hs_now now, const struct hs_news *news)
{
	(void)news;
	hs_core_set_now(core, now);
}
