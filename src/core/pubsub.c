/* What clients subscribed to, and news to those whom they concern. */
#include "core/session.h"
#include "core/tracking.h"

void hs_core_news(struct hs_core *core, struct hs_now now, const struct hs_news *news)
{
	hs_core_set_now(core, now);
	if (news->kind == HS_NEWS_CHANGED || news->kind == HS_NEWS_CHANGED_ALL)
		hs_tracking_news(core, news);
}
