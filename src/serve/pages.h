/* What is answered over HTTP: the table of routes, on top of the host. The control thread's. */
#ifndef HS_SERVE_PAGES_H
#define HS_SERVE_PAGES_H

#include "http/route.h"
#include "serve/host.h"

/* The context of their compose functions is the struct hs_host. */
extern const struct hs_http_routes hs_pages;

struct hs_key_read_result;
/* kv_page.c: a public key's value. It is asked for when HTTP wants it, and `done` when it was fetched. */
void hs_kv_page_begin(void *context, const struct hs_http_request *request,
		      struct hs_http_pending *pending);
void hs_kv_page_done(struct hs_host *host, void *context, struct hs_key_read_result *result);

/* metrics_page.c: everything, in the text format of Prometheus. */
void hs_metrics_page(struct hs_host *host, struct hs_buf *text);

#endif
