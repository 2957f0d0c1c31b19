#include "ctl/migrate.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/ctl.h"
#include "ctl/grants.h"
#include "db/db.h"
#include "domain/keyring.h"

const char migrate_directory_default[] = IW_DATADIR "/sql";

/* Altering a large table takes a long time. */
enum { file_bytes_max = 16 * 1024 * 1024, statement_timeout_s = 900 };

static int is_migration(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return entry->d_name[0] != '.' && length > 4 && strcmp(entry->d_name + length - 4, ".sql") == 0;
}

static enum iw_error file_take(struct context *context, const char *directory, const char *name,
                               struct migration *migration)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    const char *path = arena_printf(context->arena, "%s/%s", directory, name);
    enum iw_error error = ctl_file_read(context, path, file_bytes_max, &bytes, &size);
    if (error != IW_OK)
        return error;
    const char *text = arena_text_n(context->arena, (const char *)bytes, size);
    free(bytes);
    return migrate_init(context, arena_text(context->arena, name), text, size, migration);
}

enum iw_error migrate_read(struct context *context, const char *directory, struct migration **migrations,
                           unsigned *count)
{
    struct dirent **entries = NULL;
    enum iw_error error = IW_OK;
    int found = scandir(directory, &entries, is_migration, alphasort);
    if (found < 0)
        return context_fail(context, IW_IO_FAILED, "%s: %s.", directory, strerror(errno));
    *migrations = arena_array(context->arena, (size_t)found + 1, sizeof **migrations);
    *count = (unsigned)found;
    for (int i = 0; i < found; i++) {
        if (error == IW_OK)
            error = file_take(context, directory, entries[i]->d_name, &(*migrations)[i]);
        free(entries[i]);
    }
    free(entries);
    if (error == IW_OK && found == 0)
        return context_fail(context, IW_CONFIG_INVALID, "%s has no migrations.", directory);
    return error;
}

static void migration_print(const struct ctl *ctl, const struct migration *migration)
{
    if (migration->is_applied)
        printf("%s: applied %s\n", migration->name, ctl_time(ctl, migration->applied_at_ms));
    else if (migration->statements_done > 0)
        printf("%s: started, %u of %u statements done\n", migration->name, migration->statements_done,
               migration->statement_count);
    else
        printf("%s: pending, %u statements\n", migration->name, migration->statement_count);
}

static enum iw_error pending_apply(const struct db *db, struct migration *migrations, unsigned count,
                                   unsigned *applied)
{
    enum iw_error error = IW_OK;
    for (unsigned i = 0; i < count && error == IW_OK; i++) {
        if (migrations[i].is_applied)
            continue;
        printf("%s: applying %u statements\n", migrations[i].name,
               migrations[i].statement_count - migrations[i].statements_done);
        fflush(stdout);
        error = migrate_apply(db, &migrations[i]);
        (*applied)++;
    }
    return error;
}

/* Lists or applies the migrations while the lock is held. */
static enum iw_error migrations_work(struct ctl *ctl, const struct db *db, const char *directory, bool is_dry,
                                     unsigned *applied, unsigned *count)
{
    struct migration *migrations = NULL;
    *applied = *count = 0;
    enum iw_error error = migrate_read(
        ctl->context, directory != NULL ? directory : migrate_directory_default, &migrations, count);
    if (error == IW_OK)
        error = migrate_lock(db);
    if (error != IW_OK)
        return error;
    error = migrate_compare(db, migrations, *count);
    for (unsigned i = 0; i < *count && error == IW_OK && is_dry; i++)
        migration_print(ctl, &migrations[i]);
    if (error == IW_OK && !is_dry)
        error = pending_apply(db, migrations, *count, applied);
    if (error == IW_OK)
        migrate_unlock(db);
    return error;
}

enum iw_error migrate_all(struct ctl *ctl, const struct db *db, const char *directory, unsigned *applied)
{
    unsigned count;
    return migrations_work(ctl, db, directory, false, applied, &count);
}

static const struct db *database_open(struct ctl *ctl, struct config *config, struct config *administrator)
{
    if (ctl_option(ctl, "--administrator") == NULL)
        return ctl_db_open(ctl, config);
    if (!ctl_config(ctl, config))
        return NULL;
    struct db *db = arena_alloc(ctl->context->arena, sizeof *db);
    *db = (struct db){ctl->context, ctl_db_administrator(config, config->database_name, administrator)};
    return db;
}

/*
 * Records the ids of the keys of this host, so that an upgrade does this before the new programs start. The
 * migration has succeeded by then, so a key that does not match is only reported.
 */
static void keys_record(struct ctl *ctl, const struct db *db, const struct config *config)
{
    struct context *context = ctl->context;
    struct keyring keyring = {.ids = {""}};
    for (unsigned purpose = 0; purpose < keyring_purpose_count; purpose++)
        if (keyring_load(context, config, (enum keyring_purpose)purpose, &keyring) != IW_OK)
            context_clear(context);
    if (keyring_check(db, config, &keyring) == IW_CONFIG_INVALID)
        fprintf(stderr, "imgwardctl: %s\n", context->sentence);
    context_clear(context);
}

static enum ctl_exit migrate_run(struct ctl *ctl)
{
    struct config config, administrator;
    unsigned applied, count, made = 0;
    bool is_dry = ctl_option(ctl, "--dry-run") != NULL;
    const struct db *db = database_open(ctl, &config, &administrator);
    if (db == NULL)
        return CTL_FAILED;
    if (config.database_timeout_s < statement_timeout_s)
        config.database_timeout_s = statement_timeout_s;
    administrator.database_timeout_s = statement_timeout_s;
    enum iw_error error = migrations_work(ctl, db, ctl_option(ctl, "--directory"), is_dry, &applied, &count);
    /* New tables need new rights. */
    if (error == IW_OK && !is_dry && ctl_option(ctl, "--administrator") != NULL)
        error = grants_apply(db, &config, &made);
    if (error == IW_OK && !is_dry)
        keys_record(ctl, db, &config);
    ctl_db_close(db);
    if (error != IW_OK)
        return ctl_failed(ctl);
    if (!is_dry)
        printf("migrate: %u applied, %u in total\n", applied, count);
    return CTL_DONE;
}

const struct ctl_command migrate_commands[] = {
    {.words = {"migrate"},
     .arguments = "",
     .options = {{"--dry-run", NULL, "list the pending migrations and apply none"},
                 {"--administrator", NULL,
                  "connect as the database's root over its socket, if the service's user may not change "
                  "tables; needs root"},
                 {"--directory", "DIR", "folder of the migrations, instead of the installed ones"}},
     .help = "Apply the pending migrations to the database.",
     .run = migrate_run},
    {.words = {NULL}},
};
