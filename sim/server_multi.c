/* MULTI, EXEC, WATCH. EXEC runs the queued commands one by one, each as if alone, with nothing in between.
 * Invalidations follow after the last one, and replicas apply the changes together. */
#include "sim/server_internal.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/slot.h"
#include "keyspace/watch.h"

enum { QUEUE_MIN = 8 };

/* ---- the queue ---- */

static void grow(struct hs_sim_queue *queue, size_t args)
{
	if (queue->count == queue->cap) {
		queue->cap = queue->cap ? queue->cap * 2 : QUEUE_MIN;
		queue->commands =
			hs_mem_realloc(queue->commands, queue->cap * sizeof *queue->commands);
	}
	if (queue->args_count + args > queue->args_cap) {
		queue->args_cap = (queue->args_count + args) * 2;
		queue->args = hs_mem_realloc(queue->args, queue->args_cap * sizeof *queue->args);
	}
}

/* Whether a watched key was changed. Keys that have expired by now do not count before EXEC. */
static bool is_dirty(struct hs_sim_server_conn *conn)
{
	struct hs_sim_server *server = conn->server;
	struct hs_keyspace ks;

	if (!(conn->flags & HS_SIM_CONN_WATCHES))
		return false;
	ks = hs_sim_keyspace(server);
	ks.now_ms = 0;
	return !hs_watch_clean(server->watch, &ks, conn->id);
}

void hs_sim_queue_add(struct hs_sim_server_conn *conn, const struct hs_command *command,
		      size_t argc, const struct hs_bytes *argv)
{
	struct hs_sim_queue *queue = &conn->queue;
	struct hs_reply reply = hs_sim_conn_reply(conn);

	hs_reply_status(&reply, "QUEUED");
	/* It will not run, so its keys do not matter. */
	if (conn->flags & HS_SIM_CONN_DIRTY_EXEC || is_dirty(conn))
		return;
	grow(queue, argc);
	queue->commands[queue->count++] =
		(struct hs_sim_queued){.command = command, .args = queue->args_count, .argc = argc};
	for (size_t i = 0; i < argc; i++) {
		queue->args[queue->args_count++] =
			(struct hs_sim_queued_arg){queue->bytes.len, argv[i].len};
		hs_buf_append_bytes(&queue->bytes, argv[i]);
	}
	queue->any_flags |= command->flags;
	queue->all_flags &= command->flags;
}

void hs_sim_queue_get(const struct hs_sim_queue *queue, size_t number, struct hs_bytes *argv)
{
	const struct hs_sim_queued *queued = &queue->commands[number];

	for (size_t i = 0; i < queued->argc; i++) {
		const struct hs_sim_queued_arg *arg = &queue->args[queued->args + i];

		argv[i] = (struct hs_bytes){queue->bytes.data ? queue->bytes.data + arg->at : "",
					    arg->len};
	}
}

void hs_sim_queue_deinit(struct hs_sim_queue *queue)
{
	hs_mem_free(&queue->commands);
	hs_mem_free(&queue->args);
	hs_buf_deinit(&queue->bytes);
}

/* ---- MULTI, EXEC, DISCARD ---- */

void hs_sim_multi(struct hs_sim_server_conn *conn, struct hs_reply *reply)
{
	if (conn->flags & HS_SIM_CONN_MULTI) {
		hs_reply_error(reply, "ERR MULTI calls can not be nested");
		return;
	}
	conn->flags |= HS_SIM_CONN_MULTI;
	conn->queue.any_flags = 0;
	conn->queue.all_flags = ~0u;
	hs_reply_ok(reply);
}

void hs_sim_discard(struct hs_sim_server_conn *conn)
{
	conn->queue.count = 0;
	conn->queue.args_count = 0;
	conn->queue.bytes.len = 0;
	conn->flags &= ~(unsigned)(HS_SIM_CONN_MULTI | HS_SIM_CONN_DIRTY_EXEC);
	hs_sim_unwatch(conn);
}

static bool is_clean(struct hs_sim_server_conn *conn)
{
	struct hs_sim_server *server = conn->server;
	struct hs_keyspace ks;

	if (!(conn->flags & HS_SIM_CONN_WATCHES))
		return true;
	ks = hs_sim_keyspace(server);
	return hs_watch_clean(server->watch, &ks, conn->id);
}

static void run_queue(struct hs_sim_server_conn *conn)
{
	struct hs_sim_queue *queue = &conn->queue;
	struct hs_bytes inline_argv[HS_ARGC_INLINE];

	for (size_t i = 0; i < queue->count; i++) {
		const struct hs_sim_queued *queued = &queue->commands[i];
		struct hs_bytes *argv = inline_argv;

		if (queued->argc > HS_ARGC_INLINE)
			argv = hs_mem_alloc(queued->argc * sizeof *argv);
		hs_sim_queue_get(queue, i, argv);
		hs_sim_call(conn, queued->command, queued->argc, argv);
		if (argv != inline_argv)
			hs_mem_free(&argv);
	}
}

void hs_sim_exec(struct hs_sim_server_conn *conn)
{
	struct hs_reply reply = hs_sim_conn_reply(conn);
	bool clean;

	if (!(conn->flags & HS_SIM_CONN_MULTI)) {
		hs_reply_error(&reply, "ERR EXEC without MULTI");
		return;
	}
	clean = is_clean(conn);
	if (conn->flags & HS_SIM_CONN_DIRTY_EXEC) {
		hs_reply_error(&reply,
			       "EXECABORT Transaction discarded because of previous errors.");
	} else if (!clean) {
		hs_reply_null_array(&reply);
	} else {
		hs_sim_unwatch(conn);
		conn->server->in_exec = true;
		hs_reply_array(&reply, conn->queue.count);
		run_queue(conn);
		conn->server->in_exec = false;
	}
	hs_sim_discard(conn);
}

/* ---- WATCH ---- */

void hs_sim_watch(struct hs_sim_server_conn *conn, size_t argc, const struct hs_bytes *argv,
		  struct hs_reply *reply)
{
	struct hs_sim_server *server = conn->server;
	struct hs_keyspace ks;

	if (conn->flags & HS_SIM_CONN_MULTI) {
		hs_reply_error(reply, "ERR WATCH inside MULTI is not allowed");
		return;
	}
	if (!server->watch)
		server->watch = hs_watch_create(server->cluster->hash_seed);
	ks = hs_sim_keyspace(server);
	conn->flags |= HS_SIM_CONN_WATCHES;
	for (size_t i = 1; i < argc; i++) {
		int err = hs_watch_add(server->watch, &ks, conn->id, hs_slot_of(argv[i]), argv[i]);

		hs_check(err == 0);
	}
	hs_reply_ok(reply);
}

void hs_sim_unwatch(struct hs_sim_server_conn *conn)
{
	if (conn->flags & HS_SIM_CONN_WATCHES)
		hs_watch_drop(conn->server->watch, conn->id);
	conn->flags &= ~(unsigned)HS_SIM_CONN_WATCHES;
}
