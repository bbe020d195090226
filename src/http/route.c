/* Routes as a table: lookup, parameters, errors, the index page. */
#include "http/route.h"

#include "base/err.h"
#include "base/escape.h"
#include "base/num.h"

enum {
	SHOWN_BYTES = 64, /* of a name or value in an error */
	PATH_COLUMNS = 16,
};

const struct hs_http_route *hs_http_route_find(const struct hs_http_routes *routes,
					       struct hs_bytes path)
{
	for (size_t i = 0; i < routes->count; i++) {
		if (!routes->routes[i].suffix &&
		    hs_bytes_equal(path, hs_bytes_of(routes->routes[i].path)))
			return &routes->routes[i];
	}
	return NULL;
}

const struct hs_http_route *hs_http_route_find_by_prefix(const struct hs_http_routes *routes,
							 struct hs_bytes encoded)
{
	for (size_t i = 0; i < routes->count; i++) {
		struct hs_bytes path = hs_bytes_of(routes->routes[i].path);

		if (routes->routes[i].suffix && hs_bytes_begins(encoded, path))
			return &routes->routes[i];
	}
	return NULL;
}

void hs_http_request_init(struct hs_http_request *request, const struct hs_http_route *route)
{
	hs_check(route->parameters_count <= HS_HTTP_PARAMETERS_MAX);
	memset(request, 0, sizeof *request);
	request->route = route;
	for (size_t i = 0; i < route->parameters_count; i++)
		request->values[i].number = route->parameters[i].fallback;
}

static void append_words(const char *const *words, struct hs_buf *text)
{
	char known[128];

	hs_buf_printf(text, "%s", hs_words_join(words, "|", "|", known, sizeof known));
}

static void append_shown(struct hs_bytes bytes, struct hs_buf *text)
{
	bool cut = bytes.len > SHOWN_BYTES;

	if (cut)
		bytes.len = SHOWN_BYTES;
	hs_escape(bytes, text);
	if (cut)
		hs_buf_printf(text, "…");
}

static void explain(const struct hs_http_parameter *parameter, struct hs_bytes value,
		    struct hs_buf *why)
{
	hs_buf_printf(why, "%s=", parameter->name);
	append_shown(value, why);
	if (parameter->kind == HS_HTTP_INT) {
		hs_buf_printf(why, ": must be a number from %lld to %lld\n",
			      (long long)parameter->min, (long long)parameter->max);
		return;
	}
	hs_buf_printf(why, ": must be one of ");
	append_words(parameter->words, why);
	hs_buf_append(why, "\n", 1);
}

static int set_value(const struct hs_http_parameter *parameter, struct hs_http_value *slot,
		     struct hs_bytes value)
{
	switch (parameter->kind) {
	case HS_HTTP_INT:
		if (!hs_num_parse_int(value, &slot->number) || slot->number < parameter->min ||
		    slot->number > parameter->max)
			return HS_EINVAL;
		return 0;
	case HS_HTTP_WORD:
		slot->number = hs_words_index(parameter->words, value);
		if (slot->number < 0)
			return HS_EINVAL;
		/* Unlike in options, case matters. */
		return hs_bytes_equal(value, hs_bytes_of(parameter->words[slot->number]))
			       ? 0
			       : HS_EINVAL;
	case HS_HTTP_TEXT:
		slot->text = value;
	}
	return 0;
}

static void explain_unknown(const struct hs_http_route *route, struct hs_bytes name,
			    struct hs_buf *why)
{
	hs_buf_printf(why, "unknown parameter '");
	append_shown(name, why);
	hs_buf_printf(why, "': %s takes ", route->path);
	if (route->parameters_count == 0)
		hs_buf_printf(why, "none");
	for (size_t i = 0; i < route->parameters_count; i++)
		hs_buf_printf(why, "%s%s", i > 0 ? ", " : "", route->parameters[i].name);
	hs_buf_append(why, "\n", 1);
}

int hs_http_request_set(struct hs_http_request *request, struct hs_bytes name,
			struct hs_bytes value, struct hs_buf *why)
{
	const struct hs_http_route *route = request->route;

	for (size_t i = 0; i < route->parameters_count; i++) {
		const struct hs_http_parameter *parameter = &route->parameters[i];

		if (!hs_bytes_equal(name, hs_bytes_of(parameter->name)))
			continue;
		if (request->values[i].given) {
			hs_buf_printf(why, "parameter '%s' is given twice\n", parameter->name);
			return HS_EINVAL;
		}
		request->values[i].given = true;
		if (set_value(parameter, &request->values[i], value) == 0)
			return 0;
		explain(parameter, value, why);
		return HS_EINVAL;
	}
	explain_unknown(route, name, why);
	return HS_EINVAL;
}

static void describe_parameter(const struct hs_http_parameter *parameter, char mark,
			       struct hs_buf *text)
{
	hs_buf_printf(text, "%c%s=", mark, parameter->name);
	switch (parameter->kind) {
	case HS_HTTP_INT:
		hs_buf_printf(text, "%lld..%lld", (long long)parameter->min,
			      (long long)parameter->max);
		break;
	case HS_HTTP_WORD:
		append_words(parameter->words, text);
		break;
	case HS_HTTP_TEXT:
		hs_buf_printf(text, "TEXT");
	}
}

void hs_http_routes_describe(const struct hs_http_routes *routes, struct hs_buf *text)
{
	for (size_t i = 0; i < routes->count; i++) {
		const struct hs_http_route *route = &routes->routes[i];

		hs_buf_printf(text, "%s%-*s %s\n", route->path,
			      (int)(PATH_COLUMNS - strlen(route->path)),
			      route->suffix ? route->suffix : "", route->help);
		for (size_t j = 0; j < route->parameters_count; j++) {
			if (j == 0)
				hs_buf_printf(text, "%*s ", PATH_COLUMNS, "");
			describe_parameter(&route->parameters[j], j == 0 ? '?' : '&', text);
		}
		if (route->parameters_count > 0)
			hs_buf_append(text, "\n", 1);
	}
}
