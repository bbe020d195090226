/* The version of heatsink, and of the Redis that it imitates. */
#ifndef HS_BASE_VERSION_H
#define HS_BASE_VERSION_H

#define HS_VERSION "0.1.0"

/* The Redis whose replies heatsink gives; HELLO and INFO report it to clients. */
#define HS_REDIS_VERSION "7.0.15"

#endif
