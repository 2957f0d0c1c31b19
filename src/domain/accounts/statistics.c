#include "domain/accounts/statistics.h"

#include <string.h>

#include "base/clock.h"
#include "db/usage.h"

static const int64_t day_ms = 86400000;

enum iw_error statistics_recent(struct domain *domain, int64_t account_id, int64_t last_ms,
                                struct statistics_day days[statistics_days])
{
    struct usage_day *used;
    size_t count;
    for (int i = 0; i < statistics_days; i++) {
        days[i].count = 0;
        clock_day(last_ms - day_ms * (statistics_days - 1 - i), days[i].date);
    }
    enum iw_error error =
        usage_read(&domain->db, account_id, days[0].date, days[statistics_days - 1].date, &used, &count);
    for (size_t at = 0; error == IW_OK && at < count; at++) {
        char date[11];
        clock_day(used[at].day_ms, date);
        for (int i = 0; i < statistics_days; i++)
            if (strcmp(date, days[i].date) == 0)
                days[i].count = used[at].count;
    }
    return error;
}

struct statistics_scale statistics_scale_for(int64_t largest)
{
    static const int64_t rounds[] = {1, 2, 5};
    for (int64_t power = 1;; power *= 10)
        for (size_t i = 0; i < sizeof rounds / sizeof rounds[0]; i++) {
            int64_t step = rounds[i] * power;
            int64_t steps = largest / step + (largest % step != 0);
            if (steps > statistics_steps_max)
                continue;
            if (steps < statistics_steps_min)
                steps = statistics_steps_min;
            return (struct statistics_scale){step, (unsigned)steps};
        }
}
