#include "store/gauges.h"

static enum iw_error gauges_read(const struct store *store, const char *sql, struct gauge **gauges,
                                 unsigned *count)
{
    struct db_rows rows;
    enum iw_error error = db_run(store, sql, NULL, 0, &rows);
    if (error != IW_OK)
        return error;
    *gauges = arena_array(store->context->arena, rows.count + 1, sizeof **gauges);
    *count = (unsigned)rows.count;
    for (size_t row = 0; row < rows.count; row++)
        (*gauges)[row] = (struct gauge){.state = db_text_of(db_at(&rows, row, 0)),
                                        .count = db_integer_of(db_at(&rows, row, 1))};
    return IW_OK;
}

enum iw_error gauges_orders(const struct store *store, struct gauge **gauges, unsigned *count)
{
    return gauges_read(
        store,
        "SELECT status, COUNT(*) FROM orders WHERE status IN ('pending', 'inProgress') GROUP BY "
        "status",
        gauges, count);
}

enum iw_error gauges_deliveries(const struct store *store, struct gauge **gauges, unsigned *count)
{
    return gauges_read(
        store, "SELECT LOWER(status), COUNT(*) FROM webhook_deliveries GROUP BY webhook_deliveries.status",
        gauges, count);
}

enum iw_error gauges_store(const struct store *store, struct gauge **gauges, unsigned *count)
{
    return gauges_read(
        store,
        "SELECT 'inputs', COALESCE(SUM(size_bytes), 0) FROM files WHERE store_key IS NOT NULL "
        "UNION ALL SELECT 'results', COALESCE(SUM(r.size_bytes), 0) FROM results r JOIN orders o ON o.id = "
        "r.order_id WHERE o.files_deleted_at IS NULL "
        "UNION ALL SELECT 'archives', COALESCE(SUM(zip_size_bytes), 0) FROM orders WHERE zip_store_key IS "
        "NOT NULL",
        gauges, count);
}

enum iw_error gauges_delivery_oldest(const struct store *store, int64_t now_ms, int64_t *seconds)
{
    struct db_rows rows;
    const struct db_value values[] = {db_time(now_ms), db_time(now_ms)};
    enum iw_error error = db_run(store,
                                 "SELECT COALESCE(MAX(TIMESTAMPDIFF(SECOND, available_at, ?)), 0) FROM "
                                 "webhook_deliveries WHERE status = 'PENDING' AND available_at <= ?",
                                 values, 2, &rows);
    if (error == IW_OK)
        *seconds = db_integer_of(db_at(&rows, 0, 0));
    return error;
}
