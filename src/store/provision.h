/*
 * The database itself, its user and what that user may do: made by the
 * database's administrator, once.  The user may read and write rows and nothing
 * else; making and changing tables is the administrator's.
 */
#ifndef STORE_PROVISION_H
#define STORE_PROVISION_H

#include <stdbool.h>

#include <imgward/context.h>

#include "store/db.h"

enum { provision_statements_max = 3 };

struct provision {
    const char *database;
    const char *user;     /* at localhost */
    const char *password; /* "" for unix_socket authentication */
};

/* False for names and passwords that cannot be written into a statement as they are. */
bool provision_is_sound(const struct provision *provision);

/* The statements that make all of it, for reading or running elsewhere; the arena's. */
void provision_statements(struct arena *arena, const struct provision *provision,
                          const char *statements[provision_statements_max]);

/*
 * Runs those whose work is not done yet, over a connection of the administrator;
 * made gets how many.  A user who is there keeps the password he has.
 */
enum iw_error provision_run(const struct store *administrator, const struct provision *provision,
                            unsigned *made) IW_MUST_USE;

/* Whether the connection can be made at all. */
enum iw_error provision_ping(const struct store *store) IW_MUST_USE;

#endif
