#include "db/grants.h"

#include <string.h>

#include "db/query.h"

/* Abbreviations for the table below. */
#define R    "SELECT"
#define RA   "SELECT, INSERT"
#define RW   "SELECT, INSERT, UPDATE"
#define ALL  "SELECT, INSERT, UPDATE, DELETE"
#define NONE NULL

/* NULL means no right on the table. */
static const struct {
    const char *table;
    const char *rights[GRANTS_PROGRAM_COUNT]; /* API, console, worker */
} grants[] = {
    {"switches", {R, R, R}},
    {"workers", {R, R, ALL}},
    {"schema_migrations", {R, R, R}},

    /*
     * Accounts, keys and users, which only the console changes, and which the worker deletes with their
     * account.
     */
    {"accounts", {R, RW, "SELECT, UPDATE (delete_at), DELETE"}},
    {"account_usage", {RW, RW, ALL}},
    {"api_keys",
     {"SELECT, UPDATE (last_used_at)", "SELECT, INSERT, UPDATE (revoked_at, expires_at)",
      "SELECT (id, account_id), DELETE"}},
    {"users", {NONE, ALL, "SELECT (id, account_id, role, email, language, is_disabled), DELETE"}},
    {"user_sessions", {NONE, ALL, "SELECT (id, user_id, seen_at, expires_at), DELETE"}},
    {"user_tokens", {NONE, ALL, "SELECT (id, user_id, expires_at), DELETE"}},
    {"recovery_codes", {NONE, "SELECT, INSERT, DELETE", NONE}},
    {"invitations", {NONE, "SELECT, INSERT, DELETE", "SELECT (id, account_id, expires_at), DELETE"}},
    {"sign_in_attempts", {NONE, RW, ALL}},
    /* The programs that add events must not change them. */
    {"audit_events", {NONE, RA, "SELECT (id, account_id, at), DELETE"}},
    {"mails", {NONE, "INSERT", ALL}},
    {"request_log", {"INSERT", R, "SELECT (id, account_id, at), DELETE"}},
    {"request_bodies", {"INSERT", R, "SELECT (id, account_id, at), DELETE"}},

    /* Orders. A deletion cancels or removes the jobs of an order; only the worker leases and records jobs. */
    {"orders", {ALL, ALL, ALL}},
    {"files", {ALL, ALL, ALL}},
    {"results", {ALL, ALL, ALL}},
    {"order_watermarks", {ALL, ALL, ALL}},
    {"readings", {ALL, ALL, ALL}},
    {"watermark_texts", {RA, RA, ALL}},
    {"upload_checks", {ALL, ALL, ALL}},
    {"order_segments", {RW, RW, ALL}},
    {"order_words", {R, R, ALL}},
    {"census", {R, R, ALL}},
    {"key_ids", {RW, RW, RW}},
    {"usage_days", {R, R, ALL}},
    {"jobs",
     {"SELECT, INSERT, UPDATE (status, reason, updated_at), DELETE",
      "SELECT, INSERT, UPDATE (status, reason, updated_at), DELETE", ALL}},
    {"job_retries", {NONE, RA, "SELECT, DELETE"}},

    {"webhooks", {RW, RW, ALL}},
    {"webhook_secrets", {ALL, ALL, ALL}},
    {"webhook_events", {RA, RA, ALL}},
    {"webhook_deliveries", {RW, RW, ALL}},
    {"delivery_bodies", {NONE, R, ALL}},
};

enum { table_count = sizeof grants / sizeof grants[0] };

const char *grants_program_name(enum grants_program program)
{
    static const char *const names[GRANTS_PROGRAM_COUNT] = {"imgward-api", "imgward-console",
                                                            "imgward-worker"};
    return names[program];
}

const char *grants_user_statement(struct arena *arena, const struct provision *user)
{
    const char *proof =
        user->password[0] == '\0' ? "VIA unix_socket" : arena_printf(arena, "BY '%s'", user->password);
    return arena_printf(arena, "CREATE USER IF NOT EXISTS '%s'@'localhost' IDENTIFIED %s", user->user, proof);
}

const char **grants_statements(struct arena *arena, const struct provision *user, enum grants_program program,
                               unsigned *count)
{
    const char **statements = arena_array(arena, table_count, sizeof *statements);
    *count = 0;
    for (size_t i = 0; i < table_count; i++)
        if (grants[i].rights[program] != NULL)
            statements[(*count)++] =
                arena_printf(arena, "GRANT %s ON `%s`.`%s` TO '%s'@'localhost'", grants[i].rights[program],
                             user->database, grants[i].table, user->user);
    return statements;
}

enum iw_error grants_run(const struct db *administrator, const struct provision *user,
                         enum grants_program program, bool *is_new)
{
    unsigned count;
    int64_t users = 0;
    const char *made = grants_user_statement(administrator->context->arena, user);
    const char **statements = grants_statements(administrator->context->arena, user, program, &count);
    const struct db_value values[] = {db_text(user->user)};
    enum iw_error error =
        query_number(administrator, "SELECT COUNT(*) FROM mysql.user WHERE user = ? AND host = 'localhost'",
                     values, 1, &users);
    *is_new = users == 0;
    if (error == IW_OK && *is_new)
        error = db_run_plain(administrator, made, strlen(made));
    for (unsigned i = 0; error == IW_OK && i < count; i++)
        error = db_run_plain(administrator, statements[i], strlen(statements[i]));
    return error;
}
