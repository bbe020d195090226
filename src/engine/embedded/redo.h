/* The redo log: changes, written down and synced before any reader sees them. Two files, used in turn and filled
 * with zeros when they are made. So a later sync writes no metadata, which makes a commit cheap.
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
 * appends a record only when the one before it is synced, and notes this in the record (unless syncs are off). So
 * a whole record with a higher number proves that the broken one was on disk: that is damage, and reading must not
 * pass it off as the end. For the same reason each sync is followed by a mark, an empty record that the next real
 * one overwrites: it proves that the last record of all was synced. The mark itself is not synced. After a killed
 * process it is in the system's memory; after a power cut it may be missing, and then damage to the last record
 * alone goes unnoticed.
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

/* VOID: an entry that a newer entry replaced (pending_redo.h); it never reaches a log. */
enum hs_redo_op { HS_REDO_VOID, HS_REDO_PUT, HS_REDO_DEL, HS_REDO_CLEAR };

/* One change. HS_REDO_CLEAR empties both trees of the store. */
struct hs_redo_entry {
	enum hs_redo_op op;
	uint8_t tree;
	uint16_t store;
	struct hs_bytes key, value; /* borrowed */
};

/* Appends an entry and returns the offset of its value in `buf`; the caller writes the value's bytes there. */
size_t hs_redo_entry_append(struct hs_buf *buf, enum hs_redo_op op, uint8_t tree, uint16_t store,
			    struct hs_bytes key, size_t value_bytes);
/* Makes the entry at offset `at` void. */
void hs_redo_entry_void(struct hs_buf *buf, size_t at);
/* Takes the first entry off `bytes`. Returns 1; 0: `bytes` is empty; HS_ECORRUPT. */
int hs_redo_entry_take(struct hs_bytes *bytes, struct hs_redo_entry *entry) HS_MUSTCHECK;

/* MARK: every record before the mark is synced. hs_redo_reader_next never returns a mark. */
enum hs_redo_kind { HS_REDO_GROUP = 1, HS_REDO_ABORT, HS_REDO_MARK };

struct hs_redo_record {
	enum hs_redo_kind kind;
	uint64_t lsn;
	bool synced; /* all records before this one were on disk when it was written */
	/* GROUP: entries. ABORT: the lsn of the aborted record, then the numbers of the stores */
	struct hs_bytes body;
};

struct hs_redo {
	int fd[2];
	char path[2][HS_PATH_BYTES_MAX];
	uint64_t file_bytes; /* a longer record makes its file longer until the next turn */
	bool sync;
	uint64_t seed;
	int turn;	  /* the file that records are written to */
	uint64_t at;	  /* offset of the next record in this file */
	uint64_t lsn;	  /* number of the next record */
	uint64_t used[2]; /* bytes of records in each file */
	struct hs_engine_counters counters;
};

/* Opens the two files. `make`: creates missing ones. Otherwise a missing file reads as empty: the caller checks
 * the files with hs_redo_file_short before it writes anything. */
int hs_redo_open(struct hs_redo *redo, const char *folder, bool make, uint64_t file_bytes,
		 bool sync, uint64_t seed, struct hs_fault *fault) HS_MUSTCHECK;
/* Opens the two files for readers only; a missing one reads as empty. */
int hs_redo_open_to_read(struct hs_redo *redo, const char *folder, uint64_t seed,
			 struct hs_fault *fault) HS_MUSTCHECK;
void hs_redo_close(struct hs_redo *redo);
/* Sets the number of bytes in the file with records that a restart may need. */
void hs_redo_set_used(struct hs_redo *redo, int turn, uint64_t bytes);
/* Makes files that are shorter than file_bytes longer, on disk. Their contents stay. */
int hs_redo_grow(struct hs_redo *redo, struct hs_fault *fault) HS_MUSTCHECK;
/* Cuts files that are longer than file_bytes. Neither file may hold a record that is needed. */
int hs_redo_cut(struct hs_redo *redo, struct hs_fault *fault) HS_MUSTCHECK;
/* True: the file is missing or shorter than its checkpoint says; `text` then has one line about it. */
bool hs_redo_file_short(const struct hs_redo *redo, int turn, uint64_t bytes_min, char *text,
			size_t size);

/* True: a record with `body_bytes` fits behind the others, with room for an abort record after it. An empty file
 * takes any record. */
bool hs_redo_fits(const struct hs_redo *redo, size_t body_bytes);
/* Turns to the other file: the next records overwrite its contents from the start. Returns 0 or a negative
 * errno. */
int hs_redo_turn(struct hs_redo *redo) HS_MUSTCHECK;
/* Path of the file that records are written to, for messages. */
static inline const char *hs_redo_path(const struct hs_redo *redo)
{
	return redo->path[redo->turn];
}
/* Writes one record. Returns 0 or a negative errno. After an error the next record goes to the same place; unless
 * the disk was full, a restart may still find the record that failed. */
int hs_redo_append(struct hs_redo *redo, enum hs_redo_kind kind, const struct iovec *parts,
		   int count) HS_MUSTCHECK;
/* Syncs the records and writes the mark. Does nothing if syncs are off. Returns 0 or a negative errno: then the
 * state of the disk is unknown. */
int hs_redo_sync(struct hs_redo *redo) HS_MUSTCHECK;

/* Reads the records from `lsn` on, in both files. */
struct hs_redo_reader {
	uint64_t seed;
	uint64_t lsn; /* number of the next record */
	int turn;     /* the file being read; -1: none */
	int files_left;
	const char *map[2];
	size_t map_bytes[2];
	size_t at;
	/* index of the file in which reading ended; -1: no file begins with the first record */
	int end_file;
	size_t end_at;
	uint64_t summed_bytes; /* bytes of bodies whose checksum was computed */
};

int hs_redo_reader_open(struct hs_redo_reader *reader, const struct hs_redo *redo, uint64_t lsn,
			struct hs_fault *fault) HS_MUSTCHECK;
/* Returns the next record, whose body is borrowed until close. False: the end. */
bool hs_redo_reader_next(struct hs_redo_reader *reader, struct hs_redo_record *record);
void hs_redo_reader_close(struct hs_redo_reader *reader);

const char *hs_redo_file_name(int turn);

/* The place of an undamaged record. */
struct hs_redo_place {
	uint64_t lsn;
	int turn;
	uint64_t at;
};

/* The state of the log from a checkpoint on. */
struct hs_redo_survey {
	uint64_t records; /* number of consecutive records from the checkpoint on */
	uint64_t end_lsn; /* the number behind the last of these records */
	/* index of the file in which the record end_lsn would be; -1: as in struct hs_redo_reader */
	int end_file;
	uint64_t end_at;
	/* number of undamaged records with end_lsn or a higher number, anywhere in the files */
	uint64_t beyond;
	struct hs_redo_place beyond_first; /* the lowest of these records, or a mark; lsn 0: none */
	/* these records show that a missing record before them was on disk */
	bool damage;
	uint64_t summed_bytes; /* bytes of bodies whose checksum was computed */
};

int hs_redo_survey(const struct hs_redo *redo, uint64_t lsn, struct hs_redo_survey *survey,
		   struct hs_fault *fault) HS_MUSTCHECK;

/* Writes one line that says where the log is broken and which records follow. */
void hs_redo_survey_text(const struct hs_redo_survey *survey, const char *folder, char *text,
			 size_t size);

/* Skips a gap: moves to the undamaged record with the lowest number from reader->lsn on, in either file;
 * hs_redo_reader_next then returns it. False: there is no such record. */
bool hs_redo_reader_leap(struct hs_redo_reader *reader, struct hs_redo_place *place);

/* The body of a broken record at `at`, up to `end`. The caller may take entries off the body until an entry makes
 * no sense. Borrowed until close. */
struct hs_bytes hs_redo_broken_body(const struct hs_redo_reader *reader, int turn, size_t at,
				    size_t end);

/* The first number of a new start: higher than any number that the last start can have used. */
static inline uint64_t hs_redo_lsn_leap(uint64_t lsn)
{
	return ((lsn >> 40) + 1) << 40;
}

#endif
