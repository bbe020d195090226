#include "tests/lib/embedded.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/slot.h"
#include "route/slot_map.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct hs_now now(void *context)
{
	return ((struct hs_test_embedded *)context)->now;
}

void hs_test_embedded_init(struct hs_test_embedded *test)
{
	memset(test, 0, sizeof *test);
	snprintf(test->folder, sizeof test->folder, "/tmp/heatsink-test-XXXXXX");
	hs_check(mkdtemp(test->folder) != NULL);
	test->options = (struct hs_embedded_options){
		.data = test->folder,
		.partitions = 2,
		.sync = true,
		.store_bytes_max = 64 * HS_MIB,
		.log_bytes = HS_MIB,
	};
	test->now = (struct hs_now){.mono_us = 1000000, .wall_us = 1700000000000000};
	test->host = (struct hs_engine_host){.context = test, .now = now, .workers = 1};
}

void hs_test_embedded_deinit(struct hs_test_embedded *test)
{
	DIR *folder = opendir(test->folder);
	struct dirent *entry;

	hs_check(!test->open);
	while (folder && (entry = readdir(folder)) != NULL) {
		char path[HS_PATH_BYTES_MAX];

		if (entry->d_name[0] != '.' && hs_file_path(path, test->folder, entry->d_name))
			unlink(path);
	}
	if (folder)
		closedir(folder);
	rmdir(test->folder);
	for (size_t i = 0; i < HS_TEST_OPS_MAX; i++) {
		hs_buf_deinit(&test->ops[i].out);
		hs_mem_free(&test->ops[i].text);
	}
}

int hs_test_embedded_open(struct hs_test_embedded *test)
{
	struct hs_fault fault = {test->error, sizeof test->error};
	int rc = hs_database_open(&test->database, &test->options, 1, NULL, &fault);

	if (rc != 0)
		return rc;
	hs_group_init(&test->group, &test->database, &test->host);
	hs_reader_init(&test->reader, &test->database, &test->host, 0);
	test->open = true;
	return 0;
}

void hs_test_embedded_kill(struct hs_test_embedded *test)
{
	hs_reader_deinit(&test->reader);
	hs_group_deinit(&test->group);
	hs_database_close(&test->database);
	test->open = false;
}

void hs_test_embedded_close(struct hs_test_embedded *test)
{
	hs_group_checkpoint(&test->group);
	hs_test_embedded_kill(test);
}

static void compose(struct hs_test_embedded *test, struct hs_test_op *one, const char *words,
		    struct hs_bytes tail)
{
	struct hs_op *op = &one->op;
	char *word, *rest;

	hs_mem_free(&one->text);
	one->text = hs_mem_alloc(strlen(words) + 1 + tail.len);
	memcpy(one->text, words, strlen(words) + 1);
	if (tail.len)
		memcpy(one->text + strlen(words) + 1, tail.data, tail.len);
	hs_buf_clear(&one->out, HS_IDLE_BUFFER_BYTES);
	*op = (struct hs_op){.resp = 2, .argv = one->argv, .out = &one->out, .received = test->now};
	for (word = strtok_r(one->text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		hs_check(op->argc < HS_TEST_ARGS_MAX);
		one->argv[op->argc++] = hs_bytes_of(word);
	}
	if (tail.data)
		one->argv[op->argc++] = (struct hs_bytes){one->text + strlen(words) + 1, tail.len};
	op->command = hs_command_find(op->argv[0]);
	hs_check(op->command != NULL);
	if (op->argc > 1)
		op->slot = hs_slot_of(op->argv[1]);
	op->partition = hs_slot_partition(op->slot, test->database.partitions);
}

size_t hs_test_embedded_add(struct hs_test_embedded *test, const char *words, struct hs_bytes tail)
{
	hs_check(test->count < HS_TEST_OPS_MAX);
	compose(test, &test->ops[test->count], words, tail);
	return test->count++;
}

/* Returns how many operations of the chain were run. */
static size_t run_group(struct hs_group *group, struct hs_op *op)
{
	size_t count = hs_group_add(group, op);

	hs_group_finish(group, false);
	return count;
}

void hs_test_embedded_run(struct hs_test_embedded *test)
{
	size_t done = 0;

	for (size_t i = 0; i < test->count; i++)
		test->ops[i].op.next = i + 1 < test->count ? &test->ops[i + 1].op : NULL;
	while (done < test->count)
		done += run_group(&test->group, &test->ops[done].op);
	test->count = 0;
}

const char *hs_test_embedded_reply(struct hs_test_embedded *test, size_t number)
{
	struct hs_buf *out = &test->ops[number].out;

	*hs_buf_reserve(out, 1) = '\0';
	return out->data;
}

const char *hs_test_embedded_do(struct hs_test_embedded *test, const char *words)
{
	size_t number = hs_test_embedded_add(test, words, (struct hs_bytes){NULL, 0});

	hs_test_embedded_run(test);
	return hs_test_embedded_reply(test, number);
}

const char *hs_test_embedded_set(struct hs_test_embedded *test, const char *key, size_t bytes,
				 char fill)
{
	char words[128], *value = hs_mem_alloc(bytes);
	size_t number;

	memset(value, fill, bytes);
	snprintf(words, sizeof words, "set %s", key);
	number = hs_test_embedded_add(test, words, (struct hs_bytes){value, bytes});
	hs_mem_free(&value);
	hs_test_embedded_run(test);
	return hs_test_embedded_reply(test, number);
}

const char *hs_test_embedded_read(struct hs_test_embedded *test, const char *words)
{
	struct hs_test_op *one = &test->ops[HS_TEST_OPS_MAX - 1];

	compose(test, one, words, (struct hs_bytes){NULL, 0});
	hs_reader_refresh(&test->reader);
	if (!hs_reader_run(&test->reader, &one->op)) {
		/* As the core does: the read is queued after the writes, and the writer answers it. */
		one->op.ordered = true;
		hs_check(run_group(&test->group, &one->op) == 1);
		hs_group_maintain(&test->group);
	}
	return hs_test_embedded_reply(test, HS_TEST_OPS_MAX - 1);
}

char *hs_test_file_read(const char *folder, const char *name, size_t *bytes)
{
	char path[HS_PATH_BYTES_MAX], *data;
	int fd;

	hs_check(hs_file_path(path, folder, name));
	fd = open(path, O_RDONLY);
	hs_check(fd >= 0);
	*bytes = (size_t)lseek(fd, 0, SEEK_END);
	data = hs_mem_alloc(*bytes + 1);
	hs_check(hs_file_read(fd, data, *bytes, 0) == 0);
	data[*bytes] = '\0';
	close(fd);
	return data;
}

void hs_test_file_write(const char *folder, const char *name, const char *data, size_t bytes)
{
	char path[HS_PATH_BYTES_MAX];
	int fd;

	hs_check(hs_file_path(path, folder, name));
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	hs_check(fd >= 0);
	hs_check(hs_file_write(fd, data, bytes, 0) == 0);
	close(fd);
}
