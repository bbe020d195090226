#include "core/state.h"

#include "base/mem.h"

#include <stdio.h>

struct hs_session *hs_session_find(const struct hs_core *core, uint64_t id)
{
	/* Ids are consecutive numbers, so that each is its own hash. */
	hs_hash_each(struct hs_session, session, &core->ids, id, by_id) {
		if (session->id == id)
			return session;
	}
	return NULL;
}

/* The session of internal calls: no id, no client, never closed; whatever is sent to it is dropped. */
struct hs_session *hs_session_create_self(struct hs_core *core)
{
	struct hs_session *self = hs_mem_zalloc(core->stages.session_bytes);

	hs_list_init(&self->all);
	hs_list_init(&self->sendable);
	hs_list_init(&self->sleeping);
	hs_list_init(&self->resuming);
	hs_list_init(&self->requests);
	hs_list_init(&self->budget_link);
	self->resp = 2;
	self->gone = true;
	return self;
}

struct hs_session *hs_session_create(struct hs_core *core, const struct hs_core_client *client)
{
	struct hs_session *session = hs_mem_zalloc(core->stages.session_bytes);

	hs_list_init(&session->sendable);
	hs_list_init(&session->sleeping);
	hs_list_init(&session->resuming);
	hs_list_init(&session->requests);
	hs_list_init(&session->budget_link);
	session->typical_reply_bytes =
		core->options.engine_inflight_bytes_max > 0 ? HS_REPLY_GUESS_BYTES : 0;
	hs_list_append(&core->sessions, &session->all);
	hs_wire_request_init(&session->parser);
	session->id = client->id;
	hs_hash_table_add(&core->ids, &session->by_id, session->id);
	session->fd = client->fd;
	session->tls = client->tls;
	session->internal = client->internal;
	snprintf(session->address, sizeof session->address, "%s", client->address);
	snprintf(session->local_address, sizeof session->local_address, "%s",
		 client->local_address);
	session->connected_us = core->now.mono_us;
	session->last_active_us = core->now.mono_us;
	session->resp = 2;
	session->inflight_max = core->options.session_inflight_max;
	if (session->inflight_max == 0)
		session->inflight_max = HS_SESSION_INFLIGHT_MAX;
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
	hs_list_remove(&session->resuming);
	hs_list_remove(&session->budget_link);
	hs_wire_request_deinit(&session->parser);
	hs_buf_deinit(&session->in);
	hs_buf_deinit(&session->out);
	hs_mem_free(&session->name);
	hs_mem_free(&session->lib_name);
	hs_mem_free(&session->lib_ver);
	hs_mem_free(pointer);
	hs_counter_sub(&core->stats.sessions, 1);
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

struct hs_request *hs_session_last_request(const struct hs_session *session)
{
	for (struct hs_link *link = session->requests.prev; link != &session->requests;
	     link = link->prev) {
		struct hs_request *request = hs_list_entry(link, struct hs_request, link);

		if (!request->is_push)
			return request;
	}
	return NULL;
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
	return session->closing &&
	       (session->closes_unanswered || hs_list_empty(&session->requests));
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
