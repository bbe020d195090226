/* The routes of HTTP, and the pages that are one call. */
#include "serve/pages.h"

#include "http/api.h"
#include "http/metrics.h"
#include "serve/clock.h"

enum { OK = 200, UNAVAILABLE = 503 };

#define PLAIN_TYPE "text/plain; charset=utf-8"

static unsigned compose_index(void *context, const struct hs_http_request *request,
			      struct hs_buf *body)
{
	(void)context;
	(void)request;
	hs_buf_printf(body, "heatsink: the pages of this server\n\n");
	hs_http_routes_describe(&hs_pages, body);
	return OK;
}

static unsigned compose_metrics(void *context, const struct hs_http_request *request,
				struct hs_buf *body)
{
	(void)request;
	hs_metrics_page(context, body);
	return OK;
}

/* The JSON pages about heat (http/api.h), with a fresh sample. */
#define BOARD_PAGE(name)                                                                           \
	static unsigned compose_##name(void *context, const struct hs_http_request *request,       \
				       struct hs_buf *body)                                        \
	{                                                                                          \
		struct hs_host *host = context;                                                    \
                                                                                                   \
		hs_host_sample_heat(host);                                                         \
		return hs_api_##name(host->board, hs_clock_now(), request, body);                  \
	}
BOARD_PAGE(heat)
BOARD_PAGE(partitions)
BOARD_PAGE(history)

static unsigned compose_healthz(void *context, const struct hs_http_request *request,
				struct hs_buf *body)
{
	(void)context;
	(void)request;
	hs_buf_printf(body, "ok\n");
	return OK;
}

static unsigned compose_readyz(void *context, const struct hs_http_request *request,
			       struct hs_buf *body)
{
	struct hs_buf why = {0};
	bool ready = hs_host_ready(context, &why);

	(void)request;
	hs_buf_printf(body, "%s", ready ? "ready\n" : "not ready: ");
	hs_buf_append_bytes(body, hs_buf_bytes(&why));
	hs_buf_deinit(&why);
	return ready ? OK : UNAVAILABLE;
}

static const struct hs_http_route rows[] = {
	{.path = "/", .type = PLAIN_TYPE, .compose = compose_index, .help = "This list of pages."},
	{.path = "/metrics",
	 .type = HS_METRICS_TYPE,
	 .shared = true,
	 .compose = compose_metrics,
	 .help = "All metrics, in the text format of Prometheus."},
	{.path = "/api/heat",
	 .type = HS_API_TYPE,
	 .parameters = hs_api_heat_parameters,
	 .parameters_count = HS_API_HEAT_PARAMETERS,
	 .compose = compose_heat,
	 .help = "The hottest keys, prefixes or slots, as JSON."},
	{.path = "/api/partitions",
	 .type = HS_API_TYPE,
	 .parameters = hs_api_partitions_parameters,
	 .parameters_count = HS_API_PARTITIONS_PARAMETERS,
	 .compose = compose_partitions,
	 .help = "Every partition and their median, as JSON."},
	{.path = "/api/history",
	 .type = HS_API_TYPE,
	 .parameters = hs_api_history_parameters,
	 .parameters_count = HS_API_HISTORY_PARAMETERS,
	 .compose = compose_history,
	 .help = "The last seconds, one row each, up to ten minutes, as JSON."},
	{.path = "/kv/",
	 .suffix = "<key>",
	 .type = "application/octet-stream",
	 .begin = hs_kv_page_begin,
	 .help = "The value of a key whose rule says public, with ETag and Cache-Control. %XX "
		 "stands for "
		 "a byte."},
	{.path = "/healthz",
	 .type = PLAIN_TYPE,
	 .probe = true,
	 .compose = compose_healthz,
	 .help = "200 while the process runs."},
	{.path = "/readyz",
	 .type = PLAIN_TYPE,
	 .probe = true,
	 .compose = compose_readyz,
	 .help = "200 if this server can serve clients, else 503 and the reason; then a line for "
		 "each "
		 "partition that is not ok."},
};

const struct hs_http_routes hs_pages = {rows, sizeof rows / sizeof *rows};
