#include "upstream/names.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/mem.h"

#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <uv.h>

struct hs_names {
	_Atomic uint32_t refs; /* the owner, and each lookup */
	_Atomic uint32_t underway;
	hs_names_find *find;
};

/* Held by its loop until its handle is closed, and by its thread. */
struct hs_lookup {
	uv_async_t ready;
	_Atomic uint32_t refs;
	struct hs_names *names;
	char host[256], port[8];
	hs_lookup_done *done;
	void *context;
	uv_mutex_t mutex; /* for the rest */
	bool cancelled;	  /* the loop does not want to hear of it */
	struct addrinfo *found;
	const char *why;
};

struct hs_names *hs_names_create(hs_names_find *find)
{
	struct hs_names *names = hs_mem_zalloc(sizeof *names);

	atomic_init(&names->refs, 1);
	names->find = find;
	return names;
}

void hs_names_release(struct hs_names **pointer)
{
	struct hs_names *names = *pointer;

	*pointer = NULL;
	if (names && atomic_fetch_sub(&names->refs, 1) == 1)
		hs_mem_release(names);
}

static void let_go(struct hs_lookup *lookup)
{
	if (atomic_fetch_sub(&lookup->refs, 1) > 1)
		return;
	if (lookup->found)
		freeaddrinfo(lookup->found);
	uv_mutex_destroy(&lookup->mutex);
	hs_names_release(&lookup->names);
	hs_mem_release(lookup);
}

static void tell(struct hs_lookup *lookup, struct addrinfo *found, const char *why)
{
	uv_mutex_lock(&lookup->mutex);
	lookup->found = found;
	lookup->why = why;
	if (!lookup->cancelled)
		uv_async_send(&lookup->ready);
	uv_mutex_unlock(&lookup->mutex);
}

static void *run(void *argument)
{
	struct hs_lookup *lookup = argument;
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	int code = lookup->names->find(lookup->host, lookup->port, &hints, &found);

	atomic_fetch_sub(&lookup->names->underway, 1);
	tell(lookup, code == 0 ? found : NULL, code == 0 ? NULL : gai_strerror(code));
	let_go(lookup);
	return NULL;
}

static void start_thread(struct hs_lookup *lookup)
{
	pthread_attr_t detached;
	pthread_t thread;
	bool room = atomic_fetch_add(&lookup->names->underway, 1) < HS_LOOKUPS_MAX;

	hs_check(pthread_attr_init(&detached) == 0);
	hs_check(pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED) == 0);
	if (!room || pthread_create(&thread, &detached, run, lookup) != 0) {
		atomic_fetch_sub(&lookup->names->underway, 1);
		tell(lookup, NULL, "too many names are being looked up, and none is found");
		let_go(lookup);
	}
	pthread_attr_destroy(&detached);
}

static void on_closed(uv_handle_t *handle)
{
	let_go(handle->data);
}

static void on_ready(uv_async_t *ready)
{
	struct hs_lookup *lookup = ready->data;
	struct addrinfo *found;

	uv_mutex_lock(&lookup->mutex);
	found = lookup->found;
	lookup->found = NULL;
	uv_mutex_unlock(&lookup->mutex);
	uv_close((uv_handle_t *)ready, on_closed);
	lookup->done(lookup->context, found, lookup->why);
}

struct hs_lookup *hs_lookup_start(struct hs_names *names, struct uv_loop_s *loop, const char *host,
				  uint16_t port, hs_lookup_done *done, void *context)
{
	struct hs_lookup *lookup = hs_mem_zalloc(sizeof *lookup);

	atomic_init(&lookup->refs, 2);
	atomic_fetch_add(&names->refs, 1);
	lookup->names = names;
	lookup->done = done;
	lookup->context = context;
	snprintf(lookup->host, sizeof lookup->host, "%s", host);
	snprintf(lookup->port, sizeof lookup->port, "%u", port);
	hs_check(uv_mutex_init(&lookup->mutex) == 0);
	hs_check(uv_async_init(loop, &lookup->ready, on_ready) == 0);
	lookup->ready.data = lookup;
	start_thread(lookup);
	return lookup;
}

void hs_lookup_cancel(struct hs_lookup **pointer)
{
	struct hs_lookup *lookup = *pointer;

	*pointer = NULL;
	uv_mutex_lock(&lookup->mutex);
	lookup->cancelled = true;
	uv_mutex_unlock(&lookup->mutex);
	uv_close((uv_handle_t *)&lookup->ready, on_closed);
}
