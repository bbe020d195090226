/* One connection to a node as a pipeline, without the socket: requests composed into `out`, the
 * operations that wait for their replies in order, and where the reply being read stands. The flow
 * (flow.h) owns pipes and decides; the driver (conn.h) moves their bytes. One worker's thread. */
#ifndef HS_ENGINE_REDIS_PIPE_H
#define HS_ENGINE_REDIS_PIPE_H

#include "base/buf.h"
#include "base/list.h"
#include "core/op.h"
#include "wire/answer.h"

struct hs_node;
struct hs_vouch;

/* Operations in a row, linked by op->next. */
struct hs_ops {
	struct hs_op *first, *last;
	uint32_t count;
};

void hs_ops_push(struct hs_ops *ops, struct hs_op *op);
struct hs_op *hs_ops_pop(struct hs_ops *ops); /* NULL: empty */

/* Of a tracked SET: how many replies are skipped behind this one (op->engine_replies); PING's is its
 * last. */
enum {
	HS_PIPE_WRITE_EXEC,
	HS_PIPE_WRITE_EXISTS,
	HS_PIPE_WRITE_ITSELF,
	HS_PIPE_WRITE_EXISTED,
	HS_PIPE_WRITE_MULTI,
	HS_PIPE_WRITE_CACHING,
};

/* The same of a tracked read; its own reply is the last. */
enum { HS_PIPE_READ_CACHING, HS_PIPE_READ_PTTL, HS_PIPE_READ_FIRST };

/* How a blocking command is to end (CLIENT UNBLOCK). */
enum hs_unblock { HS_UNBLOCK_NO, HS_UNBLOCK_TIMEOUT, HS_UNBLOCK_ERROR };

enum hs_pipe_state { HS_PIPE_DOWN, HS_PIPE_OPENING, HS_PIPE_UP };

struct hs_pipe {
	struct hs_node *node;
	uint8_t resp; /* the dialect its replies come in; own: may change */
	enum hs_pipe_state state;
	bool own;	 /* serves one client for a while: WATCH, BLPOP */
	bool closing;	 /* the flow wants it closed with the next flush */
	bool blameless;	 /* and that is no fault of the node's */
	bool idle;	 /* own: nobody's now */
	bool asking;	 /* own: what waits is to be asked for */
	bool unblocked;	 /* own: the server was, or will be, told to end a wait on it */
	bool unproven;	 /* own: it was not asked which node it leads to, nor for a database */
	uint8_t unblock; /* own: enum hs_unblock, until the server has done it */
	bool unblocking; /* own: the server is being told */
	uint32_t unblock_tries;
	struct hs_link dirty; /* in the flow's list while it has bytes to send or is to be closed */
	struct hs_ops waiting; /* not composed yet */
	struct hs_ops flying;  /* composed; their replies come in this order */
	struct hs_buf out;     /* what the driver has not taken yet */
	uint64_t composed;     /* bytes ever, on this connection */
	uint64_t sent;	       /* of them in the kernel's hands; the driver counts */
	struct hs_buf partial; /* the beginning of a reply, and its scan */
	struct hs_answer_scan scan;
	uint64_t opened_us; /* or last used, of one that is kept for the next */
	uint64_t moved_us;  /* when more came of something long, or went: 0: nothing is long */
	uint64_t sent_seen; /* `sent`, when it was last looked at */
	const char *doom;   /* why it is closed */
	int64_t server_id;  /* own: the connection's number at the server; 0: not known */

	/* Of its own clients: who watches through it. */
	uint64_t watcher;
	struct hs_link owns; /* in the flow's list of those in use, or its node's of those idle */

	/* Of the one that vouches for what is read on it (fill.c). */
	bool fill;
	bool tracking;		/* the server has said that it tells of changes */
	bool proving;		/* our own PING is under way */
	struct hs_vouch *vouch; /* NULL: never wanted yet */
	uint32_t failures;	/* in a row */
	uint64_t open_at_us;	/* not before */
	uint64_t used_us;	/* when last */
	struct hs_buf proof;	/* in a cluster: the request that proves; empty: none */
	bool proof_used;	/* take another key for the next */
	/* Told of its key: behind EXEC of the write whose turn it is, behind PTTL of the read. */
	uint32_t changes_behind;

	bool replica; /* for what a replica may answer (replica.c); `proving`, `used_us` are its, too */

	void *driver, *io; /* the driver's */
};

void hs_pipe_init(struct hs_pipe *pipe, struct hs_node *node, uint8_t resp, bool own);
void hs_pipe_deinit(struct hs_pipe *pipe); /* nothing waits or flies any more */
void hs_pipe_reset(struct hs_pipe *pipe);  /* a new connection begins */

/* Where the next bytes may be read to, so that a long reply is copied once; {NULL, 0}: anywhere. */
char *hs_pipe_room(struct hs_pipe *pipe, size_t *room);

/* Writes the request of an operation behind what is there, and has it fly. With `asking` the node
 * is told that it is to answer for a slot that is just moving there. On a pipe that vouches an
 * operation that is to be tracked is written so that it is. */
void hs_pipe_compose(struct hs_pipe *pipe, struct hs_op *op, bool asking);

/* A transaction's reply with the elements that needed no engine put in their places. False: what
 * came is no such reply. */
bool hs_pipe_splice(const struct hs_op *op, struct hs_bytes reply, struct hs_buf *out);

#endif
