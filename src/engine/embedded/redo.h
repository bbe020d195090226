/* The redo log: changes, written down and synced before any reader sees them. Two files, used in
 * turn and filled with zeros when they are made, so that a later sync moves no metadata: that makes
 * a commit cheap.
 *
 *     log-0   | 7 | 8 | 9 | 10 |  3 | 4 |  zeros      <- 3 and 4 are left over from an earlier turn
 *     log-1   | 11 | 12 |  zeros
 *
 * Records carry consecutive numbers and a checksum. Reading stops at the first record that does not
 * fit: a torn one, or one left over, which has a smaller number. After each start the numbers leap
 * ahead, so that nothing from before a crash can fit behind a newer record. The checksum is seeded
 * with the database's secret: a client cannot write a value that reads as a record. The record's
 * head has a check of its own with the same seed: a client cannot forge heads either, so a search
 * through a file takes time in proportion to its length.
 *
 * A power cut may tear the last record: it was not synced, so no client was answered for it. A torn
 * record and a damaged one look the same; what lies behind them tells them apart. The writer
 * appends a record only when the one before it is synced, and says so in it (unless syncs are off).
 * So a whole record with a higher number proves that the broken one was on disk: that is damage,
 * and reading must not pass it off as the end. For the same reason each sync is followed by a mark,
 * an empty record that the next real one overwrites: it proves that the last record of all was
 * synced. The mark itself is not synced. After a killed process it is in the system's memory; after
 * a power cut it may be missing, and then damage to the last record alone goes unnoticed.
 *
 * The checkpoint says how long both files are at least: a shorter or missing one is damage. A file
 * is made longer before a checkpoint says so, and shorter after one does. So a crash between the
 * two steps leaves files that are longer than the checkpoint says, never shorter.
 *
 * Three kinds of damage look like the end of the log and stay unseen:
 *   - zeros or older bytes in place of the last records and the mark behind them, from some record
 *     to the last one: a disk that lost the last writes it had confirmed;
 *   - the same in place of the mark alone, together with damage to the record before it;
 *   - a record longer than a whole file, if it is the last one, and its file was cut to no less
 *     than the checkpoint says. No mark is written behind such a record.
 *
 * A record holds after-images, entry by entry, of all stores that one group touched; applying it
 * twice is the same as once. When a store fails to commit changes that the log already has, an
 * abort record follows that names the store.
 *
 * One thread at a time: the committer, or the syncer while the committer waits for it. Nothing here
 * knows LMDB or commands. */
#ifndef HS_ENGINE_EMBEDDED_REDO_H
#define HS_ENGINE_EMBEDDED_REDO_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/check.h"
#include "engine/embedded/files.h"
#include "engine/engine.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

/* VOID never reaches a log: an entry that a newer one replaced (pending_redo.h). */
enum hs_redo_op { HS_REDO_VOID, HS_REDO_PUT, HS_REDO_DEL, HS_REDO_CLEAR };

/* One change. CLEAR empties both trees. */
struct hs_redo_entry {
	enum hs_redo_op op;
	uint8_t tree;
	uint16_t store;
	struct hs_bytes key, value; /* borrowed */
};

/* Appends an entry; the value's bytes are left for the caller to fill: returns where in `buf`. */
size_t hs_redo_entry_append(struct hs_buf *buf, enum hs_redo_op op, uint8_t tree, uint16_t store,
			    struct hs_bytes key, size_t value_bytes);
/* Makes the entry that begins at `at` a void one. */
void hs_redo_entry_void(struct hs_buf *buf, size_t at);
/* Takes the first entry off `bytes`. 1, 0 at the end, HS_ECORRUPT. */
int hs_redo_entry_take(struct hs_bytes *bytes, struct hs_redo_entry *entry) HS_MUSTCHECK;

/* MARK: everything before it is synced; readers never return it. */
enum hs_redo_kind { HS_REDO_GROUP = 1, HS_REDO_ABORT, HS_REDO_MARK };

struct hs_redo_record {
	enum hs_redo_kind kind;
	uint64_t lsn;
	bool synced;	      /* all records before it were on disk when it was written */
	struct hs_bytes body; /* GROUP: entries. ABORT: the aborted lsn, then store numbers */
};

struct hs_redo {
	int fd[2];
	char path[2][HS_PATH_BYTES_MAX];
	uint64_t file_bytes; /* a longer record makes its file longer until the next turn */
	bool sync;
	uint64_t seed;
	int turn;	  /* the file written now */
	uint64_t at;	  /* where in it the next record goes */
	uint64_t lsn;	  /* of the next record */
	uint64_t used[2]; /* bytes of records in each file */
	struct hs_engine_counters counters;
};

/* Opens the two files. `make`: creates missing ones. Otherwise a missing file reads as empty: call
 * hs_redo_file_short before anything is written. */
int hs_redo_open(struct hs_redo *redo, const char *folder, bool make, uint64_t file_bytes,
		 bool sync, uint64_t seed, struct hs_fault *fault) HS_MUSTCHECK;
/* Opens the two files for readers only; a missing one reads as empty. */
int hs_redo_open_to_read(struct hs_redo *redo, const char *folder, uint64_t seed,
			 struct hs_fault *fault) HS_MUSTCHECK;
void hs_redo_close(struct hs_redo *redo);
/* Sets how many bytes of the file are records that a restart may need. */
void hs_redo_set_used(struct hs_redo *redo, int turn, uint64_t bytes);
/* Extends files that are shorter than file_bytes, on disk. They keep their contents. */
int hs_redo_grow(struct hs_redo *redo, struct hs_fault *fault) HS_MUSTCHECK;
/* Cuts files that are longer than file_bytes. Only while neither holds a record that is needed. */
int hs_redo_cut(struct hs_redo *redo, struct hs_fault *fault) HS_MUSTCHECK;
/* Is the file missing or shorter than its checkpoint says? Then `text` says so in one line. */
bool hs_redo_file_short(const struct hs_redo *redo, int turn, uint64_t bytes_min, char *text,
			size_t size);

/* Does a record with `body_bytes` fit behind the others, with room for an abort record after it? An
 * empty file takes any. */
bool hs_redo_fits(const struct hs_redo *redo, size_t body_bytes);
/* Goes on in the other file, from its start; its contents are overwritten. 0 or a negative errno. */
int hs_redo_turn(struct hs_redo *redo) HS_MUSTCHECK;
/* Path of the file written now, for messages. */
static inline const char *hs_redo_path(const struct hs_redo *redo)
{
	return redo->path[redo->turn];
}
/* Writes one record. 0 or a negative errno: then the next record goes to the same place; unless the
 * disk was full, a restart may still find this one. */
int hs_redo_append(struct hs_redo *redo, enum hs_redo_kind kind, const struct iovec *parts,
		   int count) HS_MUSTCHECK;
/* Syncs what was written and writes the mark. Does nothing when syncs are off. 0 or a negative
 * errno: then the state of the disk is unknown. */
int hs_redo_sync(struct hs_redo *redo) HS_MUSTCHECK;

/* Reads the records from `lsn` on, through both files. */
struct hs_redo_reader {
	uint64_t seed;
	uint64_t lsn; /* the next one expected */
	int turn;     /* the file being read; -1: none */
	int files_left;
	const char *map[2];
	size_t map_bytes[2];
	size_t at;
	/* index of the file in which reading ended; -1: no file begins with the first record */
	int end_file;
	size_t end_at;
	uint64_t summed_bytes; /* of bodies whose checksum was computed */
};

int hs_redo_reader_open(struct hs_redo_reader *reader, const struct hs_redo *redo, uint64_t lsn,
			struct hs_fault *fault) HS_MUSTCHECK;
/* The next record, its body borrowed until close; false at the end. */
bool hs_redo_reader_next(struct hs_redo_reader *reader, struct hs_redo_record *record);
void hs_redo_reader_close(struct hs_redo_reader *reader);

const char *hs_redo_file_name(int turn);

/* The place of a whole record. */
struct hs_redo_place {
	uint64_t lsn;
	int turn;
	uint64_t at;
};

/* The state of the log from a checkpoint on. */
struct hs_redo_survey {
	uint64_t records; /* consecutive ones, from the checkpoint on */
	uint64_t end_lsn; /* the number that comes next */
	/* index of the file in which that record would lie; -1: as in struct hs_redo_reader */
	int end_file;
	uint64_t end_at;
	uint64_t beyond;		   /* whole records of this or a higher number, anywhere */
	struct hs_redo_place beyond_first; /* the lowest of them, or a mark; lsn 0: none */
	bool damage;	       /* they show that a missing record before them was on disk */
	uint64_t summed_bytes; /* of bodies whose checksum was computed */
};

int hs_redo_survey(const struct hs_redo *redo, uint64_t lsn, struct hs_redo_survey *survey,
		   struct hs_fault *fault) HS_MUSTCHECK;

/* Writes one line that says where the log is broken and what lies behind. */
void hs_redo_survey_text(const struct hs_redo_survey *survey, const char *folder, char *text,
			 size_t size);

/* Skips a gap: moves to the whole record with the lowest number not below reader->lsn, in either
 * file; next then returns it. False: there is no such record. */
bool hs_redo_reader_leap(struct hs_redo_reader *reader, struct hs_redo_place *place);

/* The body of a broken record at `at`, up to `end`. The caller may take entries off it until one
 * makes no sense. Borrowed until close. */
struct hs_bytes hs_redo_broken_body(const struct hs_redo_reader *reader, int turn, size_t at,
				    size_t end);

/* The first number of a new start: higher than any number that the last one can have used. */
static inline uint64_t hs_redo_lsn_leap(uint64_t lsn)
{
	return ((lsn >> 40) + 1) << 40;
}

#endif
