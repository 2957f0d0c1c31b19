/*
 * The request to a webhook: the body, and the headers that sign it (Standard Webhooks).
 * Built for each attempt, so that the download URL in it is fresh.
 */
#ifndef WORKER_PAYLOAD_H
#define WORKER_PAYLOAD_H

#include <stddef.h>
#include <stdint.h>

#include "base/context.h"
#include "db/deliveries.h"
#include "domain/domain.h"

enum { payload_headers_count = 5 };

struct payload {
    const char *body;
    size_t body_bytes;
    const char
        *headers[payload_headers_count]; /* content type, webhook-id, -timestamp, -signature, traceparent */
};

/*
 * Builds the request for an event, in the arena of domain->context. Sets order and trace of the context; an
 * order without a trace, and a test, get a new one. SERVER_INTERNAL_ERROR with the reason "secret_unreadable"
 * if the webhook's secret was sealed with another key; errors of the database unchanged.
 */
enum iw_error payload_build(struct domain *domain, const struct deliveries_lease *receiver, int64_t event_id,
                            struct payload *payload) IW_MUST_USE;

#endif
