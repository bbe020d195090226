/* The pages served over HTTP: the table of routes (http/route.h) over the host's data. It knows routes, statuses
 * and content types, but no socket and no libmicrohttpd. Pages read, none changes anything. The control thread. */
#ifndef HS_SERVE_PAGES_H
#define HS_SERVE_PAGES_H

#include "http/route.h"
#include "serve/host.h"

/* The context of their functions is the struct hs_host. */
extern const struct hs_http_routes hs_pages;

struct hs_key_read_result;
/* kv_page.c: GET /kv/<key>. `begin` starts the read of the key; `done` answers when the read has ended. */
void hs_kv_page_begin(void *context, const struct hs_http_request *request,
		      struct hs_http_pending *pending);
void hs_kv_page_done(struct hs_host *host, void *context, struct hs_key_read_result *result);

/* metrics_page.c: all metrics in the text format of Prometheus. */
void hs_metrics_page(struct hs_host *host, struct hs_buf *text);

#endif
