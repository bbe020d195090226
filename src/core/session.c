#include "core/state.h"

#include "base/mem.h"

#include <stdio.h>

enum { IDS_MIN = 64 };

static struct hs_session **id_bucket(const struct hs_core *core, uint64_t id)
{
	return &core->ids[(size_t)id & core->ids_mask]; /* numbers are given out in a row */
}

static void grow_ids(struct hs_core *core)
{
	size_t count = core->ids ? (core->ids_mask + 1) * 2 : IDS_MIN;
	struct hs_session **old = core->ids;
	size_t old_count = old ? core->ids_mask + 1 : 0;

	core->ids = hs_mem_zalloc(count * sizeof(struct hs_session *));
	core->ids_mask = count - 1;
	for (size_t i = 0; i < old_count; i++) {
		while (old[i]) {
			struct hs_session *session = old[i];
			struct hs_session **bucket = id_bucket(core, session->id);

			old[i] = session->same_id;
			session->same_id = *bucket;
			*bucket = session;
		}
	}
	hs_mem_free(&old);
}

static void remember_id(struct hs_core *core, struct hs_session *session)
{
	struct hs_session **bucket;

	if (!core->ids || core->ids_count > core->ids_mask)
		grow_ids(core);
	bucket = id_bucket(core, session->id);
	session->same_id = *bucket;
	*bucket = session;
	core->ids_count++;
}

void hs_session_forget_id(struct hs_core *core, struct hs_session *session)
{
	struct hs_session **at = id_bucket(core, session->id);

	while (*at && *at != session)
		at = &(*at)->same_id;
	if (!*at)
		return;
	*at = session->same_id;
	core->ids_count--;
}

struct hs_session *hs_session_find(const struct hs_core *core, uint64_t id)
{
	struct hs_session *session = core->ids ? *id_bucket(core, id) : NULL;

	while (session && session->id != id)
		session = session->same_id;
	return session;
}

/* It has no number, no client and no end: whatever is said to it is lost. */
struct hs_session *hs_session_create_self(struct hs_core *core)
{
	struct hs_session *self = hs_mem_zalloc(core->stages.session_bytes);

	hs_list_init(&self->all);
	hs_list_init(&self->sendable);
	hs_list_init(&self->sleeping);
	hs_list_init(&self->resuming);
	hs_list_init(&self->requests);
	hs_list_init(&self->holding);
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
	hs_list_init(&session->holding);
	session->usual_bytes = core->options.flight_bytes_max > 0 ? HS_REPLY_GUESS_BYTES : 0;
	hs_list_append(&core->sessions, &session->all);
	hs_wire_request_init(&session->parser);
	session->id = client->id;
	remember_id(core, session);
	session->fd = client->fd;
	session->tls = client->tls;
	session->own = client->own;
	snprintf(session->address, sizeof session->address, "%s", client->address);
	snprintf(session->local_address, sizeof session->local_address, "%s",
		 client->local_address);
	session->connected_us = core->now.mono_us;
	session->last_active_us = core->now.mono_us;
	session->resp = 2;
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
	hs_list_remove(&session->holding);
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

		if (!request->push)
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
	return session->closing && (session->gives_up || hs_list_empty(&session->requests));
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
