/*
 * What the domain works through: the handles that a process keeps open, and the
 * context of the piece of work at hand.  Rules and state machines only; no SQL,
 * no HTTP, no JSON text in this room.
 */
#ifndef DOMAIN_DOMAIN_H
#define DOMAIN_DOMAIN_H

#include <imgward/context.h>

#include "base/config.h"
#include "store/db.h"

struct redis;
struct presign;
struct storage;
struct secret_box;

struct domain {
    struct context *context; /* of the request, job or command under way */
    const struct config *config;
    struct store store; /* its context is the one above */
    struct redis *redis;
    struct storage *storage;             /* NULL until it is first needed; the process closes it */
    struct presign *presign;             /* NULL where nothing is signed */
    const struct secret_box *secret_box; /* NULL where no secret is made or used */
};

/* Sets the context that errors go to. */
static inline void domain_context_set(struct domain *domain, struct context *context)
{
    domain->context = domain->store.context = context;
}

#endif
