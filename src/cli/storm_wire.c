/* Requests as bytes. Every request of a run is one of five texts that differ only in the key's
 * digits, so each text is composed once and a request is a copy with twelve bytes changed. */
#include "cli/storm.h"

#include "base/slot.h"
#include "wire/compose.h"

/* `middle` stands between prefix and digits. value.data NULL: the command takes none. */
static void compose(struct hs_storm_template *template, const char *command, const char *prefix,
		    const char *middle, struct hs_bytes value)
{
	struct hs_buf *out = &template->bytes, key = {0};

	hs_buf_printf(&key, "%s%s%0*d", prefix, middle, HS_STORM_KEY_DIGITS, 0);
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
	const struct hs_bytes none = {NULL, 0};
	const char *prefix = options->prefix;
	struct hs_buf value = {0};
	struct hs_bytes first;

	*wire = (struct hs_storm_wire){0};
	memset(hs_buf_reserve(&value, options->value_bytes + 1), 'x', options->value_bytes);
	value.len = options->value_bytes;
	compose(&wire->string_get, "GET", prefix, "", none);
	compose(&wire->string_set, "SET", prefix, "", hs_buf_bytes(&value));
	compose(&wire->counter_get, "GET", prefix, "n:", none);
	compose(&wire->counter_incr, "INCR", prefix, "n:", none);
	compose(&wire->counter_zero, "SET", prefix, "n:", HS_LIT("0"));
	hs_buf_deinit(&value);
	hs_compose_line(&wire->request, options->request);
	first = hs_compose_next_word(options->request);
	wire->request_slot = hs_slot_of(hs_compose_next_word(first.data + first.len));
}

void hs_storm_wire_deinit(struct hs_storm_wire *wire)
{
	hs_buf_deinit(&wire->string_get.bytes);
	hs_buf_deinit(&wire->string_set.bytes);
	hs_buf_deinit(&wire->counter_get.bytes);
	hs_buf_deinit(&wire->counter_incr.bytes);
	hs_buf_deinit(&wire->counter_zero.bytes);
	hs_buf_deinit(&wire->request);
}

static const struct hs_storm_template *template_of(const struct hs_storm_wire *wire,
						   enum hs_storm_kind kind, bool counter)
{
	switch (kind) {
	case HS_STORM_GET:
		return counter ? &wire->counter_get : &wire->string_get;
	case HS_STORM_SET:
		return counter ? &wire->counter_zero : &wire->string_set;
	case HS_STORM_INCR:
		return &wire->counter_incr;
	case HS_STORM_REQUEST:
	case HS_STORM_ACT:
	case HS_STORM_ASKING:
	case HS_STORM_MAP:
		break;
	}
	return NULL;
}

static void write_digits(char *to, uint64_t key)
{
	static const char pairs[] = "0001020304050607080910111213141516171819"
				    "2021222324252627282930313233343536373839"
				    "4041424344454647484950515253545556575859"
				    "6061626364656667686970717273747576777879"
				    "8081828384858687888990919293949596979899";

	for (char *at = to + HS_STORM_KEY_DIGITS; key; key /= 100) {
		at -= 2;
		memcpy(at, &pairs[2 * (key % 100)], 2);
	}
}

void hs_storm_wire_append(const struct hs_storm_wire *wire, const struct hs_storm_flight *flight,
			  struct hs_buf *out, char **value)
{
	if (flight->kind == HS_STORM_REQUEST) {
		hs_buf_append_bytes(out, hs_buf_bytes(&wire->request));
		return;
	}

	const struct hs_storm_template *template = template_of(wire, flight->kind, flight->counter);
	char *to = hs_buf_reserve(out, template->bytes.len);

	memcpy(to, template->bytes.data, template->bytes.len);
	write_digits(to + template->digits_at, flight->key);
	out->len += template->bytes.len;
	*value = to + template->value_at;
}

uint16_t hs_storm_wire_slot(const struct hs_storm_wire *wire, enum hs_storm_kind kind, bool counter,
			    uint64_t number)
{
	const struct hs_storm_template *template = template_of(wire, kind, counter);
	char key[HS_STORM_PREFIX_MAX + 2 + HS_STORM_KEY_DIGITS];
	size_t digits_at;

	if (kind == HS_STORM_REQUEST)
		return wire->request_slot;
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
	/* Under `mixed` the odd keys are counters: each key keeps its share of the heat, and no
	 * INCR meets a value that is no number. */
	return options->command == HS_STORM_COMMAND_INCR ||
	       (options->command == HS_STORM_COMMAND_MIXED && (key & 1));
}
