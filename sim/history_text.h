/* A history as text that can be read back: `storm --verify` writes it when no order explains a window of operations,
 * and `storm --check-history` reads it. One line for each operation:
 *
 *     KIND client=N more=N asked=N answered=N|never asked_us=N answered_us=N argument=N ttl_ms=N answer=N flags=WORDS
 *
 * Lines that begin with # are for people. The module opens no files: the caller reads and writes them. Bad input is
 * refused with the number of its line. */
#ifndef HS_SIM_HISTORY_TEXT_H
#define HS_SIM_HISTORY_TEXT_H

#include "base/check.h"
#include "sim/history.h"

/* Upper bound of the operations that are read; a window of `storm` is smaller. */
enum { HS_SIM_HISTORY_TEXT_OPS_MAX = 1 << 20 };

/* Appends one line for each operation. All operations must be on key 0. */
void hs_sim_history_write(const struct hs_sim_history *history, struct hs_buf *text);
/* Adds the operations in `text` to the history. HS_EINVAL: *line is the first wrong line. HS_ELIMIT: too many
 * operations. */
int hs_sim_history_read(struct hs_sim_history *history, struct hs_bytes text,
			size_t *line) HS_MUSTCHECK;

#endif
