/* Texts of scripts by their SHA-1 digest. A server may lose its scripts, by a failover or a restart, and a new
 * node has none. Then EVALSHA is sent again as EVAL with the text, and the client does not see NOSCRIPT for a
 * script that was loaded through heatsink.
 *
 * Any worker's thread may call; a mutex protects the store. The store owns its copies of the texts. Limits: 4096
 * scripts and 64 MiB; the oldest is dropped first, and a longer script is not stored. */
#ifndef HS_ENGINE_REDIS_SCRIPTS_H
#define HS_ENGINE_REDIS_SCRIPTS_H

#include "base/buf.h"
#include "core/op.h"

#include <stdbool.h>

struct hs_scripts;

struct hs_scripts *hs_scripts_create(uint32_t workers);
void hs_scripts_destroy(struct hs_scripts **scripts);

/* Takes note of an answered operation. EVAL, EVAL_RO and SCRIPT LOAD: stores their script unless the server
 * refused it. SCRIPT FLUSH: drops all scripts. */
void hs_scripts_note(struct hs_scripts *scripts, const struct hs_op *op);

/* Appends the text of the script with this digest to `script`. `digest`: 40 hexadecimal digits, in either case.
 * False: no such script is stored. */
bool hs_scripts_find(struct hs_scripts *scripts, struct hs_bytes digest, struct hs_buf *script);

#endif
