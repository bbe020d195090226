/* Requests as bytes. Every request of a run is one of a few templates with other digits in its key. So each
 * template is composed once, and a request is a copy with twelve bytes changed. */
#include "cli/storm.h"

#include "base/slot.h"
#include "wire/compose.h"

/* value.data NULL: the command has no value. */
static void compose(struct hs_storm_template *template, const char *command, const char *prefix,
		    bool counter, struct hs_bytes value)
{
	struct hs_buf *out = &template->bytes, key = {0};

	hs_buf_printf(&key, "%s%s%0*d", prefix, counter ? "n:" : "", HS_STORM_KEY_DIGITS, 0);
	hs_compose_header(out, value.data ? 3 : 2);
	hs_compose_text(out, command);
	hs_compose_word(out, hs_buf_bytes(&key));
	template->digits_at = out->len - HS_STORM_KEY_DIGITS - 2;
	template->key_at = out->len - key.len - 2;
	if (value.data) {
		hs_compose_word(out, value);
		template->value_at = out->len - value.len - 2;
	}
	hs_buf_deinit(&key);
}

void hs_storm_wire_init(struct hs_storm_wire *wire, const struct hs_storm_options *options)
{
	struct hs_buf value = {0};
	struct hs_bytes first;

	*wire = (struct hs_storm_wire){0};
	memset(hs_buf_reserve(&value, options->value_bytes + 1), 'x', options->value_bytes);
	value.len = options->value_bytes;
	for (int counter = 0; counter < 2; counter++) {
		struct hs_storm_template *templates = wire->templates[counter];
		struct hs_bytes written = counter ? HS_LIT("0") : hs_buf_bytes(&value);

		compose(&templates[HS_STORM_GET], "GET", options->prefix, counter,
			(struct hs_bytes){0});
		compose(&templates[HS_STORM_SET], "SET", options->prefix, counter, written);
		compose(&templates[HS_STORM_INCR], "INCR", options->prefix, counter,
			(struct hs_bytes){0});
	}
	hs_buf_deinit(&value);
	hs_compose_line(&wire->request, options->request);
	first = hs_compose_next_word(options->request);
	wire->request_slot = hs_slot_of(hs_compose_next_word(first.data + first.len));
}

void hs_storm_wire_deinit(struct hs_storm_wire *wire)
{
	for (int counter = 0; counter < 2; counter++) {
		for (int kind = 0; kind <= HS_STORM_INCR; kind++)
			hs_buf_deinit(&wire->templates[counter][kind].bytes);
	}
	hs_buf_deinit(&wire->request);
}

/* Writes the digits of the key over zeros. */
static void write_digits(char *to, uint64_t key)
{
	for (char *at = to + HS_STORM_KEY_DIGITS; key; key /= 10)
		*--at = (char)('0' + key % 10);
}

void hs_storm_wire_append(const struct hs_storm_wire *wire, const struct hs_storm_request *request,
			  struct hs_buf *out, char **value)
{
	if (request->kind == HS_STORM_REQUEST) {
		hs_buf_append_bytes(out, hs_buf_bytes(&wire->request));
		return;
	}

	const struct hs_storm_template *template =
		&wire->templates[request->counter][request->kind];
	char *to = hs_buf_reserve(out, template->bytes.len);

	memcpy(to, template->bytes.data, template->bytes.len);
	write_digits(to + template->digits_at, request->key);
	out->len += template->bytes.len;
	*value = to + template->value_at;
}

uint16_t hs_storm_wire_slot(const struct hs_storm_wire *wire, enum hs_storm_kind kind, bool counter,
			    uint64_t number)
{
	char key[HS_STORM_PREFIX_MAX + 2 + HS_STORM_KEY_DIGITS];
	const struct hs_storm_template *template;
	size_t digits_at;

	if (kind == HS_STORM_REQUEST)
		return wire->request_slot;
	template = &wire->templates[counter][kind];
	digits_at = template->digits_at - template->key_at;
	memcpy(key, template->bytes.data + template->key_at, digits_at + HS_STORM_KEY_DIGITS);
	write_digits(key + digits_at, number);
	return hs_slot_of((struct hs_bytes){key, digits_at + HS_STORM_KEY_DIGITS});
}

void hs_storm_key_text(const struct hs_storm_options *options, uint64_t key, bool counter,
		       char *text, size_t size)
{
	snprintf(text, size, "%s%s%0*llu", options->prefix, counter ? "n:" : "",
		 HS_STORM_KEY_DIGITS, (unsigned long long)key);
}

bool hs_storm_key_is_counter(const struct hs_storm_options *options, uint64_t key)
{
	/* Under `mixed` the odd keys are counters: each key keeps its share of requests, and no INCR hits a
	 * string. */
	return options->command == HS_STORM_COMMAND_INCR ||
	       (options->command == HS_STORM_COMMAND_MIXED && (key & 1));
}
