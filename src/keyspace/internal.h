/* Shared by the command files of the keyspace: the command in progress, and a key that was looked
 * up. Only files in keyspace/ include this. Any thread, each with its own struct hs_keyspace. */
#ifndef HS_KEYSPACE_INTERNAL_H
#define HS_KEYSPACE_INTERNAL_H

#include "base/err.h"
#include "keyspace/keyspace.h"
#include "keyspace/record.h"
#include "keyspace/watch.h"

#include <stdbool.h>

/* Functions here and commands return 0; HS_ANSWERED when the reply is complete and the command must
 * stop (mostly after an error reply); HS_EFULL or HS_EIO when the store failed; or HS_EBUSY, for a
 * reader, when only the writer can answer (hs_keyspace_run). */
enum { HS_ANSWERED = 1 };

/* A command in progress. */
struct hs_run {
	struct hs_keyspace *ks;
	const struct hs_command *command;
	size_t argc;
	const struct hs_bytes *argv;
	struct hs_reply *reply;
	size_t reply_start; /* where this command's reply begins in reply->out */
	uint16_t slot;
};

typedef int hs_run_function(struct hs_run *run);

/* A key and its record. The record is borrowed from the store: its payload is invalid after the
 * next change, its numbers stay valid. */
struct hs_entry {
	struct hs_bytes key;
	uint16_t slot;
	bool stored; /* the store has a record, perhaps an expired one */
	bool live;   /* the record has not expired */
	struct hs_record record;
	struct hs_physical_key physical;
	/* The record that was written last for this key; hs_entry_seal writes its checksum. */
	char *written;
	size_t written_bytes;
};

/* A copy of a value, for use after a change of the store. */
struct hs_value_copy {
	struct hs_bytes bytes;
	char *heap;
	char small[512];
};

/* The attributes that a command sets on a key besides the value. */
struct hs_attributes {
	unsigned flags;	   /* HS_RECORD_RAW, NO_INT, UNSHARED */
	int64_t expire_ms; /* -1: never */
};

enum { HS_EXPIRE_NEVER = -1 };

/* --- run.c: replies, arguments */

/* Replaces the reply of the command so far by an error. Returns HS_ANSWERED. */
int hs_run_fail(struct hs_run *run, const char *text);
int hs_run_fail_syntax(struct hs_run *run);
int hs_run_fail_arity(struct hs_run *run);
int hs_run_fail_expire(struct hs_run *run); /* invalid expire time */
int hs_run_fail_type(struct hs_run *run);   /* WRONGTYPE */

/* argv[index] as an integer. Otherwise replies with `error` (NULL: Redis's usual text). */
int hs_run_integer(struct hs_run *run, size_t index, const char *error,
		   int64_t *value) HS_MUSTCHECK;

/* Compares an argument with the name of an option, without regard to case. */
static inline bool hs_run_word(const struct hs_run *run, size_t index, const char *word)
{
	return hs_bytes_is_word(run->argv[index], word);
}

/* The slot of one key of a command: the keys of a split command share a store, not a slot. */
uint16_t hs_run_slot(const struct hs_run *run, struct hs_bytes key);

/* --- entry.c: keys */

static inline bool hs_expired(const struct hs_keyspace *ks, int64_t expire_ms)
{
	return expire_ms != HS_EXPIRE_NEVER && ks->now_ms > expire_ms;
}

/* Looks a key up. Replies with an error for a record that is unreadable or fails its checksum. */
int hs_entry_find(struct hs_run *run, uint16_t slot, struct hs_bytes key,
		  struct hs_entry *entry) HS_MUSTCHECK;
/* hs_entry_find without the checksums of a long value's parts: for commands that read none of its
 * bytes, or check those that they read with hs_entry_check. */
int hs_entry_find_head(struct hs_run *run, uint16_t slot, struct hs_bytes key,
		       struct hs_entry *entry) HS_MUSTCHECK;
/* Looks up a key that will be replaced or removed. A damaged record is no error here: it counts as
 * a live string without expiry. */
int hs_entry_find_to_replace(struct hs_run *run, uint16_t slot, struct hs_bytes key,
			     struct hs_entry *entry) HS_MUSTCHECK;
/* Replies with an error if the checksums of the value's bytes `from` to `to` do not match. */
int hs_entry_check(struct hs_run *run, const struct hs_entry *entry, size_t from,
		   size_t to) HS_MUSTCHECK;
/* Sets ks->damaged and ks->damaged_key. Returns the key as escaped text. */
const char *hs_run_damaged(struct hs_keyspace *ks, struct hs_bytes key);
/* hs_entry_find and hs_entry_find_head, and count a hit or a miss: for commands that Redis counts
 * as reads. */
int hs_entry_read(struct hs_run *run, uint16_t slot, struct hs_bytes key,
		  struct hs_entry *entry) HS_MUSTCHECK;
int hs_entry_read_head(struct hs_run *run, uint16_t slot, struct hs_bytes key,
		       struct hs_entry *entry) HS_MUSTCHECK;
/* hs_entry_find, hs_entry_read and hs_entry_read_head for strings: reply with WRONGTYPE for a live
 * key of another type. */
int hs_entry_find_string(struct hs_run *run, struct hs_bytes key,
			 struct hs_entry *entry) HS_MUSTCHECK;
int hs_entry_read_string(struct hs_run *run, struct hs_bytes key,
			 struct hs_entry *entry) HS_MUSTCHECK;
int hs_entry_read_string_head(struct hs_run *run, struct hs_bytes key,
			      struct hs_entry *entry) HS_MUSTCHECK;

/* A live string's bytes; empty for a missing key. */
static inline struct hs_bytes hs_entry_value(const struct hs_entry *entry)
{
	return entry->live ? entry->record.payload : (struct hs_bytes){NULL, 0};
}

/* The expiry of a live key; HS_EXPIRE_NEVER for a missing one. */
static inline int64_t hs_entry_expiry(const struct hs_entry *entry)
{
	return entry->live ? entry->record.expire_ms : HS_EXPIRE_NEVER;
}

/* Makes the key a string of `len` bytes. The caller writes them to *room and calls hs_entry_seal
 * before any other call to the store. Every pointer into the store is invalid from here on. */
int hs_entry_reserve(struct hs_run *run, struct hs_entry *entry, struct hs_attributes attributes,
		     size_t len, char **room) HS_MUSTCHECK;
/* The value is written: writes the record's checksum. */
static inline void hs_entry_seal(struct hs_entry *entry)
{
	hs_record_seal(entry->written, entry->written_bytes, hs_record_seed(entry->physical.data));
}
/* Makes the key a string with this value. The value must not lie in the store. */
int hs_entry_put(struct hs_run *run, struct hs_entry *entry, struct hs_attributes attributes,
		 struct hs_bytes value) HS_MUSTCHECK;
/* Changes the attributes of a live key; its value stays. */
int hs_entry_change(struct hs_run *run, struct hs_entry *entry,
		    struct hs_attributes attributes) HS_MUSTCHECK;
/* hs_entry_change for changes that only OBJECT ENCODING shows: no watch is touched and no changed
 * key is noted. */
int hs_entry_change_quietly(struct hs_run *run, struct hs_entry *entry,
			    struct hs_attributes attributes) HS_MUSTCHECK;
/* Removes the record of the key, if there is one. */
int hs_entry_remove(struct hs_run *run, struct hs_entry *entry) HS_MUSTCHECK;

/* The flags that a changed record inherits from the old value. */
static inline unsigned hs_entry_flags(const struct hs_entry *entry)
{
	return entry->record.flags & (HS_RECORD_RAW | HS_RECORD_NO_INT | HS_RECORD_UNSHARED);
}

enum hs_encoding { HS_ENCODING_INT, HS_ENCODING_EMBSTR, HS_ENCODING_RAW };
enum hs_encoding hs_record_encoding(const struct hs_record *record);
const char *hs_record_type_name(enum hs_record_type type); /* as TYPE replies it */

void hs_value_copy_init(struct hs_value_copy *copied, struct hs_bytes bytes);
void hs_value_copy_deinit(struct hs_value_copy *copied);

/* --- expire.c */

/* The expiry that an option or argument stands for, or an error reply. Redis's rules for SET, GETEX
 * and SETEX; EXPIRE has its own (expire.c). */
int hs_expire_argument(struct hs_run *run, size_t index, bool seconds, bool absolute,
		       int64_t *expire_ms) HS_MUSTCHECK;

/* --- the commands */

#define OTHER
#define ENGINE(function) hs_run_function function;
#define ROW(identifier, function, ...) function
#include "command/rows.def"

#endif
