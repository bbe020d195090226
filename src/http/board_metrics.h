/* The board as metrics: partitions, and when asked for the hottest keys. The families of partitions
 * are the fields that HEAT PARTITIONS shows, by the names their rows give them. */
#ifndef HS_HTTP_BOARD_METRICS_H
#define HS_HTTP_BOARD_METRICS_H

#include "http/metrics.h"
#include "telemetry/board.h"

enum { HS_METRICS_KEYS_MAX = 100 };

void hs_metrics_partitions(struct hs_metrics *metrics, struct hs_board *board);
/* The `count` hottest over the long window, by name or by the hash that HEAT KEY shows. */
void hs_metrics_keys(struct hs_metrics *metrics, struct hs_board *board, size_t count, bool names);

#endif
