/* The result of a run: adds up the counts of all workers and prints them as a table or as JSON. */
#include "cli/storm.h"

#include "base/address.h"

#include <inttypes.h>
#include <jansson.h>

/* The row for errors with this first word: a free row if the word is new, the last row if none is free. */
static struct hs_storm_error *find_error(struct hs_storm_counts *counts, const char *word)
{
	struct hs_storm_error *error = counts->errors, *last = error + HS_STORM_ERRORS_MAX - 1;

	while (error < last && error->count && strcmp(error->word, word) != 0)
		error++;
	return error;
}

void hs_storm_counts_error(struct hs_storm_counts *counts, struct hs_bytes text)
{
	struct hs_bytes rest = text, first = hs_bytes_cut(&rest, ' ');
	char word[HS_STORM_ERROR_WORD_MAX];
	struct hs_storm_error *error;

	snprintf(word, sizeof word, "%.*s", (int)first.len, first.data);
	error = find_error(counts, word);
	counts->error_total++;
	if (error->count++)
		return;
	if (error == &counts->errors[HS_STORM_ERRORS_MAX - 1])
		snprintf(word, sizeof word, "(others)");
	memcpy(error->word, word, sizeof word);
	hs_bytes_escape(text, error->example, sizeof error->example);
}

static void merge_errors(struct hs_storm_counts *into, const struct hs_storm_counts *from)
{
	for (int i = 0; i < HS_STORM_ERRORS_MAX && from->errors[i].count; i++) {
		struct hs_storm_error *error = find_error(into, from->errors[i].word);

		if (error->count)
			error->count += from->errors[i].count;
		else
			*error = from->errors[i];
	}
}

void hs_storm_counts_merge(struct hs_storm_counts *into, const struct hs_storm_counts *from)
{
	hs_histogram_merge(&into->reads_ns, &from->reads_ns);
	hs_histogram_merge(&into->writes_ns, &from->writes_ns);
	merge_errors(into, from);
	into->error_total += from->error_total;
#define ADD(field, text) into->field += from->field;
	HS_STORM_COUNTS(ADD)
	if (from->unknown_command)
		memcpy(into->unknown_command_name, from->unknown_command_name,
		       sizeof into->unknown_command_name);
	if (!into->first_ns || (from->first_ns && from->first_ns < into->first_ns))
		into->first_ns = from->first_ns;
	if (from->last_ns > into->last_ns)
		into->last_ns = from->last_ns;
	if (from->last_error[0])
		memcpy(into->last_error, from->last_error, sizeof into->last_error);
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
		      const struct hs_histogram *histogram)
{
	if (!histogram->count)
		return;
	fprintf(out, "%-8s %12" PRIu64 " %12.0f", name, histogram->count,
		per_second(result, histogram->count));
	for (int i = 0; i < PERCENTILES; i++)
		fprintf(out, " %9.3f",
			(double)hs_histogram_quantile(histogram, percentiles[i].share) / 1e6);
	fputc('\n', out);
}

static void print_count(FILE *out, uint64_t count, const char *text)
{
	if (count && text)
		fprintf(out, "%10" PRIu64 " %s\n", count, text);
}

static void print_trouble(const struct hs_storm_counts *counts, FILE *out)
{
	for (int i = 0; i < HS_STORM_ERRORS_MAX && counts->errors[i].count; i++)
		fprintf(out, "%10" PRIu64 " errors %s, such as: %s\n", counts->errors[i].count,
			counts->errors[i].word, counts->errors[i].example);
#define LINE(field, text) print_count(out, counts->field, text);
	HS_STORM_COUNTS(LINE)
	if (counts->last_error[0])
		fprintf(out, "           last error: %s\n", counts->last_error);
}

static void print_nodes(const struct hs_storm_result *result, FILE *out)
{
	if (result->nodes_count == 0)
		return;
	fprintf(out, "\n%-24s", "node");
#define TITLE(field, title) fprintf(out, " %12s", title);
	HS_STORM_NODE_COUNTS(TITLE)
	fputc('\n', out);
	for (uint32_t i = 0; i < result->nodes_count; i++) {
		const struct hs_storm_node *node = &result->nodes[i];
		char text[HS_ADDRESS_TEXT_MAX];

		if (node->requests == 0 && !node->owner)
			continue;
		fprintf(out, "%-24s",
			hs_address_text(node->at.host, node->at.port, text, sizeof text));
#define COUNT(field, title) fprintf(out, " %12" PRIu64, node->field);
		HS_STORM_NODE_COUNTS(COUNT)
		fputc('\n', out);
	}
}

static void print_findings(const struct hs_storm_findings *findings, FILE *out)
{
	fprintf(out,
		"verify: %" PRIu64 " replies checked, %" PRIu64 " writes with unknown outcome, ",
		findings->checked, findings->unknown);
	if (findings->windows)
		fprintf(out, "%" PRIu64 " windows, %" PRIu64 " of them not decided, ",
			findings->windows, findings->undecided);
	if (!findings->failed) {
		fputs(findings->undecided ? "no wrong reply was found\n"
					  : "all replies are correct\n",
		      out);
		return;
	}
	fprintf(out, "FAILED %" PRIu64 " times:\n", findings->failed);
	for (uint64_t i = 0; i < findings->failed && i < HS_STORM_FINDINGS_MAX; i++)
		fprintf(out, "  %s\n", findings->text[i]);
	if (findings->failed > HS_STORM_FINDINGS_MAX)
		fprintf(out, "  … and %" PRIu64 " more\n",
			findings->failed - HS_STORM_FINDINGS_MAX);
}

static void print_options(const struct hs_storm_options *options, FILE *out)
{
	if (*options->request)
		fprintf(out, "%s, request '%s', ", options->target.text, options->request);
	else
		fprintf(out, "%s, %s over %" PRIu64 " keys, %s with %.3g writes, ",
			options->target.text, options->shape_text, options->keys,
			hs_storm_commands[options->command], options->writes);
	fprintf(out, "%" PRIu64 " connections, pipeline %" PRIu64 ", ", options->connections,
		options->pipeline);
	if (options->rate)
		fprintf(out, "open loop with %" PRIu64 " requests/s\n\n", options->rate);
	else
		fprintf(out, "closed loop\n\n");
}

void hs_storm_report_table(const struct hs_storm_result *result, FILE *out)
{
	const struct hs_storm_options *options = result->options;
	const struct hs_storm_counts *counts = result->counts;
	struct hs_histogram all = counts->reads_ns;

	hs_histogram_merge(&all, &counts->writes_ns);
	print_options(options, out);
	fprintf(out, "%-8s %12s %12s", "ms", "requests", "per second");
	for (int i = 0; i < PERCENTILES; i++)
		fprintf(out, " %9s", percentiles[i].name);
	fputc('\n', out);
	if (*options->request) { /* storm does not know whether it reads or writes */
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
		fprintf(out, "%10" PRIu64 " requests waited for earlier requests for their key\n",
			counts->waited);
	if (counts->unknown_command)
		fprintf(out,
			"%10" PRIu64 " requests answered 'unknown command' and left out from then "
			"on: %s\n",
			counts->unknown_command, counts->unknown_command_name);
	print_trouble(counts, out);
	if (result->findings)
		print_findings(result->findings, out);
}

/* ---- JSON ---- */

static void set_count(json_t *object, const char *name, uint64_t value)
{
	json_object_set_new(object, name, json_integer((json_int_t)value));
}

/* Adds one count of `from`, a variable of the caller, by its field name. */
#define SET(field, ...) set_count(object, #field, from->field);

static json_t *histo_json(const struct hs_storm_result *result,
			  const struct hs_histogram *histogram)
{
	json_t *object = json_object();

	set_count(object, "requests", histogram->count);
	json_object_set_new(object, "per_second", json_real(per_second(result, histogram->count)));
	json_object_set_new(object, "mean_us", json_real(hs_histogram_mean(histogram) / 1e3));
	for (int i = 0; i < PERCENTILES; i++) {
		char name[16];

		snprintf(name, sizeof name, "%s_us", percentiles[i].name);
		json_object_set_new(
			object, name,
			json_real((double)hs_histogram_quantile(histogram, percentiles[i].share) /
				  1e3));
	}
	return object;
}

static json_t *options_json(const struct hs_storm_options *from)
{
	json_t *object = json_object();

	json_object_set_new(object, "target", json_string(from->target.text));
	json_object_set_new(object, "shape", json_string(from->shape_text));
	if (*from->request) {
		json_object_set_new(object, "command", json_string("request"));
		json_object_set_new(object, "request", json_string(from->request));
	} else {
		json_object_set_new(object, "command",
				    json_string(hs_storm_commands[from->command]));
		json_object_set_new(object, "writes", json_real(from->writes));
	}
	SET(keys)
	SET(value_bytes)
	SET(connections)
	SET(pipeline)
	SET(threads)
	SET(rate)
	SET(seed)
	json_object_set_new(object, "ordered", json_boolean(from->ordered));
	return object;
}

static json_t *nodes_json(const struct hs_storm_result *result)
{
	json_t *nodes = json_object();

	for (uint32_t i = 0; i < result->nodes_count; i++) {
		const struct hs_storm_node *from = &result->nodes[i];
		json_t *object = json_object();
		char text[HS_ADDRESS_TEXT_MAX];

		HS_STORM_NODE_COUNTS(SET)
		hs_address_text(from->at.host, from->at.port, text, sizeof text);
		json_object_set_new(nodes, text, object);
	}
	return nodes;
}

static json_t *findings_json(const struct hs_storm_findings *from)
{
	json_t *object = json_object(), *texts = json_array();

	json_object_set_new(object, "ok", json_boolean(from->failed == 0));
	SET(checked)
	SET(unknown)
	SET(windows)
	SET(undecided)
	SET(failed)
	for (uint64_t i = 0; i < from->failed && i < HS_STORM_FINDINGS_MAX; i++)
		json_array_append_new(texts, json_string(from->text[i]));
	json_object_set_new(object, "failures", texts);
	return object;
}

void hs_storm_report_json(const struct hs_storm_result *result, FILE *out)
{
	const struct hs_storm_counts *from = result->counts;
	struct hs_histogram all = from->reads_ns;
	json_t *object = json_object(), *errors = json_object();

	hs_histogram_merge(&all, &from->writes_ns);
	json_object_set_new(object, "options", options_json(result->options));
	json_object_set_new(object, "seconds", json_real(result->seconds));
	json_object_set_new(object, "cpu_seconds", json_real(result->cpu_seconds));
	HS_STORM_COUNTS(SET)
	json_object_set_new(object, "all", histo_json(result, &all));
	if (!*result->options->request) {
		json_object_set_new(object, "reads", histo_json(result, &from->reads_ns));
		json_object_set_new(object, "writes", histo_json(result, &from->writes_ns));
	}
	for (int i = 0; i < HS_STORM_ERRORS_MAX && from->errors[i].count; i++)
		set_count(errors, from->errors[i].word, from->errors[i].count);
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
	fprintf(out, "\r%6.1f s %14" PRIu64 " answers %12.0f/s ", seconds, answered, rate);
	fflush(out);
}

void hs_storm_report_progress_end(FILE *out)
{
	fprintf(out, "\r%60s\r", "");
	fflush(out);
}
