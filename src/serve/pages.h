/* What is answered over HTTP: the table of routes, on top of the host. The control thread's. */
#ifndef HS_SERVE_PAGES_H
#define HS_SERVE_PAGES_H

#include "http/route.h"
#include "serve/host.h"

/* The context of their compose functions is the struct hs_host. */
extern const struct hs_http_routes hs_pages;

/* metrics_page.c: everything, in the text format of Prometheus. */
void hs_metrics_page(struct hs_host *host, struct hs_buf *text);

#endif
