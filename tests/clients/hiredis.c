/* A program as users of hiredis write it: it connects to the server at the given port, sends commands in the blocking
 * way, in a pipeline and through callbacks on a libuv loop, and compares every reply. On the first wrong reply it
 * prints the reason and exits with 1; else it exits with 0 silently. test_one_node.py compiles and runs it. */
#include <hiredis/adapters/libuv.h>
#include <hiredis/hiredis.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIPELINED = 2000, CALLBACKS = 500 };

static void want(bool right, const char *what)
{
	if (right)
		return;
	fprintf(stderr, "%s\n", what);
	exit(1);
}

static redisContext *connect_to(int port)
{
	redisContext *context = redisConnect("127.0.0.1", port);

	want(context && !context->err, "cannot connect");
	return context;
}

static bool is_text(const redisReply *reply, const char *text, size_t len)
{
	return reply && (reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS) &&
	       (size_t)reply->len == len && memcmp(reply->str, text, len) == 0;
}

static void ask_and_wait(redisContext *context)
{
	static const char binary[] = "a\0b\r\n\xff";
	redisReply *reply = redisCommand(context, "SET %s %b", "blob", binary, sizeof binary);

	want(is_text(reply, "OK", 2), "SET is not OK");
	freeReplyObject(reply);
	reply = redisCommand(context, "GET blob");
	want(is_text(reply, binary, sizeof binary), "GET answers another value");
	freeReplyObject(reply);
	reply = redisCommand(context, "GET %s", "");
	want(reply && reply->type == REDIS_REPLY_NIL, "an absent key is not nil");
	freeReplyObject(reply);
	reply = redisCommand(context, "INCR blob");
	want(reply && reply->type == REDIS_REPLY_ERROR, "INCR of no number is no error");
	freeReplyObject(reply);
	reply = redisCommand(context, "MGET blob nil");
	want(reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
		     is_text(reply->element[0], binary, sizeof binary) &&
		     reply->element[1]->type == REDIS_REPLY_NIL,
	     "MGET answers another array");
	freeReplyObject(reply);
}

static void ask_where_slots_are(redisContext *context, int port)
{
	redisReply *reply = redisCommand(context, "CLUSTER SLOTS");
	redisReply *range, *node;

	want(reply && reply->type == REDIS_REPLY_ARRAY && reply->elements == 1, "not one range");
	range = reply->element[0];
	want(range->elements == 3 && range->element[0]->integer == 0 &&
		     range->element[1]->integer == 16383,
	     "the range is not all slots");
	node = range->element[2];
	want(is_text(node->element[0], "127.0.0.1", 9) && node->element[1]->integer == port &&
		     node->element[2]->len == 40,
	     "the node is another");
	freeReplyObject(reply);
}

static void ask_in_a_pipeline(redisContext *context)
{
	redisReply *reply;

	for (int i = 0; i < PIPELINED; i++)
		redisAppendCommand(context, "INCR {pipe}counter");
	for (int i = 0; i < PIPELINED; i++) {
		want(redisGetReply(context, (void **)&reply) == REDIS_OK &&
			     reply->type == REDIS_REPLY_INTEGER && reply->integer == i + 1,
		     "pipelined increments are not in order");
		freeReplyObject(reply);
	}
	redisAppendCommand(context, "MULTI");
	redisAppendCommand(context, "SET {pipe}a 1");
	redisAppendCommand(context, "INCR {pipe}a");
	redisAppendCommand(context, "EXEC");
	for (int i = 0; i < 4; i++) {
		want(redisGetReply(context, (void **)&reply) == REDIS_OK, "no reply");
		if (i == 3)
			want(reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
				     reply->element[1]->integer == 2,
			     "EXEC answers another array");
		freeReplyObject(reply);
	}
}

static void on_reply(redisAsyncContext *context, void *answer, void *heard)
{
	const redisReply *reply = answer;
	int *count = heard;

	want(reply && reply->type == REDIS_REPLY_INTEGER && reply->integer == *count + 1,
	     "callbacks are not in order");
	if (++*count == CALLBACKS)
		redisAsyncDisconnect(context);
}

static void ask_on_a_loop(int port)
{
	redisAsyncContext *context = redisAsyncConnect("127.0.0.1", port);
	uv_loop_t loop;
	int heard = 0;

	want(context && !context->err, "cannot connect");
	uv_loop_init(&loop);
	redisLibuvAttach(context, &loop);
	for (int i = 0; i < CALLBACKS; i++)
		redisAsyncCommand(context, on_reply, &heard, "INCR callbacks");
	uv_run(&loop, UV_RUN_DEFAULT);
	want(heard == CALLBACKS, "callbacks are missing");
	uv_loop_close(&loop);
}

int main(int argc, char **argv)
{
	int port = argc == 2 ? atoi(argv[1]) : 0;
	redisContext *context = connect_to(port);

	ask_and_wait(context);
	ask_where_slots_are(context, port);
	ask_in_a_pipeline(context);
	redisFree(context);
	ask_on_a_loop(port);
	return 0;
}
