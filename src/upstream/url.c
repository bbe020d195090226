/* A recursive-descent parser: scheme, user and password, hosts, database. */
#include "upstream/url.h"

#include "base/address.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"

#include <stdarg.h>
#include <stdio.h>

static const char EXAMPLE_SINGLE[] = "redis://user:pass@db.example:6379/0";
static const char EXAMPLE_CLUSTER[] = "cluster://user:pass@n1.example:6379,n2.example:6379";

struct parser {
	struct hs_redis_url *url;
	struct hs_bytes text;
	char *why;
	size_t why_size;
};

static const struct scheme {
	const char *name;
	enum hs_redis_kind kind;
	bool tls;
} schemes[] = {
	{"redis", HS_REDIS_SINGLE, false},
	{"rediss", HS_REDIS_SINGLE, true},
	{"cluster", HS_REDIS_CLUSTER, false},
	{"clusters", HS_REDIS_CLUSTER, true},
};

/* Writes where the error is, what it is, and an example. */
__attribute__((format(printf, 4, 5))) static int refuse(const struct parser *parser, int code,
							const char *at, const char *format, ...)
{
	char what[HS_REDIS_WHY_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(what, sizeof what, format, arguments);
	va_end(arguments);
	snprintf(parser->why, parser->why_size, "character %zu of the URL: %s; example: %s",
		 (size_t)(at - parser->text.data) + 1, what,
		 parser->url->kind == HS_REDIS_CLUSTER ? EXAMPLE_CLUSTER : EXAMPLE_SINGLE);
	return code;
}

static bool find(struct hs_bytes in, char byte, size_t *at)
{
	const char *found = in.len ? memchr(in.data, byte, in.len) : NULL;

	if (found)
		*at = (size_t)(found - in.data);
	return found != NULL;
}

static struct hs_bytes from(struct hs_bytes bytes, size_t at)
{
	return (struct hs_bytes){bytes.data + at, bytes.len - at};
}

static int parse_scheme(struct parser *parser, struct hs_bytes *rest)
{
	size_t end;

	if (find(parser->text, ':', &end) && parser->text.len - end >= 3 &&
	    memcmp(parser->text.data + end, "://", 3) == 0) {
		*rest = from(parser->text, end + 3);
		for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
			if (!hs_bytes_is_word((struct hs_bytes){parser->text.data, end},
					      schemes[i].name))
				continue;
			parser->url->kind = schemes[i].kind;
			parser->url->tls = schemes[i].tls;
			return 0;
		}
	}
	return refuse(parser, HS_EINVAL, parser->text.data,
		      "must start with redis://, rediss://, cluster:// or clusters://");
}

/* ---- user and password ---- */

static int hex(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	digit |= 0x20;
	return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

static int decode(const struct parser *parser, struct hs_bytes bytes, char *out, size_t out_size,
		  const char *what)
{
	size_t len = 0;

	for (size_t i = 0; i < bytes.len; i++) {
		char byte = bytes.data[i];

		if (byte == '%') {
			bool whole = bytes.len - i > 2;
			int high = whole ? hex(bytes.data[i + 1]) : -1;
			int low = whole ? hex(bytes.data[i + 2]) : -1;

			if (high < 0 || low < 0)
				return refuse(parser, HS_EINVAL, bytes.data + i,
					      "a %% in the %s must be followed by two hexadecimal "
					      "digits (%% itself is %%25)",
					      what);
			byte = (char)(high << 4 | low);
			i += 2;
		}
		if (byte == '\0')
			return refuse(parser, HS_EINVAL, bytes.data + i, "a zero byte in the %s",
				      what);
		if (len + 1 >= out_size)
			return refuse(parser, HS_ELIMIT, bytes.data,
				      "the %s is longer than %zu bytes", what, out_size - 1);
		out[len++] = byte;
	}
	out[len] = '\0';
	return 0;
}

/* Cuts "user:pass@" off the front. */
static int parse_user(struct parser *parser, struct hs_bytes *authority)
{
	struct hs_redis_url *url = parser->url;
	const char *end = authority->len ? memrchr(authority->data, '@', authority->len) : NULL;
	struct hs_bytes both;
	size_t colon;
	int code;

	if (!end)
		return 0;
	both = (struct hs_bytes){authority->data, (size_t)(end - authority->data)};
	*authority = from(*authority, both.len + 1);
	if (!find(both, ':', &colon))
		return refuse(parser, HS_EINVAL, both.data,
			      "no ':' before the '@': write user:pass@, or :pass@ for the default "
			      "user");
	code = decode(parser, (struct hs_bytes){both.data, colon}, url->user, sizeof url->user,
		      "user");
	if (code == 0)
		code = decode(parser, from(both, colon + 1), url->pass, sizeof url->pass,
			      "password");
	url->auth = true;
	return code;
}

/* ---- hosts ---- */

static bool in_name(char byte)
{
	char letter = (char)(byte | 0x20);

	return (letter >= 'a' && letter <= 'z') || (byte >= '0' && byte <= '9') || byte == '-' ||
	       byte == '.' || byte == '_';
}

/* An IPv6 address, with an optional '%' and interface. */
static bool is_ipv6(struct hs_bytes host)
{
	size_t colons = 0, i = 0;

	for (; i < host.len && host.data[i] != '%'; i++) {
		if (host.data[i] == ':')
			colons++;
		else if (hex(host.data[i]) < 0 && host.data[i] != '.')
			return false;
	}
	if (i < host.len && i + 1 == host.len)
		return false;
	for (i++; i < host.len; i++) {
		if (!in_name(host.data[i]))
			return false;
	}
	return colons >= 2;
}

/* Splits "host:port" or "[host]:port"; `port` may be empty. */
static int split(const struct parser *parser, struct hs_bytes text, struct hs_bytes *host,
		 struct hs_bytes *port)
{
	size_t end;

	*port = (struct hs_bytes){text.data + text.len, 0};
	*host = text;
	if (text.len > 0 && text.data[0] == '[') {
		if (!find(text, ']', &end))
			return refuse(parser, HS_EINVAL, text.data, "a '[' without its ']'");
		*host = (struct hs_bytes){text.data + 1, end - 1};
		if (!is_ipv6(*host))
			return refuse(
				parser, HS_EINVAL, host->data,
				"what stands in brackets must be an IPv6 address, as in [::1]");
		if (end + 1 == text.len)
			return 0;
		if (text.data[end + 1] != ':')
			return refuse(parser, HS_EINVAL, text.data + end + 1,
				      "only a ':' and a port may follow ']'");
		*port = from(text, end + 2);
	} else if (find(text, ':', &end)) {
		*host = (struct hs_bytes){text.data, end};
		*port = from(text, end + 1);
		if (memchr(port->data, ':', port->len))
			return refuse(
				parser, HS_EINVAL, text.data,
				"more than one ':': an IPv6 address stands in brackets, as in "
				"[::1]:6379");
	} else {
		return 0;
	}
	return port->len ? 0 : refuse(parser, HS_EINVAL, port->data, "a ':' without a port");
}

static int parse_seed(struct parser *parser, struct hs_bytes text)
{
	struct hs_redis_url *url = parser->url;
	struct hs_redis_address *seed = &url->seeds[url->seeds_count];
	struct hs_bytes host, port;
	uint64_t number = HS_REDIS_PORT;
	int code = split(parser, text, &host, &port);

	if (code < 0)
		return code;
	if (host.len == 0)
		return refuse(parser, HS_EINVAL, text.data, "a host is missing");
	if (host.len >= sizeof seed->host)
		return refuse(parser, HS_ELIMIT, host.data, "the host is longer than %zu bytes",
			      sizeof seed->host - 1);
	for (size_t i = 0; text.data[0] != '[' && i < host.len; i++) {
		if (!in_name(host.data[i]))
			return refuse(parser, HS_EINVAL, host.data + i,
				      "a host has letters, digits, '.', '-' and '_' only");
	}
	if (port.len && (!hs_num_parse_uint(port, &number) || number < 1 || number > 65535))
		return refuse(parser, HS_EINVAL, port.data, "a port is a number from 1 to 65535");
	memcpy(seed->host, host.data, host.len);
	seed->host[host.len] = '\0';
	seed->port = (uint16_t)number;
	url->seeds_count++;
	return 0;
}

static int parse_seeds(struct parser *parser, struct hs_bytes text)
{
	for (;;) {
		struct hs_bytes seed = text;
		bool more = find(text, ',', &seed.len);
		int code;

		if (more && parser->url->kind == HS_REDIS_SINGLE)
			return refuse(parser, HS_EINVAL, text.data + seed.len,
				      "one server has one address; several nodes are a cluster://");
		if (parser->url->seeds_count == HS_REDIS_SEEDS_MAX)
			return refuse(parser, HS_ELIMIT, text.data,
				      "more than %d nodes; some of them are enough to find all",
				      HS_REDIS_SEEDS_MAX);
		code = parse_seed(parser, seed);
		if (code < 0 || !more)
			return code;
		text = from(text, seed.len + 1);
	}
}

static int parse_db(struct parser *parser, struct hs_bytes path)
{
	uint64_t number;

	if (path.len == 0)
		return 0;
	if (parser->url->kind == HS_REDIS_CLUSTER)
		return refuse(parser, HS_EINVAL, path.data,
			      "a cluster has database 0 alone: nothing may follow the nodes");
	if (!hs_num_parse_uint(path, &number) || number > HS_REDIS_DB_MAX)
		return refuse(parser, HS_EINVAL, path.data, "a database is a number from 0 to %d",
			      HS_REDIS_DB_MAX);
	parser->url->db = (uint32_t)number;
	return 0;
}

int hs_redis_url_parse(struct hs_redis_url *url, struct hs_bytes text, char *why, size_t why_size)
{
	struct parser parser = {.url = url, .text = text, .why = why, .why_size = why_size};
	struct hs_bytes authority = text, path;
	size_t end;
	int code;

	memset(url, 0, sizeof *url);
	if (text.len == 0)
		parser.text.data = "";
	code = parse_scheme(&parser, &authority);
	if (code < 0)
		return code;
	for (size_t i = 0; i < authority.len; i++) {
		unsigned char byte = (unsigned char)authority.data[i];

		if (byte <= ' ' || byte == 0x7f || byte == '?' || byte == '#')
			return refuse(&parser, HS_EINVAL, authority.data + i,
				      "a space, a control character, '?' or '#': in a user or a "
				      "password it is written as %%20, %%3F, %%23");
	}
	path = (struct hs_bytes){authority.data + authority.len, 0};
	if (find(authority, '/', &end)) {
		path = from(authority, end + 1);
		authority.len = end;
		if (find(path, '@', &(size_t){0}))
			return refuse(&parser, HS_EINVAL, path.data - 1,
				      "a '/' before the '@': in a user or a password it is written "
				      "as %%2F");
	}
	code = parse_user(&parser, &authority);
	if (code == 0)
		code = parse_seeds(&parser, authority);
	if (code == 0)
		code = parse_db(&parser, path);
	return code;
}

/* ---- text for people ---- */

char *hs_redis_url_text(const struct hs_redis_url *url, char *text, size_t size)
{
	struct hs_buf out = {0};

	for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
		if (schemes[i].kind == url->kind && schemes[i].tls == url->tls)
			hs_buf_printf(&out, "%s://", schemes[i].name);
	}
	for (const char *at = url->user; *at; at++)
		hs_buf_printf(&out, in_name(*at) ? "%c" : "%%%02X", (unsigned)(unsigned char)*at);
	if (url->auth)
		hs_buf_printf(&out, ":***@");
	for (size_t i = 0; i < url->seeds_count; i++) {
		char seed[HS_ADDRESS_TEXT_MAX];

		hs_buf_printf(
			&out, "%s%s", i ? "," : "",
			hs_address_text(url->seeds[i].host, url->seeds[i].port, seed, sizeof seed));
	}
	if (url->db)
		hs_buf_printf(&out, "/%u", url->db);
	snprintf(text, size, "%.*s", (int)out.len, out.data);
	hs_buf_deinit(&out);
	return text;
}
