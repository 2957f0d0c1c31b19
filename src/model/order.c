#include "model/order.h"

#include "model/word.h"

static const char *const type_names[ORDER_TYPE_COUNT] = {"antiAi", "watermarkEmbed", "watermarkExtract"};
static const char *const status_names[ORDER_STATUS_COUNT] = {"pending",  "inProgress", "complete", "failed",
                                                             "detected", "undetected", "expired"};
static const char *const channel_names[ORDER_CHANNEL_COUNT] = {"api", "web"};
static const char *const strength_names[ORDER_STRENGTH_COUNT] = {"low", "standard", "high"};
static const char *const event_names[ORDER_EVENT_COUNT] = {"start",  "abandon",  "succeed", "fail",
                                                           "detect", "undetect", "expire"};

static const int64_t id_epoch_ms = 1704067200000; /* 2024-01-01T00:00:00Z */
enum { id_random_bits = 22 };

/* The order types of a transition, as bits. */
enum { makes_files = 1 << ORDER_ANTI_AI | 1 << ORDER_WATERMARK_EMBED, reads = 1 << ORDER_WATERMARK_EXTRACT };

static const struct {
    int types;
    enum order_status from;
    enum order_event event;
    enum order_status to;
} transitions[] = {
    {makes_files | reads, ORDER_PENDING, ORDER_EVENT_START, ORDER_IN_PROGRESS},
    {makes_files | reads, ORDER_PENDING, ORDER_EVENT_ABANDON, ORDER_FAILED},
    {makes_files, ORDER_IN_PROGRESS, ORDER_EVENT_SUCCEED, ORDER_COMPLETE},
    {makes_files | reads, ORDER_IN_PROGRESS, ORDER_EVENT_FAIL, ORDER_FAILED},
    {reads, ORDER_IN_PROGRESS, ORDER_EVENT_DETECT, ORDER_DETECTED},
    {reads, ORDER_IN_PROGRESS, ORDER_EVENT_UNDETECT, ORDER_UNDETECTED},
    {makes_files, ORDER_COMPLETE, ORDER_EVENT_EXPIRE, ORDER_EXPIRED},
};

const char *order_type_name(enum order_type type)
{
    return type_names[type];
}

const char *order_status_name(enum order_status status)
{
    return status_names[status];
}

const char *order_channel_name(enum order_channel channel)
{
    return channel_names[channel];
}

const char *order_strength_name(enum order_strength strength)
{
    return strength_names[strength];
}

const char *order_event_name(enum order_event event)
{
    return event_names[event];
}

bool order_type_read(const char *name, enum order_type *type)
{
    int found = word_find(name, type_names, ORDER_TYPE_COUNT);
    if (found >= 0)
        *type = (enum order_type)found;
    return found >= 0;
}

bool order_status_read(const char *name, enum order_status *status)
{
    int found = word_find(name, status_names, ORDER_STATUS_COUNT);
    if (found >= 0)
        *status = (enum order_status)found;
    return found >= 0;
}

bool order_channel_read(const char *name, enum order_channel *channel)
{
    int found = word_find(name, channel_names, ORDER_CHANNEL_COUNT);
    if (found >= 0)
        *channel = (enum order_channel)found;
    return found >= 0;
}

bool order_strength_read(const char *name, enum order_strength *strength)
{
    int found = word_find(name, strength_names, ORDER_STRENGTH_COUNT);
    if (found >= 0)
        *strength = (enum order_strength)found;
    return found >= 0;
}

bool order_next(enum order_type type, enum order_status status, enum order_event event,
                enum order_status *next)
{
    for (size_t i = 0; i < sizeof transitions / sizeof transitions[0]; i++)
        if (transitions[i].from == status && transitions[i].event == event &&
            (transitions[i].types >> type & 1)) {
            *next = transitions[i].to;
            return true;
        }
    return false;
}

bool order_is_ended(enum order_status status)
{
    return status != ORDER_PENDING && status != ORDER_IN_PROGRESS;
}

int64_t order_id_make(int64_t now_ms, uint64_t random)
{
    uint64_t time_bits = (uint64_t)(now_ms - id_epoch_ms) & (((uint64_t)1 << 41) - 1);
    uint64_t random_bits = random & (((uint64_t)1 << id_random_bits) - 1);
    return (int64_t)(time_bits << id_random_bits | random_bits);
}

int64_t order_id_time_ms(int64_t order_id)
{
    return (order_id >> id_random_bits) + id_epoch_ms;
}

int64_t order_deleted_ms(const struct order *order)
{
    bool is_deleted = order->status == ORDER_EXPIRED && order->expires_ms == order->updated_ms;
    return is_deleted ? order->updated_ms : 0;
}
