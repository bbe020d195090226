/* The one place that says which version this is. */
#ifndef HS_BASE_VERSION_H
#define HS_BASE_VERSION_H

#define HS_VERSION "0.1.0"

/* The Redis whose replies ours are: what HELLO and INFO tell clients that ask. */
#define HS_REDIS_VERSION "7.0.15"

#endif
