#include "db/bounds.h"

static const struct {
    const char *newest;
    const char *edge;
    const char *table_delete;
    const char *account_delete;
    int64_t table_rows;
} statements[BOUNDS_COUNT] = {
#define BOUNDS_STATEMENTS(table, account_rows, table_rows)                                                   \
    {                                                                                                        \
        "SELECT id, account_id FROM " table " ORDER BY id DESC LIMIT 1",                                     \
            "SELECT id FROM " table " WHERE account_id = ? ORDER BY id DESC LIMIT 1 OFFSET " account_rows,   \
            "DELETE FROM " table " WHERE id <= ? ORDER BY id LIMIT 5000",                                    \
            "DELETE FROM " table " WHERE account_id = ? AND id <= ? ORDER BY id LIMIT 5000", table_rows      \
    }
    [BOUNDS_REQUESTS] = BOUNDS_STATEMENTS("request_log", "100000", bounds_table_rows),
    [BOUNDS_BODIES] = BOUNDS_STATEMENTS("request_bodies", "10000", bounds_table_bodies),
    [BOUNDS_EVENTS] = BOUNDS_STATEMENTS("audit_events", "100000", bounds_table_rows),
#undef BOUNDS_STATEMENTS
};

_Static_assert(bounds_account_rows == 100000 && bounds_account_bodies == 10000 && bounds_step == 5000,
               "the statements have the numbers");

static enum iw_error account_trim(const struct db *db, enum bounds_table table, int64_t account_id,
                                  int64_t *count)
{
    int64_t edge_id = 0;
    const struct db_value account[] = {db_integer(account_id)};
    enum iw_error error = query_number(db, statements[table].edge, account, 1, &edge_id);
    const struct db_value values[] = {db_integer(account_id), db_integer(edge_id)};
    *count = 0;
    return error == IW_OK && edge_id > 0
               ? query_change(db, statements[table].account_delete, values, 2, count)
               : error;
}

enum iw_error bounds_trim_deliveries(const struct db *db, int64_t *count)
{
    int64_t newest_id = 0;
    *count = 0;
    enum iw_error error =
        query_number(db, "SELECT COALESCE(MAX(delivery_id), 0) FROM delivery_bodies", NULL, 0, &newest_id);
    const struct db_value beyond[] = {db_integer(newest_id - bounds_table_bodies)};
    return error == IW_OK
               ? query_change(
                     db, "DELETE FROM delivery_bodies WHERE delivery_id <= ? ORDER BY delivery_id LIMIT 5000",
                     beyond, 1, count)
               : error;
}

enum iw_error bounds_trim(const struct db *db, enum bounds_table table, int64_t *count)
{
    struct db_rows rows;
    int64_t of_account = 0;
    *count = 0;
    enum iw_error error = db_run(db, statements[table].newest, NULL, 0, &rows);
    if (error != IW_OK || rows.count == 0)
        return error;
    struct db_row columns = db_row(&rows, 0);
    int64_t newest_id = db_next_integer(&columns), account_id = db_next_integer(&columns);
    const struct db_value beyond[] = {db_integer(newest_id - statements[table].table_rows)};
    error = query_change(db, statements[table].table_delete, beyond, 1, count);
    if (error == IW_OK)
        error = account_trim(db, table, account_id, &of_account);
    *count += of_account;
    return error;
}
