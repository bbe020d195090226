#include "sim/once.h"

#include "base/mem.h"
#include "base/num.h"
#include "sim/cluster.h"
#include "sim/world.h"

#include <inttypes.h>

/* The value that is set or added; false: the command is idempotent, or nobody can tell. */
static bool value_of(const struct hs_sim_ran *ran, int64_t *value)
{
	struct hs_bytes name = ran->argc > 2 ? ran->argv[0] : (struct hs_bytes){"", 0};
	struct hs_bytes text = ran->argc > 2 ? ran->argv[2] : name;

	if (!hs_bytes_is_word(name, "set") && !hs_bytes_is_word(name, "setnx") &&
	    !hs_bytes_is_word(name, "getset") && !hs_bytes_is_word(name, "incrby") &&
	    !hs_bytes_is_word(name, "decrby"))
		return false;
	if (text.len > 0 && text.data[0] == 't')
		text = (struct hs_bytes){text.data + 1, text.len - 1};
	return hs_num_parse_int(text, value) && *value >= HS_SIM_VALUE_STEP &&
	       *value < HS_SIM_NOTHING;
}

void hs_sim_once_note(struct hs_sim_world *world, const struct hs_sim_ran *ran)
{
	struct hs_sim_once *once = &world->once;
	int64_t value;

	if (ran->error || !value_of(ran, &value))
		return;
	for (size_t i = 0; i < once->count; i++) {
		if (once->values[i] == value)
			hs_sim_verdict_set(&world->broken, 4,
					   "%.*s %.*s %" PRId64 " was run twice, again at node %u",
					   (int)ran->argv[0].len, ran->argv[0].data,
					   (int)ran->argv[1].len, ran->argv[1].data, value,
					   ran->node);
	}
	if (once->count == once->cap) {
		once->cap = once->cap ? 2 * once->cap : 64;
		once->values = hs_mem_realloc(once->values, once->cap * sizeof *once->values);
	}
	once->values[once->count++] = value;
}

void hs_sim_once_deinit(struct hs_sim_once *once)
{
	hs_mem_free(&once->values);
}
