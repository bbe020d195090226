/* The board as JSON: objects whose members are the fields of HEAT, in an envelope.
 *
 *     {"time":1700000000.123456,"window":"short","rows":[{"key":"a","ops":12,…},…]}
 *
 * Key names are escaped (base/escape.h) before they become JSON strings. The caller samples the board first. Each
 * function appends to `body` and returns an HTTP status: 400 with a line of text for parameters that do not fit each
 * other. The thread that owns the board. */
#ifndef HS_HTTP_API_H
#define HS_HTTP_API_H

#include "http/route.h"
#include "telemetry/board.h"

#define HS_API_TYPE "application/json"

/* Most rows of one answer. With many partitions, fewer seconds of history fit. */
enum { HS_API_ROWS_MAX = 20000 };

/* The number of parameters of each page. */
enum {
	HS_API_HEAT_PARAMETERS = 5,
	HS_API_PARTITIONS_PARAMETERS = 1,
	HS_API_HISTORY_PARAMETERS = 2,
};
extern const struct hs_http_parameter hs_api_heat_parameters[HS_API_HEAT_PARAMETERS];
extern const struct hs_http_parameter hs_api_partitions_parameters[HS_API_PARTITIONS_PARAMETERS];
extern const struct hs_http_parameter hs_api_history_parameters[HS_API_HISTORY_PARAMETERS];

unsigned hs_api_heat(struct hs_board *board, struct hs_now now,
		     const struct hs_http_request *request, struct hs_buf *body);
unsigned hs_api_partitions(struct hs_board *board, struct hs_now now,
			   const struct hs_http_request *request, struct hs_buf *body);
unsigned hs_api_history(struct hs_board *board, struct hs_now now,
			const struct hs_http_request *request, struct hs_buf *body);

#endif
