#include "serve/listen.h"

#include "base/address.h"
#include "base/err.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int bound_port(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} bound = {.any = {0}};
	socklen_t len = sizeof bound;

	getsockname(fd, &bound.any, &len);
	return ntohs(bound.any.sa_family == AF_INET6 ? bound.v6.sin6_port : bound.v4.sin_port);
}

int hs_listen(const char *address, int *port, int backlog, char *error, size_t error_size)
{
	struct addrinfo hints = {
		.ai_socktype = SOCK_STREAM,
		.ai_flags = AI_PASSIVE | AI_NUMERICSERV,
	};
	struct addrinfo *found = NULL;
	char service[16], text[HS_ADDRESS_TEXT_MAX];
	int one = 1, fd;
	int status;

	snprintf(service, sizeof service, "%d", *port);
	status = getaddrinfo(address, service, &hints, &found);
	if (status != 0)
		return hs_err_set(HS_EIO, error, error_size, "cannot listen on %s: %s", address,
				  gai_strerror(status));
	fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
		if (found->ai_family == AF_INET6)
			setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
	}
	if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) != 0 ||
	    listen(fd, backlog) != 0) {
		status = errno == EADDRINUSE ? HS_EBUSY : HS_EIO;
		snprintf(error, error_size, "cannot listen on %s: %s",
			 hs_address_text(address, (unsigned)*port, text, sizeof text),
			 strerror(errno));
		if (fd >= 0)
			close(fd);
		freeaddrinfo(found);
		return status;
	}
	freeaddrinfo(found);
	*port = bound_port(fd);
	return fd;
}
