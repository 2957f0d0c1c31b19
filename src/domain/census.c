#include "domain/census.h"

#include <stdio.h>
#include <string.h>

/* Adds a row to the sum of its kind and state. */
static void sum_add(struct census *census, const struct census_row *row)
{
    unsigned at = 0;
    while (at < census->count &&
           (strcmp(census->sums[at].kind, row->kind) != 0 || strcmp(census->sums[at].state, row->state) != 0))
        at++;
    if (at == census_sums_max)
        return;
    if (at == census->count) {
        memset(&census->sums[census->count++], 0, sizeof census->sums[0]);
        snprintf(census->sums[at].kind, sizeof census->sums[at].kind, "%s", row->kind);
        snprintf(census->sums[at].state, sizeof census->sums[at].state, "%s", row->state);
    }
    int64_t oldest_ms = census->sums[at].oldest_ms;
    census->sums[at].number += row->number;
    if (row->oldest_ms != 0 && (oldest_ms == 0 || row->oldest_ms < oldest_ms))
        census->sums[at].oldest_ms = row->oldest_ms;
}

static enum iw_error publish_work(const struct store *store, void *user)
{
    const struct census *census = user;
    struct census_row *rows = arena_array(store->context->arena, census->count + 1, sizeof *rows);
    for (unsigned i = 0; i < census->count; i++)
        rows[i] = (struct census_row){.source = census->source,
                                      .kind = census->sums[i].kind,
                                      .state = census->sums[i].state,
                                      .number = census->sums[i].number,
                                      .oldest_ms = census->sums[i].oldest_ms};
    return census_publish(store, census->source, rows, census->count);
}

enum iw_error census_step(struct domain *domain, struct census *census, bool *is_round)
{
    struct census_rows rows;
    *is_round = false;
    enum iw_error error = census_slice(&domain->store, census->source, &census->after_id, &rows);
    for (unsigned i = 0; error == IW_OK && i < rows.count; i++)
        sum_add(census, &rows.items[i]);
    if (error == IW_OK && census->after_id > 0)
        return IW_OK;
    if (error == IW_OK)
        error = db_transaction(&domain->store, publish_work, census);
    /* After an error the source is counted from its first row. */
    enum census_source next =
        error == IW_OK ? (enum census_source)((census->source + 1) % CENSUS_SOURCE_COUNT) : census->source;
    *is_round = error == IW_OK && next == 0;
    *census = (struct census){.source = next};
    return error;
}

/* True when rows has one of this source and state; is_partial: one that was not read to its end. */
static bool has_state(const struct census_rows *rows, const struct census_row *wanted, bool is_partial)
{
    for (unsigned i = 0; i < rows->count; i++)
        if (census_is_same(&rows->items[i], wanted) && rows->items[i].is_partial >= is_partial)
            return true;
    return false;
}

static bool is_bytes(const struct census_row *row)
{
    return row->source == CENSUS_FILES || row->source == CENSUS_RESULTS ||
           strcmp(row->state, "archives") == 0;
}

enum iw_error census_numbers(struct domain *domain, struct census_rows *rows)
{
    struct census_rows live, published;
    enum iw_error error = census_live(&domain->store, &live);
    if (error == IW_OK)
        error = census_read(&domain->store, &published);
    if (error != IW_OK)
        return error;
    rows->items = arena_array(domain->context->arena, live.count + published.count + 1, sizeof *rows->items);
    rows->count = 0;
    for (unsigned i = 0; i < published.count; i++)
        if (is_bytes(&published.items[i]) || has_state(&live, &published.items[i], true))
            rows->items[rows->count++] = published.items[i];
    /* Without a census the numbers that were read are a lower bound. */
    for (unsigned i = 0; i < live.count; i++)
        if (!live.items[i].is_partial || !has_state(&published, &live.items[i], false))
            rows->items[rows->count++] = live.items[i];
    return IW_OK;
}
