/* outputTargets of zero-copy orders (contract 3.1): where results are pushed to. */
#ifndef API_TARGETS_H
#define API_TARGETS_H

#include "api/field.h"
#include "base/config.h"

/*
 * Checks body's outputTargets, which an order with zero copy needs, one for each
 * of file_count files.  What is wrong becomes details.
 */
void targets_check(const struct field_place *body, const struct config *config, unsigned file_count);

/* A URL that the service is to fetch from or push to; adds a detail when it is not acceptable. */
void targets_check_url(const struct field_place *place, const char *name, bool is_required,
                       const struct config *config);

#endif
