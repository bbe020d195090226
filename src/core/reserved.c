#include "core/reserved.h"

#include "core/state.h"
#include "wire/reply.h"
#include "wire/walk.h"

#include <string.h>

bool hs_core_reserves(const struct hs_core *core)
{
	return core->world.slots && core->world.op_scope == HS_OP_SCOPE_SLOT;
}

bool hs_reserved_shows(const struct hs_core *core, const struct hs_command *command)
{
	return (command->flags & HS_CMD_SHOWS_KEYS) && hs_core_reserves(core);
}

struct listing {
	struct hs_bytes before; /* bytes before the list of keys: a cursor, or none */
	struct hs_walk names;
	int64_t count;
};

/* False: not a list of keys. */
static bool read_listing(struct hs_bytes reply, struct listing *listing)
{
	struct hs_walk walk = {reply.data, reply.len};
	struct hs_parsed_reply cursor;

	listing->before = (struct hs_bytes){reply.data, 0};
	if (hs_walk_array(&walk, &listing->count) < 0)
		return false;
	listing->names = walk;
	if (listing->count != 2 || hs_walk_next(&walk, &cursor) < 0 || walk.len == 0 ||
	    *walk.data != '*')
		return true;
	listing->before.len = (size_t)(walk.data - reply.data);
	if (hs_walk_array(&walk, &listing->count) < 0)
		return false;
	listing->names = walk;
	return true;
}

void hs_reserved_hide(struct hs_buf *out, size_t start, int resp)
{
	struct hs_bytes reply = {out->data + start, out->len - start};
	struct hs_buf names = {0}, shown = {0};
	struct hs_reply writer = {.out = &shown, .resp = resp};
	struct listing listing;
	struct hs_parsed_reply answer;
	size_t count = 0;

	if (reply.len == 0 ||
	    !memmem(reply.data, reply.len, HS_RESERVED_PREFIX, sizeof HS_RESERVED_PREFIX - 1))
		return;
	if (reply.data[0] == '$') {
		if (hs_parse_reply_head(&answer, reply.data, reply.len) > 0 &&
		    hs_is_reserved(answer.text)) {
			out->len = start;
			writer.out = out;
			hs_reply_null(&writer);
		}
		return;
	}
	if (!read_listing(reply, &listing))
		return;
	for (int64_t i = 0; i < listing.count; i++) {
		const char *name = listing.names.data;

		if (hs_walk_next(&listing.names, &answer) < 0 || answer.type != HS_PARSED_BULK)
			goto end; /* not a list of keys after all */
		if (!hs_is_reserved(answer.text)) {
			hs_buf_append(&names, name, (size_t)(listing.names.data - name));
			count++;
		}
	}
	hs_buf_append_bytes(&shown, listing.before);
	hs_reply_array(&writer, count);
	hs_buf_append_bytes(&shown, hs_buf_bytes(&names));
	out->len = start;
	hs_buf_append_bytes(out, hs_buf_bytes(&shown));
end:
	hs_buf_deinit(&names);
	hs_buf_deinit(&shown);
}
