/* Webhooks and their events: event types, their words, and the rows that queries return. */
#ifndef MODEL_WEBHOOK_H
#define MODEL_WEBHOOK_H

#include <stdbool.h>
#include <stdint.h>

#include "model/delivery.h"
#include "model/order.h"

enum webhook_event_type {
    WEBHOOK_ANTI_AI_COMPLETED,
    WEBHOOK_ANTI_AI_FAILED,
    WEBHOOK_EMBED_COMPLETED,
    WEBHOOK_EMBED_FAILED,
    WEBHOOK_EXTRACT_COMPLETED,
    WEBHOOK_EXTRACT_FAILED,
    WEBHOOK_TEST,
    WEBHOOK_EVENT_TYPE_COUNT
};

/* "order.antiAi.completed" and so on; static text. */
const char *webhook_event_type_name(enum webhook_event_type type);

/* The event that reports the end of an order; false if a status has none. */
bool webhook_event_type_of(enum order_type type, enum order_status status, enum webhook_event_type *event);

/* The status that an event of an order reports, also after the order changed; false for a test. */
bool webhook_event_status(const char *event_type, bool has_text, enum order_status *status);

struct webhook {
    int64_t id;
    const char *name;
    const char *url;
    bool is_active;
    const char *inactive_reason;    /* NULL while active */
    int64_t secret_before_until_ms; /* until then a previous secret signs as well; 0 if there is none */
    int64_t created_ms;
    int64_t updated_ms;
};

/* An event and the delivery to one webhook. */
struct webhook_event {
    int64_t id;
    int64_t order_id; /* 0 means a test */
    const char *type;
    int64_t occurred_ms;
    enum delivery_state status;
    int64_t failures;
    int64_t response_status; /* of the last attempt; 0 if there is none, or no answer */
    const char *reason;      /* why the last attempt failed; NULL if it did not */
    int64_t available_ms;    /* of the next attempt, while an attempt is due */
    int64_t tried_ms;        /* 0 if not yet */
    int64_t delivered_ms;    /* 0 if not yet */
};

/* One page of a list, from 0; limit -1: the whole list. */
struct webhooks_page {
    int64_t limit;
    int64_t offset;
};

#endif
