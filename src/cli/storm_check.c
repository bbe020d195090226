#include "cli/storm_check.h"

#include "base/err.h"
#include "base/limits.h"
#include "cli/flags.h"
#include "engine/embedded/files.h"
#include "sim/check.h"
#include "sim/history_text.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#define FILE_BYTES_MAX (256 * HS_MIB)
#define WHO "heatsink storm"

static const uint64_t FILE_STEPS_MAX = 50000000;
/* The last line of a file: without it the file is incomplete. */
static const char END_LINE[] = "# end\n";

/* Sets `known` to the history as it was known at stamp `until`. A transaction is known once its first command is
 * sent. */
static void know_until(const struct hs_sim_history *all, uint64_t until,
		       struct hs_sim_history *known)
{
	known->count = 0;
	for (size_t i = 0; i < all->count; i += 1 + all->ops[i].more) {
		if (all->ops[i].asked > until)
			continue;
		for (size_t j = i; j <= i + all->ops[i].more; j++) {
			struct hs_sim_op op = all->ops[j];

			if (op.answered > until)
				op.answered = HS_SIM_NEVER;
			hs_sim_history_add(known, &op);
		}
	}
}

static uint64_t last_moment(const struct hs_sim_history *history)
{
	uint64_t last = 0;

	for (size_t i = 0; i < history->count; i++) {
		const struct hs_sim_op *op = &history->ops[i];

		if (op->asked > last)
			last = op->asked;
		if (op->answered != HS_SIM_NEVER && op->answered > last)
			last = op->answered;
	}
	return last;
}

static int check(const struct hs_sim_history *history, uint64_t steps_max)
{
	struct hs_sim_verdict verdict = {0};

	return hs_sim_check_order(history, steps_max, &verdict);
}

/* Appends the operation that was answered at that stamp, on one line. */
static void print_answer(const struct hs_sim_history *history, uint64_t at, struct hs_buf *text)
{
	size_t start = text->len;

	for (size_t i = 0; i < history->count; i++) {
		struct hs_sim_history one = {.ops = &history->ops[i], .count = 1};

		if (one.ops->answered == at)
			hs_sim_history_print(&one, text);
	}
	for (size_t i = start; i + 1 < text->len; i++)
		text->data[i] = text->data[i] == '\n' ? ';' : text->data[i];
	if (text->len > start)
		text->len--;
}

/* Finds a single read without whose answer an order exists. Only reads: no other operation depends on them. */
static bool find_culprit(const struct hs_sim_history *history, uint64_t steps_max,
			 struct hs_sim_history *others, size_t *culprit)
{
	for (size_t i = 0; i < history->count; i += 1 + history->ops[i].more) {
		const struct hs_sim_op *op = &history->ops[i];

		if (op->more > 0 || !hs_sim_kind_reads(op->kind) || op->answered == HS_SIM_NEVER)
			continue;
		others->count = 0;
		for (size_t j = 0; j < history->count; j++) {
			if (j != i)
				hs_sim_history_add(others, &history->ops[j]);
		}
		if (check(others, steps_max) == 0) {
			*culprit = i;
			return true;
		}
	}
	return false;
}

/* The first stamp at which the history known so far has no order; binary search. */
static uint64_t find_moment(const struct hs_sim_history *history, uint64_t steps_max,
			    struct hs_sim_history *known)
{
	uint64_t good = 0, bad = last_moment(history);

	while (bad - good > 1) {
		uint64_t middle = good + (bad - good) / 2;

		know_until(history, middle, known);
		if (check(known, steps_max) == HS_EINVAL)
			bad = middle;
		else
			good = middle;
	}
	know_until(history, bad, known);
	return bad;
}

/* A read that is wrong by itself is searched first: the first stamp without an order can be long after the wrong
 * answer, since operations in flight could explain the answer until then. */
int hs_storm_check(const struct hs_sim_history *history, uint64_t steps_max, struct hs_buf *why)
{
	struct hs_sim_history some = {0};
	int rc = check(history, steps_max);
	size_t culprit;

	if (rc != HS_EINVAL)
		return rc;
	if (find_culprit(history, steps_max, &some, &culprit)) {
		hs_buf_printf(why,
			      "no order of %zu operations explains this answer: ", history->count);
		print_answer(history, history->ops[culprit].answered, why);
	} else {
		uint64_t at = find_moment(history, steps_max, &some);

		hs_buf_printf(why, "no order of %zu operations explains all answers up to this: ",
			      some.count);
		print_answer(&some, at, why);
	}
	hs_sim_history_deinit(&some);
	return HS_EINVAL;
}

/* ---- files ---- */

/* Builds the path: bytes of the key other than letters and digits become dashes. */
static void name_file(const char *folder, const char *key, char *path, size_t path_size)
{
	size_t len;

	snprintf(path, path_size, "%s/storm-history-%s.txt", folder, key);
	len = strlen(path);
	for (size_t i = strlen(folder) + 1; i < len; i++) {
		if (!isalnum((unsigned char)path[i]) && path[i] != '.')
			path[i] = '-';
	}
}

int hs_storm_check_save(const struct hs_sim_history *history, const char *folder, const char *key,
			char *path, size_t path_size)
{
	struct hs_buf text = {0};
	int fd, rc;

	name_file(folder, key, path, path_size);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	hs_buf_printf(&text,
		      "# heatsink storm history 1\n# key %s: no order of these operations explains "
		      "every answer\n# read it with: heatsink storm --check-history FILE\n",
		      key);
	hs_sim_history_write(history, &text);
	hs_buf_append_bytes(&text, hs_bytes_of(END_LINE));
	rc = hs_file_write(fd, text.data, text.len, 0);
	hs_buf_deinit(&text);
	if (close(fd) != 0 && rc == 0)
		rc = -errno;
	return rc;
}

static bool is_whole(const struct hs_buf *text)
{
	size_t end = strlen(END_LINE);

	return text->data && text->len >= end &&
	       memcmp(text->data + text->len - end, END_LINE, end) == 0;
}

/* Reads the file. Returns 0 or a negative errno; -EFBIG: over the limit. */
static int read_file(const char *path, struct hs_buf *text)
{
	FILE *file = fopen(path, "re");
	size_t got = 1;
	int rc;

	if (!file)
		return -errno;
	while (got > 0 && text->len <= FILE_BYTES_MAX) {
		got = fread(hs_buf_reserve(text, HS_READ_BYTES), 1, HS_READ_BYTES, file);
		text->len += got;
	}
	rc = ferror(file) ? -errno : got > 0 ? -EFBIG : 0;
	fclose(file);
	return rc;
}

static int load(const char *path, struct hs_sim_history *history, FILE *err)
{
	struct hs_buf text = {0};
	size_t line = 0;
	int rc = read_file(path, &text);

	if (rc != 0)
		rc = hs_flags_error(err, WHO, "--check-history: cannot read '%s': %s", path,
				    strerror(-rc));
	else if (!is_whole(&text))
		rc = hs_flags_error(
			err, WHO,
			"--check-history: '%s' does not end with '# end': it was cut short, "
			"or storm --verify did not write it",
			path);
	else if ((rc = hs_sim_history_read(history, hs_buf_bytes(&text), &line)) != 0)
		rc = hs_flags_error(
			err, WHO,
			"--check-history: '%s', line %zu: %s; expected a file that storm "
			"--verify wrote",
			path, line, rc == HS_ELIMIT ? "too many operations" : "not an operation");
	hs_buf_deinit(&text);
	return rc;
}

int hs_storm_check_file(const char *path, FILE *out, FILE *err)
{
	struct hs_sim_history history = {0};
	struct hs_buf text = {0};
	int rc = load(path, &history, err);

	if (rc != 0) {
		hs_sim_history_deinit(&history);
		return 1;
	}
	hs_sim_history_print(&history, &text);
	fwrite(text.data, 1, text.len, out);
	hs_buf_clear(&text, 0);
	rc = hs_storm_check(&history, FILE_STEPS_MAX, &text);
	if (rc == 0)
		fprintf(out, "an order of the %zu operations explains every answer\n",
			history.count);
	else if (rc == HS_ELIMIT)
		fprintf(out, "not decided after %" PRIu64 " steps\n", FILE_STEPS_MAX);
	else
		fprintf(out, "%.*s\n", (int)text.len, text.data);
	hs_buf_deinit(&text);
	hs_sim_history_deinit(&history);
	return rc == 0 ? 0 : rc == HS_ELIMIT ? 2 : 1;
}
