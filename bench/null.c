/* A server that does no work: the upper bound of this machine. It reads bytes from its clients and answers a constant
 * for every request in them, with the same system calls as any server: wait, read, write. The difference of a real
 * server to it is the real server's own work. With several threads it distributes connections to them in turn, as a
 * server with several workers does. It runs until it is killed. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	EVENTS = 1024,
	INPUT_BYTES = 64 * 1024,
	REPLIES = 1024,
	THREADS_MAX = 64,
	VALUE_BYTES_MAX = 64 * 1024
};

struct replies {
	char *bytes;	/* REPLIES copies of the reply */
	size_t one_len; /* bytes of one reply */
};

/* A thread with its connections and their reply. The first thread also accepts connections. */
struct thread {
	int epoll;
	int listener; /* -1: not the accepting thread */
	const struct replies *replies;
	struct thread *threads; /* all of them */
	int threads_count;
};

static void die(const char *what)
{
	fprintf(stderr, "null: %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct replies compose(size_t value_bytes)
{
	struct replies replies;
	char *one = malloc(value_bytes + 32);
	int head = value_bytes ? sprintf(one, "$%zu\r\n", value_bytes) : sprintf(one, "+OK");

	memset(one + head, 'x', value_bytes);
	memcpy(one + (size_t)head + value_bytes, "\r\n", 2);
	replies.one_len = (size_t)head + value_bytes + 2;
	replies.bytes = malloc(replies.one_len * REPLIES);
	for (size_t i = 0; i < REPLIES; i++)
		memcpy(replies.bytes + i * replies.one_len, one, replies.one_len);
	free(one);
	return replies;
}

static int listen_on(int port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((in_port_t)port)};
	socklen_t len = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (bind(fd, (struct sockaddr *)&address, len) < 0 || listen(fd, 511) < 0)
		die("listen");
	getsockname(fd, (struct sockaddr *)&address, &len);
	printf("listening on 127.0.0.1:%d\n", ntohs(address.sin_port));
	fflush(stdout);
	return fd;
}

static void watch(int epoll, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		die("epoll_ctl");
}

/* Sends a reply for each request in the bytes. The socket is blocking: a client that reads all replies before it
 * sends more never makes it wait. */
static int answer(int fd, const char *bytes, size_t len, const struct replies *replies)
{
	size_t requests = 0;

	for (size_t i = 0; i < len; i++)
		requests += bytes[i] == '*';
	while (requests) {
		size_t now = requests < REPLIES ? requests : REPLIES;
		size_t left = now * replies->one_len;
		const char *at = replies->bytes;

		while (left) {
			ssize_t sent = send(fd, at, left, MSG_NOSIGNAL);

			if (sent <= 0)
				return -1;
			at += sent;
			left -= (size_t)sent;
		}
		requests -= now;
	}
	return 0;
}

static void take_client(const struct thread *thread, int number)
{
	int fd = accept(thread->listener, NULL, NULL), on = 1;

	if (fd < 0)
		return;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	watch(thread->threads[number % thread->threads_count].epoll, fd);
}

static void *serve(void *argument)
{
	const struct thread *thread = argument;
	struct epoll_event events[EVENTS];
	char *input = malloc(INPUT_BYTES);

	for (int clients = 0;;) {
		int ready = epoll_wait(thread->epoll, events, EVENTS, -1);

		for (int i = 0; i < ready; i++) {
			int fd = events[i].data.fd;

			if (fd == thread->listener) {
				take_client(thread, clients++);
				continue;
			}

			ssize_t got = recv(fd, input, INPUT_BYTES, MSG_DONTWAIT);

			if ((got < 0 && errno == EAGAIN) ||
			    (got > 0 && answer(fd, input, (size_t)got, thread->replies) == 0))
				continue;
			close(fd);
		}
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static struct thread threads[THREADS_MAX];
	int port = argc > 1 ? atoi(argv[1]) : 0, value_bytes = argc > 2 ? atoi(argv[2]) : 0;
	int count = argc > 3 ? atoi(argv[3]) : 1;

	if (value_bytes < 0 || value_bytes > VALUE_BYTES_MAX || count < 1 || count > THREADS_MAX) {
		fprintf(stderr, "null: values have 0 to %d bytes, and there are 1 to %d threads\n",
			VALUE_BYTES_MAX, THREADS_MAX);
		return 1;
	}

	struct replies replies = compose((size_t)value_bytes);
	int listener = listen_on(port);

	for (int i = 0; i < count; i++)
		threads[i] = (struct thread){.epoll = epoll_create1(EPOLL_CLOEXEC),
					     .listener = i == 0 ? listener : -1,
					     .replies = &replies,
					     .threads = threads,
					     .threads_count = count};
	watch(threads[0].epoll, listener);
	for (int i = 1; i < count; i++) {
		pthread_t unused;

		if (pthread_create(&unused, NULL, serve, &threads[i]) != 0)
			die("pthread_create");
	}
	serve(&threads[0]);
}
