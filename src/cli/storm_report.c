/* What a run has come to: the counts added up, then printed as a table or as JSON. */
#include "cli/storm.h"

#include "base/address.h"

#include <jansson.h>

void hs_storm_counts_error(struct hs_storm_counts *counts, struct hs_bytes text)
{
	size_t len = 0;
	struct hs_storm_error *error = counts->errors;
	struct hs_storm_error *last = &counts->errors[HS_STORM_ERRORS_MAX - 1];

	while (len < text.len && text.data[len] != ' ' && len < HS_STORM_ERROR_WORD_MAX - 1)
		len++;
	counts->error_total++;
	while (error < last && error->count &&
	       (strlen(error->word) != len || memcmp(error->word, text.data, len) != 0))
		error++;
	if (error->count++)
		return;
	if (error == last)
		snprintf(error->word, sizeof error->word, "(others)");
	else
		snprintf(error->word, sizeof error->word, "%.*s", (int)len, text.data);
	hs_bytes_escape(text, error->example, sizeof error->example);
}

static void merge_errors(struct hs_storm_counts *into, const struct hs_storm_counts *from)
{
	for (int i = 0; i < HS_STORM_ERRORS_MAX; i++) {
		const struct hs_storm_error *error = &from->errors[i];
		struct hs_storm_error *to = into->errors;
		struct hs_storm_error *last = &into->errors[HS_STORM_ERRORS_MAX - 1];

		if (!error->count)
			continue;
		while (to < last && to->count && strcmp(to->word, error->word) != 0)
			to++;
		if (!to->count)
			memcpy(to, error, sizeof *to);
		else
			to->count += error->count;
	}
}

void hs_storm_counts_merge(struct hs_storm_counts *into, const struct hs_storm_counts *from)
{
	hs_histo_merge(&into->reads_ns, &from->reads_ns);
	hs_histo_merge(&into->writes_ns, &from->writes_ns);
	merge_errors(into, from);
	into->error_total += from->error_total;
#define ADD(field, text) into->field += from->field;
	HS_STORM_COUNTS(ADD)
	if (from->not_known)
		memcpy(into->not_known_name, from->not_known_name, sizeof into->not_known_name);
	if (!into->first_ns || (from->first_ns && from->first_ns < into->first_ns))
		into->first_ns = from->first_ns;
	if (from->last_ns > into->last_ns)
		into->last_ns = from->last_ns;
	if (from->trouble[0])
		memcpy(into->trouble, from->trouble, sizeof into->trouble);
}

/* ---- rows and columns ---- */

static const struct {
	const char *name;
	double share;
} percentiles[] = {{"p50", 0.5}, {"p95", 0.95}, {"p99", 0.99}, {"p99.9", 0.999}, {"max", 1}};

enum { PERCENTILES = sizeof percentiles / sizeof *percentiles };

static double per_second(const struct hs_storm_result *result, uint64_t count)
{
	return result->seconds > 0 ? (double)count / result->seconds : 0;
}

static void print_row(const struct hs_storm_result *result, FILE *out, const char *name,
		      const struct hs_histo *histo)
{
	if (!histo->count)
		return;
	fprintf(out, "%-8s %12llu %12.0f", name, (unsigned long long)histo->count,
		per_second(result, histo->count));
	for (int i = 0; i < PERCENTILES; i++)
		fprintf(out, " %9.3f", (double)hs_histo_at(histo, percentiles[i].share) / 1e6);
	fputc('\n', out);
}

static void print_trouble(const struct hs_storm_counts *counts, FILE *out)
{
	const struct {
		uint64_t count;
		const char *text;
	} lines[] = {
#define LINE(field, text) {counts->field, text},
		HS_STORM_COUNTS(LINE)};

	for (int i = 0; i < HS_STORM_ERRORS_MAX && counts->errors[i].count; i++)
		fprintf(out, "%10llu errors %s, such as: %s\n",
			(unsigned long long)counts->errors[i].count, counts->errors[i].word,
			counts->errors[i].example);
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
		if (lines[i].count && lines[i].text)
			fprintf(out, "%10llu %s\n", (unsigned long long)lines[i].count,
				lines[i].text);
	}
	if (counts->trouble[0])
		fprintf(out, "           last trouble: %s\n", counts->trouble);
}

static bool has_news(const struct hs_storm_node *node)
{
	return node->requests > 0 || node->owner;
}

static void print_nodes(const struct hs_storm_result *result, FILE *out)
{
	if (result->nodes_count > 0)
		fprintf(out, "\n%-24s %12s %9s %9s %9s\n", "node", "requests", "MOVED", "ASK",
			"not now");
	for (uint32_t i = 0; i < result->nodes_count; i++) {
		const struct hs_storm_node *node = &result->nodes[i];
		char text[HS_ADDRESS_TEXT_MAX];

		if (has_news(node))
			fprintf(out, "%-24s %12llu %9llu %9llu %9llu\n",
				hs_address_text(node->at.host, node->at.port, text, sizeof text),
				(unsigned long long)node->requests, (unsigned long long)node->moved,
				(unsigned long long)node->asked, (unsigned long long)node->again);
	}
}

static void print_findings(const struct hs_storm_findings *findings, FILE *out)
{
	fprintf(out, "verify: %llu replies checked, %llu writes of unknown outcome, ",
		(unsigned long long)findings->checked, (unsigned long long)findings->unknown);
	if (findings->windows)
		fprintf(out, "%llu windows, %llu of them not decided, ",
			(unsigned long long)findings->windows,
			(unsigned long long)findings->undecided);
	fputs(findings->failed	    ? "FAILED"
	      : findings->undecided ? "nothing wrong was found\n"
				    : "all as it must be\n",
	      out);
	if (!findings->failed)
		return;
	fprintf(out, " %llu times:\n", (unsigned long long)findings->failed);
	for (uint64_t i = 0; i < findings->failed && i < HS_STORM_FINDINGS_MAX; i++)
		fprintf(out, "  %s\n", findings->text[i]);
	if (findings->failed > HS_STORM_FINDINGS_MAX)
		fprintf(out, "  … and %llu more\n",
			(unsigned long long)(findings->failed - HS_STORM_FINDINGS_MAX));
}

static void print_options(const struct hs_storm_options *options, FILE *out)
{
	if (*options->request)
		fprintf(out, "%s, request '%s', ", options->target.text, options->request);
	else
		fprintf(out, "%s, %s over %llu keys, %s with %.3g writes, ", options->target.text,
			options->shape_text, (unsigned long long)options->keys,
			hs_storm_commands[options->command], options->writes);
	fprintf(out, "%llu connections, pipeline %llu, ", (unsigned long long)options->connections,
		(unsigned long long)options->pipeline);
	if (options->rate)
		fprintf(out, "%llu/s asked for\n\n", (unsigned long long)options->rate);
	else
		fprintf(out, "closed loop\n\n");
}

void hs_storm_report_table(const struct hs_storm_result *result, FILE *out)
{
	const struct hs_storm_options *options = result->options;
	const struct hs_storm_counts *counts = result->counts;
	struct hs_histo all = counts->reads_ns;

	hs_histo_merge(&all, &counts->writes_ns);
	print_options(options, out);
	fprintf(out, "%-8s %12s %12s", "ms", "requests", "per second");
	for (int i = 0; i < PERCENTILES; i++)
		fprintf(out, " %9s", percentiles[i].name);
	fputc('\n', out);
	if (*options->request) { /* whether it reads or writes is not known */
		print_row(result, out, "request", &all);
	} else {
		print_row(result, out, "reads", &counts->reads_ns);
		print_row(result, out, "writes", &counts->writes_ns);
		print_row(result, out, "all", &all);
	}
	print_nodes(result, out);
	fprintf(out, "\n%.2f s, storm itself took %.0f %% of a core\n", result->seconds,
		result->seconds > 0 ? 100 * result->cpu_seconds / result->seconds : 0);
	if (options->ordered)
		fprintf(out, "%10llu requests waited for the turn of their key\n",
			(unsigned long long)counts->put_aside);
	if (counts->not_known)
		fprintf(out,
			"%10llu requests answered 'unknown command' and left out from then on: "
			"%s\n",
			(unsigned long long)counts->not_known, counts->not_known_name);
	print_trouble(counts, out);
	if (result->findings)
		print_findings(result->findings, out);
}

/* ---- JSON ---- */

static void set_count(json_t *object, const char *name, uint64_t value)
{
	json_object_set_new(object, name, json_integer((json_int_t)value));
}

static json_t *histo_json(const struct hs_storm_result *result, const struct hs_histo *histo)
{
	json_t *object = json_object();

	set_count(object, "requests", histo->count);
	json_object_set_new(object, "per_second", json_real(per_second(result, histo->count)));
	json_object_set_new(object, "mean_us", json_real(hs_histo_mean(histo) / 1e3));
	for (int i = 0; i < PERCENTILES; i++) {
		char name[16];

		snprintf(name, sizeof name, "%s_us", percentiles[i].name);
		json_object_set_new(
			object, name,
			json_real((double)hs_histo_at(histo, percentiles[i].share) / 1e3));
	}
	return object;
}

static json_t *options_json(const struct hs_storm_options *options)
{
	json_t *object = json_object();

	json_object_set_new(object, "target", json_string(options->target.text));
	json_object_set_new(object, "shape", json_string(options->shape_text));
	if (*options->request) {
		json_object_set_new(object, "command", json_string("request"));
		json_object_set_new(object, "request", json_string(options->request));
	} else {
		json_object_set_new(object, "command",
				    json_string(hs_storm_commands[options->command]));
		json_object_set_new(object, "writes", json_real(options->writes));
	}
	set_count(object, "keys", options->keys);
	set_count(object, "value_bytes", options->value_bytes);
	set_count(object, "connections", options->connections);
	set_count(object, "pipeline", options->pipeline);
	set_count(object, "threads", options->threads);
	set_count(object, "rate", options->rate);
	set_count(object, "seed", options->seed);
	json_object_set_new(object, "ordered", json_boolean(options->ordered));
	return object;
}

static json_t *nodes_json(const struct hs_storm_result *result)
{
	json_t *nodes = json_object();

	for (uint32_t i = 0; i < result->nodes_count; i++) {
		const struct hs_storm_node *node = &result->nodes[i];
		json_t *object = json_object();
		char text[HS_ADDRESS_TEXT_MAX];

		set_count(object, "requests", node->requests);
		set_count(object, "moved", node->moved);
		set_count(object, "asked", node->asked);
		set_count(object, "not_now", node->again);
		json_object_set_new(
			nodes, hs_address_text(node->at.host, node->at.port, text, sizeof text),
			object);
	}
	return nodes;
}

static json_t *findings_json(const struct hs_storm_findings *findings)
{
	json_t *object = json_object();
	json_t *texts = json_array();

	json_object_set_new(object, "ok", json_boolean(findings->failed == 0));
	set_count(object, "checked", findings->checked);
	set_count(object, "unknown", findings->unknown);
	set_count(object, "windows", findings->windows);
	set_count(object, "undecided", findings->undecided);
	set_count(object, "failed", findings->failed);
	for (uint64_t i = 0; i < findings->failed && i < HS_STORM_FINDINGS_MAX; i++)
		json_array_append_new(texts, json_string(findings->text[i]));
	json_object_set_new(object, "failures", texts);
	return object;
}

void hs_storm_report_json(const struct hs_storm_result *result, FILE *out)
{
	const struct hs_storm_counts *counts = result->counts;
	struct hs_histo all = counts->reads_ns;
	json_t *object = json_object(), *errors = json_object();

	hs_histo_merge(&all, &counts->writes_ns);
	json_object_set_new(object, "options", options_json(result->options));
	json_object_set_new(object, "seconds", json_real(result->seconds));
	json_object_set_new(object, "cpu_seconds", json_real(result->cpu_seconds));
#define SET(field, text) set_count(object, #field, counts->field);
	HS_STORM_COUNTS(SET)
	json_object_set_new(object, "all", histo_json(result, &all));
	if (!*result->options->request) {
		json_object_set_new(object, "reads", histo_json(result, &counts->reads_ns));
		json_object_set_new(object, "writes", histo_json(result, &counts->writes_ns));
	}
	for (int i = 0; i < HS_STORM_ERRORS_MAX && counts->errors[i].count; i++)
		json_object_set_new(errors, counts->errors[i].word,
				    json_integer((json_int_t)counts->errors[i].count));
	json_object_set_new(object, "errors", errors);
	if (result->nodes_count > 0)
		json_object_set_new(object, "nodes", nodes_json(result));
	if (result->findings)
		json_object_set_new(object, "verify", findings_json(result->findings));
	json_dumpf(object, out, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
	fputc('\n', out);
	json_decref(object);
}

/* ---- progress ---- */

void hs_storm_report_progress(FILE *out, double seconds, uint64_t answered, double rate)
{
	fprintf(out, "\r%6.1f s %14llu answers %12.0f/s ", seconds, (unsigned long long)answered,
		rate);
	fflush(out);
}

void hs_storm_report_progress_end(FILE *out)
{
	fprintf(out, "\r%60s\r", "");
	fflush(out);
}
