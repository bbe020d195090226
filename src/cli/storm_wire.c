/* Requests as bytes. Every request of a run is one of five texts that differ only in the key's
 * digits, so each text is composed once and a request is a copy with twelve bytes changed. */
#include "cli/storm.h"

static void append_bulk(struct hs_buf *out, struct hs_bytes bytes)
{
	hs_buf_printf(out, "$%zu\r\n", bytes.len);
	hs_buf_append_bytes(out, bytes);
	hs_buf_append(out, "\r\n", 2);
}

/* `middle` stands between prefix and digits. value.data NULL: the command takes none. */
static void compose(struct hs_storm_template *template, const char *command, const char *prefix,
		    const char *middle, struct hs_bytes value)
{
	struct hs_buf *out = &template->bytes;
	size_t key_bytes = strlen(prefix) + strlen(middle) + HS_STORM_KEY_DIGITS;

	hs_buf_printf(out, "*%d\r\n", value.data ? 3 : 2);
	append_bulk(out, hs_bytes_of(command));
	hs_buf_printf(out, "$%zu\r\n%s%s", key_bytes, prefix, middle);
	template->digits_at = out->len;
	hs_buf_printf(out, "%0*d\r\n", HS_STORM_KEY_DIGITS, 0);
	if (value.data) {
		append_bulk(out, value);
		template->value_at = out->len - value.len - 2;
	}
}

/* The words of --request, between blanks. */
static void compose_request(struct hs_buf *out, const char *words)
{
	static const char blanks[] = " \t\n";
	size_t count = 0;

	for (const char *at = words + strspn(words, blanks); *at; at += strspn(at, blanks)) {
		at += strcspn(at, blanks);
		count++;
	}
	hs_buf_printf(out, "*%zu\r\n", count);
	for (const char *at = words + strspn(words, blanks); *at; at += strspn(at, blanks)) {
		size_t len = strcspn(at, blanks);

		append_bulk(out, (struct hs_bytes){at, len});
		at += len;
	}
}

void hs_storm_wire_init(struct hs_storm_wire *wire, const struct hs_storm_options *options)
{
	const struct hs_bytes none = {NULL, 0};
	const char *prefix = options->prefix;
	struct hs_buf value = {0};

	*wire = (struct hs_storm_wire){.value_bytes = options->value_bytes};
	memset(hs_buf_reserve(&value, options->value_bytes + 1), 'x', options->value_bytes);
	value.len = options->value_bytes;
	compose(&wire->string_get, "GET", prefix, "", none);
	compose(&wire->string_set, "SET", prefix, "", hs_buf_bytes(&value));
	compose(&wire->counter_get, "GET", prefix, "n:", none);
	compose(&wire->counter_incr, "INCR", prefix, "n:", none);
	compose(&wire->counter_zero, "SET", prefix, "n:", HS_LIT("0"));
	hs_buf_deinit(&value);
	hs_buf_append(&wire->auth, "*2\r\n$4\r\nAUTH\r\n", 14);
	append_bulk(&wire->auth, hs_bytes_of(options->password.text));
	if (options->request && *options->request)
		compose_request(&wire->request, options->request);
}

void hs_storm_wire_deinit(struct hs_storm_wire *wire)
{
	hs_buf_deinit(&wire->string_get.bytes);
	hs_buf_deinit(&wire->string_set.bytes);
	hs_buf_deinit(&wire->counter_get.bytes);
	hs_buf_deinit(&wire->counter_incr.bytes);
	hs_buf_deinit(&wire->counter_zero.bytes);
	hs_buf_deinit(&wire->auth);
	hs_buf_deinit(&wire->request);
}

static const struct hs_storm_template *template_of(const struct hs_storm_wire *wire,
						   const struct hs_storm_flight *flight)
{
	switch (flight->kind) {
	case HS_STORM_GET:
		return flight->counter ? &wire->counter_get : &wire->string_get;
	case HS_STORM_SET:
		return flight->counter ? &wire->counter_zero : &wire->string_set;
	case HS_STORM_INCR:
		return &wire->counter_incr;
	case HS_STORM_REQUEST:
	case HS_STORM_ACT:
	case HS_STORM_AUTH:
	case HS_STORM_KINDS:
		break;
	}
	return NULL;
}

static void write_digits(char *to, uint64_t key)
{
	for (int i = HS_STORM_KEY_DIGITS - 1; i >= 0 && key; i--) {
		to[i] = (char)('0' + key % 10);
		key /= 10;
	}
}

void hs_storm_wire_append(const struct hs_storm_wire *wire, const struct hs_storm_flight *flight,
			  struct hs_buf *out, char **value)
{
	if (flight->kind == HS_STORM_AUTH) {
		hs_buf_append_bytes(out, hs_buf_bytes(&wire->auth));
		return;
	}

	if (flight->kind == HS_STORM_REQUEST) {
		hs_buf_append_bytes(out, hs_buf_bytes(&wire->request));
		return;
	}

	const struct hs_storm_template *template = template_of(wire, flight);
	char *to = hs_buf_reserve(out, template->bytes.len);

	memcpy(to, template->bytes.data, template->bytes.len);
	write_digits(to + template->digits_at, flight->key);
	out->len += template->bytes.len;
	*value = to + template->value_at;
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
