/* A search is one detached thread that runs getaddrinfo. Lookups wait for it with an async handle on their own
 * loops. A search is freed by the last of its thread and its lookups. */
#include "upstream/names.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/mem.h"

#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <uv.h>

struct hs_names {
	uv_mutex_t mutex; /* for the searches and their lists of lookups */
	uint32_t refs;	  /* the owner and each search */
	hs_names_find *find;
	struct hs_link searches; /* not finished */
	uint32_t searches_count;
};

/* One getaddrinfo, shared by all lookups of the same name and port. */
struct search {
	struct hs_link link; /* in names->searches; unlinked: finished */
	uint32_t refs;	     /* its thread and each lookup */
	struct hs_names *names;
	char host[256];
	uint16_t port;
	struct hs_link lookups;
	struct addrinfo *found;
	const char *why;
};

/* Belongs to the loop's thread; freed when the async handle is closed. */
struct hs_lookup {
	uv_async_t ready;
	struct hs_link link; /* in search->lookups */
	struct search *search;
	hs_lookup_done *done;
	void *context;
};

struct hs_names *hs_names_create(hs_names_find *find)
{
	struct hs_names *names = hs_mem_zalloc(sizeof *names);

	hs_check(uv_mutex_init(&names->mutex) == 0);
	names->refs = 1;
	names->find = find;
	hs_list_init(&names->searches);
	return names;
}

void hs_names_release(struct hs_names **pointer)
{
	struct hs_names *names = *pointer;
	uint32_t left;

	*pointer = NULL;
	if (!names)
		return;
	uv_mutex_lock(&names->mutex);
	left = --names->refs;
	uv_mutex_unlock(&names->mutex);
	if (left > 0)
		return;
	uv_mutex_destroy(&names->mutex);
	hs_mem_release(names);
}

static void search_unref(struct search *search)
{
	uint32_t left;

	uv_mutex_lock(&search->names->mutex);
	left = --search->refs;
	uv_mutex_unlock(&search->names->mutex);
	if (left > 0)
		return;
	if (search->found)
		freeaddrinfo(search->found);
	hs_names_release(&search->names);
	hs_mem_release(search);
}

/* With the mutex held. Wakes the loops of all lookups. */
static void end_search(struct search *search, struct addrinfo *found, const char *why)
{
	search->found = found;
	search->why = why;
	search->names->searches_count--;
	hs_list_remove(&search->link);
	hs_list_each(struct hs_lookup, lookup, &search->lookups, link)
		uv_async_send(&lookup->ready);
}

static void *run(void *argument)
{
	struct search *search = argument;
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	char port[8];
	int code;

	snprintf(port, sizeof port, "%u", search->port);
	code = search->names->find(search->host, port, &hints, &found);
	uv_mutex_lock(&search->names->mutex);
	end_search(search, code == 0 ? found : NULL, code == 0 ? NULL : gai_strerror(code));
	uv_mutex_unlock(&search->names->mutex);
	search_unref(search);
	return NULL;
}

/* With the mutex held. */
static void start_search(struct search *search)
{
	pthread_attr_t detached;
	pthread_t thread;

	hs_check(pthread_attr_init(&detached) == 0);
	hs_check(pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED) == 0);
	search->refs++;
	if (search->names->searches_count > HS_LOOKUPS_MAX ||
	    pthread_create(&thread, &detached, run, search) != 0) {
		search->refs--;
		end_search(search, NULL,
			   "too many host name lookups are unanswered: check the name servers");
	}
	pthread_attr_destroy(&detached);
}

/* With the mutex held. */
static struct search *add_search(struct hs_names *names, const char *host, uint16_t port)
{
	struct search *search = hs_mem_zalloc(sizeof *search);

	search->names = names;
	names->refs++;
	snprintf(search->host, sizeof search->host, "%s", host);
	search->port = port;
	hs_list_init(&search->lookups);
	hs_list_append(&names->searches, &search->link);
	names->searches_count++;
	return search;
}

static struct search *find_search(struct hs_names *names, const char *host, uint16_t port)
{
	hs_list_each(struct search, search, &names->searches, link) {
		if (search->port == port && strcmp(search->host, host) == 0)
			return search;
	}
	return NULL;
}

static void on_closed(uv_handle_t *handle)
{
	struct hs_lookup *lookup = handle->data;

	search_unref(lookup->search);
	hs_mem_release(lookup);
}

void hs_lookup_cancel(struct hs_lookup **pointer)
{
	struct hs_lookup *lookup = *pointer;

	*pointer = NULL;
	uv_mutex_lock(&lookup->search->names->mutex);
	hs_list_remove(&lookup->link);
	uv_mutex_unlock(&lookup->search->names->mutex);
	uv_close((uv_handle_t *)&lookup->ready, on_closed);
}

static void on_ready(uv_async_t *ready)
{
	struct hs_lookup *lookup = ready->data, *over = lookup;

	hs_lookup_cancel(&over);
	lookup->done(lookup->context, lookup->search->found, lookup->search->why);
}

struct hs_lookup *hs_lookup_start(struct hs_names *names, struct uv_loop_s *loop, const char *host,
				  uint16_t port, hs_lookup_done *done, void *context)
{
	struct hs_lookup *lookup = hs_mem_zalloc(sizeof *lookup);
	struct search *search;
	bool is_new;

	lookup->done = done;
	lookup->context = context;
	hs_check(uv_async_init(loop, &lookup->ready, on_ready) == 0);
	lookup->ready.data = lookup;
	uv_mutex_lock(&names->mutex);
	search = find_search(names, host, port);
	is_new = !search;
	if (is_new)
		search = add_search(names, host, port);
	search->refs++;
	lookup->search = search;
	hs_list_append(&search->lookups, &lookup->link);
	if (is_new)
		start_search(search);
	uv_mutex_unlock(&names->mutex);
	return lookup;
}
