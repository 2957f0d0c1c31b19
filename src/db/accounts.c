#include "db/accounts.h"

#include "db/transaction.h"
#include "base/text.h"
#include "db/query.h"
#include "db/quotas.h"
#include "model/plan.h"

#define ACCOUNT_COLUMNS                                                                                      \
    "SELECT a.id, a.name, a.plan, a.status, a.requests_per_minute, a.created_at, (SELECT COUNT(*) FROM "     \
    "api_keys k WHERE k.account_id = a.id AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR "            \
    "k.expires_at > UTC_TIMESTAMP(3))), (SELECT COUNT(*) FROM users s WHERE s.account_id = "                 \
    "a.id), " QUOTA_LIMIT_COLUMNS " FROM accounts a LEFT JOIN account_usage u ON u.account_id = a.id "

static enum iw_error plan_check(const struct db *db, const char *plan)
{
    if (plan_exists(plan))
        return IW_OK;
    return context_fail(db->context, IW_VALIDATION_FAILED,
                        "There is no plan \"%s\"; the plans are " PLAN_NAMES ".", plan);
}

enum iw_error accounts_create(const struct db *db, const char *name, const char *plan, int64_t now_ms,
                              int64_t *id)
{
    struct db_rows rows;
    const struct db_value values[] = {db_text(name), db_text(plan), db_time(now_ms)};
    enum iw_error error = plan_check(db, plan);
    if (error == IW_OK)
        error =
            db_run(db, "INSERT INTO accounts (name, plan, created_at) VALUES (?, ?, ?)", values, 3, &rows);
    if (error == IW_OK)
        error = quotas_open(db, *id = rows.inserted_id);
    if (error == IW_TWIN_EXISTS) {
        context_clear(db->context);
        return context_fail(db->context, error, "An account named \"%s\" already exists.", name);
    }
    return error;
}

static void account_read(struct db_row *columns, struct account_row *account)
{
    *account = (struct account_row){.status = ACCOUNT_SUSPENDED};
    account->id = db_next_integer(columns);
    account->name = db_next_text(columns);
    account->plan = db_next_text(columns);
    account_status_read(db_next_text(columns), &account->status);
    account->requests_per_minute = db_next_integer(columns);
    account->created_at_ms = db_next_integer(columns);
    account->key_count = db_next_integer(columns);
    account->user_count = db_next_integer(columns);
    account->quotas = quotas_limits_of(columns);
}

enum iw_error accounts_name_is_taken(const struct db *db, const char *name, bool *is_taken)
{
    int64_t found = 0;
    const struct db_value values[] = {db_text(name)};
    enum iw_error error =
        query_number(db, "SELECT EXISTS (SELECT 1 FROM accounts WHERE name = ?)", values, 1, &found);
    *is_taken = found != 0;
    return error;
}

enum iw_error accounts_is_used(const struct db *db, int64_t id, int64_t user_id, bool *is_used)
{
    int64_t found = 0;
    const struct db_value values[] = {db_integer(id), db_integer(id), db_integer(id), db_integer(user_id)};
    enum iw_error error = query_number(
        db,
        "SELECT EXISTS (SELECT 1 FROM orders WHERE account_id = ?) OR EXISTS (SELECT 1 FROM api_keys WHERE "
        "account_id = ?) OR EXISTS (SELECT 1 FROM users WHERE account_id = ? AND id <> ?)",
        values, 4, &found);
    *is_used = found != 0;
    return error;
}

enum iw_error accounts_find(const struct db *db, const char *name, struct account_row *account)
{
    struct db_rows rows;
    int64_t id = 0;
    const struct db_value by_name[] = {db_text(name)};
    enum iw_error error = db_run(db, ACCOUNT_COLUMNS "WHERE a.name = ?", by_name, 1, &rows);
    if (error == IW_OK && rows.count == 0 && text_integer(name, 1, INT64_MAX, &id)) {
        const struct db_value by_id[] = {db_integer(id)};
        error = db_run(db, ACCOUNT_COLUMNS "WHERE a.id = ?", by_id, 1, &rows);
    }
    if (error != IW_OK)
        return error;
    if (rows.count == 0)
        return context_fail(db->context, IW_NOT_FOUND,
                            "The account \"%s\" does not exist; imgwardctl account list shows the accounts.",
                            name);
    struct db_row columns = db_row(&rows, 0);
    account_read(&columns, account);
    return IW_OK;
}

enum iw_error accounts_list(const struct db *db, struct account_row **accounts, size_t *count)
{
    struct db_rows rows;
    enum iw_error error = db_run(db, ACCOUNT_COLUMNS "ORDER BY a.id", NULL, 0, &rows);
    if (error != IW_OK)
        return error;
    *accounts = arena_array(db->context->arena, rows.count + 1, sizeof **accounts);
    *count = rows.count;
    for (size_t i = 0; i < rows.count; i++) {
        struct db_row columns = db_row(&rows, i);
        account_read(&columns, &(*accounts)[i]);
    }
    return IW_OK;
}

enum iw_error accounts_plan_set(const struct db *db, int64_t id, const char *plan,
                                int64_t requests_per_minute)
{
    const struct db_value values[] = {
        db_text(plan), requests_per_minute > 0 ? db_integer(requests_per_minute) : db_null(), db_integer(id)};
    enum iw_error error = plan_check(db, plan);
    if (error != IW_OK)
        return error;
    return db_run(db, "UPDATE accounts SET plan = ?, requests_per_minute = ? WHERE id = ?", values, 3, NULL);
}

static enum iw_error status_set(const struct db *db, int64_t id, enum account_status status)
{
    const struct db_value values[] = {db_text(account_status_name(status)), db_integer(id)};
    return db_run(db, "UPDATE accounts SET status = ? WHERE id = ?", values, 2, NULL);
}

enum iw_error accounts_suspend(const struct db *db, int64_t id)
{
    return status_set(db, id, ACCOUNT_SUSPENDED);
}

enum iw_error accounts_resume(const struct db *db, int64_t id, int64_t pending_until_ms)
{
    enum iw_error error;
    const struct db_value values[] = {db_time(pending_until_ms), db_integer(id)};
    for (struct transaction t = transaction_begin(db); transaction_goes_on(&t, &error);) {
        error = db_run(db,
                       "UPDATE orders SET expires_at = GREATEST(expires_at, ?) WHERE account_id = ? AND "
                       "status = 'pending'",
                       values, 2, NULL);
        if (error == IW_OK)
            error = db_run(db, "UPDATE webhooks SET first_failure_at = NULL WHERE account_id = ?", values + 1,
                           1, NULL);
        if (error == IW_OK)
            error = status_set(db, id, ACCOUNT_ACTIVE);
    }
    return error;
}

enum iw_error accounts_get(const struct db *db, int64_t id, struct account_row *account, bool *is_found)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(id)};
    enum iw_error error = db_run(db, ACCOUNT_COLUMNS "WHERE a.id = ?", values, 1, &rows);
    *is_found = error == IW_OK && rows.count > 0;
    if (!*is_found)
        return error;
    struct db_row columns = db_row(&rows, 0);
    account_read(&columns, account);
    return IW_OK;
}

enum iw_error accounts_rename(const struct db *db, int64_t id, const char *name)
{
    const struct db_value values[] = {db_text(name), db_integer(id)};
    return db_run(db, "UPDATE accounts SET name = ? WHERE id = ?", values, 2, NULL);
}

#define ACCOUNT_FILTER "WHERE (? IS NULL OR a.name LIKE ?) AND (? IS NULL OR a.status = ?) "

enum iw_error accounts_page(const struct db *db, const struct accounts_page *page,
                            struct account_row **accounts, size_t *count, int64_t *total)
{
    struct db_rows rows;
    const char *pattern = query_pattern(db->context->arena, page->keyword);
    const struct db_value values[] = {db_text(pattern),        db_text(pattern),
                                      db_text(page->status),   db_text(page->status),
                                      db_integer(page->limit), db_integer(page->offset)};
    enum iw_error error =
        query_number(db, "SELECT COUNT(*) FROM accounts a " ACCOUNT_FILTER, values, 4, total);
    if (error == IW_OK)
        error = db_run(db, ACCOUNT_COLUMNS ACCOUNT_FILTER "ORDER BY a.id DESC LIMIT ? OFFSET ?", values, 6,
                       &rows);
    if (error != IW_OK)
        return error;
    *accounts = arena_array(db->context->arena, rows.count + 1, sizeof **accounts);
    *count = rows.count;
    for (size_t i = 0; i < rows.count; i++) {
        struct db_row columns = db_row(&rows, i);
        account_read(&columns, &(*accounts)[i]);
    }
    return IW_OK;
}
