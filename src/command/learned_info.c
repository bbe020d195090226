/* Re-encodes the server's COMMAND entry for a client as RESP2 or RESP3. Both have the same facts;
 * where RESP3 has sets and maps, RESP2 has arrays. RESP2 does not show which array is a set or a
 * map, so this file knows it by position and name. */
#include "command/describe.h"
#include "command/learned_row.h"
#include "wire/parse_reply.h"

enum { ELEMENTS_BEFORE_SUBCOMMANDS = 9, DEPTH_MAX = 4 };

static size_t count_elements(struct hs_bytes rest)
{
	struct hs_bytes element;
	size_t count = 0;

	while (hs_parse_reply_take(&rest, &element))
		count++;
	return count;
}

/* Copies a number or a text, which are the same in both. Other types are not expected. */
static void reply_scalar(struct hs_reply *reply, struct hs_bytes element)
{
	struct hs_parsed_reply head;

	if (hs_parse_reply_head(&head, element.data, element.len) > 0 &&
	    (head.type == HS_PARSED_INT || head.type == HS_PARSED_STATUS ||
	     (head.type == HS_PARSED_BULK && element.data[0] == '$')))
		hs_buf_append_bytes(reply->out, element);
	else
		hs_reply_null(reply);
}

static void reply_set(struct hs_reply *reply, struct hs_bytes set)
{
	struct hs_bytes rest = hs_parse_reply_elements(set), element;

	hs_reply_set(reply, count_elements(rest));
	while (hs_parse_reply_take(&rest, &element))
		reply_scalar(reply, element);
}

static bool is_aggregate(struct hs_bytes element)
{
	struct hs_parsed_reply head;

	return hs_parse_reply_head(&head, element.data, element.len) > 0 &&
	       (head.type == HS_PARSED_ARRAY || head.type == HS_PARSED_MAP);
}

static bool is_flags(struct hs_bytes element)
{
	struct hs_parsed_reply head;

	return hs_parse_reply_head(&head, element.data, element.len) > 0 &&
	       hs_bytes_is_word(head.text, "flags");
}

static void reply_map(struct hs_reply *reply, struct hs_bytes map, int depth)
{
	struct hs_bytes rest = hs_parse_reply_elements(map), key, value;
	size_t pairs = depth < DEPTH_MAX ? count_elements(rest) / 2 : 0;

	hs_reply_map(reply, pairs);
	for (; pairs > 0; pairs--) {
		if (!hs_parse_reply_take(&rest, &key) || !hs_parse_reply_take(&rest, &value))
			return; /* cannot happen: the elements were counted */
		reply_scalar(reply, key);
		if (is_flags(key))
			reply_set(reply, value);
		else if (is_aggregate(value))
			reply_map(reply, value, depth + 1);
		else
			reply_scalar(reply, value);
	}
}

static void reply_element(struct hs_reply *reply, size_t index, struct hs_bytes element)
{
	struct hs_bytes rest, map;

	switch (index) {
	case 2: /* flags */
	case 6: /* categories */
	case 7: /* tips */
		reply_set(reply, element);
		return;
	case 8: /* key specs */
		rest = hs_parse_reply_elements(element);
		hs_reply_set(reply, count_elements(rest));
		while (hs_parse_reply_take(&rest, &map))
			reply_map(reply, map, 0);
		return;
	default:
		reply_scalar(reply, element);
	}
}

bool hs_learned_reply_raw_entry(struct hs_reply *reply, const struct hs_command *row)
{
	size_t elements;
	struct hs_bytes rest = hs_learned_raw_entry(row, &elements), element;
	bool more = elements == ELEMENTS_BEFORE_SUBCOMMANDS;

	hs_reply_array(reply, elements + more);
	for (size_t i = 0; i < elements && hs_parse_reply_take(&rest, &element); i++)
		reply_element(reply, i, element);
	return more;
}
