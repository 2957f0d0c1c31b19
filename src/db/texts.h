/*
 * The tables watermark_texts and order_watermarks.
 *
 * Each marked copy carries its own number of 64 random bits.  order_watermarks maps it to order, file and
 * text.  The row stays if the order is deleted.
 */
#ifndef DB_TEXTS_H
#define DB_TEXTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/context.h"
#include "db/db.h"
#include "model/order.h"

/*
 * What finds an order beside its name: two columns, and joins behind "orders o ... files f".  Each row has
 * the name of a file or NULL, and a text or NULL.  A reading of several marks is cut at the length of one
 * text, so that the index has a bound.  The types save reads of rows that other orders lack.  A text
 * comes once for each copy, because GROUP_CONCAT costs each statement a temporary table of 0.3 ms.
 */
#define TEXTS_NAMES "IF(w.copy > 1, NULL, f.name), COALESCE(t.text, LEFT(e.watermark_text, 1000)) "
#define TEXTS_JOINS                                                                                          \
    " LEFT JOIN order_watermarks w ON w.order_id = IF(o.type = 'watermarkEmbed', o.id, NULL) AND "           \
    "w.file_position = f.position LEFT JOIN watermark_texts t ON t.id = w.text_id LEFT JOIN orders e ON "    \
    "e.id = IF(o.type = 'watermarkExtract', o.id, NULL)"

/* A text of a new order. */
struct text_entry {
    const char *text;
    size_t length;
    uint8_t digest[32]; /* SHA-256 */
    int64_t id;         /* 0 before texts_register */
};

/*
 * Finds the ids of an account's texts, or inserts the texts, byte for byte. In a transaction, pass the
 * texts sorted by digest, each once. *new_count gets the number of inserted texts.
 */
enum iw_error texts_register(const struct db *db, int64_t account_id, struct text_entry *texts, size_t count,
                             int64_t now_ms, int64_t *new_count) IW_MUST_USE;

/* The text of a number, in the arena; NULL if the account has no such number. */
enum iw_error texts_find(const struct db *db, int64_t account_id, uint64_t number, const char **text,
                         size_t *length) IW_MUST_USE;

/* A text and its account; the strings are in the arena. */
struct text_owner {
    int64_t account_id;
    const char *account_name;
    const char *text;
    int64_t created_at_ms;
    int64_t order_id;
    int64_t file_position;
};

/* The copy of a number, of any account. */
enum iw_error texts_owner(const struct db *db, uint64_t number, struct text_owner *owner,
                          bool *is_found) IW_MUST_USE;

/* The number in a copy of a file; NOT_FOUND. */
enum iw_error texts_number(const struct db *db, int64_t order_id, int64_t file_position, int64_t copy,
                           uint64_t *number) IW_MUST_USE;

/* Reads the newest numbers of an account, at most most of them; the array is in the arena. */
enum iw_error texts_candidates(const struct db *db, int64_t account_id, unsigned most, uint64_t **numbers,
                               size_t *count) IW_MUST_USE;

/* The bytes of a view: the file of a copy in small (watermark_view). All copies of a file have that of the
 * first. */
enum iw_error texts_view_write(const struct db *db, int64_t order_id, int64_t file_position, const void *view,
                               size_t length) IW_MUST_USE;

/* The view of the file in which an account's number was embedded; length 0 if there is none. */
enum iw_error texts_view(const struct db *db, int64_t account_id, uint64_t number, const void **view,
                         size_t *length) IW_MUST_USE;

/* A column for the answer, NULL for UNKNOWN, and back. */
struct db_value texts_same_value(enum same_picture same);
enum same_picture texts_same_of(struct db_row *columns);

/* Records that an extraction found a number. */
enum iw_error texts_reading_write(const struct db *db, int64_t order_id, uint64_t number,
                                  enum same_picture same) IW_MUST_USE;

/* A copy that an extraction found, and the order that made it. */
struct text_finding {
    const char *text;
    int64_t order_id;
    const char *order_name;
    const char *file_name;
    int64_t created_at_ms; /* of the order */
    enum same_picture same;
};

/* The copies that an extraction found, if their orders still exist; the array is in the arena. */
enum iw_error texts_findings(const struct db *db, int64_t order_id, struct text_finding **findings,
                             size_t *count) IW_MUST_USE;

/* The texts of an embed order, file by file; the array is in the arena. */
enum iw_error texts_list(const struct db *db, int64_t order_id, struct order_text **texts,
                         size_t *count) IW_MUST_USE;

#endif
