#include "db/usage.h"

enum iw_error usage_add(const struct db *db, int64_t account_id, const char *day, int64_t count)
{
    const struct db_value values[] = {db_integer(account_id), db_text(day), db_integer(count)};
    return db_run(db,
                  "INSERT INTO usage_days (account_id, day, result_count) VALUES (?, ?, ?) ON DUPLICATE KEY "
                  "UPDATE result_count = result_count + VALUES(result_count)",
                  values, 3, NULL);
}

enum iw_error usage_read(const struct db *db, int64_t account_id, const char *first, const char *last,
                         struct usage_day **days, size_t *count)
{
    struct db_rows rows;
    const struct db_value parameters[] = {db_integer(account_id), db_text(first), db_text(last)};
    enum iw_error error = db_run(db,
                                 "SELECT day, result_count FROM usage_days "
                                 "WHERE account_id = ? AND day BETWEEN ? AND ? ORDER BY day",
                                 parameters, 3, &rows);
    if (error != IW_OK)
        return error;
    *count = rows.count;
    *days = arena_array(db->context->arena, rows.count + 1, sizeof **days);
    for (size_t i = 0; i < rows.count; i++) {
        struct db_row columns = db_row(&rows, i);
        struct usage_day *day = &(*days)[i];
        *day = (struct usage_day){0};
        day->day_ms = db_next_integer(&columns);
        day->count = db_next_integer(&columns);
    }
    return IW_OK;
}
