/*
 * The database, its user and the user's rights, which the database's administrator creates once.
 *
 * The user may only read and write rows; the administrator creates and changes tables.
 */
#ifndef DB_PROVISION_H
#define DB_PROVISION_H

#include <stdbool.h>

#include "base/context.h"
#include "db/db.h"

enum { provision_statements_max = 3 };

struct provision {
    const char *database;
    const char *user;     /* at localhost */
    const char *password; /* "" for unix_socket authentication */
};

/* Returns false for names and passwords that need quoting in a statement. */
bool provision_is_sound(const struct provision *provision);

/* Returns the statements that create all of this, for printing, in the arena. */
void provision_statements(struct arena *arena, const struct provision *provision,
                          const char *statements[provision_statements_max]);

/*
 * Creates missing users, database and rights on a connection of the administrator; made gets the number of
 * statements. The password of an existing user stays.
 */
enum iw_error provision_run(const struct db *administrator, const struct provision *provision,
                            unsigned *made) IW_MUST_USE;

/* Opens the connection and runs a trivial query. */
enum iw_error provision_ping(const struct db *db) IW_MUST_USE;

#endif
