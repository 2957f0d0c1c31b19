#include "store/workers.h"

enum iw_error workers_note(const struct store *store, const struct worker_row *row)
{
    const struct db_value values[] = {db_text(row->owner),   db_text(row->host),      db_integer(row->pid),
                                      db_text(row->version), db_integer(row->places), db_integer(row->busy),
                                      db_text(row->metrics)};
    return db_run(
        store,
        "INSERT INTO workers (owner, host, pid, version, places, busy, metrics, started_at, seen_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3)) ON DUPLICATE KEY UPDATE "
        "version = VALUES(version), places = VALUES(places), busy = VALUES(busy), metrics = "
        "VALUES(metrics), seen_at = VALUES(seen_at)",
        values, 7, NULL);
}

enum iw_error workers_forget(const struct store *store, const char *owner)
{
    const struct db_value values[] = {db_text(owner)};
    return db_run(store,
                  "DELETE FROM workers WHERE owner = ? OR seen_at < UTC_TIMESTAMP(3) - INTERVAL 1 HOUR",
                  values, 1, NULL);
}

enum iw_error workers_list(const struct store *store, struct worker_row **list, unsigned *count)
{
    struct db_rows rows;
    enum iw_error error = db_run(store,
                                 "SELECT owner, host, pid, version, places, busy, metrics, started_at, "
                                 "GREATEST(0, TIMESTAMPDIFF(SECOND, "
                                 "seen_at, UTC_TIMESTAMP(3))) FROM workers ORDER BY host, pid",
                                 NULL, 0, &rows);
    if (error != IW_OK)
        return error;
    *list = arena_array(store->context->arena, rows.count + 1, sizeof **list);
    *count = (unsigned)rows.count;
    for (size_t row = 0; row < rows.count; row++)
        (*list)[row] = (struct worker_row){.owner = db_text_of(db_at(&rows, row, 0)),
                                           .host = db_text_of(db_at(&rows, row, 1)),
                                           .pid = db_integer_of(db_at(&rows, row, 2)),
                                           .version = db_text_of(db_at(&rows, row, 3)),
                                           .places = db_integer_of(db_at(&rows, row, 4)),
                                           .busy = db_integer_of(db_at(&rows, row, 5)),
                                           .metrics = db_text_of(db_at(&rows, row, 6)),
                                           .started_ms = db_integer_of(db_at(&rows, row, 7)),
                                           .silent_s = db_integer_of(db_at(&rows, row, 8))};
    return IW_OK;
}

enum iw_error workers_paused(const struct store *store, bool *is_paused)
{
    struct db_rows rows;
    enum iw_error error =
        db_run(store, "SELECT COUNT(*) FROM switches WHERE name = 'queuePaused'", NULL, 0, &rows);
    if (error == IW_OK)
        *is_paused = db_integer_of(db_at(&rows, 0, 0)) > 0;
    return error;
}

enum iw_error workers_pause(const struct store *store, bool is_paused, bool *is_changed)
{
    struct db_rows rows;
    enum iw_error error =
        is_paused
            ? db_run(store,
                     "INSERT IGNORE INTO switches (name, set_at) VALUES ('queuePaused', UTC_TIMESTAMP(3))",
                     NULL, 0, &rows)
            : db_run(store, "DELETE FROM switches WHERE name = 'queuePaused'", NULL, 0, &rows);
    if (error == IW_OK)
        *is_changed = rows.affected > 0;
    return error;
}
