/* Daily usage of an account, and a chart scale for it (contract 6). */
#ifndef DOMAIN_ACCOUNTS_STATISTICS_H
#define DOMAIN_ACCOUNTS_STATISTICS_H

#include <stdint.h>

#include "domain/domain.h"

enum { statistics_days = 7, statistics_steps_min = 4, statistics_steps_max = 6 };

struct statistics_day {
    char date[11]; /* YYYY-MM-DD, UTC */
    int64_t count;
};

/* A chart's axis: 0 to step * steps. */
struct statistics_scale {
    int64_t step; /* 1, 2 or 5 times a power of ten */
    unsigned steps;
};

/* The seven days up to that of last_ms, oldest first. */
enum iw_error statistics_recent(struct domain *domain, int64_t account_id, int64_t last_ms,
                                struct statistics_day days[statistics_days]) IW_MUST_USE;

/* The smallest scale with round steps that includes the largest value. */
struct statistics_scale statistics_scale_for(int64_t largest);

#endif
