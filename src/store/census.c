#include "store/census.h"

#include <string.h>

/* The rows of a slice are about 5 ms of work; SLICE has their number, too. */
enum { columns_of_slice = 6, columns_of_live = 6, slice_rows = 5000 };
#define SLICE "LIMIT 5000) slice"

/* The rows that /metrics counts: jobs that ended long ago are left out. */
#define IS_COUNTED "(status IN ('queued', 'leased') OR updated_at > UTC_TIMESTAMP(3) - INTERVAL 1 DAY)"

/* Each row: kind, state, number, oldest, and the last id and the rows of the slice. */
static const struct {
    const char *name;
    const char *slice;
} sources[CENSUS_SOURCE_COUNT] = {
    [CENSUS_JOBS] = {"jobs",
                     "SELECT kind, status, SUM(" IS_COUNTED "), MIN(IF(status IN ('queued', 'leased'), "
                     "available_at, NULL)), MAX(id), COUNT(*) FROM (SELECT id, kind, status, available_at, "
                     "updated_at FROM jobs WHERE id > ? ORDER BY id " SLICE " GROUP BY kind, status"},
    [CENSUS_ORDERS] =
        {"orders", "SELECT '', status, COUNT(*), NULL, MAX(id), COUNT(*), SUM(IF(zip_store_key IS NULL, 0, "
                   "zip_size_bytes)) FROM (SELECT id, status, zip_store_key, zip_size_bytes FROM orders "
                   "WHERE id > ? ORDER BY id " SLICE " GROUP BY status"},
    [CENSUS_DELIVERIES] =
        {"deliveries", "SELECT '', LOWER(status), COUNT(*), MIN(IF(status = 'PENDING', available_at, NULL)), "
                       "MAX(id), COUNT(*) FROM (SELECT id, status, available_at FROM webhook_deliveries "
                       "WHERE id > ? ORDER BY id " SLICE " GROUP BY status"},
    [CENSUS_ACCOUNTS] = {"accounts",
                         "SELECT '', 'near_limit', SUM(warned <> 0), NULL, MAX(account_id), COUNT(*) FROM "
                         "(SELECT account_id, warned FROM account_usage WHERE account_id > ? ORDER BY "
                         "account_id " SLICE},
    [CENSUS_FILES] = {"files",
                      "SELECT '', 'inputs', SUM(IF(store_key IS NULL, 0, size_bytes)), NULL, MAX(id), "
                      "COUNT(*) FROM (SELECT id, store_key, size_bytes FROM files WHERE id > ? ORDER BY "
                      "id " SLICE},
    [CENSUS_RESULTS] = {"results",
                        "SELECT '', 'results', SUM(IF(o.files_deleted_at IS NULL, r.size_bytes, 0)), NULL, "
                        "MAX(r.id), COUNT(*) FROM (SELECT id, order_id, size_bytes FROM results WHERE id > ? "
                        "ORDER BY id LIMIT 5000) r JOIN orders o ON o.id = r.order_id"},
};

bool census_is_same(const struct census_row *one, const struct census_row *other)
{
    return one->source == other->source && strcmp(one->state, other->state) == 0;
}

enum iw_error census_slice(const struct store *store, enum census_source source, int64_t *after_id,
                           struct census_rows *census)
{
    struct db_rows rows;
    int64_t read = 0, last_id = 0, archives = 0;
    const struct db_value values[] = {db_integer(*after_id)};
    enum iw_error error = db_run(store, sources[source].slice, values, 1, &rows);
    if (error != IW_OK)
        return error;
    census->items = arena_array(store->context->arena, rows.count + 1, sizeof *census->items);
    census->count = 0;
    for (size_t row = 0; row < rows.count; row++) {
        int64_t id = db_integer_of(db_at(&rows, row, 4));
        last_id = id > last_id ? id : last_id;
        read += db_integer_of(db_at(&rows, row, 5));
        if (rows.columns > columns_of_slice)
            archives += db_integer_of(db_at(&rows, row, columns_of_slice));
        census->items[census->count++] =
            (struct census_row){.source = source,
                                .kind = db_text_of(db_at(&rows, row, 0)),
                                .state = db_text_of(db_at(&rows, row, 1)),
                                .number = db_integer_of(db_at(&rows, row, 2)),
                                .oldest_ms = db_integer_of(db_at(&rows, row, 3))};
    }
    if (source == CENSUS_ORDERS)
        census->items[census->count++] =
            (struct census_row){.source = source, .kind = "", .state = "archives", .number = archives};
    *after_id = read < slice_rows ? 0 : last_id;
    return IW_OK;
}

enum iw_error census_publish(const struct store *store, enum census_source source,
                             const struct census_row *rows, unsigned count)
{
    const struct db_value name = db_text(sources[source].name);
    enum iw_error error = db_run(store, "DELETE FROM census WHERE source = ?", &name, 1, NULL);
    for (unsigned i = 0; error == IW_OK && i < count; i++) {
        const struct db_value values[] = {name, db_text(rows[i].kind), db_text(rows[i].state),
                                          db_integer(rows[i].number), db_time(rows[i].oldest_ms)};
        error = db_run(store,
                       "REPLACE INTO census (source, kind, state, number, oldest_at) VALUES (?, ?, ?, ?, ?)",
                       values, 5, NULL);
    }
    return error;
}

/* Reads rows of source, kind, state, number and oldest; the others are skipped. */
static void rows_read(struct arena *arena, const struct db_rows *rows, struct census_rows *census)
{
    census->items = arena_array(arena, rows->count + 1, sizeof *census->items);
    census->count = 0;
    for (size_t row = 0; row < rows->count; row++) {
        const char *name = db_text_of(db_at(rows, row, 0));
        for (int source = 0; source < CENSUS_SOURCE_COUNT; source++)
            if (strcmp(name, sources[source].name) == 0)
                census->items[census->count++] =
                    (struct census_row){.source = (enum census_source)source,
                                        .kind = db_text_of(db_at(rows, row, 1)),
                                        .state = db_text_of(db_at(rows, row, 2)),
                                        .number = db_integer_of(db_at(rows, row, 3)),
                                        .oldest_ms = db_integer_of(db_at(rows, row, 4))};
    }
}

enum iw_error census_read(const struct store *store, struct census_rows *census)
{
    struct db_rows rows;
    enum iw_error error = db_run(
        store, "SELECT source, kind, state, number, oldest_at FROM census ORDER BY source, kind, state", NULL,
        0, &rows);
    if (error == IW_OK)
        rows_read(store->context->arena, &rows, census);
    return error;
}

/* One row more than census_live_max shows that there are more. */
#define LIVE "LIMIT 1001"
#define JOBS(status, oldest)                                                                                 \
    "SELECT 'jobs', kind, '" status "', SUM(" IS_COUNTED "), " oldest                                        \
    ", COUNT(*) FROM (SELECT kind, status, "                                                                 \
    "available_at, updated_at FROM jobs WHERE status = '" status "' " LIVE ") part GROUP BY kind"
#define ORDERS(status)                                                                                       \
    " UNION ALL SELECT 'orders', '', '" status "', COUNT(*), NULL, COUNT(*) FROM (SELECT id FROM orders "    \
    "FORCE INDEX (orders_upkeep) WHERE status = '" status "' " LIVE ") part HAVING COUNT(*) > 0"
#define DELIVERIES(status, name, oldest)                                                                     \
    " UNION ALL SELECT 'deliveries', '', '" name "', COUNT(*), " oldest ", COUNT(*) FROM (SELECT "           \
    "available_at FROM webhook_deliveries WHERE status = '" status "' " LIVE ") part HAVING COUNT(*) > 0"

static const char live_sql[] =
    JOBS("queued", "MIN(available_at)") " UNION ALL " JOBS("leased", "MIN(available_at)") " UNION ALL " JOBS(
        "done", "NULL") " UNION ALL " JOBS("failed", "NULL") " UNION ALL " JOBS("refused", "NULL")
        ORDERS("pending") ORDERS("inProgress") DELIVERIES("PENDING", "pending", "MIN(available_at)")
            DELIVERIES("SENDING", "sending", "NULL") DELIVERIES("DELIVERED", "delivered", "NULL")
                DELIVERIES("FAILED", "failed",
                           "NULL") " UNION ALL SELECT 'accounts', '', 'near_limit', COALESCE(SUM(warned "
                                   "<> 0), 0), NULL, COUNT(*) FROM (SELECT "
                                   "warned FROM account_usage " LIVE ") part";

enum iw_error census_live(const struct store *store, struct census_rows *census)
{
    struct db_rows rows;
    enum iw_error error = db_run(store, live_sql, NULL, 0, &rows);
    if (error != IW_OK)
        return error;
    rows_read(store->context->arena, &rows, census);
    /* Jobs of a state have a row a kind. */
    for (unsigned row = 0; row < census->count; row++) {
        int64_t read = 0;
        for (unsigned other = 0; other < census->count; other++)
            if (census_is_same(&census->items[row], &census->items[other]))
                read += db_integer_of(db_at(&rows, other, columns_of_live - 1));
        census->items[row].is_partial = read > census_live_max;
    }
    return IW_OK;
}
