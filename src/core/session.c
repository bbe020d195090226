#include "core/session.h"

#include "base/mem.h"

#include <stdio.h>

struct hs_session *hs_session_create(struct hs_core *core, const struct hs_core_client *client)
{
	struct hs_session *session = hs_mem_zalloc(sizeof *session);

	hs_list_init(&session->sendable);
	hs_list_init(&session->sleeping);
	hs_list_init(&session->requests);
	hs_list_append(&core->sessions, &session->all);
	hs_wire_request_init(&session->parser);
	session->id = client->id;
	session->fd = client->fd;
	session->tls = client->tls;
	snprintf(session->address, sizeof session->address, "%s", client->address);
	snprintf(session->local_address, sizeof session->local_address, "%s",
		 client->local_address);
	session->connected_us = core->now.mono_us;
	session->last_active_us = core->now.mono_us;
	session->resp = 2;
	session->authenticated = core->options.requirepass[0] == '\0';
	hs_counter_add(&core->stats.connections, 1);
	hs_counter_add(&core->stats.sessions, 1);
	return session;
}

void hs_session_destroy(struct hs_core *core, struct hs_session **pointer)
{
	struct hs_session *session = *pointer;

	hs_check(hs_list_empty(&session->requests));
	hs_list_remove(&session->all);
	hs_list_remove(&session->sendable);
	hs_list_remove(&session->sleeping);
	hs_wire_request_deinit(&session->parser);
	hs_buf_deinit(&session->in);
	hs_buf_deinit(&session->out);
	hs_multi_drop(&session->multi);
	hs_mem_free(&session->name);
	hs_mem_free(&session->lib_name);
	hs_mem_free(&session->lib_ver);
	hs_mem_free(pointer);
	hs_counter_set(&core->stats.sessions, hs_counter_get(&core->stats.sessions) - 1);
}

void hs_session_mark_sendable(struct hs_core *core, struct hs_session *session)
{
	if (!session->gone && hs_list_empty(&session->sendable))
		hs_list_append(&core->sendable, &session->sendable);
}

void hs_session_close(struct hs_core *core, struct hs_session *session)
{
	session->closing = true;
	hs_session_mark_sendable(core, session);
}

void hs_session_sleep(struct hs_core *core, struct hs_session *session,
		      const struct hs_command *command, uint64_t until_us)
{
	hs_request_get(core, session, command); /* answered by hs_core_tick */
	session->sleep_until_us = until_us;
	hs_list_append(&core->sleepers, &session->sleeping);
}

struct hs_session *hs_core_next_sendable(struct hs_core *core)
{
	if (hs_list_empty(&core->sendable))
		return NULL;

	struct hs_session *session =
		hs_list_entry(core->sendable.next, struct hs_session, sendable);

	hs_list_remove(&session->sendable);
	return session;
}

struct hs_buf *hs_session_out(struct hs_session *session)
{
	return &session->out;
}

void hs_session_sending(struct hs_session *session, size_t bytes)
{
	session->sending_bytes = bytes;
}

bool hs_session_closing(const struct hs_session *session)
{
	return session->closing && hs_list_empty(&session->requests);
}

bool hs_session_cut(const struct hs_session *session)
{
	return session->cut;
}

void hs_session_set_io(struct hs_session *session, void *io)
{
	session->io = io;
}

void *hs_session_io(const struct hs_session *session)
{
	return session->io;
}
