/* The slow log of one worker: the latest commands slower than slowlog-log-slower-than. Entry ids come from a
 * counter that all workers share, so that the workers' logs can be merged in order. */
#include "core/slowlog.h"

#include "base/mem.h"
#include "command/secret.h"
#include "wire/reply.h"

#include <stdio.h>
#include <stdlib.h>

struct entry {
	struct hs_link link;
	uint64_t id;
	int64_t wall_s;
	uint64_t time_us;
	size_t argc;
	char *argv[HS_SLOWLOG_ARGS_MAX]; /* owned; may hold any byte, the lengths are in `len` */
	size_t len[HS_SLOWLOG_ARGS_MAX];
	char *address;
	char *name;
};

struct hs_slowlog {
	struct hs_link entries; /* oldest first */
	size_t count;
};

struct hs_slowlog *hs_slowlog_create(void)
{
	struct hs_slowlog *slowlog = hs_mem_zalloc(sizeof *slowlog);

	hs_list_init(&slowlog->entries);
	return slowlog;
}

static void drop_oldest(struct hs_slowlog *slowlog)
{
	struct entry *entry = hs_list_entry(slowlog->entries.next, struct entry, link);

	hs_list_remove(&entry->link);
	for (size_t i = 0; i < entry->argc; i++)
		hs_mem_free(&entry->argv[i]);
	hs_mem_free(&entry->address);
	hs_mem_free(&entry->name);
	hs_mem_free(&entry);
	slowlog->count--;
}

void hs_slowlog_reset(struct hs_slowlog *slowlog)
{
	while (slowlog->count > 0)
		drop_oldest(slowlog);
}

void hs_slowlog_destroy(struct hs_slowlog **slowlog)
{
	hs_slowlog_reset(*slowlog);
	hs_mem_free(slowlog);
}

size_t hs_slowlog_len(const struct hs_slowlog *slowlog)
{
	return slowlog->count;
}

static void set_arg(struct entry *entry, size_t i, const char *text, size_t len)
{
	entry->argv[i] = hs_mem_dup(text, len);
	entry->len[i] = len;
}

/* As in Redis: a long argument, and a long list of arguments, is cut, with a note of how much is missing. */
static void copy_args(struct entry *entry, const struct hs_call *call)
{
	const struct hs_bytes *argv = call->argv;
	size_t argc = call->argc;
	char text[HS_SLOWLOG_ARG_BYTES_MAX + 64];

	entry->argc = argc < HS_SLOWLOG_ARGS_MAX ? argc : HS_SLOWLOG_ARGS_MAX;
	for (size_t i = 0; i < entry->argc; i++) {
		int len;

		if (argc > HS_SLOWLOG_ARGS_MAX && i == HS_SLOWLOG_ARGS_MAX - 1) {
			len = snprintf(text, sizeof text, "... (%zu more arguments)",
				       argc - HS_SLOWLOG_ARGS_MAX + 1);
			set_arg(entry, i, text, (size_t)len);
		} else if (hs_secret_at(argc, argv, i)) {
			set_arg(entry, i, HS_SECRET_TEXT, strlen(HS_SECRET_TEXT));
		} else if (argv[i].len > HS_SLOWLOG_ARG_BYTES_MAX) {
			memcpy(text, argv[i].data, HS_SLOWLOG_ARG_BYTES_MAX);
			len = snprintf(text + HS_SLOWLOG_ARG_BYTES_MAX,
				       sizeof text - HS_SLOWLOG_ARG_BYTES_MAX,
				       "... (%zu more bytes)",
				       argv[i].len - HS_SLOWLOG_ARG_BYTES_MAX);
			set_arg(entry, i, text, HS_SLOWLOG_ARG_BYTES_MAX + (size_t)len);
		} else {
			set_arg(entry, i, argv[i].data, argv[i].len);
		}
	}
}

void hs_slowlog_add(struct hs_core *core, const struct hs_session *session,
		    const struct hs_call *call, uint64_t time_us)
{
	struct entry *entry;

	if (core->options.slowlog_len_max == 0)
		return;
	while (core->slowlog->count >= core->options.slowlog_len_max)
		drop_oldest(core->slowlog);
	entry = hs_mem_zalloc(sizeof *entry);
	entry->id = atomic_fetch_add_explicit(core->world.slowlog_ids, 1, memory_order_relaxed);
	entry->wall_s = core->now.wall_us / 1000000;
	entry->time_us = time_us;
	copy_args(entry, call);
	entry->address = hs_mem_dup(session->address, strlen(session->address));
	entry->name = session->name ? hs_mem_dup(session->name, strlen(session->name)) : NULL;
	hs_list_append(&core->slowlog->entries, &entry->link);
	core->slowlog->count++;
}

static void compose(const struct entry *entry, struct hs_reply *reply)
{
	hs_reply_array(reply, 6);
	hs_reply_int(reply, (int64_t)entry->id);
	hs_reply_int(reply, entry->wall_s);
	hs_reply_int(reply, (int64_t)entry->time_us);
	hs_reply_array(reply, entry->argc);
	for (size_t i = 0; i < entry->argc; i++)
		hs_reply_bulk(reply, (struct hs_bytes){entry->argv[i], entry->len[i]});
	hs_reply_bulk_text(reply, entry->address);
	hs_reply_bulk_text(reply, entry->name ? entry->name : "");
}

void hs_slowlog_export(const struct hs_slowlog *slowlog, int resp, struct hs_buf *out)
{
	struct hs_buf text = {0};
	struct hs_reply reply = {.out = &text, .resp = resp};

	hs_list_each(const struct entry, entry, &slowlog->entries, link) {
		uint64_t len;

		text.len = 0;
		compose(entry, &reply);
		len = text.len;
		hs_buf_append(out, &entry->id, sizeof entry->id);
		hs_buf_append(out, &len, sizeof len);
		hs_buf_append_bytes(out, hs_buf_bytes(&text));
	}
	hs_buf_deinit(&text);
}

struct exported {
	uint64_t id;
	struct hs_bytes reply;
};

static int newest_first(const void *a, const void *b)
{
	const struct exported *left = a, *right = b;

	return (left->id < right->id) - (left->id > right->id);
}

void hs_slowlog_merge(const struct hs_bytes *exports, size_t exports_count, size_t count,
		      struct hs_reply *reply)
{
	struct exported *entries = NULL;
	size_t len = 0, cap = 0;

	for (size_t i = 0; i < exports_count; i++) {
		struct hs_bytes rest = exports[i];

		while (rest.len > 0) {
			uint64_t head[2];

			memcpy(head, rest.data, sizeof head);
			if (len == cap) {
				cap = cap ? cap * 2 : 64;
				entries = hs_mem_realloc(entries, cap * sizeof *entries);
			}
			entries[len++] = (struct exported){
				head[0], {rest.data + sizeof head, (size_t)head[1]}};
			rest.data += sizeof head + head[1];
			rest.len -= sizeof head + (size_t)head[1];
		}
	}
	if (len > 0)
		qsort(entries, len, sizeof *entries, newest_first);
	if (len > count)
		len = count;
	hs_reply_array(reply, len);
	for (size_t i = 0; i < len; i++)
		hs_buf_append_bytes(reply->out, entries[i].reply);
	hs_mem_free(&entries);
}
