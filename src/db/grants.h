/*
 * The rights of each program's user of the database, as one table: least privilege by program.
 *
 * A program without a separate user (api.database_user and so on) uses database.user, which may read and
 * write all rows; imgwardctl always does. Rights on tables are granted after the migrations that create the
 * tables.
 */
#ifndef DB_GRANTS_H
#define DB_GRANTS_H

#include "base/context.h"
#include "db/provision.h"

enum grants_program { GRANTS_API, GRANTS_CONSOLE, GRANTS_WORKER, GRANTS_PROGRAM_COUNT };

/* "imgward-api", "imgward-console", "imgward-worker"; static text. */
const char *grants_program_name(enum grants_program program);

/* Returns the statement that creates the user, in the arena. */
const char *grants_user_statement(struct arena *arena, const struct provision *user);

/* The statements that grant the rights of a user: *count of them, in the arena. */
const char **grants_statements(struct arena *arena, const struct provision *user, enum grants_program program,
                               unsigned *count);

/*
 * Creates the user if it is missing, and grants the rights, as the administrator. *is_new is true if the
 * user did not exist.
 */
enum iw_error grants_run(const struct db *administrator, const struct provision *user,
                         enum grants_program program, bool *is_new) IW_MUST_USE;

#endif
