#include "serve/options.h"

#include "base/err.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "base/num.h"
#include "serve/tls_options.h"
#include "upstream/url.h"

#include <arpa/inet.h>
#include <stdio.h>

enum { BIND_BYTES_MAX = 1024 };

/* clang-format off */
const struct hs_option hs_option_table[] = {
#define ROW(kind_, name_, field, fallback_, argument_, ...) \
	{.name = (name_), .kind = HS_OPTION_##kind_, .offset = offsetof(struct hs_options, field), \
	 .fallback = (fallback_), .argument = (argument_), __VA_ARGS__},
#define FIXED(name_, value) {.name = (name_), .kind = HS_OPTION_FIXED, .fallback = (value)},
#include "serve/options.def"
};
/* clang-format on */
const size_t hs_option_count = sizeof hs_option_table / sizeof *hs_option_table;

static const struct {
	const char *old, *name;
} renamed[] = {
#define ROW(...)
#define FIXED(name_, value)
#define RENAMED(old_, name_) {(old_), (name_)},
#include "serve/options.def"
};

static int64_t *number_at(const struct hs_options *options, const struct hs_option *option)
{
	return (int64_t *)((char *)(uintptr_t)options + option->offset);
}

static char **text_at(const struct hs_options *options, const struct hs_option *option)
{
	return (char **)((char *)(uintptr_t)options + option->offset);
}

void hs_options_init(struct hs_options *options)
{
	char error[128];

	memset(options, 0, sizeof *options);
	options->users = hs_acl_create();
	options->rules = hs_rules_create();
	for (size_t i = 0; i < hs_option_count; i++) {
		const struct hs_option *option = &hs_option_table[i];

		if (option->kind == HS_OPTION_FIXED || option->kind == HS_OPTION_USERS ||
		    option->kind == HS_OPTION_RULES)
			continue;
		hs_check(hs_option_set(options, option, hs_bytes_of(option->fallback), error,
				       sizeof error) == 0);
	}
}

void hs_options_deinit(struct hs_options *options)
{
	for (size_t i = 0; i < hs_option_count; i++) {
		const struct hs_option *option = &hs_option_table[i];

		if (option->kind == HS_OPTION_TEXT)
			hs_mem_free(text_at(options, option));
	}
	hs_acl_unref(&options->users);
	hs_rules_unref(&options->rules);
}

void hs_options_copy(struct hs_options *to, const struct hs_options *from)
{
	*to = *from;
	to->users = hs_acl_ref(from->users);
	hs_rules_ref(to->rules);
	for (size_t i = 0; i < hs_option_count; i++) {
		const struct hs_option *option = &hs_option_table[i];

		if (option->kind == HS_OPTION_TEXT) {
			const char *text = *text_at(from, option);

			*text_at(to, option) = hs_mem_dup(text, strlen(text));
		}
	}
}

const struct hs_option *hs_option_find(struct hs_bytes name)
{
	for (size_t i = 0; i < hs_option_count; i++) {
		if (hs_bytes_is_word(name, hs_option_table[i].name))
			return &hs_option_table[i];
	}
	return NULL;
}

const char *hs_option_renamed(struct hs_bytes name)
{
	for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++) {
		if (hs_bytes_is_word(name, renamed[i].old))
			return renamed[i].name;
	}
	return NULL;
}

static int set_number(struct hs_options *options, const struct hs_option *option, int64_t number,
		      char *error, size_t error_size)
{
	if (number < option->min || number > option->max)
		return hs_err_set(HS_ERANGE, error, error_size,
				  "argument must be between %lld and %lld inclusive",
				  (long long)option->min, (long long)option->max);
	*number_at(options, option) = number;
	return 0;
}

/* "1%", "0.25%", or the same without the sign, to millionths. */
static bool parse_share(struct hs_bytes value, int64_t *millionths)
{
	int64_t number = 0;
	int decimals = -1; /* none yet */
	size_t digits = 0;

	if (value.len > 0 && value.data[value.len - 1] == '%')
		value.len--;
	for (size_t i = 0; i < value.len; i++) {
		char c = value.data[i];

		if (c == '.' && decimals < 0) {
			decimals = 0;
			continue;
		}
		if (c < '0' || c > '9' || ++digits > 9 || (decimals >= 0 && ++decimals > 4))
			return false;
		number = number * 10 + (c - '0');
	}
	for (int i = decimals < 0 ? 0 : decimals; i < 4; i++)
		number *= 10;
	*millionths = number;
	return digits > 0;
}

static void format_share(int64_t millionths, struct hs_buf *text)
{
	char decimals[8];
	size_t len = (size_t)snprintf(decimals, sizeof decimals, "%04d", (int)(millionths % 10000));

	while (len > 0 && decimals[len - 1] == '0')
		len--;
	hs_buf_printf(text, "%lld%s%.*s%%", (long long)(millionths / 10000), len > 0 ? "." : "",
		      (int)len, decimals);
}

int hs_option_set(struct hs_options *options, const struct hs_option *option, struct hs_bytes value,
		  char *error, size_t error_size)
{
	char known[64];
	int64_t number;
	uint64_t bytes;

	switch (option->kind) {
	case HS_OPTION_INT:
		if (!hs_num_parse_int(value, &number))
			return hs_err_set(HS_EINVAL, error, error_size,
					  "argument couldn't be parsed into an integer");
		return set_number(options, option, number, error, error_size);
	case HS_OPTION_BYTES:
		if (!hs_num_parse_bytes(value, &bytes) || bytes > INT64_MAX)
			return hs_err_set(HS_EINVAL, error, error_size,
					  "argument must be a memory value");
		return set_number(options, option, (int64_t)bytes, error, error_size);
	case HS_OPTION_SHARE:
		if (!parse_share(value, &number) || number < option->min || number > option->max)
			return hs_err_set(
				HS_EINVAL, error, error_size,
				"argument must be a share of at most 100%%, such as 0.25%%");
		*number_at(options, option) = number;
		return 0;
	case HS_OPTION_BOOL:
		number = hs_words_index(HS_WORDS("no", "yes"), value);
		if (number < 0)
			return hs_err_set(HS_EINVAL, error, error_size,
					  "argument must be 'yes' or 'no'");
		*number_at(options, option) = number;
		return 0;
	case HS_OPTION_WORD:
		number = hs_words_index(option->words, value);
		if (number < 0) /* Redis's sentence: CONFIG SET replies with it */
			return hs_err_set(
				HS_EINVAL, error, error_size,
				"argument(s) must be one of the following: %s",
				hs_words_join(option->words, ", ", ", ", known, sizeof known));
		*number_at(options, option) = number;
		return 0;
	case HS_OPTION_TEXT:
		if (value.len > 0 && memchr(value.data, '\0', value.len))
			return hs_err_set(HS_EINVAL, error, error_size,
					  "must not contain a zero byte");
		break;
	case HS_OPTION_USERS:
		return hs_err_set(HS_EINVAL, error, error_size,
				  "users are changed one at a time, with ACL SETUSER");
	case HS_OPTION_RULES:
		return hs_err_set(
			HS_EINVAL, error, error_size,
			"rules are changed one at a time, with HEAT RULE SET and HEAT RULE DEL");
	case HS_OPTION_FIXED:
		if (hs_bytes_equal(value, hs_bytes_of(option->fallback)))
			return 0;
		return hs_err_set(HS_EINVAL, error, error_size, "is always '%s' in heatsink",
				  option->fallback);
	}
	hs_mem_free(text_at(options, option));
	*text_at(options, option) = hs_mem_dup(value.data, value.len);
	return 0;
}

void hs_option_format(const struct hs_options *options, const struct hs_option *option,
		      struct hs_buf *text)
{
	switch (option->kind) {
	case HS_OPTION_INT:
	case HS_OPTION_BYTES:
		hs_buf_printf(text, "%lld", (long long)*number_at(options, option));
		break;
	case HS_OPTION_SHARE:
		format_share(*number_at(options, option), text);
		break;
	case HS_OPTION_BOOL:
		hs_buf_append_bytes(text, hs_bytes_of(*number_at(options, option) ? "yes" : "no"));
		break;
	case HS_OPTION_WORD:
		hs_buf_append_bytes(text, hs_bytes_of(option->words[*number_at(options, option)]));
		break;
	case HS_OPTION_TEXT:
		hs_buf_append_bytes(text, hs_bytes_of(*text_at(options, option)));
		break;
	case HS_OPTION_USERS:
		break;
	case HS_OPTION_RULES:
		for (size_t i = 0; i < hs_rules_count(options->rules); i++) {
			if (i > 0)
				hs_buf_append(text, "\n", 1);
			hs_rule_describe(hs_rules_at(options->rules, i), text);
		}
		break;
	case HS_OPTION_FIXED:
		hs_buf_append_bytes(text, hs_bytes_of(option->fallback));
	}
}

bool hs_option_same(const struct hs_options *a, const struct hs_options *b,
		    const struct hs_option *option)
{
	struct hs_buf one = {0}, other = {0};
	bool same;

	if (option->kind == HS_OPTION_USERS)
		return hs_acl_same(a->users, b->users);
	if (option->kind == HS_OPTION_RULES)
		return hs_rules_same(a->rules, b->rules);
	hs_option_format(a, option, &one);
	hs_option_format(b, option, &other);
	same = hs_bytes_equal(hs_buf_bytes(&one), hs_buf_bytes(&other));
	hs_buf_deinit(&one);
	hs_buf_deinit(&other);
	return same;
}

const char *hs_option_nearest(struct hs_bytes name)
{
	struct hs_nearest nearest = hs_nearest_to(name);

	for (size_t i = 0; i < hs_option_count; i++) {
		if (hs_option_table[i].kind != HS_OPTION_FIXED)
			hs_nearest_try(&nearest, hs_option_table[i].name);
	}
	return nearest.name;
}

bool hs_options_is_loopback(const char *address)
{
	struct in_addr v4;
	struct in6_addr v6;

	if (inet_pton(AF_INET, address, &v4) == 1)
		return (ntohl(v4.s_addr) >> 24) == 127;
	if (inet_pton(AF_INET6, address, &v6) == 1)
		return IN6_IS_ADDR_LOOPBACK(&v6);
	return strcmp(address, "localhost") == 0;
}

static bool is_address(const char *text)
{
	struct in_addr v4;
	struct in6_addr v6;

	return inet_pton(AF_INET, text, &v4) == 1 || inet_pton(AF_INET6, text, &v6) == 1;
}

/* A host that CLUSTER replies may contain: clients parse those lines, so only these bytes are allowed. */
static bool is_host(const char *text)
{
	return is_address(text) ||
	       (strlen(text) <= HS_HOST_NAME_MAX &&
		text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789.-_")] == '\0');
}

/* The first address of `bind` that other machines can reach; "": none. It points into `list`. */
static const char *public_address(const struct hs_options *options, char *list, size_t size)
{
	char *rest = list, *address;

	snprintf(list, size, "%s", options->bind);
	while ((address = strsep(&rest, " "))) {
		if (*address != '\0' && !hs_options_is_loopback(address))
			return address;
	}
	return "";
}

int hs_options_check_user(const struct hs_options *options, const struct hs_acl_user *user,
			  char *error, size_t error_size)
{
	char list[BIND_BYTES_MAX], name[64];
	const char *address = public_address(options, list, sizeof list);
	bool is_default = hs_bytes_equal(hs_acl_user_name(user), HS_LIT("default"));

	if (!options->protected_mode || *address == '\0' || !hs_acl_user_is_open(user))
		return 0;
	hs_bytes_escape(hs_acl_user_name(user), name, sizeof name);
	return hs_err_set(HS_EINVAL, error, error_size,
			  "bind %s would let anyone on the network log in as user '%s', which has "
			  "no password: "
			  "%s, turn the user off (%s off), or start with --protected-mode no",
			  address, name, is_default ? "set requirepass" : "give it one (>password)",
			  name);
}

int hs_options_check_users(const struct hs_options *options, const struct hs_options *of,
			   char *error, size_t error_size)
{
	struct hs_acl *acl = hs_options_acl(of);
	int status = 0;

	for (size_t i = 0; i < hs_acl_count(acl) && status == 0; i++)
		status = hs_options_check_user(options, hs_acl_at(acl, i), error, error_size);
	hs_acl_unref(&acl);
	return status;
}

static int check_engine(const char *engine, char *error, size_t error_size)
{
	struct hs_redis_url url;
	char why[HS_REDIS_WHY_BYTES];

	if (strcmp(engine, "embedded") == 0)
		return 0;
	if (strstr(engine, "://")) {
		if (hs_redis_url_parse(&url, hs_bytes_of(engine), why, sizeof why) == 0)
			return 0;
		return hs_err_set(HS_EINVAL, error, error_size, "engine: %s", why);
	}
	return hs_err_set(
		HS_EINVAL, error, error_size,
		"engine '%s' is neither embedded nor a URL such as redis://127.0.0.1:6379 or "
		"cluster://127.0.0.1:7000",
		engine);
}

int hs_options_check(const struct hs_options *options, char *error, size_t error_size)
{
	char list[BIND_BYTES_MAX];
	char *rest = list, *address;

	if (strlen(options->bind) >= sizeof list)
		return hs_err_set(HS_EINVAL, error, error_size, "bind is longer than %d bytes",
				  BIND_BYTES_MAX - 1);
	if (check_engine(options->engine, error, error_size) < 0)
		return HS_EINVAL;
	if (!is_host(options->cluster_announce_ip))
		return hs_err_set(HS_EINVAL, error, error_size,
				  "cluster-announce-ip '%s' is not an address or host name",
				  options->cluster_announce_ip);
	if (!hs_options_is_loopback(options->http_bind) && !is_address(options->http_bind))
		return hs_err_set(HS_EINVAL, error, error_size, "http-bind '%s' is not an address",
				  options->http_bind);
	snprintf(list, sizeof list, "%s", options->bind);
	while ((address = strsep(&rest, " "))) {
		if (*address == '\0' || hs_options_is_loopback(address))
			continue;
		if (!is_address(address))
			return hs_err_set(HS_EINVAL, error, error_size,
					  "bind '%s' is not an address", address);
	}
	if (hs_tls_options_check(options, error, error_size) < 0)
		return HS_EINVAL;
	return hs_options_check_users(options, options, error, error_size);
}

void hs_options_help(struct hs_buf *text)
{
	for (size_t i = 0; i < hs_option_count; i++) {
		const struct hs_option *option = &hs_option_table[i];
		char flag[64];

		if (option->kind == HS_OPTION_FIXED)
			continue;
		snprintf(flag, sizeof flag, "--%s %s", option->name, option->argument);
		hs_buf_printf(text, "  %-40s %s", flag, option->help);
		if (option->fallback[0])
			hs_buf_printf(text, " [%s]", option->fallback);
		hs_buf_printf(text, "\n");
	}
}
