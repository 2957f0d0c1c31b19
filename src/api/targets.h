/* outputTargets of zero-copy orders (contract 3.1): where results are pushed to. */
#ifndef API_TARGETS_H
#define API_TARGETS_H

#include "api/field.h"
#include "base/config.h"
#include "domain/order.h"

/*
 * Reads body's outputTargets, which an order with zero copy needs, one for each
 * of the wanted's files, and pairs them with the files by position.  What is wrong
 * becomes details.
 */
void targets_read(const struct field_place *body, const struct config *config, struct order_request *wanted);

/* A URL that the service is to fetch from or push to; NULL when it is absent or not acceptable (a detail
 * then). */
const char *targets_url(const struct field_place *place, const char *name, bool is_required,
                        const struct config *config);

#endif
