/*
 * The file store: bytes under keys made of numbers.
 *
 * The one place that builds paths, and it builds them from numbers of ours
 * alone; a client's file name never becomes a path.  The interface asks nothing
 * that only a local file system can do (no rename, no append, no links, no
 * locks), so that an object store can stand behind it: keys are written once,
 * whole or not at all, under a name that was never used before, and the row of
 * the database that names a key decides which of several versions counts.  A
 * worker that lost its lease therefore never replaces another's result, and an
 * upload that comes too late never replaces an earlier one.
 *
 * Here it is a local file system: sharded folders, an O_TMPFILE (or, where the
 * file system has none, a file under tmp/), fdatasync, link or rename, fsync of
 * the folder.  Knows no HTTP, no database.
 */
#ifndef SERVICE_STORAGE_H
#define SERVICE_STORAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <imgward/context.h>

#include "model/filekey.h"

/*
 * The numbers of a key and its text, by kind:
 *
 *   FILEKEY_UPLOAD     in/<order>/<position>.<version>           version from storage_version_new
 *   FILEKEY_ORIGINAL   original/<order>/<position>.<version>
 *   FILEKEY_RESULT     out/<order>/<fileId>.<attempt>[.<part>]   part from 1 where a file has several
 *   FILEKEY_ZIP        zip/<order>/0.<version>
 *   FILEKEY_THUMBNAIL  thumb/<order>/0.<version>
 *
 * All numbers are at least 0; order_id at least 1.
 */
struct storage_key {
    enum filekey_kind kind;
    int64_t order_id;
    int64_t number;
    int64_t version;
    int64_t part; /* 0: none, and not in the text */
};

enum { storage_key_size = 128 };

struct storage_facts {
    int64_t size_bytes;
    int64_t modified_ms; /* since 1970 */
};

struct storage;
struct storage_writer;

/* The text of a key as the database keeps it (results.store_key and so on): "out/7001/12.1.2".  The arena's.
 */
const char *storage_key_text(struct arena *arena, const struct storage_key *key);

/* Reads exactly what storage_key_text writes; false for everything else. */
bool storage_key_read(const char *text, struct storage_key *key);

/* A version for a key, random and positive: no two writers ever get the same. */
int64_t storage_version_new(void);

/*
 * Opens the store at a path (store.path), making the folders it needs.
 * IO_FAILED when it is no folder or cannot be written.  The caller owns it and
 * frees it with storage_close.
 */
enum iw_error storage_open(struct context *context, const char *path, struct storage **storage) IW_MUST_USE;
void storage_close(struct storage *storage);

/*
 * Writing: begin, add pieces, then commit or abandon; both free the writer.
 * Nothing is visible before commit, and after commit the bytes and their name
 * are on the disk.  Dying in between leaves nothing (at worst a file under tmp/
 * that storage_sweep removes).  A key that is there already is replaced as a
 * whole.  Errors: SERVICE_UNAVAILABLE (reasons store_full, store_failed); after
 * a failed add only storage_put_abandon may follow, after a failed commit
 * nothing.
 */
enum iw_error storage_put_begin(struct storage *storage, struct context *context,
                                struct storage_writer **writer) IW_MUST_USE;
enum iw_error storage_put_add(struct storage_writer *writer, struct context *context, const void *bytes,
                              size_t size) IW_MUST_USE;
enum iw_error storage_put_commit(struct storage_writer *writer, struct context *context,
                                 const struct storage_key *key) IW_MUST_USE;
void storage_put_abandon(struct storage_writer *writer);

/* The four in one for bytes that are in memory. */
enum iw_error storage_put_bytes(struct storage *storage, struct context *context,
                                const struct storage_key *key, const void *bytes, size_t size) IW_MUST_USE;

/*
 * A read-only descriptor at the start of the bytes, seekable, the caller's to
 * close; facts may be NULL.  NOT_FOUND when there is none, SERVICE_UNAVAILABLE
 * (store_failed) for what is no regular file of ours: symbolic links are never
 * followed.
 */
enum iw_error storage_get(struct storage *storage, struct context *context, const struct storage_key *key,
                          int *descriptor, struct storage_facts *facts) IW_MUST_USE;

/* Size and time.  NOT_FOUND as above. */
enum iw_error storage_stat(struct storage *storage, struct context *context, const struct storage_key *key,
                           struct storage_facts *facts) IW_MUST_USE;

/* Deletes; a key that is not there is fine. */
enum iw_error storage_delete(struct storage *storage, struct context *context,
                             const struct storage_key *key) IW_MUST_USE;

/*
 * Calls visit for every key of a kind, in no order; for reclaiming what no row
 * names.  order_id 0 is all orders.  visit answers false to stop.  What appears
 * or goes meanwhile may be told or not.
 */
typedef bool storage_visit(void *user, const struct storage_key *key, const struct storage_facts *facts);
enum iw_error storage_list(struct storage *storage, struct context *context, enum filekey_kind kind,
                           int64_t order_id, storage_visit *visit, void *user) IW_MUST_USE;

/* The same for one of so many parts of a kind, so that a walk need not be done at once; an order is in one
 * part whole. */
enum { storage_part_count = 4096 };
enum iw_error storage_list_part(struct storage *storage, struct context *context, enum filekey_kind kind,
                                unsigned part, storage_visit *visit, void *user) IW_MUST_USE;

/* Free and all bytes of the file system under a store's folder; false when they cannot be had. */
bool storage_room(const char *path, int64_t *free_bytes, int64_t *size_bytes);

/* Removes unfinished writes older than age_s that a death left behind; count may be NULL. */
enum iw_error storage_sweep(struct storage *storage, struct context *context, int64_t age_s,
                            unsigned *count) IW_MUST_USE;

/*
 * What the front server is told to deliver instead of us: the address under its
 * internal location for the store ("out/3f7/7001.12.1").  The arena's.
 */
const char *storage_handover(struct arena *arena, const struct storage_key *key);

#endif
