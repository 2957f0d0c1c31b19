#include "db/attempts.h"

enum iw_error attempts_lock(const struct db *db, struct attempts_row *row)
{
    struct db_rows rows;
    const struct db_value values[] = {db_bytes(row->name_digest, 32)};
    /*
     * Takes an exclusive lock immediately, even on a new row. INSERT IGNORE would take a shared lock, and two
     * transactions that both upgrade it would wait for each other.
     */
    enum iw_error error =
        db_run(db,
               "INSERT INTO sign_in_attempts (name_digest, attempts, tried_at, next_at) VALUES (?, 0, "
               "'1970-01-02', '1970-01-02') ON DUPLICATE KEY UPDATE attempts = attempts",
               values, 1, NULL);
    if (error == IW_OK)
        error = db_run(
            db, "SELECT attempts, tried_at, next_at FROM sign_in_attempts WHERE name_digest = ? FOR UPDATE",
            values, 1, &rows);
    if (error != IW_OK || rows.count == 0)
        return error;
    struct db_row columns = db_row(&rows, 0);
    row->attempts = db_next_integer(&columns);
    row->tried_ms = db_next_integer(&columns);
    row->next_ms = db_next_integer(&columns);
    return IW_OK;
}

enum iw_error attempts_write(const struct db *db, const struct attempts_row *row)
{
    const struct db_value values[] = {db_integer(row->attempts), db_time(row->tried_ms),
                                      db_time(row->next_ms), db_bytes(row->name_digest, 32)};
    return db_run(db,
                  "UPDATE sign_in_attempts SET attempts = ?, tried_at = ?, next_at = ? WHERE name_digest = ?",
                  values, 4, NULL);
}

enum iw_error attempts_forget(const struct db *db, int64_t before_ms, int64_t *count)
{
    const struct db_value values[] = {db_time(before_ms)};
    return query_change(db, "DELETE FROM sign_in_attempts WHERE tried_at < ? LIMIT 1000", values, 1, count);
}
