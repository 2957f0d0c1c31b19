/*
 * A batch of work on many orders, each with a clear context.  An order that the
 * file store refuses does not stop the others; the caller gets the first error.
 */
#ifndef DOMAIN_FILES_BATCH_H
#define DOMAIN_FILES_BATCH_H

#include <stdint.h>

#include "domain/domain.h"

struct batch {
    const struct domain *caller; /* its context gets the first error */
    struct domain domain;        /* the same handles, with the context below: for the work on each order */
    struct context context;
    unsigned stuck; /* orders that the file store refused */
};

void batch_begin(struct batch *batch, const struct domain *caller);

/*
 * After an order, or after a query (order_id 0): clears the context.  IW_OK when
 * the batch may continue, which includes a refusal of the file store.
 */
enum iw_error batch_next(struct batch *batch, enum iw_error error, int64_t order_id) IW_MUST_USE;

/* The error that ended the batch, else the first one of the file store. */
enum iw_error batch_end(const struct batch *batch, enum iw_error error) IW_MUST_USE;

#endif
