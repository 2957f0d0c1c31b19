/* Reads the files of migrations; shared by migrate, init and doctor. */
#ifndef CTL_MIGRATE_H
#define CTL_MIGRATE_H

#include "ctl/ctl.h"
#include "store/db.h"
#include "store/migrate.h"

/* Where the installed migrations are. */
extern const char migrate_directory_default[];

/*
 * Reads every *.sql of a directory, in the order of their names.  The array and
 * what it points at are the arena's.  CONFIG_INVALID when there is none.
 */
enum iw_error migrate_read(struct context *context, const char *directory, struct migration **migrations,
                           unsigned *count) IW_MUST_USE;

/* Applies what is not applied yet, printing a line each; applied gets how many.  directory NULL: the default.
 */
enum iw_error migrate_all(struct ctl *ctl, const struct store *store, const char *directory,
                          unsigned *applied) IW_MUST_USE;

#endif
