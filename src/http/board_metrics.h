/* The board as metrics. Partitions: one family per field of HEAT PARTITIONS that has a metric name; name and help
 * come from the field table (telemetry/field.h). Two more families have the address of each partition, and the
 * histogram of its request durations. Keys: the hottest ones, if metrics-keys asks for them. The thread that owns
 * the board. */
#ifndef HS_HTTP_BOARD_METRICS_H
#define HS_HTTP_BOARD_METRICS_H

#include "http/metrics.h"
#include "telemetry/board.h"

enum { HS_METRICS_KEYS_MAX = 100 };

void hs_metrics_partitions(struct hs_metrics *metrics, struct hs_board *board);
/* The `count` hottest keys over the long window, labelled by name or by the hash that HEAT KEY shows. */
void hs_metrics_keys(struct hs_metrics *metrics, struct hs_board *board, size_t count, bool names);

#endif
