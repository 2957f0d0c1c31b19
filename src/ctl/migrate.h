/* Reads and applies migration files, for the commands migrate, init and doctor. */
#ifndef CTL_MIGRATE_H
#define CTL_MIGRATE_H

#include "ctl/ctl.h"
#include "db/db.h"
#include "db/migrate.h"

/* Folder of the installed migrations. */
extern const char migrate_directory_default[];

/*
 * Reads every *.sql file of a folder, sorted by name, into the arena. CONFIG_INVALID if
 * there is none.
 */
enum iw_error migrate_read(struct context *context, const char *directory, struct migration **migrations,
                           unsigned *count) IW_MUST_USE;

/*
 * Applies all pending migrations and prints a line for each; *applied is their number.
 * directory may be NULL for the default.
 */
enum iw_error migrate_all(struct ctl *ctl, const struct db *db, const char *directory,
                          unsigned *applied) IW_MUST_USE;

#endif
