#include "db/erasure.h"

enum iw_error erasure_schedule(const struct db *db, int64_t account_id, int64_t at_ms)
{
    const struct db_value values[] = {db_time(at_ms), db_integer(account_id)};
    return db_run(db, "UPDATE accounts SET status = 'suspended', delete_at = ? WHERE id = ?", values, 2,
                  NULL);
}

enum iw_error erasure_due(const struct db *db, int64_t now_ms, int64_t *account_id)
{
    const struct db_value values[] = {db_time(now_ms)};
    *account_id = 0;
    enum iw_error error =
        db_run(db, "UPDATE accounts SET delete_at = NULL WHERE delete_at IS NOT NULL AND status = 'active'",
               NULL, 0, NULL);
    return error == IW_OK
               ? query_number(
                     db,
                     "SELECT id FROM accounts WHERE delete_at <= ? AND status = 'suspended' ORDER BY "
                     "delete_at LIMIT 1",
                     values, 1, account_id)
               : error;
}

enum iw_error erasure_orders(const struct db *db, int64_t account_id, unsigned most,
                             struct query_ids *order_ids)
{
    const struct db_value values[] = {db_integer(account_id), db_integer(most)};
    return query_ids(db, "SELECT id FROM orders WHERE account_id = ? ORDER BY id LIMIT ?", values, 2,
                     order_ids);
}

enum iw_error erasure_step(const struct db *db, int64_t account_id, bool *is_gone)
{
    /* Rows follow the rows that refer to them. */
    static const char *const statements[] = {
        "DELETE FROM webhook_deliveries WHERE webhook_id IN (SELECT id FROM webhooks WHERE account_id = ?) "
        "LIMIT 1000",
        "DELETE FROM webhook_events WHERE account_id = ? LIMIT 1000",
        "DELETE FROM webhooks WHERE account_id = ? LIMIT 1000",
        "DELETE FROM upload_checks WHERE account_id = ? LIMIT 1000",
        "DELETE FROM order_watermarks WHERE account_id = ? LIMIT 1000",
        "DELETE FROM watermark_texts WHERE account_id = ? LIMIT 1000",
        "DELETE FROM order_words WHERE account_id = ? LIMIT 1000",
        "DELETE FROM order_segments WHERE account_id = ? LIMIT 1000",
        "DELETE FROM usage_days WHERE account_id = ? LIMIT 1000",
        "DELETE FROM request_log WHERE account_id = ? LIMIT 1000",
        "DELETE FROM request_bodies WHERE account_id = ? LIMIT 1000",
        "DELETE FROM audit_events WHERE account_id = ? LIMIT 1000",
        "DELETE FROM invitations WHERE account_id = ? LIMIT 1000",
        "DELETE FROM users WHERE account_id = ? LIMIT 1000",
        "DELETE FROM api_keys WHERE account_id = ? LIMIT 1000",
        "DELETE FROM account_usage WHERE account_id = ? LIMIT 1000",
        "DELETE FROM accounts WHERE id = ? LIMIT 1000",
    };
    const struct db_value values[] = {db_integer(account_id)};
    enum iw_error error = IW_OK;
    int64_t count = 0;
    *is_gone = false;
    for (size_t i = 0; error == IW_OK && i < sizeof statements / sizeof statements[0]; i++) {
        error = query_change(db, statements[i], values, 1, &count);
        if (error == IW_OK && count == 1000)
            return IW_OK;
    }
    *is_gone = error == IW_OK;
    return error;
}
