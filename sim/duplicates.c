#include "sim/duplicates.h"

#include "base/mem.h"
#include "base/num.h"
#include "sim/cluster.h"
#include "sim/world.h"

/* Where a command has its values: the index of the first one, and the distance to the next; 0: there is only one. */
static const struct row {
	const char *name;
	size_t first, step;
} rows[] = {
	{"set", 2, 0},	  {"setnx", 2, 0}, {"getset", 2, 0}, {"incrby", 2, 0}, {"decrby", 2, 0},
	{"x.swap", 2, 0}, {"mset", 2, 2},  {"x.both", 2, 0}, {"x.pair", 2, 2},
};

static const struct row *find_row(struct hs_bytes name)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		if (hs_bytes_is_word(name, rows[i].name))
			return &rows[i];
	}
	return NULL;
}

/* False: not a unique value. */
static bool read_value(struct hs_bytes text, int64_t *value)
{
	if (text.len > 0 && text.data[0] == 't')
		text = (struct hs_bytes){text.data + 1, text.len - 1};
	if (!hs_num_parse_int(text, value) || *value <= -HS_SIM_NOTHING || *value >= HS_SIM_NOTHING)
		return false;
	if (*value < 0)
		*value = -*value; /* a negative INCRBY is a DECRBY */
	return *value >= HS_SIM_VALUE_STEP;
}

static void note(struct hs_sim_world *world, const struct hs_sim_ran *ran, size_t at, int64_t value)
{
	struct hs_sim_duplicates *duplicates = &world->duplicates;

	for (size_t i = 0; i < duplicates->count; i++) {
		if (duplicates->values[i] == value)
			hs_sim_verdict_set(&world->broken, 4,
					   "%.*s %.*s %.*s was run twice, again at node %u",
					   (int)ran->argv[0].len, ran->argv[0].data,
					   (int)ran->argv[at - 1].len, ran->argv[at - 1].data,
					   (int)ran->argv[at].len, ran->argv[at].data, ran->node);
	}
	if (duplicates->count == duplicates->cap) {
		duplicates->cap = duplicates->cap ? 2 * duplicates->cap : 64;
		duplicates->values = hs_mem_realloc(duplicates->values,
						    duplicates->cap * sizeof *duplicates->values);
	}
	duplicates->values[duplicates->count++] = value;
}

void hs_sim_duplicates_note(struct hs_sim_world *world, const struct hs_sim_ran *ran)
{
	const struct row *row = ran->error || ran->argc < 3 ? NULL : find_row(ran->argv[0]);
	int64_t value;

	for (size_t at = row ? row->first : ran->argc; at < ran->argc; at += row->step) {
		if (read_value(ran->argv[at], &value))
			note(world, ran, at, value);
		if (row->step == 0)
			break;
	}
}

void hs_sim_duplicates_deinit(struct hs_sim_duplicates *duplicates)
{
	hs_mem_free(&duplicates->values);
}
