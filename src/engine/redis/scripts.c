/* A ring of script texts under a mutex. If a worker has stored a script lately, it finds the script's hash in
 * `seen` and takes no lock. */
#include "engine/redis/scripts.h"

#include "base/hash.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/num.h"
#include "wire/parse_reply.h"

#include <openssl/evp.h>
#include <stdatomic.h>
#include <string.h>
#include <uv.h>

enum {
	SCRIPTS_MAX = 4096,
	SEEN = 1024, /* hashes of scripts that a worker remembers, to skip lookup and lock */
	DIGEST_BYTES = 20,
};
#define SCRIPTS_BYTES_MAX (64 * HS_MIB)

struct script {
	unsigned char digest[DIGEST_BYTES];
	char *text;
	size_t len;
};

/* The scripts that one worker has stored lately, by their hash. Only that worker's thread uses it. */
struct seen {
	uint64_t hash[SEEN];
};

struct hs_scripts {
	uv_mutex_t mutex;
	/* A ring of SCRIPTS_MAX entries; the first is `oldest`. NULL until a script is stored. */
	struct script *ring;
	uint32_t oldest, count;
	size_t bytes;
	/* How often the scripts were flushed. The number is part of each hash in `seen`, so a flush makes all
	 * earlier hashes useless. */
	_Atomic uint64_t flushes;
	struct seen *seen;
};

struct hs_scripts *hs_scripts_create(uint32_t workers)
{
	struct hs_scripts *scripts = hs_mem_zalloc(sizeof *scripts);

	hs_check(uv_mutex_init(&scripts->mutex) == 0);
	scripts->seen = hs_mem_zalloc(workers * sizeof *scripts->seen);
	return scripts;
}

static void drop_oldest(struct hs_scripts *scripts)
{
	struct script *script = &scripts->ring[scripts->oldest];

	scripts->bytes -= script->len;
	hs_mem_free(&script->text);
	scripts->oldest = (scripts->oldest + 1) % SCRIPTS_MAX;
	scripts->count--;
}

void hs_scripts_destroy(struct hs_scripts **pointer)
{
	struct hs_scripts *scripts = *pointer;

	while (scripts->count > 0)
		drop_oldest(scripts);
	uv_mutex_destroy(&scripts->mutex);
	hs_mem_free(&scripts->ring);
	hs_mem_free(&scripts->seen);
	hs_mem_free(pointer);
}

static struct script *find(struct hs_scripts *scripts, const unsigned char *digest)
{
	for (uint32_t i = 0; i < scripts->count; i++) {
		struct script *script = &scripts->ring[(scripts->oldest + i) % SCRIPTS_MAX];

		if (memcmp(script->digest, digest, DIGEST_BYTES) == 0)
			return script;
	}
	return NULL;
}

static void keep(struct hs_scripts *scripts, struct hs_bytes text)
{
	unsigned char digest[EVP_MAX_MD_SIZE];

	if (EVP_Digest(text.data, text.len, digest, NULL, EVP_sha1(), NULL) != 1)
		return;
	uv_mutex_lock(&scripts->mutex);
	if (!find(scripts, digest)) {
		if (!scripts->ring)
			scripts->ring = hs_mem_zalloc(SCRIPTS_MAX * sizeof *scripts->ring);
		while (scripts->count == SCRIPTS_MAX ||
		       (scripts->count > 0 && scripts->bytes + text.len > SCRIPTS_BYTES_MAX))
			drop_oldest(scripts);

		struct script *script =
			&scripts->ring[(scripts->oldest + scripts->count) % SCRIPTS_MAX];

		memcpy(script->digest, digest, DIGEST_BYTES);
		script->text = hs_mem_dup(text.data, text.len);
		script->len = text.len;
		scripts->bytes += text.len;
		scripts->count++;
	}
	uv_mutex_unlock(&scripts->mutex);
}

/* SCRIPT FLUSH drops all texts: afterwards the client expects NOSCRIPT. */
static void forget(struct hs_scripts *scripts)
{
	uv_mutex_lock(&scripts->mutex);
	while (scripts->count > 0)
		drop_oldest(scripts);
	uv_mutex_unlock(&scripts->mutex);
	atomic_fetch_add(&scripts->flushes, 1);
}

static bool is_flush(const struct hs_command *command)
{
	return command->name[0] == 's' && strcmp(command->name, "script|flush") == 0;
}

static bool is_load(const struct hs_command *command, size_t argc)
{
	return command->name[0] == 's' && argc == 3 && strcmp(command->name, "script|load") == 0;
}

/* The script text in the request of `op`; empty: the request has none. */
static struct hs_bytes script_of(const struct hs_op *op)
{
	const char *name = op->command->name;

	if (name[0] == 'e' && op->argc >= 2 &&
	    (strcmp(name, "eval") == 0 || strcmp(name, "eval_ro") == 0))
		return op->argv[1];
	if (is_load(op->command, op->argc))
		return op->argv[2];
	return (struct hs_bytes){NULL, 0};
}

static void note_text(struct hs_scripts *scripts, uint32_t worker, struct hs_bytes text)
{
	uint64_t flushes = atomic_load_explicit(&scripts->flushes, memory_order_relaxed);
	uint64_t hash = hs_hash(text, flushes), *seen = &scripts->seen[worker].hash[hash % SEEN];

	if (*seen == hash)
		return;
	*seen = hash;
	keep(scripts, text);
}

static bool concerns_scripts(const struct hs_op_tx *tx)
{
	for (size_t i = 0; i < tx->count; i++) {
		if (is_flush(tx->commands[i].command) ||
		    is_load(tx->commands[i].command, tx->commands[i].argc))
			return true;
	}
	return false;
}

/* Stores the scripts that a transaction loaded successfully. */
static void note_exec(struct hs_scripts *scripts, const struct hs_op *op)
{
	struct hs_bytes reply = op->answer.len > 0 ? op->answer : hs_buf_bytes(op->out);
	struct hs_bytes rest = hs_parse_reply_elements(reply), element;

	for (size_t i = 0; i < op->tx->count; i++) {
		const struct hs_op_tx_command *queued = &op->tx->commands[i];
		bool ran = hs_parse_reply_take(&rest, &element);

		if (is_flush(queued->command))
			forget(scripts);
		else if (ran && element.data[0] != '-' && queued->answered.len == 0 &&
			 is_load(queued->command, queued->argc) &&
			 queued->argv[2].len <= SCRIPTS_BYTES_MAX)
			note_text(scripts, op->worker, queued->argv[2]);
	}
}

void hs_scripts_note(struct hs_scripts *scripts, const struct hs_op *op)
{
	struct hs_bytes reply, text;

	if (op->kind == HS_OP_EXEC) {
		if (concerns_scripts(op->tx))
			note_exec(scripts, op);
		return;
	}
	if (op->kind != HS_OP_COMMAND || op->command->id < HS_CMD_IDS)
		return; /* SCRIPT and EVAL are not among the built-in commands */
	reply = op->answer.len > 0 ? op->answer : hs_buf_bytes(op->out);
	if (reply.len == 0 || reply.data[0] == '-')
		return;
	text = script_of(op);
	if (text.len > 0 && text.len <= SCRIPTS_BYTES_MAX)
		note_text(scripts, op->worker, text);
	else if (is_flush(op->command))
		forget(scripts);
}

bool hs_scripts_find(struct hs_scripts *scripts, struct hs_bytes digest, struct hs_buf *script)
{
	unsigned char wanted[DIGEST_BYTES];
	const struct script *found;

	if (digest.len != 2 * DIGEST_BYTES)
		return false;
	for (size_t i = 0; i < DIGEST_BYTES; i++) {
		int byte = hs_num_hex_byte(digest.data + 2 * i);

		if (byte < 0)
			return false;
		wanted[i] = (unsigned char)byte;
	}
	uv_mutex_lock(&scripts->mutex);
	found = find(scripts, wanted);
	if (found)
		hs_buf_append(script, found->text, found->len);
	uv_mutex_unlock(&scripts->mutex);
	return found != NULL;
}
