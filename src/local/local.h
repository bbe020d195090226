/* Commands that need no engine: what concerns the connection, the users, the table of commands, or all
 * workers. commands.c has the table that the core gets (core/commands.h).
 *
 *     commands.c  the table; PING, ECHO, TIME, COMMAND and other small ones
 *     hello.c     HELLO, AUTH, RESET
 *     client.c    CLIENT
 *     acl_command.c  ACL, as far as it only reads
 *     cluster.c   CLUSTER, READONLY
 *     workers.c   commands to which every worker contributes */
#ifndef HS_LOCAL_LOCAL_H
#define HS_LOCAL_LOCAL_H

#include "core/commands.h"
#include "core/state.h"

extern const struct hs_core_commands hs_commands;

hs_local_run hs_local_hello, hs_local_auth, hs_local_reset;
hs_local_run hs_local_client_info, hs_local_client_reply, hs_local_client_setname,
	hs_local_client_getname, hs_local_client_id, hs_local_client_no_evict,
	hs_local_client_no_touch, hs_local_client_setinfo;
hs_local_run hs_local_cluster, hs_local_readonly;
hs_local_run hs_local_acl_whoami, hs_local_acl_users, hs_local_acl_getuser, hs_local_acl_cat,
	hs_local_acl_dryrun, hs_local_acl_file;

/* acl_command.c: ACL with the wrong number of arguments. */
void hs_acl_reply_arity(const struct hs_bytes *argv, struct hs_reply *reply);

/* workers.c: see struct hs_core_commands. */
bool hs_workers_check(const struct hs_core *core, const struct hs_call *call,
		      struct hs_reply *reply);
void hs_workers_part(struct hs_core *core, struct hs_op *op);
void hs_workers_merge(const struct hs_core *core, struct hs_request *request,
		      struct hs_reply *reply);

/* client.c: which sessions CLIENT LIST and CLIENT KILL mean. */
enum hs_client_type {
	HS_CLIENT_ANY,
	HS_CLIENT_NORMAL,
	HS_CLIENT_PUBSUB, /* listens to something */
	HS_CLIENT_NONE,	  /* a type of which heatsink has no clients */
};

struct hs_client_filter {
	const struct hs_bytes *ids; /* LIST ID: arguments that are numbers */
	size_t ids_count;
	struct hs_bytes address; /* empty: any */
	struct hs_bytes local_address;
	struct hs_bytes user;
	uint64_t id;	  /* 0: any */
	uint64_t skip_id; /* 0: none */
	enum hs_client_type type;
	bool old_form; /* CLIENT KILL ip:port */
};
/* False: the error is written. `reply` may be NULL when the arguments were checked before. */
bool hs_client_parse_list(struct hs_client_filter *filter, size_t argc, const struct hs_bytes *argv,
			  struct hs_reply *reply);
bool hs_client_parse_kill(const struct hs_core *core, struct hs_client_filter *filter, size_t argc,
			  const struct hs_bytes *argv, uint64_t caller, struct hs_reply *reply);
/* One line of CLIENT LIST. */
void hs_client_describe(const struct hs_core *core, const struct hs_session *session,
			struct hs_buf *text);
/* Writes the error when a name has a space, a line break or worse in it. */
bool hs_client_name_fits(struct hs_bytes name, struct hs_reply *reply);
void hs_client_set_name(struct hs_session *session, struct hs_bytes name); /* empty: none */
void hs_client_list(struct hs_core *core, const struct hs_client_filter *filter,
		    struct hs_buf *text);
int64_t hs_client_kill(struct hs_core *core, const struct hs_client_filter *filter,
		       uint64_t caller);
/* CLIENT UNBLOCK. False: the error is written; `reply` may be NULL as above. */
bool hs_client_parse_unblock(size_t argc, const struct hs_bytes *argv, int64_t *id, bool *error,
			     struct hs_reply *reply);
bool hs_client_unblock(struct hs_core *core, int64_t id,
		       bool error); /* whether it is one of ours and waited */
/* CLIENT PAUSE. False: the error is written; `reply` may be NULL as above. */
bool hs_client_parse_pause(size_t argc, const struct hs_bytes *argv, enum hs_pause_mode *mode,
			   uint64_t *timeout_us, struct hs_reply *reply);

#endif
