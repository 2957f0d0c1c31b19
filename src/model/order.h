/*
 * Orders: types, statuses, events, the table of legal transitions, and the rows that queries return.
 *
 * An order changes its status only to the result of order_next.  The new status is written by compare-and-set
 * on the status that was read, in one transaction with the side effects.
 */
#ifndef MODEL_ORDER_H
#define MODEL_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether an extraction read the picture to which the watermark was added. From worst to best. */
enum same_picture { SAME_PICTURE_NO, SAME_PICTURE_UNKNOWN, SAME_PICTURE_YES };

enum order_type { ORDER_ANTI_AI, ORDER_WATERMARK_EMBED, ORDER_WATERMARK_EXTRACT, ORDER_TYPE_COUNT };

enum order_status {
    ORDER_PENDING,
    ORDER_IN_PROGRESS,
    ORDER_COMPLETE,
    ORDER_FAILED,
    ORDER_DETECTED,
    ORDER_UNDETECTED,
    ORDER_EXPIRED,
    ORDER_STATUS_COUNT
};

enum order_channel { ORDER_CHANNEL_API, ORDER_CHANNEL_WEB, ORDER_CHANNEL_COUNT };

enum order_strength {
    ORDER_STRENGTH_LOW,
    ORDER_STRENGTH_STANDARD,
    ORDER_STRENGTH_HIGH,
    ORDER_STRENGTH_COUNT
};

enum order_event {
    ORDER_EVENT_START,    /* confirmed, last file uploaded, or created without uploads */
    ORDER_EVENT_ABANDON,  /* pending for too long */
    ORDER_EVENT_SUCCEED,  /* the last file ended and at least one result exists */
    ORDER_EVENT_FAIL,     /* the last file ended and there is no result */
    ORDER_EVENT_DETECT,   /* an extraction read a known text */
    ORDER_EVENT_UNDETECT, /* an extraction read nothing */
    ORDER_EVENT_EXPIRE,   /* the retention time of the files is over */
    ORDER_EVENT_COUNT
};

/* The words in database, JSON and query strings: "antiAi", "inProgress", "api", "high". */
const char *order_type_name(enum order_type type);
const char *order_status_name(enum order_status status);
const char *order_channel_name(enum order_channel channel);
const char *order_strength_name(enum order_strength strength);
const char *order_event_name(enum order_event event);

/* False if the word is none of them; case counts. */
bool order_type_read(const char *name, enum order_type *type);
bool order_status_read(const char *name, enum order_status *status);
bool order_channel_read(const char *name, enum order_channel *channel);
bool order_strength_read(const char *name, enum order_strength *strength);

/*
 * The status after event on an order of that type and status.  False if the event is illegal there; then
 * next is unchanged.
 */
bool order_next(enum order_type type, enum order_status status, enum order_event event,
                enum order_status *next);

/* True if expiry is the only event left. */
bool order_is_ended(enum order_status status);

/* A new order id: 41 bits of milliseconds since 2024-01-01 UTC, then 22 random bits. */
int64_t order_id_make(int64_t now_ms, uint64_t random);

/* The creation time in an order id, ms since 1970. */
int64_t order_id_time_ms(int64_t order_id);

struct order {
    int64_t id;
    enum order_type type;
    enum order_channel channel;
    enum order_status status;
    const char *name;
    const char *body_digest; /* 32 bytes */
    bool is_zero_copy;
    bool has_thumbnail;
    const char *zip_store_key;       /* NULL if there is no archive */
    const char *thumbnail_store_key; /* NULL if there is no thumbnail */
    unsigned file_count;
    unsigned file_rows;   /* files that were read with it, originals included */
    const char *trace_id; /* of the request that created it; read with its files; NULL: an older order */
    unsigned completed_file_count;
    const char *watermark_text;     /* NULL if there is none */
    int64_t certainty;              /* of watermark_text; 0 if there is none */
    enum same_picture same_picture; /* of watermark_text */
    const char *error_code;         /* of the order as a whole; NULL if there is none */
    int64_t created_ms;
    int64_t updated_ms;
    int64_t expires_ms;   /* 0 means never */
    const char *metadata; /* the client's data: lines of key, tab and value; NULL if there is none */
};

/*
 * When the account deleted the results of an order before their time, in ms since 1970; 0 if it did not. Such
 * an order expires at the moment of its last change.
 */
int64_t order_deleted_ms(const struct order *order);

/* The counts of an order that its jobs change.  Valid while the row is locked. */
struct order_progress {
    int64_t id;
    int64_t account_id;
    enum order_type type;
    enum order_status status;
    bool is_zero_copy;
    int64_t file_count;
    int64_t completed_count;
    int64_t failed_count;
    int64_t result_count;
    const char *thumbnail_store_key; /* NULL if there is none */
    int64_t created_at_ms;
    int64_t started_at_ms;
    int64_t expires_at_ms;     /* 0 means never */
    const char *plan;          /* of the account */
    const char *trace_id;      /* NULL: an older order */
    const char *result_suffix; /* in the names of results; NULL if there is none */
};

/* A watermark text and the file that it marks. */
struct order_text {
    int64_t id; /* equal texts have equal ids */
    int64_t file_id;
    const char *text;
    size_t length;
};

/* One file of a new order. */
struct order_row_file {
    unsigned position; /* from 1 */
    bool is_original;
    const char *name;
    const char *source_url; /* NULL: it will be uploaded */
    const char *target_url; /* zero copy: the URL for the push; NULL otherwise */
    const char *target_key;
    int64_t target_expires_ms;
    const char *target_headers; /* a JSON object for the push; NULL if there is none */
    const int64_t *text_ids;    /* of its watermark texts, in order */
    unsigned text_count;
};

/* The rows of a new order. */
struct order_row {
    int64_t id;
    int64_t account_id;
    enum order_type type;
    enum order_channel channel;
    const char *name;
    const char *key; /* idempotency key */
    size_t key_length;
    const uint8_t *body_digest; /* 32 bytes */
    enum order_strength strength;
    const char *result_suffix; /* NULL if there is none */
    bool is_zero_copy;
    bool is_started;     /* no file needs an upload: inProgress immediately, with its jobs */
    unsigned file_count; /* originals excluded */
    struct order_row_file *files;
    unsigned file_rows; /* originals included */
    int64_t created_ms;
    int64_t expires_ms;
    const char *metadata;            /* see struct order */
    const struct quota_claim *claim; /* on the account's quotas */
};

/* The conditions of a list.  -1 and NULL means no condition. */
struct order_filter {
    int64_t account_id;
    int type;
    int status;
    int channel;
    const char *keyword;
    const char *const *metadata; /* lines that the order's metadata has; metadata_count of them */
    unsigned metadata_count;
    int64_t id_above; /* only ids above this; 0 means all */
    int64_t id_up_to; /* only ids up to this; 0 means all */
};

#endif
