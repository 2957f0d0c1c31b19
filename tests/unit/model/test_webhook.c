/* Events of webhooks. */
#include "model/webhook.h"
#include "runner.h"

static void every_end_of_an_order_has_its_event(void)
{
    static const struct {
        enum order_type type;
        enum order_status status;
        const char *name;
    } ends[] = {
        {ORDER_ANTI_AI, ORDER_COMPLETE, "order.antiAi.completed"},
        {ORDER_ANTI_AI, ORDER_FAILED, "order.antiAi.failed"},
        {ORDER_WATERMARK_EMBED, ORDER_COMPLETE, "order.watermarkEmbed.completed"},
        {ORDER_WATERMARK_EMBED, ORDER_FAILED, "order.watermarkEmbed.failed"},
        {ORDER_WATERMARK_EXTRACT, ORDER_DETECTED, "order.watermarkExtract.completed"},
        {ORDER_WATERMARK_EXTRACT, ORDER_UNDETECTED, "order.watermarkExtract.completed"},
        {ORDER_WATERMARK_EXTRACT, ORDER_FAILED, "order.watermarkExtract.failed"},
    };
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        enum webhook_event_type event;
        enum order_status status;
        CU_ASSERT_TRUE_FATAL(webhook_event_type_of(ends[i].type, ends[i].status, &event));
        CU_ASSERT_STRING_EQUAL(webhook_event_type_name(event), ends[i].name);
        CU_ASSERT_TRUE(webhook_event_status(ends[i].name, ends[i].status == ORDER_DETECTED, &status));
        CU_ASSERT_EQUAL(status, ends[i].status);
    }
}

static void other_statuses_have_no_event(void)
{
    static const enum order_status others[] = {ORDER_PENDING, ORDER_IN_PROGRESS, ORDER_EXPIRED};
    enum webhook_event_type event;
    enum order_status status;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        for (int type = 0; type < ORDER_TYPE_COUNT; type++)
            CU_ASSERT_FALSE(webhook_event_type_of((enum order_type)type, others[i], &event));
    CU_ASSERT_FALSE(webhook_event_status("webhook.test", false, &status));
    CU_ASSERT_FALSE(webhook_event_status("order.nothing", false, &status));
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"every end of an order has its event", every_end_of_an_order_has_its_event},
        {"other statuses have no event", other_statuses_have_no_event},
        CU_TEST_INFO_NULL,
    };
    return runner_run("webhook events", tests);
}
