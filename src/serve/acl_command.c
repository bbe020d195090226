/* ACL SETUSER, DELUSER and GENPASS. Users are options: a change creates a new set, and every worker is handed the set
 * before the reply goes out. */
#include "serve/host.h"

#include "base/num.h"
#include "local/local.h"
#include "wire/reply.h"

#include <stdio.h>
#include <sys/random.h>

enum { GENPASS_BITS_DEFAULT = 256, GENPASS_BITS_MAX = 4096 };

static void reply_wrong(const struct hs_acl_error *wrong, struct hs_reply *reply)
{
	if (wrong->unmatched)
		hs_reply_errorf(reply,
				"ERR Unmatched parenthesis in acl selector starting at '%s'.",
				wrong->word);
	else
		hs_reply_errorf(reply, "ERR Error in ACL SETUSER modifier '%s': %s", wrong->word,
				wrong->why);
}

void hs_host_acl_setuser(struct hs_host *host, struct hs_op *op, struct hs_reply *reply)
{
	struct hs_acl *acl = hs_options_acl(host->options);
	struct hs_bytes name = op->argv[2];
	const struct hs_acl_user *old = hs_acl_find(acl, name);
	struct hs_acl_rules rules = {
		.count = op->argc - 3,
		.words = op->argv + 3,
		.learned = atomic_load(&host->learned),
	};
	struct hs_acl_error wrong;
	struct hs_acl_user *user = NULL;
	char why[512];

	rules.any_command = !rules.learned && hs_options_any_command(host->options);
	if (!hs_acl_name_fits(name)) {
		hs_reply_error(reply, "ERR Usernames can't contain spaces or null characters");
	} else if (!old && hs_acl_count(acl) >= HS_ACL_USERS_MAX) {
		hs_reply_errorf(reply, "ERR at most %d users are possible", HS_ACL_USERS_MAX);
	} else {
		user = hs_acl_user_change(old, name, &rules, &wrong);
		if (!user)
			reply_wrong(&wrong, reply);
	}
	hs_acl_unref(&acl);
	if (user && hs_options_check_user(host->options, user, why, sizeof why) < 0) {
		hs_reply_errorf(reply, "ERR ACL SETUSER refused by protected mode: %s", why);
		hs_acl_user_unref(&user);
	}
	if (!user)
		return;
	hs_options_put_user(host->options, user);
	hs_host_publish(host);
	hs_reply_ok(reply);
}

void hs_host_acl_deluser(struct hs_host *host, struct hs_op *op, struct hs_reply *reply)
{
	struct hs_options *options = host->options;
	int64_t deleted = 0;

	for (size_t i = 2; i < op->argc; i++) {
		if (hs_bytes_equal(op->argv[i], HS_LIT("default"))) {
			hs_reply_error(reply, "ERR The 'default' user cannot be removed");
			return;
		}
	}
	for (size_t i = 2; i < op->argc; i++) {
		if (!hs_acl_find(options->users, op->argv[i]))
			continue;
		hs_options_set_users(options, hs_acl_without(options->users, op->argv[i]));
		deleted++;
	}
	if (deleted > 0)
		hs_host_publish(host);
	hs_reply_int(reply, deleted);
}

void hs_host_acl_genpass(struct hs_host *host, struct hs_op *op, struct hs_reply *reply)
{
	unsigned char random[GENPASS_BITS_MAX / 8];
	char text[sizeof random * 2 + 1];
	int64_t bits = GENPASS_BITS_DEFAULT;

	(void)host;
	if (op->argc > 3) {
		hs_local_reply_arity("ACL", op->argv[1], reply);
		return;
	}
	if (op->argc == 3 && !hs_num_parse_int(op->argv[2], &bits)) {
		hs_reply_error(reply, "ERR value is not an integer or out of range");
		return;
	}
	if (bits <= 0 || bits > GENPASS_BITS_MAX) {
		hs_reply_errorf(
			reply,
			"ERR ACL GENPASS argument must be the number of bits for the output "
			"password, a positive number up to %d",
			GENPASS_BITS_MAX);
		return;
	}
	/* getrandom returns up to 256 bytes in one call, never fewer. */
	for (size_t at = 0; at < sizeof random; at += 256)
		hs_check(getrandom(random + at, 256, 0) == 256);
	for (size_t i = 0; i < sizeof random; i++)
		snprintf(text + 2 * i, 3, "%02x", random[i]);
	hs_reply_bulk(reply, (struct hs_bytes){text, (size_t)(bits + 3) / 4});
}
