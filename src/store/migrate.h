/*
 * Migrations: numbered files of SQL, applied once each, in order, and never
 * changed afterwards.
 *
 * What has been applied stands in the table schema_migrations with the SHA-256
 * of the file.  MariaDB ends a transaction at every change of a table, so a
 * migration cannot be one; instead the row also counts the statements that are
 * done, and a migration that was cut off goes on after the last of them.
 * Reads no files: the bytes are handed in.
 */
#ifndef STORE_MIGRATE_H
#define STORE_MIGRATE_H

#include <stdbool.h>
#include <stdint.h>

#include <imgward/context.h>

#include "store/db.h"

struct migration {
    int64_t version;  /* 1 for "0001_init.sql" */
    const char *name; /* the file's name; borrows */
    const char *text; /* borrows */
    size_t length;
    uint8_t digest[32];
    unsigned statement_count;
    unsigned statements_done;
    bool is_applied;       /* valid after migrate_compare */
    int64_t applied_at_ms; /* valid when is_applied */
};

/* CONFIG_INVALID when the name is not "NNNN_words.sql" or there is no statement in the file. */
enum iw_error migrate_init(struct context *context, const char *name, const char *text, size_t length,
                           struct migration *migration) IW_MUST_USE;

/*
 * Takes the lock that keeps two migrators apart, waiting up to ten seconds
 * (SERVICE_UNAVAILABLE), and gives it back.  It is gone with the connection, too.
 */
enum iw_error migrate_lock(const struct store *store) IW_MUST_USE;
void migrate_unlock(const struct store *store);

/*
 * Compares the files, in order of version, with what the database says.
 * CONFIG_INVALID when a file was changed after it was applied, when two have
 * one version, when a file is missing or comes before one that is applied.
 */
enum iw_error migrate_compare(const struct store *store, struct migration *migrations,
                              unsigned count) IW_MUST_USE;

/* Runs the statements that are not done and records each.  The sentence of a failure names file and line. */
enum iw_error migrate_apply(const struct store *store, struct migration *migration) IW_MUST_USE;

#endif
