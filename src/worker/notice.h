/*
 * What is sent to a receiver: the body, built when it is sent so that its
 * download URL is fresh, and the headers that sign it (Standard Webhooks).
 */
#ifndef WORKER_NOTICE_H
#define WORKER_NOTICE_H

#include <stddef.h>
#include <stdint.h>

#include <imgward/context.h>

#include "domain/domain.h"
#include "store/deliveries.h"

enum { notice_headers_count = 4 };

struct notice {
    const char *body;
    size_t body_bytes;
    const char *headers[notice_headers_count]; /* content type, webhook-id, -timestamp, -signature */
};

/*
 * Builds what tells a receiver of an event, in the arena of domain->context.
 * SERVER_INTERNAL_ERROR with the reason "secret_unreadable" when the webhook's
 * secret was sealed with another key; errors of the database as they come.
 */
enum iw_error notice_build(struct domain *domain, const struct deliveries_lease *receiver, int64_t event_id,
                           struct notice *notice) IW_MUST_USE;

#endif
