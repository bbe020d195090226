/* INFO: gathers the values and writes the requested sections. Fields are the rows of info_rows.c and of the counter
 * tables (totals.h); sections that are lists (commandstats, keyspace, rules) have a function each. */
#include "serve/info.h"

#include "serve/clock.h"
#include "serve/rule_rows.h"

#include <malloc.h>

/* mallinfo2 takes the locks of the heap: it runs no more often than this, however many clients ask for INFO. */
enum { MEMORY_US = 100000 };

static bool is_shown(const struct hs_info_facts *facts, const struct hs_counter_row *row,
		     const char *section)
{
	return row->section && strcmp(row->section, section) == 0 &&
	       (!row->engine || strcmp(row->engine, facts->host->engine->calls->name) == 0);
}

static void write_fields(const struct hs_info_facts *facts, const char *section,
			 struct hs_buf *text)
{
	const struct hs_totals *totals = &facts->totals;

	for (size_t i = 0; i < hs_info_rows_count; i++) {
		const struct hs_info_row *row = &hs_info_rows[i];

		if (!is_shown(facts, &row->row, section) ||
		    (row->shown_if && !row->shown_if(facts)))
			continue;
		hs_buf_printf(text, "%s:", row->row.name);
		row->write(facts, text);
		hs_buf_append(text, "\r\n", 2);
	}
	for (size_t i = 0; i < totals->count; i++) {
		if (is_shown(facts, totals->rows[i], section))
			hs_buf_printf(text, "%s:%llu\r\n", totals->rows[i]->name,
				      (unsigned long long)hs_counter_shown(totals->rows[i],
									   totals->values[i]));
	}
}

const char *hs_info_command_name(const struct hs_host *host, int id)
{
	const char *learned;

	if (id < HS_CMD_IDS)
		return hs_command_by_id((enum hs_command_id)id)->name;
	learned = hs_learned_name(host->learned, (unsigned)id);
	return learned ? learned : "unknown";
}

static void write_command(const struct hs_command_totals *command, struct hs_buf *text)
{
	const uint64_t *values = (const uint64_t *)command;

	for (size_t i = 0; i < hs_command_counters.count; i++) {
		const struct hs_counter_row *row = &hs_command_counters.rows[i];
		uint64_t shown = hs_counter_shown(row, values[i]);

		hs_buf_printf(text, "%s%s=%llu", i > 0 ? "," : "", row->name,
			      (unsigned long long)shown);
		if (&values[i] == &command->time_ns)
			hs_buf_printf(text, ",usec_per_call=%.2f",
				      command->calls ? (double)shown / (double)command->calls
						     : 0.0);
	}
}

static void write_commandstats(const struct hs_info_facts *facts, const char *section,
			       struct hs_buf *text)
{
	(void)section;
	for (int id = HS_CMD_ID_NONE + 1; id < HS_CMD_IDS_ALL; id++) {
		const struct hs_command_totals *command = &facts->totals.command[id];

		if (command->calls == 0 && command->rejected == 0)
			continue;
		hs_buf_printf(text, "cmdstat_%s:", hs_info_command_name(facts->host, id));
		write_command(command, text);
		hs_buf_append(text, "\r\n", 2);
	}
}

static void write_keyspace(const struct hs_info_facts *facts, const char *section,
			   struct hs_buf *text)
{
	(void)section;
	if (facts->keys > 0)
		hs_buf_printf(text, "db0:keys=%llu,expires=%llu,avg_ttl=0\r\n",
			      (unsigned long long)facts->keys, (unsigned long long)facts->expires);
}

static void write_rules(const struct hs_info_facts *facts, const char *section, struct hs_buf *text)
{
	(void)section;
	hs_rule_rows_info(facts->host, text);
}

/* clang-format off */
static const struct {
	const char *name;
	bool by_default;
	void (*write)(const struct hs_info_facts *facts, const char *section, struct hs_buf *text);
} sections[] = {
	{"Server", true, write_fields},
	{"Clients", true, write_fields},
	{"Memory", true, write_fields},
	{"Persistence", true, write_fields},
	{"Stats", true, write_fields},
	{"Replication", true, write_fields},
	{"CPU", true, write_fields},
	{"Engine", true, write_fields},
	{"Http", true, write_fields},
	{"Rules", true, write_rules},
	{"Commandstats", false, write_commandstats},
	{"Cluster", true, write_fields},
	{"Keyspace", true, write_keyspace},
};
/* clang-format on */

static void gather_heap(struct hs_host *host, uint64_t now_us)
{
	struct mallinfo2 heap;

	if (host->memory_us > 0 && now_us < host->memory_us + MEMORY_US)
		return;
	heap = mallinfo2();
	host->memory_us = now_us;
	host->memory_bytes = heap.uordblks + heap.hblkhd;
	if (host->memory_bytes > host->peak_memory_bytes)
		host->peak_memory_bytes = host->memory_bytes;
}

static void gather_partitions(struct hs_info_facts *facts)
{
	struct hs_engine *engine = facts->host->engine;
	uint16_t partitions = engine->calls->partitions(engine);

	for (uint16_t i = 0; i < partitions; i++) {
		struct hs_engine_partition partition;

		engine->calls->partition_stats(engine, i, &partition);
		facts->keys += partition.keys;
		facts->expires += partition.expires;
		facts->bytes_used += partition.bytes_used;
		facts->queued += partition.queued;
	}
}

void hs_info_gather(struct hs_host *host, struct hs_info_facts *facts)
{
	memset(facts, 0, sizeof *facts);
	facts->host = host;
	facts->time = hs_clock_now();
	uname(&facts->system);
	getrusage(RUSAGE_SELF, &facts->usage);
	facts->pages = hs_memory_pages();
	gather_heap(host, facts->time.mono_us);
	host->engine->calls->stats(host->engine, &facts->engine);
	hs_totals_read(host, &facts->engine, &facts->totals);
	hs_totals_subtract(&facts->totals, &host->baseline);
	gather_partitions(facts);
}

static bool wanted(size_t argc, const struct hs_bytes *argv, const char *name, bool by_default)
{
	if (argc == 1)
		return by_default;
	for (size_t i = 1; i < argc; i++) {
		if (hs_bytes_is_word(argv[i], name) || hs_bytes_is_word(argv[i], "all") ||
		    hs_bytes_is_word(argv[i], "everything") ||
		    (by_default && hs_bytes_is_word(argv[i], "default")))
			return true;
	}
	return false;
}

bool hs_info_asks_keyspace(size_t argc, const struct hs_bytes *argv)
{
	return wanted(argc, argv, "Keyspace", true);
}

void hs_info_compose(struct hs_host *host, size_t argc, const struct hs_bytes *argv,
		     struct hs_buf *text)
{
	struct hs_info_facts facts;

	hs_info_gather(host, &facts);
	for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
		if (!wanted(argc, argv, sections[i].name, sections[i].by_default))
			continue;
		if (text->len > 0)
			hs_buf_append(text, "\r\n", 2);
		hs_buf_printf(text, "# %s\r\n", sections[i].name);
		sections[i].write(&facts, sections[i].name, text);
	}
}
