/*
 * The file store: bytes under keys made of numbers.
 *
 * Only the drivers build paths, and only from numbers of the service; a client's file name is never part of a
 * path. The interface needs no operation that only a local file system has: no rename, append, links or
 * locks. A key is written once, atomically, under a name that was never used before. The database row that
 * names a key determines which version is valid. So a worker that lost its lease never replaces the result of
 * another worker, and a late upload never replaces an earlier upload.
 *
 * store.driver selects the driver: a local file system (store_local.h), or an S3-compatible
 * object store (store_s3.h). Knows no database.
 */
#ifndef SERVICE_FILES_STORAGE_H
#define SERVICE_FILES_STORAGE_H

#include "service/files/storage_driver.h"

/*
 * Opens the store with the driver of the configuration. IO_FAILED or CONFIG_INVALID if the settings are
 * wrong, SERVICE_UNAVAILABLE if the store is unavailable. The caller owns it; free it with storage_close.
 */
enum iw_error storage_open(struct context *context, const struct config *config,
                           struct storage **storage) IW_MUST_USE;
void storage_close(struct storage *storage);

/*
 * To write a file, begin, add pieces, then commit or abandon, which both free the writer. Nothing is visible
 * before the commit; after the commit, the bytes and their name are durable. A process that dies in between
 * leaves nothing, or a file under tmp/ that storage_sweep removes. The file of an existing key is replaced as
 * a whole.
 *
 * Errors: SERVICE_UNAVAILABLE (reasons store_full, store_failed). After a failed add call only
 * storage_put_abandon; after a failed commit call nothing.
 */
enum iw_error storage_put_begin(struct storage *storage, struct context *context,
                                const struct storage_key *key, struct storage_writer **writer) IW_MUST_USE;
enum iw_error storage_put_add(struct storage_writer *writer, struct context *context, const void *bytes,
                              size_t size) IW_MUST_USE;
enum iw_error storage_put_commit(struct storage_writer *writer, struct context *context) IW_MUST_USE;
void storage_put_abandon(struct storage_writer *writer);

/* Writes bytes in memory: begin, add and commit. */
enum iw_error storage_put_bytes(struct storage *storage, struct context *context,
                                const struct storage_key *key, const void *bytes, size_t size) IW_MUST_USE;

/*
 * Returns a read-only, seekable descriptor at the start of the bytes; the caller closes it.
 * facts may be NULL. NOT_FOUND if the key does not exist. SERVICE_UNAVAILABLE (store_failed)
 * if it is not a regular file; symbolic links are never followed.
 */
enum iw_error storage_get(struct storage *storage, struct context *context, const struct storage_key *key,
                          int *descriptor, struct storage_facts *facts) IW_MUST_USE;

/*
 * The same for one version of an object: NOT_FOUND (store_changed) if the ETag differs. NULL accepts any
 * version.
 */
enum iw_error storage_get_match(struct storage *storage, struct context *context,
                                const struct storage_key *key, const char *etag, int *descriptor,
                                struct storage_facts *facts) IW_MUST_USE;

/* Returns size and modification time. NOT_FOUND as for storage_get. */
enum iw_error storage_stat(struct storage *storage, struct context *context, const struct storage_key *key,
                           struct storage_facts *facts) IW_MUST_USE;

/* Deletes a key; a missing key is not an error. */
enum iw_error storage_delete(struct storage *storage, struct context *context,
                             const struct storage_key *key) IW_MUST_USE;

/* Deletes keys; stops at the first error. */
enum iw_error storage_delete_list(struct storage *storage, struct context *context,
                                  const struct storage_key *keys, size_t count) IW_MUST_USE;

/*
 * Calls visit for every key of a kind, in no particular order, to delete files that no row names. An order_id
 * of 0 selects all orders. The callback returns false to stop. Keys that are written or deleted during the
 * call may be visited or not.
 */
enum iw_error storage_list(struct storage *storage, struct context *context, enum filekey_kind kind,
                           int64_t order_id, storage_visit *visit, void *user) IW_MUST_USE;

bool storage_cursor_is_start(const struct storage_cursor *cursor);

/* Returns a cursor at a random position, so that even processes that restart often visit all keys. */
struct storage_cursor storage_cursor_random(const struct storage *storage);

/*
 * Makes one step of the walk: visits the next keys of all kinds and advances the cursor. After the last key,
 * the cursor is at the start again. The callback cannot stop a step.
 */
enum iw_error storage_walk(struct storage *storage, struct context *context, struct storage_cursor *cursor,
                           storage_visit *visit, void *user) IW_MUST_USE;

/* ---- Object stores ---- */

/* True if clients upload to the store and download from it through its own URLs (storage_url). */
bool storage_is_direct(const struct storage *storage);

/* Returns a presigned URL of a direct store, in the arena. Never log the URL. */
const char *storage_url(struct storage *storage, struct arena *arena, const struct storage_link *link);

/* Fills size, ETag and first bytes of objects of a direct store, in parallel. */
enum iw_error storage_peek(struct storage *storage, struct context *context, struct storage_object *objects,
                           size_t count) IW_MUST_USE;

/*
 * Copies objects of a direct store inside it, in parallel; to has the keys of the copies. An object is copied
 * only if it still has its ETag; otherwise is_there becomes false. Sets etag to the ETag of the copy.
 */
enum iw_error storage_copy(struct storage *storage, struct context *context, struct storage_object *objects,
                           const struct storage_key *to, size_t count) IW_MUST_USE;

/*
 * Returns when an access last failed through a fault of the store, with the reason; 0 and NULL if that never
 * happened. Failures in child processes are not included.
 */
int64_t storage_failed_ms(const struct storage *storage, const char **reason);

/* Reads the free and total bytes of the store's file system. Returns false if they are unknown. */
bool storage_room(const char *path, int64_t *free_bytes, int64_t *size_bytes);

/* Removes unfinished writes older than age_s that dead processes left behind. count may be NULL. */
enum iw_error storage_sweep(struct storage *storage, struct context *context, int64_t age_s,
                            unsigned *count) IW_MUST_USE;

#endif
