/*
 * The handles of a process and the context of the current work, for every call into the domain.  This room
 * has the rules; it must not know SQL, HTTP or JSON text.
 */
#ifndef DOMAIN_DOMAIN_H
#define DOMAIN_DOMAIN_H

#include <stdbool.h>

#include "base/config.h"
#include "base/context.h"
#include "db/db.h"

struct redis;
struct presign;
struct storage;
struct secret_box;

struct domain {
    struct context *context; /* of the current request, job or command */
    const struct config *config;
    struct db db; /* has the same context */
    struct redis *redis;
    struct storage *storage;             /* of a local store NULL until first used; the process closes it */
    struct presign *presign;             /* NULL in programs that sign no URLs */
    const struct secret_box *secret_box; /* NULL in programs without webhook secrets */
};

/* Sets the context that errors go to. */
static inline void domain_context_set(struct domain *domain, struct context *context)
{
    domain->context = domain->db.context = context;
}

/*
 * SERVICE_UNAVAILABLE (store_full) if the store's file system has less than store.free_min_bytes. Opens
 * nothing.
 */
enum iw_error domain_room_check(const struct domain *domain) IW_MUST_USE;

/* The same for the file system of the database (database_full), if the database is on this machine. */
enum iw_error domain_database_check(const struct domain *domain) IW_MUST_USE;

/* True if clients upload to the file store and download from it by URLs of the store itself. */
bool domain_is_direct(const struct domain *domain);

/* Opens the file store if it is not open yet. SERVICE_UNAVAILABLE, after which queries still work. */
enum iw_error domain_storage_open(struct domain *domain) IW_MUST_USE;

#endif
