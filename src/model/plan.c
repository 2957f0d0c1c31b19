#include "model/plan.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *name;
    size_t section;
} plans[] = {
    {"free", offsetof(struct config, plan_free)},
    {"pro", offsetof(struct config, plan_pro)},
    {"enterprise", offsetof(struct config, plan_enterprise)},
};

enum { plan_count = sizeof plans / sizeof plans[0] };

/* The row of a name; plan_count if no plan has it. */
static size_t plan_find(const char *name)
{
    size_t at = 0;
    while (at < plan_count && strcmp(plans[at].name, name) != 0)
        at++;
    return at;
}

bool plan_exists(const char *name)
{
    return plan_find(name) < plan_count;
}

const struct config_plan *plan_of(const struct config *config, const char *name)
{
    size_t at = plan_find(name);
    return (const struct config_plan *)((const char *)config + plans[at < plan_count ? at : 0].section);
}

int64_t plan_rate(const struct config *config, const char *name, int64_t own)
{
    return own > 0 ? own : plan_of(config, name)->requests_per_minute;
}

int64_t plan_retention_ms(const struct config *config, const char *name)
{
    int64_t own_s = plan_of(config, name)->result_retention_s;
    return (own_s > 0 ? own_s : config->orders_result_retention_s) * 1000;
}
