/* INFO: counters (serve/totals.h), and one row for each value that is computed on request (info_rows.c). INFO and
 * /metrics walk the same rows. It changes only the memory figures in struct hs_host, which hs_info_gather measures
 * again after 100 ms. The control thread. */
#ifndef HS_SERVE_INFO_H
#define HS_SERVE_INFO_H

#include "serve/host.h"

#include <sys/resource.h>
#include <sys/utsname.h>

/* The input of all rows, gathered once per answer. */
struct hs_info_facts {
	struct hs_host *host;
	struct hs_totals totals;       /* since CONFIG RESETSTAT */
	struct hs_engine_stats engine; /* since the start */
	struct hs_now time;
	struct utsname system;
	struct rusage usage;
	struct hs_memory_pages pages;
	uint64_t keys, expires, bytes_used, queued;
};

/* A value that is computed on request. */
struct hs_info_row {
	struct hs_counter_row row;
	void (*write)(const struct hs_info_facts *facts, struct hs_buf *text);
	/* INFO prints the row only if this returns true; NULL: always. */
	bool (*shown_if)(const struct hs_info_facts *facts);
	/* The label `mode` of the metric; rows that share a metric stand next to each other. NULL: no label. */
	const char *mode;
};

extern const struct hs_info_row hs_info_rows[];
extern const size_t hs_info_rows_count;

/* The name of a command by its id, from the command table or learned from a server. */
const char *hs_info_command_name(const struct hs_host *host, int id);

void hs_info_gather(struct hs_host *host, struct hs_info_facts *facts);

#endif
