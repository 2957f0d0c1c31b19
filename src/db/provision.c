#include "db/provision.h"

#include <string.h>

#include "base/text.h"

/* Letters that need no quoting inside quotes or backticks. */
static const char word_letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.+/=:,";

static bool is_word(const char *text, size_t length_max)
{
    size_t length = strlen(text);
    return length <= length_max && strspn(text, word_letters) == length;
}

bool provision_is_sound(const struct provision *provision)
{
    return provision->database[0] != '\0' && provision->user[0] != '\0' && is_word(provision->database, 64) &&
           is_word(provision->user, 80) && is_word(provision->password, 200);
}

/* An underscore in a GRANT is a wildcard; a backslash escapes it. */
static const char *grant_name(struct arena *arena, const char *name)
{
    struct text text;
    text_init(&text, arena);
    for (; *name != '\0'; name++)
        text_printf(&text, "%s%c", *name == '_' ? "\\" : "", *name);
    return text.data;
}

void provision_statements(struct arena *arena, const struct provision *provision,
                          const char *statements[provision_statements_max])
{
    const char *proof = provision->password[0] == '\0' ? "VIA unix_socket"
                                                       : arena_printf(arena, "BY '%s'", provision->password);
    statements[0] =
        arena_printf(arena, "CREATE DATABASE IF NOT EXISTS `%s` CHARACTER SET utf8mb4", provision->database);
    statements[1] = arena_printf(arena, "CREATE USER IF NOT EXISTS '%s'@'localhost' IDENTIFIED %s",
                                 provision->user, proof);
    statements[2] = arena_printf(arena, "GRANT SELECT, INSERT, UPDATE, DELETE ON `%s`.* TO '%s'@'localhost'",
                                 grant_name(arena, provision->database), provision->user);
}

/* Whether the database, the user and the rights exist: one query each, which counts 0 or 1. */
static enum iw_error is_there(const struct db *db, const struct provision *provision, unsigned which,
                              bool *answer)
{
    static const char *const queries[provision_statements_max] = {
        "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = ? AND ? <> ''",
        "SELECT COUNT(*) FROM mysql.user WHERE ? <> '' AND user = ? AND host = 'localhost'",
        "SELECT COUNT(*) FROM mysql.db WHERE db = ? AND user = ? AND host = 'localhost' AND select_priv = "
        "'Y' "
        "AND insert_priv = 'Y' AND update_priv = 'Y' AND delete_priv = 'Y'"};
    struct db_rows rows;
    const char *name = which == 2 ? grant_name(db->context->arena, provision->database) : provision->database;
    const struct db_value values[] = {db_text(name), db_text(provision->user)};
    enum iw_error error = db_run(db, queries[which], values, 2, &rows);
    if (error == IW_OK) {
        struct db_row columns = db_row(&rows, 0);
        *answer = db_next_bool(&columns);
    }
    return error;
}

enum iw_error provision_run(const struct db *administrator, const struct provision *provision, unsigned *made)
{
    const char *statements[provision_statements_max];
    enum iw_error error = IW_OK;
    *made = 0;
    provision_statements(administrator->context->arena, provision, statements);
    for (unsigned i = 0; error == IW_OK && i < provision_statements_max; i++) {
        bool is_done = false;
        error = is_there(administrator, provision, i, &is_done);
        if (error != IW_OK || is_done)
            continue;
        error = db_run_plain(administrator, statements[i], strlen(statements[i]));
        (*made)++;
    }
    return error;
}

enum iw_error provision_ping(const struct db *db)
{
    return db_run(db, "SELECT 1", NULL, 0, NULL);
}
