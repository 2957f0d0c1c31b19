/*
 * The tables order_segments and order_words: what the lists of an account filter by, in ranges of order ids.
 *
 * A segment's positions are valid for one version.  A status is written to the segment in the transaction
 * that changes the order, after the order's row: segments are built under locks of these rows, so that both
 * agree.
 */
#ifndef STORE_SEGMENTS_H
#define STORE_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <imgward/context.h>

#include "model/order.h"
#include "store/query.h"

/* The byte of an order in a segment's facts. */
enum { segment_gone = 255 };
static inline uint8_t segment_fact(enum order_type type, enum order_channel channel, enum order_status status)
{
    return (uint8_t)((unsigned)status | (unsigned)type << 3 | (unsigned)channel << 5);
}

/* The bits of a filter's facts and their values; bits 0: no filter. */
struct segment_mask {
    uint8_t bits, value;
};
struct segment_mask segment_mask_of(const struct order_filter *filter);

/* True when an order is there and has the values of the mask. */
static inline bool segment_fact_fits(uint8_t fact, struct segment_mask mask)
{
    return fact != segment_gone && (fact & mask.bits) == mask.value;
}

/* A range of an account. */
struct segment {
    int64_t first_id;
    int64_t last_id;
    int64_t version;
    int64_t order_count;
    bool is_open;
};

/* The words of a segment that begin with the same bytes (src/domain/posting.h). */
struct segments_words {
    int64_t first_id;
    char bucket[2];
    size_t bucket_length; /* 1 or 2 */
    const char *data;
    size_t length;
};

/* ---- reading ---- */

/* Callbacks of segments_read; false stops. */
struct segments_reader {
    /* facts is NULL when they are not wanted; else length bytes, one per position. */
    bool (*segment)(void *user, const struct segment *segment, const uint8_t *facts, size_t length);
    bool (*words)(void *user, const struct segments_words *words);
    void *user;
};

enum { segments_buckets_max = 32 };

/* The rows of order_words to read: names of one or two bytes. */
struct segments_buckets {
    char names[segments_buckets_max][2];
    size_t lengths[segments_buckets_max];
    unsigned count;
};

/*
 * All segments of an account, oldest first, then their rows of the buckets: one statement, one snapshot.  The
 * callbacks must not use the connection.
 */
enum iw_error segments_read(const struct store *store, int64_t account_id, bool has_facts,
                            const struct segments_buckets *buckets,
                            const struct segments_reader *reader) IW_MUST_USE;

/* The number of an id of segments_ids. */
int64_t segments_id(const uint8_t *bytes);

/*
 * Calls back with the ids of a segment by position, eight bytes each, and their number.  NOT_FOUND: the
 * segment has another version now.
 */
enum iw_error segments_ids(const struct store *store, int64_t account_id, const struct segment *segment,
                           void (*take)(void *user, const uint8_t *ids, size_t count),
                           void *user) IW_MUST_USE;

/* ---- changes of orders, in the transaction that changes the order's row ---- */

/* Writes the status of an order, if a segment has it. */
enum iw_error segments_status_write(const struct store *store, int64_t order_id,
                                    enum order_status status) IW_MUST_USE;

/* Records that an order is about to be deleted; its words are deleted within minutes. */
enum iw_error segments_order_forget(const struct store *store, int64_t order_id) IW_MUST_USE;

/* ---- building; in the worker ---- */

/*
 * Of the next 100 accounts after *after_id, those that have at least new_min orders of ids up to horizon_id
 * after their last segment.  Advances *after_id; 0 at the end.
 */
enum iw_error segments_grown(const struct store *store, int64_t horizon_id, unsigned new_min,
                             int64_t *after_id, struct query_ids *account_ids) IW_MUST_USE;

/* True when an account has least or more orders of ids after after_id and up to horizon_id. */
enum iw_error segments_has_new(const struct store *store, int64_t account_id, int64_t after_id,
                               int64_t horizon_id, int64_t least, bool *has_new) IW_MUST_USE;

/* A segment that is due.  NOT_FOUND: none. */
enum iw_error segments_due(const struct store *store, int64_t *account_id, int64_t *first_id) IW_MUST_USE;

/* A segment, without a lock.  NOT_FOUND. */
enum iw_error segments_find(const struct store *store, int64_t account_id, int64_t first_id,
                            struct segment *segment) IW_MUST_USE;

/*
 * In a transaction: locks a segment, after its orders.  NOT_FOUND: it is gone, or another worker has locked
 * it.
 */
enum iw_error segments_lock(const struct store *store, int64_t account_id, int64_t first_id,
                            struct segment *segment) IW_MUST_USE;

/* The newest segment of an account, without a lock.  NOT_FOUND: there is none. */
enum iw_error segments_newest(const struct store *store, int64_t account_id,
                              struct segment *segment) IW_MUST_USE;

/* Inserts an empty segment.  TWIN_EXISTS: another worker did. */
enum iw_error segments_insert(const struct store *store, int64_t account_id, int64_t first_id) IW_MUST_USE;

/* An order of a segment. */
struct segments_order {
    int64_t id;
    uint8_t fact;
    const char *name;
    int64_t file_count; /* originals included */
};

/* Orders in the arena, by id. */
struct segments_orders {
    struct segments_order *items;
    unsigned count;
};

/* Reads and locks at most most orders of a range.  Leaves out those that another transaction has locked. */
enum iw_error segments_orders(const struct store *store, int64_t account_id, int64_t first_id,
                              int64_t last_id, unsigned most, struct segments_orders *orders) IW_MUST_USE;

/* Calls back with the name of each file in a range of orders, by order. */
enum iw_error segments_file_names(const struct store *store, int64_t account_id, int64_t first_id,
                                  int64_t last_id,
                                  bool (*take)(void *user, int64_t order_id, const char *name),
                                  void *user) IW_MUST_USE;

/* What segments_write writes. */
struct segments_content {
    struct segment segment; /* version: of the row before */
    const uint8_t *facts;   /* order_count bytes */
    const uint8_t *ids;     /* 8 * order_count bytes */
    const struct segments_words *rows;
    unsigned row_count;
    unsigned due_s; /* until it is compared again */
};

/* True when the row has these facts and ids. */
enum iw_error segments_is_equal(const struct store *store, int64_t account_id,
                                const struct segments_content *content, bool *is_equal) IW_MUST_USE;

/* Postpones the next comparison. */
enum iw_error segments_postpone(const struct store *store, int64_t account_id, int64_t first_id,
                                unsigned due_s) IW_MUST_USE;

/* Replaces a locked segment and its words. */
enum iw_error segments_write(const struct store *store, int64_t account_id,
                             const struct segments_content *content) IW_MUST_USE;

/* Deletes a locked segment and its words. */
enum iw_error segments_delete(const struct store *store, int64_t account_id, int64_t first_id) IW_MUST_USE;

#endif
