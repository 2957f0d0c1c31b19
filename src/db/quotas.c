#include "db/quotas.h"

#include <string.h>

#include "base/clock.h"

/* The largest current use that still leaves room for amount. */
static struct db_value highest(const struct quota_claim *claim, int64_t limit, int64_t amount)
{
    if (limit == quota_unlimited || amount <= 0)
        return db_integer(INT64_MAX);
    return db_integer((claim->ahead > 0 ? limit / 4 * quota_ahead_quarters : limit) - amount);
}

/*
 * How much a claim adds to a counter: the creation, the creations ahead, less what the reserve has claimed
 * already.
 */
static int64_t claimed(const struct quota_claim *claim, int64_t amount, int64_t reserved)
{
    return claim->is_covered ? 0 : amount * (1 + claim->ahead) - reserved;
}

/* The amounts that a claim adds to the counters. */
struct claim_sums {
    int64_t orders, files, uploads, files_day;
};

static struct claim_sums sums_of(const struct quota_claim *claim)
{
    const struct quota_amounts *own = &claim->amounts, *reserved = &claim->reserve.amounts;
    bool is_of_day = quota_reserve_is_of_day(&claim->reserve, claim->now_ms);
    return (struct claim_sums){claimed(claim, own->orders, reserved->orders),
                               claimed(claim, own->files, reserved->files),
                               claimed(claim, own->uploads, reserved->uploads),
                               claimed(claim, own->files, is_of_day ? reserved->files : 0)};
}

bool quotas_claim_is_empty(const struct quota_claim *claim)
{
    struct claim_sums sums = sums_of(claim);
    return claim->texts == 0 && sums.orders == 0 && sums.files == 0 && sums.uploads == 0 &&
           sums.files_day == 0;
}

void quotas_claim_add(struct query *query, const struct quota_claim *claim)
{
    char text[11];
    const int64_t *of = claim->limits->of;
    clock_day(claim->now_ms, text);
    struct db_value day = db_text(arena_text(query->sql.arena, text));
    int64_t uploads_max = of[QUOTA_PROMISED_BYTES] / claim->upload_max_bytes;
    struct claim_sums sums = sums_of(claim);
    const struct db_value values[] = {
        db_integer(sums.orders),
        db_integer(sums.files),
        db_integer(sums.uploads),
        day,
        db_integer(sums.files_day),
        day,
        db_integer(claim->texts),
        day,
        db_integer(claim->account_id),
        highest(claim, of[QUOTA_ORDERS_PENDING], sums.orders),
        highest(claim, of[QUOTA_FILES_PENDING], sums.files),
        highest(claim, uploads_max, sums.uploads),
        highest(claim, of[QUOTA_STORED_BYTES], claim->is_covered ? 0 : 1),
        day,
        highest(claim, of[QUOTA_FILES_DAY], sums.files_day),
        day,
        highest(claim, of[QUOTA_TEXTS_DAY], claim->texts),
    };
    /* The day is assigned last: MariaDB assigns from left to right, and the IFs read the old day. */
    query_append(
        query,
        "UPDATE account_usage SET orders_pending = orders_pending + ?, files_pending = files_pending + ?, "
        "uploads_pending = uploads_pending + ?, files_day = IF(day = ?, files_day, 0) + ?, texts_day = "
        "IF(day = ?, texts_day, 0) + ?, day = ? WHERE account_id = ? AND orders_pending <= ? AND "
        "files_pending "
        "<= ? AND uploads_pending <= ? AND stored_bytes <= ? AND (day <> ? OR files_day <= ?) AND (day <> ? "
        "OR "
        "texts_day <= ?)",
        values, sizeof values / sizeof values[0]);
}

/* The files that the order's client uploads. */
#define UPLOADS "(SELECT COUNT(*) FROM files f WHERE f.order_id = o.id AND f.source_url IS NULL)"

enum iw_error quotas_order_started(const struct db *db, int64_t order_id)
{
    const struct db_value values[] = {db_integer(order_id)};
    return db_run(db,
                  "UPDATE account_usage u JOIN orders o ON o.account_id = u.account_id SET "
                  "u.uploads_pending = u.uploads_pending - " UPLOADS " WHERE o.id = ?",
                  values, 1, NULL);
}

/*
 * file_count is unsigned, and the counter may be too low until the next reconciliation: without the CAST
 * the order could not end.
 */
enum iw_error quotas_order_ended(const struct db *db, int64_t order_id)
{
    const struct db_value values[] = {db_integer(order_id)};
    return db_run(
        db,
        "UPDATE account_usage u JOIN orders o ON o.account_id = u.account_id SET u.orders_pending "
        "= u.orders_pending - 1, u.files_pending = u.files_pending - CAST(o.file_count AS SIGNED) - "
        "o.include_original, u.uploads_pending = u.uploads_pending - IF(o.status = 'pending', " UPLOADS
        ", 0) WHERE o.id = ? AND o.status IN ('pending', 'inProgress')",
        values, 1, NULL);
}

enum iw_error quotas_order_erased(const struct db *db, int64_t order_id)
{
    const struct db_value values[] = {db_integer(order_id)};
    return db_run(db,
                  "UPDATE account_usage u JOIN orders o ON o.account_id = u.account_id SET u.stored_bytes = "
                  "u.stored_bytes - (SELECT COALESCE(SUM(r.size_bytes), 0) FROM results r WHERE r.order_id = "
                  "o.id) - (SELECT COALESCE(SUM(f.size_bytes), 0) FROM files f WHERE f.order_id = o.id AND "
                  "f.store_key IS NOT NULL) - IF(o.zip_store_key IS NULL, 0, COALESCE(o.zip_size_bytes, 0)) "
                  "WHERE o.id = ? AND o.files_deleted_at IS NULL",
                  values, 1, NULL);
}

enum iw_error quotas_stored(const struct db *db, int64_t account_id, int64_t bytes)
{
    const struct db_value values[] = {db_integer(bytes), db_integer(account_id)};
    return db_run(db, "UPDATE account_usage SET stored_bytes = stored_bytes + ? WHERE account_id = ?", values,
                  2, NULL);
}

enum iw_error quotas_reserve_removed(const struct db *db, int64_t account_id,
                                     const struct quota_reserve *reserve, int64_t now_ms)
{
    char day[11];
    clock_day(now_ms, day);
    const struct db_value values[] = {db_integer(reserve->amounts.files), db_integer(account_id),
                                      db_text(day)};
    if (!quota_reserve_is_of_day(reserve, now_ms))
        return IW_OK;
    return db_run(db, "UPDATE account_usage SET files_day = files_day - ? WHERE account_id = ? AND day = ?",
                  values, 3, NULL);
}

enum iw_error quotas_open(const struct db *db, int64_t account_id)
{
    const struct db_value values[] = {db_integer(account_id)};
    return db_run(db,
                  "INSERT IGNORE INTO account_usage (account_id, day, reconciled_at) VALUES (?, UTC_DATE(), "
                  "'1970-01-01')",
                  values, 1, NULL);
}

enum iw_error quotas_used(const struct db *db, int64_t account_id, const char *day,
                          struct quota_numbers *used, bool *is_found)
{
    struct db_rows rows;
    const struct db_value values[] = {db_text(day), db_text(day), db_integer(account_id)};
    enum iw_error error =
        db_run(db,
               "SELECT u.orders_pending, u.files_pending, u.uploads_pending, u.stored_bytes, IF(u.day = ?, "
               "u.files_day, 0), IF(u.day = ?, u.texts_day, 0), (SELECT COUNT(*) FROM webhooks w WHERE "
               "w.account_id = u.account_id AND w.deleted_at IS NULL) FROM account_usage u WHERE "
               "u.account_id = ?",
               values, 3, &rows);
    *is_found = error == IW_OK && rows.count > 0;
    if (!*is_found)
        return error;
    struct db_row columns = db_row(&rows, 0);
    for (unsigned i = 0; i < QUOTA_COUNT; i++)
        used->of[i] = db_next_integer(&columns);
    return IW_OK;
}

enum iw_error quotas_lock(const struct db *db, int64_t account_id, bool *is_found)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(account_id)};
    enum iw_error error =
        db_run(db, "SELECT account_id FROM account_usage WHERE account_id = ? FOR UPDATE", values, 1, &rows);
    *is_found = error == IW_OK && rows.count > 0;
    return error;
}

struct quota_numbers quotas_limits_of(struct db_row *columns)
{
    struct quota_numbers limits;
    for (unsigned i = 0; i < QUOTA_COUNT; i++)
        limits.of[i] = db_next_is_null(columns) ? quota_of_plan : db_next_integer(columns);
    return limits;
}

struct quota_numbers quotas_use_of(struct db_row *columns)
{
    struct quota_numbers used = {{0}};
    for (unsigned i = 0; i < QUOTA_WEBHOOKS; i++)
        used.of[i] = db_next_integer(columns);
    return used;
}

enum iw_error quotas_limit_set(const struct db *db, int64_t account_id, enum quota quota, int64_t limit)
{
    static const char *const statements[QUOTA_COUNT] = {
        "UPDATE account_usage SET orders_pending_max = ? WHERE account_id = ?",
        "UPDATE account_usage SET files_pending_max = ? WHERE account_id = ?",
        "UPDATE account_usage SET promised_bytes_max = ? WHERE account_id = ?",
        "UPDATE account_usage SET stored_bytes_max = ? WHERE account_id = ?",
        "UPDATE account_usage SET files_day_max = ? WHERE account_id = ?",
        "UPDATE account_usage SET texts_day_max = ? WHERE account_id = ?",
        "UPDATE account_usage SET webhooks_max = ? WHERE account_id = ?"};
    const struct db_value values[] = {limit == quota_of_plan ? db_null() : db_integer(limit),
                                      db_integer(account_id)};
    enum iw_error error = quotas_open(db, account_id);
    return error == IW_OK ? db_run(db, statements[quota], values, 2, NULL) : error;
}

enum iw_error quotas_frees_ms(const struct db *db, int64_t account_id, bool is_pending, int64_t *at_ms)
{
    const struct db_value values[] = {db_integer(account_id), db_text(is_pending ? "pending" : "complete")};
    *at_ms = 0;
    return query_number(db, "SELECT MIN(expires_at) FROM orders WHERE account_id = ? AND status = ?", values,
                        2, at_ms);
}

enum iw_error quotas_due(const struct db *db, int64_t before_ms, int64_t now_ms, struct quota_due *due,
                         bool *is_found)
{
    struct db_rows rows;
    const struct db_value find[] = {db_time(before_ms)};
    enum iw_error error = db_run(db,
                                 "SELECT u.account_id, a.plan, u.warned, " QUOTA_LIMIT_COLUMNS
                                 " FROM account_usage u JOIN accounts a ON a.id = "
                                 "u.account_id WHERE u.reconciled_at < ? ORDER BY u.reconciled_at LIMIT 1",
                                 find, 1, &rows);
    *is_found = error == IW_OK && rows.count > 0;
    if (!*is_found)
        return error;
    struct db_row columns = db_row(&rows, 0);
    *due = (struct quota_due){0};
    due->account_id = db_next_integer(&columns);
    due->plan = db_next_text(&columns);
    due->warned = db_next_integer(&columns);
    due->limits = quotas_limits_of(&columns);
    const struct db_value claim[] = {db_time(now_ms), db_integer(due->account_id)};
    return db_run(db, "UPDATE account_usage SET reconciled_at = ? WHERE account_id = ?", claim, 2, NULL);
}

/*
 * One statement is one snapshot. Inputs belong to orders that have not ended, results to these and to
 * complete orders.
 */
#define DIFFERENCES                                                                                          \
    "SELECT (SELECT COUNT(*) FROM orders WHERE account_id = u.account_id AND status IN ('pending', "         \
    "'inProgress')) - u.orders_pending, CAST((SELECT COALESCE(SUM(file_count + include_original), 0) FROM "  \
    "orders WHERE account_id = u.account_id AND status IN ('pending', 'inProgress')) - u.files_pending AS "  \
    "SIGNED), (SELECT COUNT(*) FROM orders o JOIN files f ON f.order_id = o.id WHERE o.account_id = "        \
    "u.account_id AND o.status = 'pending' AND f.source_url IS NULL) - u.uploads_pending, CAST((SELECT "     \
    "COALESCE(SUM(f.size_bytes), 0) FROM orders o JOIN files f ON f.order_id = o.id WHERE o.account_id = "   \
    "u.account_id AND o.status IN ('pending', 'inProgress') AND f.store_key IS NOT NULL) + (SELECT "         \
    "COALESCE(SUM(r.size_bytes), 0) FROM orders o JOIN results r ON r.order_id = o.id WHERE o.account_id = " \
    "u.account_id AND o.status IN ('inProgress', 'complete')) + (SELECT COALESCE(SUM(zip_size_bytes), 0) "   \
    "FROM orders WHERE account_id = u.account_id AND status = 'complete' AND zip_store_key IS NOT NULL) - "  \
    "u.stored_bytes AS SIGNED) FROM account_usage u WHERE u.account_id = ?"

enum iw_error quotas_reconcile(const struct db *db, int64_t account_id, const struct quota_amounts *reserve)
{
    struct db_rows rows;
    const int64_t reserved[4] = {reserve->orders, reserve->files, reserve->uploads, 0};
    struct db_value values[5] = {db_integer(account_id)};
    enum iw_error error = db_run(db, DIFFERENCES, values, 1, &rows);
    if (error != IW_OK || rows.count == 0)
        return error;
    bool is_equal = true;
    struct db_row columns = db_row(&rows, 0);
    for (unsigned i = 0; i < 4; i++) {
        values[i] = db_integer(db_next_integer(&columns) + reserved[i]);
        is_equal = is_equal && values[i].integer == 0;
    }
    values[4] = db_integer(account_id);
    if (is_equal)
        return IW_OK;
    return db_run(db,
                  "UPDATE account_usage SET orders_pending = orders_pending + ?, files_pending = "
                  "files_pending + ?, uploads_pending = uploads_pending + ?, stored_bytes = stored_bytes + ? "
                  "WHERE account_id = ?",
                  values, 5, NULL);
}

enum iw_error quotas_warned_write(const struct db *db, int64_t account_id, int64_t warned)
{
    const struct db_value values[] = {db_integer(warned), db_integer(account_id)};
    return db_run(db, "UPDATE account_usage SET warned = ? WHERE account_id = ?", values, 2, NULL);
}
