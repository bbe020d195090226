#include "upstream/driver.h"

static void on_up(void *context, int64_t server_id)
{
	struct hs_upstream *upstream = context;
	struct hs_upstream_driver *driver = upstream->driver;

	upstream->server_id = server_id;
	driver->up(driver->context, upstream);
}

static void on_down(void *context, const char *why)
{
	struct hs_upstream *upstream = context;
	struct hs_upstream_driver *driver = upstream->driver;

	upstream->io = NULL; /* it has gone by itself */
	driver->down(driver->context, upstream, why);
}

static char *on_room(void *context, size_t *room)
{
	return hs_upstream_room(context, room);
}

static void on_receive(void *context, const char *data, size_t len)
{
	struct hs_upstream *upstream = context;
	struct hs_upstream_driver *driver = upstream->driver;

	driver->receive(driver->context, upstream, data, len);
}

static const struct hs_conn_calls conn_calls = {
	.up = on_up,
	.down = on_down,
	.room = on_room,
	.receive = on_receive,
};

void hs_upstream_driver_open(struct hs_upstream_driver *driver, struct hs_upstream *upstream,
			     const char *host, uint16_t port, const char *expected_id)
{
	struct hs_conn_options options = {
		.loop = driver->loop,
		.identity = driver->identity,
		.host = host,
		.port = port,
		.resp = upstream->resp,
		.expected_id = expected_id,
		.calls = &conn_calls,
		.context = upstream,
		.buffer = driver->buffer,
	};

	upstream->driver = driver;
	upstream->io = hs_conn_open(&options);
}

void hs_upstream_driver_close(struct hs_upstream *upstream)
{
	struct hs_conn *conn = upstream->io;

	upstream->io = NULL;
	hs_conn_close(&conn);
}

void hs_upstream_driver_send(struct hs_upstream *upstream)
{
	hs_conn_send(upstream->io, &upstream->out, &upstream->sent);
}
