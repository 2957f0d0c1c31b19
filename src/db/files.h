/* The table files: uploads, their errors and notes, and the bytes that rows name.  Lock the order first. */
#ifndef DB_FILES_H
#define DB_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/context.h"
#include "db/query.h"
#include "model/file.h"
#include "model/filekey.h"

/*
 * The file of an upload URL.  With for_change the order's row is locked until the transaction ends.  A file
 * that the service fetches from a URL is not found.
 */
enum iw_error files_upload_find(const struct db *db, const struct filekey *key, bool for_change,
                                struct upload_file *file, bool *is_found) IW_MUST_USE;

/* Records the bytes of a file. */
enum iw_error files_upload_write(const struct db *db, int64_t file_id, int64_t now_ms,
                                 const struct upload_facts *facts) IW_MUST_USE;

/* Records why an uploaded object was refused; the job of the file ends with this error. */
enum iw_error files_refuse(const struct db *db, int64_t file_id, int64_t now_ms, enum iw_error code,
                           const char *sentence) IW_MUST_USE;

/* The first file of an order with a source URL; texts are in the arena. */
struct files_source {
    int64_t file_id;
    const char *error_code; /* NULL if there is none */
    const char *error_sentence;
    struct upload_facts facts; /* store_key NULL if not fetched yet */
};

/* NOT_FOUND if no file has the URL. */
enum iw_error files_source_first(const struct db *db, int64_t order_id, const char *source_url,
                                 struct files_source *source) IW_MUST_USE;

/* The sources of an order, in the order of its files; the array is in the arena. */
struct files_try {
    int64_t file_id;
    const char *source_url;
    const char *error_code; /* NULL if there is none */
    const char *error_sentence;
    bool is_fetched;
    int64_t failures; /* of the job */
};
enum iw_error files_tries(const struct db *db, int64_t order_id, struct files_try **tries,
                          size_t *count) IW_MUST_USE;

/* Records why a file fails; the first error stays. */
enum iw_error files_error_write(const struct db *db, int64_t file_id, enum iw_error code,
                                const char *sentence) IW_MUST_USE;

/* Records what a client sees of a result: the size of the largest copy, and the protection (-1 if there is
 * none). */
enum iw_error files_result_write(const struct db *db, int64_t file_id, int64_t size_bytes,
                                 int percent) IW_MUST_USE;

/* Writes the thumbnail of a file's result unless the file has one; *is_first is false then. */
enum iw_error files_thumbnail_write(const struct db *db, int64_t file_id, const char *store_key,
                                    const uint8_t digest[32], bool *is_first) IW_MUST_USE;

/* Records a note on a file's result; the first note of several copies stays. */
enum iw_error files_note_write(const struct db *db, int64_t file_id, const char *code,
                               const char *sentence) IW_MUST_USE;

/* Ends a file without jobs: failed if it has an error, complete otherwise. */
enum iw_error files_end(const struct db *db, int64_t file_id, int64_t now_ms, bool *is_failed) IW_MUST_USE;

/* Fails every file of an order that has not ended. */
enum iw_error files_fail(const struct db *db, int64_t order_id, enum iw_error code, const char *sentence,
                         int64_t now_ms) IW_MUST_USE;

/* Resets the files whose jobs jobs_reopen requeues next; count gets how many of them had failed. */
enum iw_error files_reopen(const struct db *db, int64_t order_id, int64_t now_ms, int64_t *count) IW_MUST_USE;

/*
 * Records that the inputs of at most orders_batch_max orders were deleted.  Deletes the URLs of output
 * targets, because they permit writing.
 */
enum iw_error files_inputs_forget(const struct db *db, const int64_t *order_ids, unsigned count) IW_MUST_USE;

/* ---- For operators and monitoring; read only ---- */

/* Bytes that rows name, of "inputs", "results" and "archives".  Reads all such rows. */
enum iw_error files_store_bytes(const struct db *db, struct query_count **counts,
                                unsigned *count) IW_MUST_USE;

/* A file in the store that a row names. */
struct files_stored {
    const char *store_key;
    int64_t order_id;
    int64_t size_bytes;    /* -1 if unknown */
    const uint8_t *digest; /* SHA-256; NULL if unknown */
};

/* A step of a walk through the orders. */
struct files_step {
    int64_t after_order_id; /* 0 at first; then the last order of the step */
    int64_t orders;         /* in the step; 0 at the end */
    struct files_stored *files;
    unsigned count;
};

/* The files of the next 50 orders; the array is in the arena, so that a walk needs little memory. */
enum iw_error files_stored_next(const struct db *db, struct files_step *step) IW_MUST_USE;

#endif
