#include "db/upload_checks.h"

#include "db/transaction.h"
/*
 * The orders of a suspended account wait. The account is read in a subquery, so that FOR UPDATE does not
 * lock it.
 */
#define DUE                                                                                                  \
    "FROM upload_checks c WHERE c.check_at <= ? AND (SELECT a.status FROM accounts a WHERE a.id = "          \
    "c.account_id) <> 'suspended' "

enum iw_error upload_checks_add(const struct db *db, int64_t order_id, int64_t account_id, int64_t at_ms)
{
    const struct db_value values[] = {db_integer(order_id), db_integer(account_id), db_time(at_ms)};
    return db_run(db, "INSERT IGNORE INTO upload_checks (order_id, account_id, check_at) VALUES (?, ?, ?)",
                  values, 3, NULL);
}

enum iw_error upload_checks_take(const struct db *db, int64_t now_ms, int64_t until_ms,
                                 struct upload_check *checks, unsigned *count)
{
    struct db_rows rows;
    unsigned taken = 0;
    const struct db_value due[] = {db_time(now_ms), db_integer(upload_checks_max)};
    *count = 0;
    /* First runs a query without locks, because most looks find nothing. */
    enum iw_error error = db_run(db, "SELECT 1 " DUE "LIMIT 1", due, 1, &rows);
    if (error != IW_OK || rows.count == 0)
        return error;
    for (struct transaction t = transaction_begin(db); transaction_goes_on(&t, &error);) {
        taken = 0;
        error = db_run(
            db, "SELECT c.order_id, c.account_id " DUE "ORDER BY c.check_at LIMIT ? FOR UPDATE SKIP LOCKED",
            due, 2, &rows);
        for (size_t i = 0; error == IW_OK && i < rows.count; i++) {
            struct db_row columns = db_row(&rows, i);
            struct upload_check *check = &checks[taken++];
            check->order_id = db_next_integer(&columns);
            check->account_id = db_next_integer(&columns);
            error = upload_checks_move(db, check->order_id, until_ms);
        }
    }
    *count = error == IW_OK ? taken : 0;
    return error;
}

enum iw_error upload_checks_move(const struct db *db, int64_t order_id, int64_t at_ms)
{
    const struct db_value values[] = {db_time(at_ms), db_integer(order_id)};
    return db_run(db, "UPDATE upload_checks SET check_at = ? WHERE order_id = ?", values, 2, NULL);
}

enum iw_error upload_checks_delete(const struct db *db, int64_t order_id)
{
    const struct db_value values[] = {db_integer(order_id)};
    return db_run(db, "DELETE FROM upload_checks WHERE order_id = ?", values, 1, NULL);
}
