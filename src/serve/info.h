/* What the process says about itself, one row per value (info_rows.c): INFO and /metrics both walk
 * the rows. The control thread's. */
#ifndef HS_SERVE_INFO_H
#define HS_SERVE_INFO_H

#include "http/http.h"
#include "serve/fetch.h"
#include "serve/host.h"

#include <sys/resource.h>
#include <sys/utsname.h>

/* Everything the rows draw on, gathered once per answer. */
struct hs_info_facts {
	struct hs_host *host;
	struct hs_totals now;	/* as counted */
	struct hs_totals since; /* since CONFIG RESETSTAT */
	struct hs_engine_stats engine;
	struct hs_http_stats http;
	struct hs_fetch_stats fetch;
	struct hs_now time;
	struct utsname system;
	struct rusage usage;
	uint64_t rss_bytes, virtual_bytes;
	uint64_t keys, expires, bytes_used, queued;
};

struct hs_info_row {
	const char *section; /* of INFO; NULL: a metric alone */
	const char *name;
	void (*write)(const struct hs_info_facts *facts, struct hs_buf *text);
	bool (*known)(
		const struct hs_info_facts *facts); /* else INFO leaves it out; NULL: always */
	/* As a metric: its name behind heatsink_ (base units, _total), its type, its help; NULL: it
	 * is none. Rows of one name stand together and differ in `mode`, their label. */
	const char *metric, *type, *help, *mode;
	double factor; /* to base units; 0 means 1: the text as it is */
};

extern const struct hs_info_row hs_info_rows[];
extern const size_t hs_info_rows_count;

/* The name of a command that is counted, ours or a server's. */
const char *hs_info_command_name(const struct hs_host *host, int id);

void hs_info_gather(struct hs_host *host, struct hs_info_facts *facts);

#endif
