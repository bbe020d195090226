/* The bounds on EX and PX are narrower than Redis's: a SET beyond them is not plain, so the engine judges it. */
#include "absorb/plain_set.h"

#include "base/num.h"

static const int64_t ex_max_s = 10000000000; /* about 300 years; in ms it does not overflow */
static const int64_t px_max_ms = 10000000000000;

bool hs_plain_set(size_t argc, const struct hs_bytes *argv, int64_t *expire_ms)
{
	bool seconds;
	int64_t time;

	*expire_ms = 0;
	if (argc == 3)
		return true;
	if (argc != 5)
		return false;
	seconds = hs_bytes_is_word(argv[3], "ex");
	if (!seconds && !hs_bytes_is_word(argv[3], "px"))
		return false;
	if (!hs_num_parse_int(argv[4], &time) || time <= 0 ||
	    time > (seconds ? ex_max_s : px_max_ms))
		return false;
	*expire_ms = seconds ? time * 1000 : time;
	return true;
}
