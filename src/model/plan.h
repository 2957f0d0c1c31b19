/*
 * Plans: which section of the configuration has the limits of an account.  [plan_NAME] is the only home of
 * a plan's rate, quotas, requests in progress and retention.  An account may have own limits instead of some.
 */
#ifndef MODEL_PLAN_H
#define MODEL_PLAN_H

#include <stdbool.h>

#include "base/config.h"

/* For messages. */
#define PLAN_NAMES "free, pro and enterprise"

/* False if no plan has this name. */
bool plan_exists(const char *name);

/* The section of a plan.  If no plan has the name, the section of the first plan. */
const struct config_plan *plan_of(const struct config *config, const char *name);

/* The requests a minute of an account: its own rate, or that of its plan if own is 0. */
int64_t plan_rate(const struct config *config, const char *name, int64_t own);

/* Milliseconds after an order's creation at which its results are deleted. */
int64_t plan_retention_ms(const struct config *config, const char *name);

#endif
