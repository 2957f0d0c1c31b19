/* GET /stats/recent (contract 6) and /stats/usage. */
#include "api/tables.h"
#include "api/usage.h"
#include "base/clock.h"
#include "base/text.h"
#include "domain/accounts/quota.h"
#include "http/response.h"
#include "model/account.h"

struct usage_scale usage_scale_for(int64_t largest)
{
    static const int64_t rounds[] = {1, 2, 5};
    for (int64_t power = 1;; power *= 10)
        for (size_t i = 0; i < sizeof rounds / sizeof rounds[0]; i++) {
            int64_t step = rounds[i] * power;
            int64_t steps = largest / step + (largest % step != 0);
            if (steps > usage_steps_max)
                continue;
            if (steps < usage_steps_min)
                steps = usage_steps_min;
            return (struct usage_scale){step, (unsigned)steps};
        }
}

static void scale_render(struct render *render, struct usage_scale scale)
{
    render_array_begin(render, "domain");
    render_integer(render, NULL, 0);
    render_integer(render, NULL, scale.step * scale.steps);
    render_array_end(render);
    render_array_begin(render, "ticks");
    for (unsigned i = 0; i <= scale.steps; i++)
        render_integer(render, NULL, scale.step * i);
    render_array_end(render);
}

static enum iw_error show_recent(struct request *request)
{
    struct quota_day days[quota_days];
    int64_t last_ms = clock_now_ms();
    request_query_read(request);
    const char *date = request_query(request, "date");
    if (date != NULL && !clock_day_read(date, &last_ms))
        context_detail(request->context, "date", "is \"%.*s\"; it must be a day such as 2026-03-12",
                       text_head(date, 40), date);
    enum iw_error error = context_validated(request->context);
    if (error == IW_OK)
        error = quota_recent(request->domain, request->account->id, last_ms, days);
    if (error != IW_OK)
        return error;
    int64_t largest = 0;
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    render_array_begin(render, "dailyStats");
    for (int i = 0; i < quota_days; i++) {
        render_object_begin(render, NULL);
        render_string(render, "usageDate", days[i].date);
        render_integer(render, "usageCount", days[i].count);
        largest = days[i].count > largest ? days[i].count : largest;
        render_object_end(render);
    }
    render_array_end(render);
    scale_render(render, usage_scale_for(largest));
    render_object_end(render);
    return IW_OK;
}

enum iw_error usage_render(struct request *request, struct render *render, const struct account *account)
{
    struct quota_numbers used;
    struct quota_numbers limits = quota_limits(request->config, account->plan, &account->quotas);
    /* The reserve is read from Redis, whose connection owes the admission's reply until here. */
    enum iw_error error = admission_receive(&request->admission);
    if (error == IW_OK)
        error = quota_used(request->domain, account->id, &used);
    if (error != IW_OK)
        return error;
    render_string(render, "plan", account->plan);
    render_array_begin(render, "limits");
    for (int i = 0; i < QUOTA_COUNT; i++) {
        render_object_begin(render, NULL);
        render_string(render, "name", quota_name((enum quota)i));
        render_integer(render, "used", used.of[i] > 0 ? used.of[i] : 0);
        if (limits.of[i] == quota_unlimited)
            render_null(render, "limit");
        else
            render_integer(render, "limit", limits.of[i]);
        render_object_end(render);
    }
    render_array_end(render);
    return IW_OK;
}

static enum iw_error show_usage(struct request *request)
{
    struct render *render = response_data(request);
    render_object_begin(render, "data");
    enum iw_error error = usage_render(request, render, request->account);
    render_object_end(render);
    return error;
}

const struct route api_statistics[] = {
    {METHOD_GET, "/api/v2/orders/stats/usage", show_usage, ROUTE_SCOPE(KEY_SCOPE_READ)},
    {METHOD_GET, "/api/v2/orders/stats/recent", show_recent, ROUTE_SCOPE(KEY_SCOPE_READ)},
    {.pattern = NULL},
};
