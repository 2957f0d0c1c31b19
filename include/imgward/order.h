/*
 * Orders as every room speaks of them: types, statuses, events, and the one
 * table of legal transitions (src/domain/order_state.c).
 *
 * An order changes state only through order_next and a compare-and-set of the
 * store on the status it was read with, in one transaction with the side
 * effects.
 */
#ifndef IMGWARD_ORDER_H
#define IMGWARD_ORDER_H

#include <stdbool.h>
#include <stdint.h>

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

/* What can happen to an order. */
enum order_event {
    ORDER_EVENT_START,    /* confirmed, the last upload in, or created with nothing to upload */
    ORDER_EVENT_ABANDON,  /* pending for too long */
    ORDER_EVENT_SUCCEED,  /* the last file ended and at least one result exists */
    ORDER_EVENT_FAIL,     /* the last file ended and there is no result */
    ORDER_EVENT_DETECT,   /* an extraction read a known text */
    ORDER_EVENT_UNDETECT, /* an extraction read nothing */
    ORDER_EVENT_EXPIRE,   /* the files' time is over */
    ORDER_EVENT_COUNT
};

/* The contract's words, the same in database, JSON and query strings: "antiAi", "inProgress", "api", "high".
 */
const char *order_type_name(enum order_type type);
const char *order_status_name(enum order_status status);
const char *order_channel_name(enum order_channel channel);
const char *order_strength_name(enum order_strength strength);
const char *order_event_name(enum order_event event);

/* False when the word is none of them; case counts. */
bool order_type_read(const char *name, enum order_type *type);
bool order_status_read(const char *name, enum order_status *status);
bool order_channel_read(const char *name, enum order_channel *channel);
bool order_strength_read(const char *name, enum order_strength *strength);

/*
 * The status that follows when event happens to an order of that type in that
 * status; false when the event is not legal there, and then next is untouched.
 */
bool order_next(enum order_type type, enum order_status status, enum order_event event,
                enum order_status *next);

/* True when nothing but expiry can happen any more. */
bool order_is_ended(enum order_status status);

/* A new order id: 41 bits of milliseconds since 2024-01-01 UTC, then 22 random bits. */
int64_t order_id_make(int64_t now_ms, uint64_t random);

/* The time an order id was made, ms since 1970. */
int64_t order_id_time_ms(int64_t order_id);

#endif
