/* CONFIG, INFO and SHUTDOWN, the reload on SIGHUP, and how changed options reach the other threads:
 *
 *     CONFIG SET, SIGHUP ── change and check a copy of the options ── swap ── hs_host_publish
 *                                                                             ├─ main thread: host->live
 *                                                                             ├─ shared cache, engine: caching or not
 *                                                                             └─ every worker: HS_WORKER_CONFIGURE
 *
 * In front of servers, CONFIG GET and SET of some options are the servers' (engine.h: options): the engine passes
 * them on. */
#include "serve/host.h"

#include "absorb/shared.h"
#include "base/glob.h"
#include "serve/audit.h"
#include "serve/tls_options.h"
#include "wire/reply.h"

#include <stdio.h>
#include <stdlib.h>

enum {
	CHECKS_PER_STALE = 4
}; /* liveness checks of tracking sessions within the shortest `stale` of all rules */

/* The servers' option of this name; NULL: the servers have none. */
static const struct hs_engine_option *server_option(const struct hs_host *host,
						    struct hs_bytes name)
{
	for (size_t i = 0; i < host->engine->options_count; i++) {
		if (hs_bytes_is_word(name, host->engine->options[i].name))
			return &host->engine->options[i];
	}
	return NULL;
}

/* True if CONFIG GET names an option of the servers. */
static bool asks_servers(const struct hs_host *host, const struct hs_op *op)
{
	for (size_t i = 0; i < host->engine->options_count; i++) {
		struct hs_bytes name = hs_bytes_of(host->engine->options[i].name);

		for (size_t asked = 2; asked < op->argc; asked++) {
			if (hs_glob_match(op->argv[asked], name, true))
				return true;
		}
	}
	return false;
}

/* The engine adds the servers' values for options of the servers. */
void hs_host_config_get(struct hs_host *host, struct hs_op *op, struct hs_reply *reply)
{
	struct hs_buf value = {0};
	struct hs_buf pairs = {0};
	struct hs_reply inner = {.out = &pairs, .resp = op->resp};
	size_t count = 0;

	for (size_t i = 0; i < hs_option_count; i++) {
		const struct hs_option *option = &hs_option_table[i];
		struct hs_bytes name = hs_bytes_of(option->name);
		size_t asked = 2;

		while (asked < op->argc && !hs_glob_match(op->argv[asked], name, true))
			asked++;
		/* As in Redis, users are shown by ACL alone. */
		if (asked == op->argc || option->kind == HS_OPTION_USERS ||
		    server_option(host, name) ||
		    (option->embedded && host->engine->options_count > 0))
			continue;
		value.len = 0;
		hs_option_format(host->options, option, &value);
		/* As in Redis: a name without a pattern comes back as the client wrote it. */
		hs_reply_bulk(&inner, op->argv[asked].len == name.len &&
						      !hs_glob_is_pattern(op->argv[asked])
					      ? op->argv[asked]
					      : name);
		hs_reply_bulk(&inner, hs_buf_bytes(&value));
		count++;
	}
	hs_buf_deinit(&value);
	if (asks_servers(host, op)) {
		hs_buf_swap(&pairs, op->out);
		hs_buf_deinit(&pairs);
		reply->out = NULL;
		host->engine->calls->config(host->engine, op, count);
		return;
	}
	hs_reply_map(reply, count);
	hs_buf_append_bytes(reply->out, hs_buf_bytes(&pairs));
	hs_buf_deinit(&pairs);
}

void hs_host_publish_to_main(struct hs_host *host)
{
	const struct hs_options *options = host->options;

	host->log->level = (int)options->log_level;
	atomic_store(&host->live.maxclients, (uint64_t)options->maxclients);
	atomic_store(&host->live.shutdown_timeout_us,
		     (uint64_t)options->shutdown_timeout * 1000000);
}

void hs_host_publish_caching(struct hs_host *host)
{
	const struct hs_options *options = host->options;
	const struct hs_engine_calls *engine = host->engine->calls;
	const struct hs_rules *rules = options->rules;
	bool keeps = options->mitigate == HS_MITIGATE_ON && hs_rules_any(rules, HS_CONTRACT_CACHE);

	/* Never switched off again: a worker that has not got the new options yet may still answer from its cache, so
	 * writes must go on counting versions. */
	if (options->mitigate != HS_MITIGATE_OFF && hs_rules_any(rules, HS_CONTRACT_CACHE))
		hs_shared_use(host->shared, true);
	/* Also if no reply is cached: sets of copies are in the shared cache, too. */
	hs_shared_limit(host->shared,
			(uint64_t)options->cache_bytes / HS_SHARED_PART + HS_SHARED_BYTES_MIN);
	if (engine->check_sessions_every)
		engine->check_sessions_every(
			host->engine, keeps ? hs_rules_stale_min_us(rules) / CHECKS_PER_STALE : 0);
}

void hs_host_publish(struct hs_host *host)
{
	hs_host_publish_to_main(host);
	hs_host_publish_caching(host);
	for (uint32_t i = 0; i < host->workers_count; i++) {
		struct hs_worker_message *message = hs_worker_message_create(HS_WORKER_CONFIGURE);

		hs_worker_core_options(host->options, &message->options);
		message->context = hs_tls_context_hold(host->tls);
		hs_worker_post(&host->workers[i], message);
	}
}

/* Takes over new certificates; NULL: none. The next hs_host_publish hands them to the workers. */
static void use_context(struct hs_host *host, struct hs_tls_context *context)
{
	if (!context)
		return;
	hs_tls_context_release(&host->tls);
	host->tls = context;
	hs_log(host->log, HS_LOG_INFO, "TLS: certificates reloaded; new connections use them");
}

static void swap_options(struct hs_host *host, struct hs_options *changed)
{
	struct hs_options old = *host->options;

	*host->options = *changed;
	hs_options_deinit(&old);
	hs_host_publish(host);
}

static bool named_before(const struct hs_op *op, size_t at, const char *name)
{
	for (size_t i = 2; i < at; i += 2) {
		if (hs_bytes_is_word(op->argv[i], name))
			return true;
	}
	return false;
}

static void reply_set_failed(struct hs_reply *reply, const char *named, const char *why)
{
	hs_reply_errorf(reply, "ERR CONFIG SET failed (possibly related to argument '%s') - %s",
			named, why);
}

/* The first named option of the TLS port; NULL: none. */
static const char *named_for_tls(const struct hs_op *op)
{
	for (size_t i = 2; i < op->argc; i += 2) {
		const struct hs_option *option = hs_option_find(op->argv[i]);

		if (strncmp(option->name, "tls-", 4) == 0)
			return option->name;
	}
	return NULL;
}

static bool may_name(const struct hs_host *host, struct hs_bytes name)
{
	const struct hs_option *option = hs_option_find(name);

	return server_option(host, name) || (option && option->kind != HS_OPTION_USERS);
}

/* False: the error is written. */
static bool check_names(const struct hs_host *host, const struct hs_op *op, struct hs_reply *reply)
{
	for (size_t i = 2; i < op->argc; i += 2) {
		const char *renamed = hs_option_renamed(op->argv[i]);

		if (i + 1 < op->argc && may_name(host, op->argv[i]))
			continue;
		if (renamed) {
			hs_reply_errorf(reply, "ERR option '%.*s' is now called '%s'",
					(int)op->argv[i].len, op->argv[i].data, renamed);
			return false;
		}
		hs_reply_errorf(reply,
				"ERR Unknown option or number of arguments for CONFIG SET - '%.*s'",
				(int)op->argv[i].len, op->argv[i].data);
		return false;
	}
	return true;
}

/* CONFIG SET of options of the servers. NULL: the engine may pass it on; else the reason to refuse. */
static const char *refuse_servers_set(const struct hs_host *host, const struct hs_op *op,
				      const char **named)
{
	const struct hs_engine_option *option;

	*named = "";
	for (size_t i = 2; i < op->argc; i += 2) {
		option = server_option(host, op->argv[i]);
		if (!option)
			return "options of the servers and options of heatsink cannot be set with "
			       "one "
			       "command";
		*named = option->name;
		if (!option->settable)
			return "can't set immutable config";
		if (named_before(op, i, option->name))
			return "duplicate parameter";
	}
	return NULL;
}

static bool names_servers(const struct hs_host *host, const struct hs_op *op)
{
	for (size_t i = 2; i < op->argc; i += 2) {
		if (server_option(host, op->argv[i]))
			return true;
	}
	return false;
}

static void config_set_servers(struct hs_host *host, struct hs_op *op, struct hs_reply *reply)
{
	const char *named, *why = refuse_servers_set(host, op, &named);

	if (why) {
		reply_set_failed(reply, named, why);
		return;
	}
	hs_audit_log(host, op, HS_LIT("")); /* first: the engine takes the op */
	reply->out = NULL;
	host->engine->calls->config(host->engine, op, 0);
}

/* All or nothing, as in Redis 7: the pairs are set on a copy first. */
static void config_set(struct hs_host *host, const struct hs_op *op, struct hs_reply *reply)
{
	struct hs_options changed;
	struct hs_tls_context *context = NULL;
	const char *failed = NULL;
	char why[640] = "";

	hs_options_copy(&changed, host->options);
	for (size_t i = 2; i + 1 < op->argc && !failed; i += 2) {
		const struct hs_option *option = hs_option_find(op->argv[i]);

		if (named_before(op, i, option->name)) {
			failed = option->name;
			snprintf(why, sizeof why, "duplicate parameter");
		} else if (!option->live && option->kind != HS_OPTION_FIXED) {
			failed = option->name;
			snprintf(why, sizeof why, "can't set immutable config");
		} else if (hs_option_set(&changed, option, op->argv[i + 1], why, sizeof why) < 0) {
			failed = option->name;
		} else if (strcmp(option->name, "requirepass") == 0) {
			hs_options_set_default_password(&changed);
		}
	}
	if (!failed && hs_options_check(&changed, why, sizeof why) < 0)
		failed = hs_option_find(op->argv[2])->name;
	if (!failed && host->tls && named_for_tls(op) &&
	    hs_tls_options_read(&changed, &context, why, sizeof why) < 0)
		failed = named_for_tls(op);
	if (failed) {
		hs_options_deinit(&changed);
		reply_set_failed(reply, failed, why);
		return;
	}
	use_context(host, context);
	swap_options(host, &changed);
	hs_reply_ok(reply);
}

void hs_host_config_set(struct hs_host *host, struct hs_op *op, struct hs_reply *reply)
{
	if (!check_names(host, op, reply))
		return;
	if (names_servers(host, op))
		config_set_servers(host, op, reply);
	else
		config_set(host, op, reply);
}

void hs_host_config_rewrite(struct hs_host *host, struct hs_op *op, struct hs_reply *reply)
{
	char error[512];

	(void)op;
	if (host->options->config[0] == '\0')
		hs_reply_error(reply, "ERR The server is running without a config file");
	else if (hs_options_rewrite(host->options, error, sizeof error) < 0)
		hs_reply_errorf(reply, "ERR %s", error);
	else
		hs_reply_ok(reply);
}

void hs_host_config_resetstat(struct hs_host *host, struct hs_op *op, struct hs_reply *reply)
{
	struct hs_engine_stats engine;

	(void)op;
	host->engine->calls->stats(host->engine, &engine);
	hs_totals_read(host, &engine, &host->baseline);
	hs_reply_ok(reply);
}

/* Reads the options as a restart would. The caller deinits `fresh`, also after an error. */
static int read_again(struct hs_host *host, struct hs_options *fresh,
		      struct hs_tls_context **context, char *error, size_t error_size)
{
	int status;

	hs_options_init(fresh);
	status = hs_options_load(fresh, host->options->config, error, error_size);
	if (status == 0)
		status = hs_options_parse(fresh, host->flags_count, host->flags, error, error_size);
	if (status == 0)
		status = hs_options_check(fresh, error, error_size);
	/* The file may have another `bind`, which takes effect only after a restart: its users must also be safe
	 * at the addresses where this process listens. */
	if (status == 0)
		status = hs_options_check_users(host->options, fresh, error, error_size);
	if (status == 0 && host->tls)
		status = hs_tls_options_read(fresh, context, error, error_size);
	return status;
}

/* Takes over one changed option and returns its name for the log. Users and rules become those of the file: changes
 * by ACL SETUSER or HEAT RULE that CONFIG REWRITE did not write are lost. */
static const char *take_option(const struct hs_options *fresh, const struct hs_option *option,
			       struct hs_options *changed)
{
	struct hs_buf value = {0};
	char error[512];
	int status;

	if (option->kind == HS_OPTION_USERS) {
		hs_options_set_users(changed, hs_acl_ref(fresh->users));
		return "users";
	}
	if (option->kind == HS_OPTION_RULES) {
		hs_options_set_rules(changed, hs_rules_renumber(fresh->rules, changed->rules));
		return "rules";
	}
	hs_option_format(fresh, option, &value);
	status = hs_option_set(changed, option, hs_buf_bytes(&value), error, sizeof error);
	hs_check(status == 0); /* it was set from this text before */
	hs_buf_deinit(&value);
	return option->name;
}

/* Takes over options that may change while running, and logs all differences. */
static void take_over(struct hs_host *host, const struct hs_options *fresh,
		      struct hs_options *changed)
{
	for (size_t i = 0; i < hs_option_count; i++) {
		const struct hs_option *option = &hs_option_table[i];

		if (hs_option_same(host->options, fresh, option))
			continue;
		if (option->live)
			hs_log(host->log, HS_LOG_INFO, "SIGHUP: %s changed",
			       take_option(fresh, option, changed));
		else
			hs_log(host->log, HS_LOG_WARN,
			       "SIGHUP: %s differs in the file, but takes effect only after a "
			       "restart",
			       option->name);
	}
}

/* SIGHUP without a configuration file reloads the certificates only. */
static void reload_certificates(struct hs_host *host)
{
	struct hs_tls_context *context = NULL;
	char error[640];

	if (!host->tls) {
		hs_log(host->log, HS_LOG_WARN,
		       "SIGHUP: nothing to reload: started without a configuration file "
		       "(--config)");
	} else if (hs_tls_options_read(host->options, &context, error, sizeof error) < 0) {
		hs_log(host->log, HS_LOG_ERROR, "SIGHUP: nothing changed: %s", error);
	} else {
		use_context(host, context);
		hs_host_publish(host);
	}
}

void hs_host_reload(struct hs_host *host)
{
	struct hs_options changed, fresh;
	struct hs_tls_context *context = NULL;
	char error[1024];

	if (host->options->config[0] == '\0') {
		reload_certificates(host);
		return;
	}
	if (read_again(host, &fresh, &context, error, sizeof error) < 0) {
		hs_log(host->log, HS_LOG_ERROR, "SIGHUP: nothing changed: %s", error);
		hs_options_deinit(&fresh);
		return;
	}
	hs_options_copy(&changed, host->options);
	take_over(host, &fresh, &changed);
	use_context(host, context);
	swap_options(host, &changed);
	hs_log(host->log, HS_LOG_INFO, "SIGHUP: reloaded %s", host->options->config);
	hs_options_deinit(&fresh);
}

void hs_host_shutdown(struct hs_host *host, struct hs_op *op, struct hs_reply *reply)
{
	bool save = false, nosave = false, abort_it = false, known = true;

	for (size_t i = 1; i < op->argc; i++) {
		struct hs_bytes word = op->argv[i];

		if (hs_bytes_is_word(word, "save"))
			save = true;
		else if (hs_bytes_is_word(word, "nosave"))
			nosave = true;
		else if (hs_bytes_is_word(word, "abort"))
			abort_it = true;
		else if (!hs_bytes_is_word(word, "now") && !hs_bytes_is_word(word, "force"))
			known = false;
	}
	if (!known || (save && nosave) || (abort_it && op->argc > 2))
		hs_reply_error(reply, "ERR syntax error");
	else if (abort_it)
		hs_reply_error(reply, "ERR No shutdown in progress.");
	else
		/* No reply, as in Redis: the connection closes at the end. */
		host->stop(host->context);
}

static void reply_info(struct hs_host *host, const struct hs_op *op, struct hs_reply *reply)
{
	struct hs_buf text = {0};

	hs_info_compose(host, op->argc, op->argv, &text);
	hs_reply_verbatim(reply, hs_buf_bytes(&text));
	hs_buf_deinit(&text);
}

/* In front of servers, INFO keyspace must include all writes acknowledged before it: true if the request waits until
 * the servers have been asked. */
static bool wait_for_recount(struct hs_host *host, struct hs_op *op)
{
	struct hs_op **end =
		host->info_waiting ? &host->info_waiting_last->next : &host->info_waiting;

	if (!host->engine->calls->recount || !hs_info_asks_keyspace(op->argc, op->argv))
		return false;
	*end = op;
	host->info_waiting_last = op;
	op->engine_mark = host->engine->calls->recount(host->engine);
	return true;
}

void hs_host_answer_counted(struct hs_host *host, bool all)
{
	uint64_t recounted = atomic_load(&host->recounted);

	while (host->info_waiting && (all || host->info_waiting->engine_mark <= recounted)) {
		struct hs_op *op = host->info_waiting;
		struct hs_reply reply = {.out = op->out, .resp = op->resp};

		host->info_waiting = op->next;
		op->next = NULL;
		reply_info(host, op, &reply);
		hs_worker_complete(&host->workers[op->worker], op);
	}
}

void hs_host_info(struct hs_host *host, struct hs_op *op, struct hs_reply *reply)
{
	if (wait_for_recount(host, op))
		reply->out = NULL;
	else
		reply_info(host, op, reply);
}

static hs_host_run *const functions[HS_CMD_IDS] = {
#define HOST(function) function
#define ROW(identifier, function, ...) [HS_CMD_ID_##identifier] = function,
#include "command/rows.def"
};

bool hs_host_answer(struct hs_host *host, struct hs_op *op)
{
	struct hs_reply reply = {.out = op->out, .resp = op->resp};
	size_t start = op->out->len;

	functions[op->command->id](host, op, &reply);
	if (!reply.out)
		return false;
	if (op->out->len > start) /* SHUTDOWN has no reply */
		hs_audit_log(host, op,
			     (struct hs_bytes){op->out->data + start, op->out->len - start});
	return true;
}
