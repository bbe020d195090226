/* Finds whole replies in the bytes that come, without copying a reply that comes in one piece. */
#include "upstream/upstream.h"

#include "base/limits.h"

enum { ROOM_MAX = 1 << 20, LAST_ARRAY_BYTES_MIN = 1024, LAST_ARRAY_BYTES_MAX = 1 << 20 };

/* ---- backoff ---- */

void hs_backoff_wait(struct hs_backoff *backoff, const struct hs_backoff_limits *limits,
		     uint64_t now_us, struct hs_prng *prng)
{
	uint64_t delay_us = limits->first_us;

	for (uint32_t i = 0; i < backoff->failures && delay_us < limits->max_us; i++)
		delay_us *= 2;
	if (delay_us > limits->max_us)
		delay_us = limits->max_us;
	backoff->failures++;
	backoff->open_at_us = now_us + delay_us + hs_prng_below(prng, delay_us / 2 + 1);
}

void hs_backoff_lost(struct hs_backoff *backoff, const struct hs_backoff_limits *limits,
		     uint64_t now_us, struct hs_prng *prng, bool was_up, uint64_t opened_us)
{
	if (was_up && now_us - opened_us >= limits->max_us)
		backoff->failures = 0;
	if (was_up && backoff->failures == 0)
		*backoff = (struct hs_backoff){.failures = 1, .open_at_us = now_us};
	else
		hs_backoff_wait(backoff, limits, now_us, prng);
}

/* ---- the connection ---- */

void hs_upstream_init(struct hs_upstream *upstream, uint8_t resp)
{
	*upstream = (struct hs_upstream){.resp = resp};
}

void hs_upstream_deinit(struct hs_upstream *upstream)
{
	hs_buf_deinit(&upstream->out);
	hs_buf_deinit(&upstream->partial);
}

void hs_upstream_reset(struct hs_upstream *upstream)
{
	hs_buf_clear(&upstream->out, HS_IDLE_BUFFER_BYTES);
	hs_buf_deinit(&upstream->partial);
	upstream->scan = (struct hs_parse_reply_scan){0};
	upstream->composed = 0;
	upstream->sent = 0;
	upstream->close_reason = NULL;
	upstream->blameless = false;
	upstream->server_id = 0;
}

void hs_upstream_opening(struct hs_upstream *upstream, uint64_t now_us)
{
	hs_upstream_reset(upstream);
	upstream->state = HS_UPSTREAM_OPENING;
	upstream->opened_us = now_us;
	upstream->received_us = now_us;
}

/* ---- bytes in ---- */

/* hs_parse_reply_scan, but a long array equal to the last one is compared instead of parsed. */
static int64_t scan(struct hs_upstream *upstream, const char *data, size_t len)
{
	struct hs_buf *last_array = upstream->last_array;
	int64_t used;

	if (!last_array || (data[0] != '*' && data[0] != '%' && data[0] != '~'))
		return hs_parse_reply_scan(&upstream->scan, data, len);
	if (last_array->len > 0 &&
	    memcmp(data, last_array->data, len < last_array->len ? len : last_array->len) == 0) {
		upstream->scan = (struct hs_parse_reply_scan){
			.need = len < last_array->len ? last_array->len : 0};
		return len < last_array->len ? 0 : (int64_t)last_array->len;
	}
	used = hs_parse_reply_scan(&upstream->scan, data, len);
	if (used >= LAST_ARRAY_BYTES_MIN && used <= LAST_ARRAY_BYTES_MAX) {
		hs_buf_clear(last_array, LAST_ARRAY_BYTES_MAX);
		hs_buf_append(last_array, data, (size_t)used);
	}
	return used;
}

/* Takes every whole reply; returns how many bytes those were. */
static size_t take_replies(struct hs_upstream *upstream, const char *data, size_t len, bool partial,
			   hs_upstream_take *take, void *context)
{
	size_t at = 0;

	while (at < len && !upstream->close_reason) {
		int64_t used = scan(upstream, data + at, len - at);

		if (used == 0)
			break;
		if (used < 0) {
			hs_upstream_close(upstream, "the server's reply is not RESP");
			break;
		}
		take(context, (struct hs_bytes){data + at, (size_t)used},
		     partial && at == 0 && (size_t)used == len);
		at += (size_t)used;
	}
	return at;
}

static void receive_more(struct hs_upstream *upstream, const char *data, size_t len,
			 hs_upstream_take *take, void *context)
{
	struct hs_buf *partial = &upstream->partial;
	size_t whole, used;

	/* The driver may have read the bytes into the buffer that hs_upstream_room returned. */
	if (data == partial->data + partial->len)
		partial->len += len;
	else
		hs_buf_append(partial, data, len);
	whole = partial->len;
	used = take_replies(upstream, partial->data, whole, true, take, context);
	/* `take` may have swapped the buffer away: it is empty then. */
	if (partial->len == whole && used > 0)
		hs_buf_consume(partial, used);
	if (partial->len == 0)
		hs_buf_clear(partial, HS_IDLE_BUFFER_BYTES);
}

void hs_upstream_receive(struct hs_upstream *upstream, uint64_t now_us, const char *data,
			 size_t len, size_t reply_bytes_max, hs_upstream_take *take, void *context)
{
	upstream->received_us = now_us;
	if (upstream->partial.len > 0) {
		receive_more(upstream, data, len, take, context);
	} else {
		size_t used = take_replies(upstream, data, len, false, take, context);

		if (!upstream->close_reason)
			hs_buf_append(&upstream->partial, data + used, len - used);
	}
	if (upstream->partial.len > reply_bytes_max || upstream->scan.need > reply_bytes_max)
		hs_upstream_close(upstream, "the server's reply exceeds the size limit");
}

char *hs_upstream_room(struct hs_upstream *upstream, size_t *room)
{
	size_t want;

	*room = 0;
	/* Only for a long reply; the room ends where the reply ends. */
	if (upstream->partial.len == 0 ||
	    upstream->scan.need <= upstream->partial.len + HS_IDLE_BUFFER_BYTES)
		return NULL;
	want = upstream->scan.need - upstream->partial.len;
	*room = want < ROOM_MAX ? want : ROOM_MAX;
	return hs_buf_reserve(&upstream->partial, *room);
}
