/* ACL LOG: refused commands and logins of one worker, newest first, bounded by acllog-max-len. The same refusal
 * again within a minute is counted in its entry instead of adding another. */
#include "core/acl_log.h"

#include "base/mem.h"
#include "wire/reply.h"

enum { SAME_US = 60000000, SAME_ENTRIES = 10 };

struct entry {
	struct hs_link link;
	uint64_t count;
	uint64_t mono_us;
	/* Larger is newer, over all workers: the time, made unique within the worker. */
	uint64_t number;
	const char *reason;
	const char *context;
	char *object; /* owned; may hold any byte */
	size_t object_len;
	char *user;
	size_t user_len;
	char *client; /* owned; a line of CLIENT LIST */
};

struct hs_acl_log {
	struct hs_link entries;
	size_t count;
	uint64_t last; /* the largest number so far */
};

struct hs_acl_log *hs_acl_log_create(void)
{
	struct hs_acl_log *log = hs_mem_zalloc(sizeof *log);

	hs_list_init(&log->entries);
	return log;
}

static void drop(struct hs_acl_log *log, struct entry *entry)
{
	hs_list_remove(&entry->link);
	hs_mem_free(&entry->object);
	hs_mem_free(&entry->user);
	hs_mem_free(&entry->client);
	hs_mem_free(&entry);
	log->count--;
}

void hs_acl_log_reset(struct hs_acl_log *log)
{
	while (log->count > 0)
		drop(log, hs_list_entry(log->entries.next, struct entry, link));
}

void hs_acl_log_destroy(struct hs_acl_log **log)
{
	hs_acl_log_reset(*log);
	hs_mem_free(log);
}

/* The same refusal among the newest SAME_ENTRIES, at most SAME_US old; or NULL. */
static struct entry *find_same(const struct hs_core *core, const char *reason, const char *context,
			       struct hs_bytes object, struct hs_bytes user)
{
	struct hs_link *link = core->acl_log->entries.next;

	for (int i = 0; i < SAME_ENTRIES && link != &core->acl_log->entries;
	     i++, link = link->next) {
		struct entry *entry = hs_list_entry(link, struct entry, link);

		if (strcmp(entry->reason, reason) == 0 && strcmp(entry->context, context) == 0 &&
		    core->now.mono_us - entry->mono_us <= SAME_US &&
		    hs_bytes_equal((struct hs_bytes){entry->object, entry->object_len}, object) &&
		    hs_bytes_equal((struct hs_bytes){entry->user, entry->user_len}, user))
			return entry;
	}
	return NULL;
}

static struct entry *create(struct hs_acl_log *log, const char *reason, const char *context,
			    struct hs_bytes object, struct hs_bytes user)
{
	struct entry *entry = hs_mem_zalloc(sizeof *entry);

	hs_list_init(&entry->link);
	entry->reason = reason;
	entry->context = context;
	entry->object = hs_mem_dup(object.data, object.len);
	entry->object_len = object.len;
	entry->user = hs_mem_dup(user.data, user.len);
	entry->user_len = user.len;
	log->count++;
	return entry;
}

void hs_acl_log_add(struct hs_core *core, const struct hs_session *session, const char *reason,
		    const char *context, struct hs_bytes object, struct hs_bytes user)
{
	struct hs_acl_log *log = core->acl_log;
	struct hs_buf client = {0};
	struct entry *entry;

	if (core->options.acllog_len_max == 0)
		return;
	if (object.len > HS_ACL_LOG_BYTES_MAX)
		object.len = HS_ACL_LOG_BYTES_MAX;
	if (user.len > HS_ACL_LOG_BYTES_MAX)
		user.len = HS_ACL_LOG_BYTES_MAX;
	entry = find_same(core, reason, context, object, user);
	if (!entry)
		entry = create(log, reason, context, object, user);
	core->world.commands->describe(core, session, &client);
	hs_mem_free(&entry->client);
	entry->client = hs_mem_dup(client.data, client.len - 1); /* without the newline */
	hs_buf_deinit(&client);
	entry->count++;
	entry->mono_us = core->now.mono_us;
	entry->number = log->last < entry->mono_us ? entry->mono_us : log->last + 1;
	log->last = entry->number;
	hs_list_remove(&entry->link);
	hs_list_append(log->entries.next, &entry->link); /* becomes the first */
	while (log->count > core->options.acllog_len_max)
		drop(log, hs_list_entry(log->entries.prev, struct entry, link));
}

static void compose(const struct hs_core *core, const struct entry *entry, struct hs_reply *reply)
{
	uint64_t age_ms = (core->now.mono_us - entry->mono_us) / 1000;

	hs_reply_map(reply, 7);
	hs_reply_pair_int(reply, "count", (int64_t)entry->count);
	hs_reply_pair_text(reply, "reason", entry->reason);
	hs_reply_pair_text(reply, "context", entry->context);
	hs_reply_pair(reply, "object", (struct hs_bytes){entry->object, entry->object_len});
	hs_reply_pair(reply, "username", (struct hs_bytes){entry->user, entry->user_len});
	hs_reply_bulk_text(reply, "age-seconds");
	hs_reply_decimal(reply, (double)age_ms / 1000, 3);
	hs_reply_pair_text(reply, "client-info", entry->client);
}

void hs_acl_log_export(const struct hs_core *core, int resp, struct hs_buf *out)
{
	struct hs_buf text = {0};
	struct hs_reply reply = {.out = &text, .resp = resp};

	hs_list_each(const struct entry, entry, &core->acl_log->entries, link) {
		uint64_t len;

		text.len = 0;
		compose(core, entry, &reply);
		len = text.len;
		hs_buf_append(out, &entry->number, sizeof entry->number);
		hs_buf_append(out, &len, sizeof len);
		hs_buf_append_bytes(out, hs_buf_bytes(&text));
	}
	hs_buf_deinit(&text);
}
