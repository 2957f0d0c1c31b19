#include "model/webhook.h"

#include <string.h>

static const struct {
    const char *name;
    enum order_type order;
    bool is_failure;
} types[WEBHOOK_EVENT_TYPE_COUNT] = {
    [WEBHOOK_ANTI_AI_COMPLETED] = {"order.antiAi.completed", ORDER_ANTI_AI, false},
    [WEBHOOK_ANTI_AI_FAILED] = {"order.antiAi.failed", ORDER_ANTI_AI, true},
    [WEBHOOK_EMBED_COMPLETED] = {"order.watermarkEmbed.completed", ORDER_WATERMARK_EMBED, false},
    [WEBHOOK_EMBED_FAILED] = {"order.watermarkEmbed.failed", ORDER_WATERMARK_EMBED, true},
    [WEBHOOK_EXTRACT_COMPLETED] = {"order.watermarkExtract.completed", ORDER_WATERMARK_EXTRACT, false},
    [WEBHOOK_EXTRACT_FAILED] = {"order.watermarkExtract.failed", ORDER_WATERMARK_EXTRACT, true},
    [WEBHOOK_TEST] = {"webhook.test", ORDER_TYPE_COUNT, false},
};

const char *webhook_event_type_name(enum webhook_event_type type)
{
    return types[type].name;
}

bool webhook_event_type_of(enum order_type type, enum order_status status, enum webhook_event_type *event)
{
    if (!order_is_ended(status) || status == ORDER_EXPIRED)
        return false;
    for (int i = 0; i < WEBHOOK_EVENT_TYPE_COUNT; i++)
        if (types[i].order == type && types[i].is_failure == (status == ORDER_FAILED)) {
            *event = (enum webhook_event_type)i;
            return true;
        }
    return false;
}

bool webhook_event_status(const char *event_type, bool has_text, enum order_status *status)
{
    int i = 0;
    while (i < WEBHOOK_EVENT_TYPE_COUNT && strcmp(types[i].name, event_type) != 0)
        i++;
    if (i == WEBHOOK_EVENT_TYPE_COUNT || types[i].order == ORDER_TYPE_COUNT)
        return false;
    if (types[i].is_failure)
        *status = ORDER_FAILED;
    else if (types[i].order == ORDER_WATERMARK_EXTRACT)
        *status = has_text ? ORDER_DETECTED : ORDER_UNDETECTED;
    else
        *status = ORDER_COMPLETE;
    return true;
}
