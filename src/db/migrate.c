#include "db/migrate.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/crypto.h"
#include "base/text.h"
#include "db/query.h"
#include "db/script.h"

enum { conflict_tries = 60, conflict_wait_ms = 500 };

static const char table_sql[] = "CREATE TABLE IF NOT EXISTS schema_migrations ("
                                "version INT UNSIGNED NOT NULL PRIMARY KEY, "
                                "name VARCHAR(100) NOT NULL, "
                                "checksum BINARY(32) NOT NULL COMMENT 'SHA-256 of the file', "
                                "statements_done INT UNSIGNED NOT NULL DEFAULT 0, "
                                "applied_at DATETIME(3) NULL COMMENT 'NULL: begun and cut off'"
                                ") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_nopad_bin";

/* "0001_init.sql" is version 1; 0 for any other form of name. */
static int64_t version_of(const char *name)
{
    static const char *const digits = "0123456789";
    size_t length = strlen(name);
    int64_t version = 0;
    if (strspn(name, digits) != 4 || name[4] != '_' || length < 10 || strcmp(name + length - 4, ".sql") != 0)
        return 0;
    for (int i = 0; i < 4; i++)
        version = version * 10 + (name[i] - '0');
    return version;
}

enum iw_error migrate_init(struct context *context, const char *name, const char *text, size_t length,
                           struct migration *migration)
{
    struct script script;
    struct script_statement statement;
    *migration =
        (struct migration){.version = version_of(name), .name = name, .text = text, .length = length};
    if (migration->version == 0)
        return context_fail(context, IW_CONFIG_INVALID,
                            "%s: the name of a migration must have the form NNNN_words.sql.", name);
    script_init(&script, text, length);
    while (script_next(&script, &statement))
        migration->statement_count++;
    if (migration->statement_count == 0)
        return context_fail(context, IW_CONFIG_INVALID, "%s: the file has no statement.", name);
    crypto_sha256(text, length, migration->digest);
    return IW_OK;
}

enum iw_error migrate_lock(const struct db *db)
{
    struct db_rows rows;
    enum iw_error error = db_run(
        db, "SELECT GET_LOCK(CONCAT('imgward_', MD5(DATABASE())), 10), @@global.read_only", NULL, 0, &rows);
    if (error != IW_OK)
        return error;
    struct db_row columns = db_row(&rows, 0);
    bool is_locked = db_next_bool(&columns), is_read_only = db_next_bool(&columns);
    /* An administrator may write to a replica. */
    if (is_read_only)
        return context_fail(db->context, IW_SERVICE_UNAVAILABLE,
                            "The database server is read-only; migrate on the server that is not.");
    /* Keeps the connection, because the lock belongs to it. */
    db_pin(db->connection, is_locked);
    if (is_locked)
        return IW_OK;
    return context_fail(db->context, IW_SERVICE_UNAVAILABLE,
                        "Another migration is already running; wait until it has ended.");
}

void migrate_unlock(const struct db *db)
{
    /* A failure means that the connection is lost, and the lock with it. */
    enum iw_error error =
        db_run(db, "SELECT RELEASE_LOCK(CONCAT('imgward_', MD5(DATABASE())))", NULL, 0, NULL);
    (void)error;
    db_pin(db->connection, false);
}

/* Reads the rows of schema_migrations; there are none before the first migration. */
static enum iw_error rows_read(const struct db *db, struct db_rows *rows)
{
    int64_t tables = 0;
    enum iw_error error = query_number(db,
                                       "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = "
                                       "DATABASE() AND table_name = 'schema_migrations'",
                                       NULL, 0, &tables);
    rows->count = 0;
    return error == IW_OK && tables > 0 ? db_run(db,
                                                 "SELECT version, name, checksum, statements_done, "
                                                 "applied_at FROM schema_migrations ORDER BY version",
                                                 NULL, 0, rows)
                                        : error;
}

/* Copies the state of a row to the migration of that version. */
static enum iw_error row_compare(struct context *context, struct db_row *columns,
                                 struct migration *migrations, unsigned count)
{
    size_t checksum_length;
    int64_t version = db_next_integer(columns);
    const char *name = db_next_text(columns);
    const void *checksum = db_next_bytes(columns, &checksum_length);
    struct migration *migration = NULL;
    for (unsigned i = 0; migration == NULL && i < count; i++)
        if (migrations[i].version == version)
            migration = &migrations[i];
    if (migration == NULL)
        return context_fail(context, IW_CONFIG_INVALID,
                            "The database has the migration %s, but its file is missing here; this program "
                            "may be older than the database.",
                            name);
    if (checksum_length != sizeof migration->digest ||
        memcmp(checksum, migration->digest, sizeof migration->digest) != 0)
        return context_fail(context, IW_CONFIG_INVALID,
                            "%s was changed after it was applied; restore the released file.", name);
    migration->statements_done = (unsigned)db_next_integer(columns);
    migration->applied_at_ms = db_next_integer(columns);
    migration->is_applied = migration->applied_at_ms != 0;
    return IW_OK;
}

static enum iw_error order_check(struct context *context, const struct migration *migrations, unsigned count)
{
    for (unsigned i = 1; i < count; i++) {
        if (migrations[i].version <= migrations[i - 1].version)
            return context_fail(
                context, IW_CONFIG_INVALID,
                "%s and %s are not in ascending order; each migration needs a separate number.",
                migrations[i - 1].name, migrations[i].name);
        if (migrations[i].is_applied && !migrations[i - 1].is_applied)
            return context_fail(context, IW_CONFIG_INVALID,
                                "%s was never applied, but the later migration %s was.",
                                migrations[i - 1].name, migrations[i].name);
    }
    return IW_OK;
}

enum iw_error migrate_compare(const struct db *db, struct migration *migrations, unsigned count)
{
    struct db_rows rows;
    enum iw_error error = rows_read(db, &rows);
    for (size_t i = 0; error == IW_OK && i < rows.count; i++) {
        struct db_row columns = db_row(&rows, i);
        error = row_compare(db->context, &columns, migrations, count);
    }
    return error == IW_OK ? order_check(db->context, migrations, count) : error;
}

static enum iw_error migration_begin(const struct db *db, const struct migration *migration)
{
    const struct db_value values[] = {db_integer(migration->version), db_text(migration->name),
                                      db_bytes(migration->digest, sizeof migration->digest)};
    enum iw_error error = db_run_plain(db, table_sql, sizeof table_sql - 1);
    if (error != IW_OK)
        return error;
    return db_run(db, "INSERT IGNORE INTO schema_migrations (version, name, checksum) VALUES (?, ?, ?)",
                  values, 3, NULL);
}

/* The lock is local to a node of a cluster, so a migration on another node may change the count, too. */
static enum iw_error migration_note(const struct db *db, const struct migration *migration)
{
    int64_t count = 0;
    const struct db_value values[] = {
        db_integer(migration->statements_done),
        db_integer(migration->statements_done == migration->statement_count ? 1 : 0),
        db_integer(migration->version), db_integer((int64_t)migration->statements_done - 1)};
    enum iw_error error =
        query_change(db,
                     "UPDATE schema_migrations SET statements_done = ?, applied_at = IF(?, UTC_TIMESTAMP(3), "
                     "NULL) WHERE version = ? AND statements_done = ?",
                     values, 4, &count);
    if (error == IW_OK && count == 0)
        return context_fail(db->context, IW_SERVICE_UNAVAILABLE,
                            "Another migration is already running; wait until it has ended.");
    return error;
}

/*
 * A change of a table may lose a deadlock against transactions of running programs. It then had no effect and
 * is retried.
 */
static enum iw_error statement_try(const struct db *db, const struct script_statement *statement)
{
    const struct timespec moment = {.tv_nsec = conflict_wait_ms * 1000000L};
    for (int try = 1;; try++) {
        enum iw_error error = db_run_plain(db, statement->text, statement->length);
        if (error == IW_OK || !db_is_conflict(db->connection) || try == conflict_tries)
            return error;
        context_clear(db->context);
        nanosleep(&moment, NULL);
    }
}

static enum iw_error statement_run(const struct db *db, const struct migration *migration,
                                   const struct script_statement *statement)
{
    enum iw_error error = statement_try(db, statement);
    if (error == IW_OK)
        return IW_OK;
    const char *cause = db->context->cause;
    context_clear(db->context);
    if (cause != NULL)
        context_cause(db->context, "%s", cause);
    return context_fail(db->context, error, "%s, line %u: the database refused the statement.",
                        migration->name, statement->line);
}

enum iw_error migrate_apply(const struct db *db, struct migration *migration)
{
    struct script script;
    struct script_statement statement;
    unsigned number = 0;
    enum iw_error error = migration_begin(db, migration);
    script_init(&script, migration->text, migration->length);
    while (error == IW_OK && script_next(&script, &statement)) {
        if (number++ < migration->statements_done)
            continue;
        error = statement_run(db, migration, &statement);
        if (error != IW_OK)
            return error;
        migration->statements_done = number;
        error = migration_note(db, migration);
    }
    migration->is_applied = error == IW_OK;
    return error;
}
