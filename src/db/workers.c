#include "db/workers.h"

#include <string.h>

#include "db/query.h"

/* Accepts any bytes; cuts them at the length of the column. */
static struct db_value reason_value(const char *reason)
{
    enum { reason_bytes_max = 400 };
    return reason == NULL ? db_null() : db_bytes(reason, strnlen(reason, reason_bytes_max));
}

enum iw_error workers_note(const struct db *db, const struct worker_row *row)
{
    const struct db_value values[] = {db_text(row->owner),
                                      db_text(row->host),
                                      db_integer(row->pid),
                                      db_text(row->version),
                                      db_integer(row->places),
                                      db_integer(row->busy),
                                      db_text(row->metrics),
                                      db_integer(row->image_ready),
                                      db_time(row->image_failing_ms),
                                      reason_value(row->image_reason),
                                      db_time(row->store_failed_ms),
                                      reason_value(row->store_reason)};
    return db_run(
        db,
        "INSERT INTO workers (owner, host, pid, version, places, busy, metrics, image_ready, "
        "image_failing_at, image_reason, store_failed_at, store_reason, started_at, seen_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3)) "
        "ON DUPLICATE KEY UPDATE version = VALUES(version), places = VALUES(places), busy = VALUES(busy), "
        "metrics = VALUES(metrics), image_ready = VALUES(image_ready), "
        "image_failing_at = VALUES(image_failing_at), image_reason = VALUES(image_reason), "
        "store_failed_at = VALUES(store_failed_at), store_reason = VALUES(store_reason), "
        "seen_at = VALUES(seen_at)",
        values, sizeof values / sizeof values[0], NULL);
}

enum iw_error workers_mail_note(const struct db *db, const char *owner, const char *reason)
{
    const struct db_value values[] = {reason_value(reason), db_text(owner)};
    return reason == NULL
               ? db_run(db, "UPDATE workers SET mail_sent_at = UTC_TIMESTAMP(3) WHERE owner = ?", values + 1,
                        1, NULL)
               : db_run(
                     db,
                     "UPDATE workers SET mail_failed_at = UTC_TIMESTAMP(3), mail_reason = ? WHERE owner = ?",
                     values, 2, NULL);
}

enum iw_error workers_forget(const struct db *db, const char *owner)
{
    const struct db_value values[] = {db_text(owner)};
    return db_run(db, "DELETE FROM workers WHERE owner = ? OR seen_at < UTC_TIMESTAMP(3) - INTERVAL 1 HOUR",
                  values, 1, NULL);
}

enum iw_error workers_list(const struct db *db, struct worker_row **list, unsigned *count)
{
    struct db_rows rows;
    enum iw_error error = db_run(db,
                                 "SELECT owner, host, pid, version, places, busy, metrics, started_at, "
                                 "GREATEST(0, TIMESTAMPDIFF(SECOND, "
                                 "seen_at, UTC_TIMESTAMP(3))), image_ready, image_failing_at, "
                                 "image_reason, store_failed_at, store_reason, mail_sent_at, "
                                 "mail_failed_at, mail_reason FROM workers ORDER BY host, pid",
                                 NULL, 0, &rows);
    if (error != IW_OK)
        return error;
    *list = arena_array(db->context->arena, rows.count + 1, sizeof **list);
    *count = (unsigned)rows.count;
    for (size_t row = 0; row < rows.count; row++) {
        struct db_row columns = db_row(&rows, row);
        struct worker_row *worker = &(*list)[row];
        *worker = (struct worker_row){0};
        worker->owner = db_next_text(&columns);
        worker->host = db_next_text(&columns);
        worker->pid = db_next_integer(&columns);
        worker->version = db_next_text(&columns);
        worker->places = db_next_integer(&columns);
        worker->busy = db_next_integer(&columns);
        worker->metrics = db_next_text(&columns);
        worker->started_ms = db_next_integer(&columns);
        worker->silent_s = db_next_integer(&columns);
        worker->image_ready = db_next_integer(&columns);
        worker->image_failing_ms = db_next_integer(&columns);
        worker->image_reason = db_next_text(&columns);
        worker->store_failed_ms = db_next_integer(&columns);
        worker->store_reason = db_next_text(&columns);
        worker->mail_sent_ms = db_next_integer(&columns);
        worker->mail_failed_ms = db_next_integer(&columns);
        worker->mail_reason = db_next_text(&columns);
    }
    return IW_OK;
}

enum iw_error workers_paused(const struct db *db, bool *is_paused)
{
    int64_t count = 0;
    enum iw_error error =
        query_number(db, "SELECT COUNT(*) FROM switches WHERE name = 'queuePaused'", NULL, 0, &count);
    if (error == IW_OK)
        *is_paused = count > 0;
    return error;
}

enum iw_error workers_pause(const struct db *db, bool is_paused, bool *is_changed)
{
    struct db_rows rows;
    enum iw_error error =
        is_paused
            ? db_run(db,
                     "INSERT IGNORE INTO switches (name, set_at) VALUES ('queuePaused', UTC_TIMESTAMP(3))",
                     NULL, 0, &rows)
            : db_run(db, "DELETE FROM switches WHERE name = 'queuePaused'", NULL, 0, &rows);
    if (error == IW_OK)
        *is_changed = rows.affected > 0;
    return error;
}
