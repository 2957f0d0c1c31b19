#include "db/mails.h"

#include "db/transaction.h"
enum iw_error mails_insert(const struct db *db, const char *recipient, const uint8_t *sealed, size_t size,
                           int64_t now_ms)
{
    const struct db_value values[] = {db_text(recipient), db_bytes(sealed, size), db_time(now_ms),
                                      db_time(now_ms)};
    return db_run(db, "INSERT INTO mails (recipient, sealed, available_at, created_at) VALUES (?, ?, ?, ?)",
                  values, 4, NULL);
}

enum iw_error mails_are_due(const struct db *db, int64_t now_ms, bool *are_due)
{
    int64_t found = 0;
    const struct db_value values[] = {db_time(now_ms)};
    enum iw_error error =
        query_number(db, "SELECT EXISTS (SELECT 1 FROM mails WHERE available_at <= ?)", values, 1, &found);
    *are_due = found != 0;
    return error;
}

enum iw_error mails_lease(const struct db *db, int64_t now_ms, int64_t until_ms, struct mails_row *row,
                          bool *is_found)
{
    enum iw_error error;
    const struct db_value due[] = {db_time(now_ms)};
    for (struct transaction t = transaction_begin(db); transaction_goes_on(&t, &error);) {
        struct db_rows rows;
        error = db_run(db,
                       "SELECT id, attempt, recipient, sealed FROM mails WHERE available_at <= ? ORDER BY "
                       "available_at LIMIT 1 FOR UPDATE SKIP LOCKED",
                       due, 1, &rows);
        *is_found = error == IW_OK && rows.count > 0;
        if (!*is_found)
            continue;
        struct db_row columns = db_row(&rows, 0);
        *row = (struct mails_row){0};
        row->id = db_next_integer(&columns);
        row->attempt = db_next_integer(&columns) + 1;
        row->recipient = db_next_text(&columns);
        row->sealed = db_next_bytes(&columns, &row->sealed_size);
        const struct db_value lease[] = {db_time(until_ms), db_integer(row->id)};
        error = db_run(db, "UPDATE mails SET attempt = attempt + 1, available_at = ? WHERE id = ?", lease, 2,
                       NULL);
    }
    return error;
}

enum iw_error mails_delete(const struct db *db, int64_t id, int64_t attempt)
{
    const struct db_value values[] = {db_integer(id), db_integer(attempt)};
    return db_run(db, "DELETE FROM mails WHERE id = ? AND attempt = ?", values, 2, NULL);
}

enum iw_error mails_postpone(const struct db *db, const struct mails_row *row, int64_t until_ms,
                             const char *reason)
{
    const struct db_value values[] = {db_time(until_ms), db_text(reason), db_integer(row->id),
                                      db_integer(row->attempt)};
    return db_run(db, "UPDATE mails SET available_at = ?, reason = ? WHERE id = ? AND attempt = ?", values, 4,
                  NULL);
}
