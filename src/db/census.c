#include "db/census.h"

#include <stdio.h>
#include <string.h>

#include "db/transaction.h"
#include "model/word.h"

/* The rows of a slice are about 5 ms of work; SLICE has their number, too. */
enum { slice_rows = 5000 };
#define SLICE(table, id, kind, state, number, oldest)                                                        \
    "SELECT kind, state, SUM(number), MIN(oldest), MAX(id), COUNT(*) FROM (SELECT " id " AS id, " kind       \
    " AS kind, " state " AS state, " number " AS number, " oldest " AS oldest FROM " table " WHERE " id      \
    " > ? ORDER BY " id " LIMIT 5000) slice GROUP BY kind, state"

/* The rows that /metrics counts, without jobs that ended long ago. */
#define IS_COUNTED "(status IN ('queued', 'leased') OR updated_at > UTC_TIMESTAMP(3) - INTERVAL 1 DAY)"

static const char *const names[CENSUS_SOURCE_COUNT] = {"jobs",   "orders",  "deliveries", "accounts",
                                                       "inputs", "results", "archives"};

static const char *const slices[CENSUS_SOURCE_COUNT] = {
    [CENSUS_JOBS] = SLICE("jobs", "id", "kind", "status", IS_COUNTED,
                          "IF(status IN ('queued', 'leased'), available_at, NULL)"),
    [CENSUS_ORDERS] = SLICE("orders", "id", "''", "status", "1", "NULL"),
    [CENSUS_DELIVERIES] = SLICE("webhook_deliveries", "id", "''", "LOWER(status)", "1",
                                "IF(status = 'PENDING', available_at, NULL)"),
    [CENSUS_ACCOUNTS] = SLICE("account_usage", "account_id", "''", "'near_limit'", "warned <> 0", "NULL"),
    [CENSUS_INPUTS] = SLICE("files", "id", "''", "'inputs'", "IF(store_key IS NULL, 0, size_bytes)", "NULL"),
    [CENSUS_RESULTS] = SLICE("results", "id", "''", "'results'",
                             "IF((SELECT o.files_deleted_at FROM orders o WHERE o.id = order_id) IS NULL, "
                             "size_bytes, 0)",
                             "NULL"),
    [CENSUS_ARCHIVES] =
        SLICE("orders", "id", "''", "'archives'", "IF(zip_store_key IS NULL, 0, zip_size_bytes)", "NULL"),
};

/* Adds a row of a slice to the sum of the kind and state. */
static void sum_add(struct census *census, struct db_row *columns)
{
    const char *kind = db_next_text(columns), *state = db_next_text(columns);
    int64_t number = db_next_integer(columns), oldest_ms = db_next_integer(columns);
    unsigned at = 0;
    while (at < census->count &&
           (strcmp(census->sums[at].kind, kind) != 0 || strcmp(census->sums[at].state, state) != 0))
        at++;
    if (at == census_sums_max)
        return;
    if (at == census->count) {
        memset(&census->sums[census->count++], 0, sizeof census->sums[0]);
        snprintf(census->sums[at].kind, sizeof census->sums[at].kind, "%s", kind);
        snprintf(census->sums[at].state, sizeof census->sums[at].state, "%s", state);
    }
    census->sums[at].number += number;
    if (oldest_ms != 0 && (census->sums[at].oldest_ms == 0 || oldest_ms < census->sums[at].oldest_ms))
        census->sums[at].oldest_ms = oldest_ms;
}

/* Counts the next rows of the source; after_id is 0 at the end. */
static enum iw_error slice_count(const struct db *db, struct census *census)
{
    struct db_rows rows;
    int64_t read = 0, last_id = 0;
    const struct db_value after = db_integer(census->after_id);
    enum iw_error error = db_run(db, slices[census->source], &after, 1, &rows);
    for (size_t row = 0; error == IW_OK && row < rows.count; row++) {
        struct db_row columns = db_row(&rows, row);
        sum_add(census, &columns);
        int64_t id = db_next_integer(&columns);
        last_id = id > last_id ? id : last_id;
        read += db_next_integer(&columns);
    }
    census->after_id = read < slice_rows ? 0 : last_id;
    return error;
}

/* Replaces the numbers of the source. */
static enum iw_error census_publish(const struct db *db, const struct census *census)
{
    const struct db_value name = db_text(names[census->source]);
    enum iw_error error = db_run(db, "DELETE FROM census WHERE source = ?", &name, 1, NULL);
    for (unsigned i = 0; error == IW_OK && i < census->count; i++) {
        const struct db_value values[] = {name, db_text(census->sums[i].kind), db_text(census->sums[i].state),
                                          db_integer(census->sums[i].number),
                                          db_time(census->sums[i].oldest_ms)};
        error =
            db_run(db, "REPLACE INTO census (source, kind, state, number, oldest_at) VALUES (?, ?, ?, ?, ?)",
                   values, 5, NULL);
    }
    return error;
}

enum iw_error census_step(const struct db *db, struct census *census, bool *is_round)
{
    *is_round = false;
    enum iw_error error = slice_count(db, census);
    if (error == IW_OK && census->after_id > 0)
        return IW_OK;
    if (error == IW_OK)
        for (struct transaction t = transaction_begin(db); transaction_goes_on(&t, &error);) {
            error = census_publish(db, census);
        }
    /* After an error, the source is counted again from its first row. */
    enum census_source next =
        error == IW_OK ? (enum census_source)((census->source + 1) % CENSUS_SOURCE_COUNT) : census->source;
    *is_round = error == IW_OK && next == 0;
    *census = (struct census){.source = next};
    return error;
}

/*
 * The live numbers of a state. The query reads one row more than census_live_max, which shows that there
 * are more. many is the number of rows that were read.
 */
#define LIVE(source, kind, state, number, oldest, rows)                                                      \
    "SELECT '" source "' AS source, " kind " AS kind, '" state "' AS state, " number " AS number, " oldest   \
    " AS oldest, COUNT(*) AS many FROM (SELECT " rows " LIMIT 1001) part GROUP BY 1, 2, 3"
#define JOBS(state, oldest)                                                                                  \
    LIVE("jobs", "kind", state, "SUM(" IS_COUNTED ")", oldest,                                               \
         "kind, status, available_at, updated_at FROM jobs WHERE status = '" state "'")                      \
    " UNION ALL "
#define ORDERS(state)                                                                                        \
    LIVE("orders", "''", state, "COUNT(*)", "NULL",                                                          \
         "id FROM orders FORCE INDEX (orders_upkeep) WHERE status = '" state "'")                            \
    " UNION ALL "
#define DELIVERIES(status, state, oldest)                                                                    \
    LIVE("deliveries", "''", state, "COUNT(*)", oldest,                                                      \
         "available_at FROM webhook_deliveries WHERE status = '" status "'")                                 \
    " UNION ALL "

#define LIVE_ROWS                                                                                            \
    JOBS("queued", "MIN(available_at)")                                                                      \
    JOBS("leased", "MIN(available_at)")                                                                      \
    JOBS("done", "NULL")                                                                                     \
    JOBS("failed", "NULL")                                                                                   \
    JOBS("refused", "NULL")                                                                                  \
    ORDERS("pending")                                                                                        \
    ORDERS("inProgress")                                                                                     \
    DELIVERIES("PENDING", "pending", "MIN(available_at)")                                                    \
    DELIVERIES("SENDING", "sending", "NULL")                                                                 \
    DELIVERIES("DELIVERED", "delivered", "NULL")                                                             \
    DELIVERIES("FAILED", "failed", "NULL")                                                                   \
    LIVE("accounts", "''", "near_limit", "SUM(warned <> 0)", "NULL", "warned FROM account_usage")

/*
 * If a state was read in part, the published numbers are used; before any are published, the numbers that
 * were read are a lower bound.
 */
static const char read_sql[] =
    "SELECT DISTINCT live.source, COALESCE(c.kind, live.kind), live.state, COALESCE(c.number, live.number), "
    "IF(c.kind IS NULL, live.oldest, c.oldest_at) FROM (SELECT source, kind, state, number, oldest, "
    "SUM(many) OVER (PARTITION BY source, state) > 1000 AS is_partial FROM (" LIVE_ROWS
    ") counted) live LEFT "
    "JOIN census c ON live.is_partial AND c.source = live.source AND c.state = live.state UNION ALL SELECT "
    "source, kind, state, number, oldest_at FROM census WHERE source IN ('inputs', 'results', 'archives')";

enum iw_error census_read(const struct db *db, struct census_rows *census)
{
    struct db_rows rows;
    enum iw_error error = db_run(db, read_sql, NULL, 0, &rows);
    if (error != IW_OK)
        return error;
    census->items = arena_array(db->context->arena, rows.count + 1, sizeof *census->items);
    census->count = 0;
    for (size_t row = 0; row < rows.count; row++) {
        struct db_row columns = db_row(&rows, row);
        int source = word_find(db_next_text(&columns), names, CENSUS_SOURCE_COUNT);
        if (source < 0)
            continue;
        struct census_row *item = &census->items[census->count++];
        item->source = (enum census_source)source;
        item->kind = db_next_text(&columns);
        item->state = db_next_text(&columns);
        item->number = db_next_integer(&columns);
        item->oldest_ms = db_next_integer(&columns);
    }
    return IW_OK;
}
