/*
 * Migrations: numbered files of SQL, applied once each, in order, and never changed afterwards.
 *
 * The table schema_migrations has each applied file with its SHA-256. MariaDB commits at every change of a
 * table, so a migration cannot be a transaction. Instead, its row counts the statements that ran, and an
 * interrupted migration continues after the last of them. The caller reads the files.
 */
#ifndef DB_MIGRATE_H
#define DB_MIGRATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/context.h"
#include "db/db.h"

struct migration {
    int64_t version;  /* 1 for "0001_init.sql" */
    const char *name; /* the file's name; borrows */
    const char *text; /* borrows */
    size_t length;
    uint8_t digest[32];
    unsigned statement_count;
    unsigned statements_done;
    bool is_applied;       /* valid after migrate_compare */
    int64_t applied_at_ms; /* valid if is_applied */
};

/* CONFIG_INVALID if the name is not "NNNN_words.sql", or the file has no statement. */
enum iw_error migrate_init(struct context *context, const char *name, const char *text, size_t length,
                           struct migration *migration) IW_MUST_USE;

/*
 * Takes the lock against concurrent migrations; waits up to ten seconds (SERVICE_UNAVAILABLE). migrate_unlock
 * or the end of the connection releases it.
 */
enum iw_error migrate_lock(const struct db *db) IW_MUST_USE;
void migrate_unlock(const struct db *db);

/*
 * Compares the files, in order of version, with the database. CONFIG_INVALID if an applied file was changed,
 * two files have one version, or a file is missing or precedes an applied file.
 */
enum iw_error migrate_compare(const struct db *db, struct migration *migrations, unsigned count) IW_MUST_USE;

/* Runs the remaining statements and records each of them. The sentence of a failure names file and line. */
enum iw_error migrate_apply(const struct db *db, struct migration *migration) IW_MUST_USE;

#endif
