/* What the command files of the keyspace share: the command being run, and a key looked up. Only
 * files in keyspace/ include this. */
#ifndef HS_KEYSPACE_INTERNAL_H
#define HS_KEYSPACE_INTERNAL_H

#include "base/err.h"
#include "keyspace/keyspace.h"
#include "keyspace/record.h"
#include "keyspace/watch.h"

#include <stdbool.h>

/* Functions here and commands return 0, HS_ANSWERED when the reply is complete and the command
 * must stop (mostly: an error was answered), or HS_EFULL or HS_EIO when the store failed. */
enum { HS_ANSWERED = 1 };

/* One command being run. */
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

/* A key and what the store has for it. The record is borrowed from the store: its payload is gone
 * after the next change, its numbers stay. */
struct hs_entry {
	struct hs_bytes key;
	uint16_t slot;
	bool stored; /* a record is there, perhaps past its time */
	bool live;   /* and its time is not up */
	struct hs_record record;
	struct hs_physical_key physical;
	/* The record written last for it, to be sealed. */
	char *written;
	size_t written_bytes;
};

/* A value kept over a change of the store. */
struct hs_value_copy {
	struct hs_bytes bytes;
	char *heap;
	char small[512];
};

/* What a key gets: everything but its bytes. */
struct hs_attributes {
	unsigned flags;	   /* HS_RECORD_RAW, NO_INT, UNSHARED */
	int64_t expire_ms; /* -1: never */
};

enum { HS_EXPIRE_NEVER = -1 };

/* --- run.c: replies, arguments */

/* Answers an error in place of whatever the command wrote before. Returns HS_ANSWERED. */
int hs_run_fail(struct hs_run *run, const char *text);
int hs_run_fail_syntax(struct hs_run *run);
int hs_run_fail_arity(struct hs_run *run);
int hs_run_fail_expire(struct hs_run *run); /* invalid expire time */
int hs_run_fail_type(struct hs_run *run);   /* WRONGTYPE */

/* argv[index] as an integer, or answers `error` (NULL: Redis's usual text). */
int hs_run_integer(struct hs_run *run, size_t index, const char *error,
		   int64_t *value) HS_MUSTCHECK;

/* An argument that names an option: letters match whatever their case. */
static inline bool hs_run_word(const struct hs_run *run, size_t index, const char *word)
{
	return hs_bytes_is_word(run->argv[index], word);
}

/* The slot of one of several keys: the keys of a split command share a store, not a slot. */
uint16_t hs_run_slot(const struct hs_run *run, struct hs_bytes key);

/* --- entry.c: keys */

static inline bool hs_expired(const struct hs_keyspace *ks, int64_t expire_ms)
{
	return expire_ms != HS_EXPIRE_NEVER && ks->now_ms > expire_ms;
}

/* Looks the key up. A record that cannot be read or fails its checksum answers an error. */
int hs_entry_find(struct hs_run *run, uint16_t slot, struct hs_bytes key,
		  struct hs_entry *entry) HS_MUSTCHECK;
/* The same without the checksums of a long value's parts: for commands that look at no byte of it,
 * or at some, with hs_entry_check. */
int hs_entry_find_head(struct hs_run *run, uint16_t slot, struct hs_bytes key,
		       struct hs_entry *entry) HS_MUSTCHECK;
/* Looks up a key to be replaced or removed whatever it holds: a damaged record is one without
 * expiry. */
int hs_entry_find_to_replace(struct hs_run *run, uint16_t slot, struct hs_bytes key,
			     struct hs_entry *entry) HS_MUSTCHECK;
/* Answers an error if the bytes `from` to `to` of the value fail their checksums. */
int hs_entry_check(struct hs_run *run, const struct hs_entry *entry, size_t from,
		   size_t to) HS_MUSTCHECK;
/* Notes a damaged key for the context's owner. Returns its name as text. */
const char *hs_run_damaged(struct hs_keyspace *ks, struct hs_bytes key);
/* The same for a command that Redis counts as a read: a hit or a miss. */
int hs_entry_read(struct hs_run *run, uint16_t slot, struct hs_bytes key,
		  struct hs_entry *entry) HS_MUSTCHECK;
int hs_entry_read_head(struct hs_run *run, uint16_t slot, struct hs_bytes key,
		       struct hs_entry *entry) HS_MUSTCHECK;
/* The same, and answers WRONGTYPE for a live key that is no string. */
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

/* The expiry of a live key; never for a missing one. */
static inline int64_t hs_entry_expiry(const struct hs_entry *entry)
{
	return entry->live ? entry->record.expire_ms : HS_EXPIRE_NEVER;
}

/* Makes the key a string of `len` bytes, to be written to *room and sealed before anything else is
 * asked of the store. Every pointer into the store is invalid from here on. */
int hs_entry_reserve(struct hs_run *run, struct hs_entry *entry, struct hs_attributes attributes,
		     size_t len, char **room) HS_MUSTCHECK;
/* The value is in its room: writes the record's checksum. */
static inline void hs_entry_seal(struct hs_entry *entry)
{
	hs_record_seal(entry->written, entry->written_bytes, hs_record_seed(entry->physical.data));
}
/* Makes the key a string with this value, which must not lie in the store. */
int hs_entry_put(struct hs_run *run, struct hs_entry *entry, struct hs_attributes attributes,
		 struct hs_bytes value) HS_MUSTCHECK;
/* Keeps a live key's value and changes its attributes. */
int hs_entry_change(struct hs_run *run, struct hs_entry *entry,
		    struct hs_attributes attributes) HS_MUSTCHECK;
/* The same where Redis changes how it holds a value and nothing else: nobody is told. */
int hs_entry_change_quietly(struct hs_run *run, struct hs_entry *entry,
			    struct hs_attributes attributes) HS_MUSTCHECK;
/* Removes what is stored for the key; nothing stored is fine. */
int hs_entry_remove(struct hs_run *run, struct hs_entry *entry) HS_MUSTCHECK;

/* The flags that stay with a value. */
static inline unsigned hs_entry_flags(const struct hs_entry *entry)
{
	return entry->record.flags & (HS_RECORD_RAW | HS_RECORD_NO_INT | HS_RECORD_UNSHARED);
}

enum hs_encoding { HS_ENCODING_INT, HS_ENCODING_EMBSTR, HS_ENCODING_RAW };
enum hs_encoding hs_record_encoding(const struct hs_record *record);
const char *hs_record_type_name(enum hs_record_type type); /* as TYPE says it */

void hs_value_copy_init(struct hs_value_copy *copied, struct hs_bytes bytes);
void hs_value_copy_deinit(struct hs_value_copy *copied);

/* --- expire.c */

/* The expiry that an option or argument means, or answers the error: Redis's rules for SET and its
 * kin, which are not those of EXPIRE. */
int hs_expire_argument(struct hs_run *run, size_t index, bool seconds, bool absolute,
		       int64_t *expire_ms) HS_MUSTCHECK;

/* --- the commands */

#define OTHER
#define ENGINE(function) hs_run_function function;
#define ROW(identifier, function, ...) function
#include "command/rows.def"

#endif
