/* The counters of a core. The worker's thread counts, any thread may read (base/counter.h). Counters of a stage
 * are in the stage's folder (hs_stage.counters). */
#ifndef HS_CORE_STATS_H
#define HS_CORE_STATS_H

#include "base/counter.h"
#include "command/command.h"

/* clang-format off */
#define HS_COMMAND_COUNTERS(ROW) /* of each command; INFO commandstats has a line for each */ \
	ROW(calls, HS_COUNTER, NULL, "calls", "commands_total", "Calls of the command") \
	/* a write's time includes the commit it waited for */ \
	ROW(time_ns, HS_COUNTER, NULL, "usec", "command_seconds_total", \
	    "Time spent on calls of the command, a write's commit included", .factor = 1e-9, .divisor = 1000) \
	ROW(rejected, HS_COUNTER, NULL, "rejected_calls", "command_rejected_total", \
	    "Calls of the command refused before it ran, such as by ACL or arity") \
	ROW(failed, HS_COUNTER, NULL, "failed_calls", "command_failed_total", \
	    "Calls of the command answered with an error")
/* clang-format on */

struct hs_core_command_stats {
	HS_COMMAND_COUNTERS(HS_COUNTER_FIELD)
};

/* clang-format off */
#define HS_HOLD_COUNTERS(ROW) /* why a client's next command waits: core/hold.h */ \
	ROW(HS_HOLD_NONE, HS_COUNTER, NULL, NULL, NULL, NULL) \
	ROW(HS_HOLD_IN_FLIGHT, HS_COUNTER, "Stats", "held_commands_in_flight", "held_commands_in_flight_total", \
	    "Times a client's next command waited for its own commands in flight, because one of them must run alone, " \
	    "such as WATCH or SUBSCRIBE (CLIENT LIST: held=commands-in-flight)") \
	ROW(HS_HOLD_PIPELINE, HS_COUNTER, "Stats", "held_pipeline_limit", "held_pipeline_limit_total", \
	    "Times a client's next command waited because the client had as many commands in flight as it may, " \
	    "256 (CLIENT LIST: held=pipeline-limit)") \
	ROW(HS_HOLD_STAGE, HS_COUNTER, "Stats", "held_by_stage", "held_by_stage_total", \
	    "Times a mitigation made a client's next command wait for its own commands in flight " \
	    "(CLIENT LIST: held= and the mitigation, such as fold or cache)") \
	ROW(HS_HOLD_PAUSE, HS_COUNTER, "Stats", "held_pause", "held_pause_total", \
	    "Times a client's next command waited for the end of CLIENT PAUSE (CLIENT LIST: held=pause)") \
	ROW(HS_HOLD_REPLY_BUDGET, HS_COUNTER, "Stats", "held_engine_inflight_bytes", "held_engine_inflight_bytes_total", \
	    "Times a client's next command waited because its large reply did not fit into " \
	    "engine-inflight-bytes (CLIENT LIST: held=engine-inflight-bytes)") \
	ROW(HS_HOLD_SLEEP, HS_COUNTER, "Stats", "held_debug_sleep", "held_debug_sleep_total", \
	    "Times a client's next command waited for the end of its DEBUG SLEEP (CLIENT LIST: held=debug-sleep)")

#define HS_CORE_COUNTERS(ROW) \
	ROW(sessions, HS_GAUGE, "Clients", "connected_clients", "connected_clients", "Clients connected now") \
	ROW(blocked, HS_GAUGE, "Clients", "blocked_clients", "blocked_clients", \
	    "Clients in a blocking command, or waiting for the end of CLIENT PAUSE") \
	ROW(inflight, HS_GAUGE, "Clients", "requests_inflight", "requests_inflight", \
	    "Requests in flight: sent to the engine and not answered yet") \
	ROW(connections, HS_COUNTER, "Stats", "total_connections_received", "connections_received_total", \
	    "Client connections accepted") \
	ROW(commands, HS_COUNTER, "Stats", "total_commands_processed", "commands_processed_total", "Commands processed") \
	ROW(input_bytes, HS_COUNTER, "Stats", "total_net_input_bytes", "net_input_bytes_total", \
	    "Bytes received from clients") \
	ROW(output_bytes, HS_COUNTER, "Stats", "total_net_output_bytes", "net_output_bytes_total", \
	    "Bytes sent to clients") \
	ROW(errors, HS_COUNTER, "Stats", "total_error_replies", "error_replies_total", \
	    "Commands answered with an error") \
	ROW(protocol_errors, HS_COUNTER, "Stats", "protocol_errors", "protocol_errors_total", \
	    "Clients disconnected because of a protocol error: they did not send RESP") \
	ROW(cut_output, HS_COUNTER, "Stats", "output_limit_disconnections", "output_limit_disconnections_total", \
	    "Clients disconnected because they did not read their replies (output-limit)") \
	ROW(cut_query, HS_COUNTER, "Stats", "query_limit_disconnections", "query_limit_disconnections_total", \
	    "Clients disconnected because a request was too large") \
	ROW(hot_keys, HS_GAUGE, "Stats", "hot_keys", "hot_keys", \
	    "Keys that are hot now (above hot-share), summed over the workers") \
	ROW(hot_keys_full, HS_COUNTER, "Stats", "hot_keys_full", "hot_keys_full_total", \
	    "Requests for a hot key that is not mitigated because the worker's table of 4096 hot keys is full")
/* clang-format on */

enum hs_hold { HS_HOLD_COUNTERS(HS_COUNTER_INDEX) HS_HOLDS };

struct hs_core_stats {
	HS_CORE_COUNTERS(HS_COUNTER_FIELD)
	struct hs_counter holds[HS_HOLDS]; /* times a session was held, by reason */
	struct hs_core_command_stats command[HS_CMD_IDS_ALL]; /* by command id */
};

extern const struct hs_counter_table hs_core_counters, hs_hold_counters, hs_command_counters;

#endif
