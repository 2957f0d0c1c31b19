/* outputTargets of zero-copy orders (contract 3.1): the URLs that results are pushed to. */
#ifndef API_TARGETS_H
#define API_TARGETS_H

#include "api/field.h"
#include "base/config.h"
#include "domain/orders/order_request.h"

/*
 * Reads outputTargets, which zero copy requires, one target for each file. Pairs them with the files by
 * position. Each invalid target adds a detail.
 */
void targets_read(const struct field_scope *body, const struct config *config,
                  struct order_request *requested);

/* A URL to fetch from or push to; NULL if absent or not allowed. */
const char *targets_url(const struct field_scope *scope, const char *name, bool is_required,
                        const struct config *config);

#endif
