/* imgwardctl order and queue: what an operator looks at when something is slow or failed. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/render.h"
#include "base/text.h"
#include "ctl/ctl_store.h"
#include "service/queue.h"
#include "store/inspect.h"
#include "store/jobs.h"

/* ---- a table as it is, printed or as JSON ---- */

static const char *value_text(const struct ctl *ctl, const struct db_value *value)
{
    switch (value->type) {
    case DB_NULL:
        return "-";
    case DB_TIME:
        return ctl_time(ctl, value->integer);
    case DB_TEXT:
        return value->text;
    default:
        return arena_printf(ctl->context->arena, "%" PRId64, value->integer);
    }
}

static int column_width(const struct ctl *ctl, const struct inspect_table *table, unsigned column)
{
    size_t width = strlen(table->columns[column]);
    for (size_t row = 0; row < table->rows.count; row++) {
        const char *text = value_text(ctl, db_at(&table->rows, row, column));
        size_t length = text_code_points(text, strlen(text));
        width = length > width ? length : width;
    }
    return (int)width;
}

static void cell_print(const char *text, int width)
{
    int points = (int)text_code_points(text, strlen(text));
    printf("%s%*s", text, points < width ? width - points + 2 : 2, "");
}

static void table_print(const struct ctl *ctl, const struct inspect_table *table)
{
    int widths[32];
    printf("%s\n  ", table->name);
    for (unsigned column = 0; column < table->rows.columns; column++) {
        widths[column] = column_width(ctl, table, column);
        cell_print(table->columns[column], widths[column]);
    }
    for (size_t row = 0; row < table->rows.count; row++) {
        printf("\n  ");
        for (unsigned column = 0; column < table->rows.columns; column++)
            cell_print(value_text(ctl, db_at(&table->rows, row, column)), widths[column]);
    }
    printf("\n\n");
}

/* One row, a line a column. */
static void row_print(const struct ctl *ctl, const struct inspect_table *table)
{
    for (unsigned column = 0; column < table->rows.columns; column++)
        printf("%-16s%s\n", table->columns[column], value_text(ctl, db_at(&table->rows, 0, column)));
    printf("\n");
}

static void value_render(struct render *render, const char *key, const struct db_value *value)
{
    if (value->type == DB_NULL)
        render_null(render, key);
    else if (value->type == DB_TIME)
        render_time(render, key, value->integer);
    else if (value->type == DB_TEXT)
        render_string_n(render, key, value->text, value->length);
    else
        render_integer(render, key, value->integer);
}

static void row_render(struct render *render, const struct inspect_table *table, size_t row)
{
    for (unsigned column = 0; column < table->rows.columns; column++)
        value_render(render, table->columns[column], db_at(&table->rows, row, column));
}

static void table_render(struct render *render, const struct inspect_table *table)
{
    render_array_begin(render, table->name);
    for (size_t row = 0; row < table->rows.count; row++) {
        render_object_begin(render, NULL);
        row_render(render, table, row);
        render_object_end(render);
    }
    render_array_end(render);
}

/* ---- order show ---- */

static void order_print_json(const struct ctl *ctl, const struct inspect_table *tables)
{
    struct text text;
    struct render render;
    text_init(&text, ctl->context->arena);
    render_init(&render, &text);
    render_object_begin(&render, NULL);
    row_render(&render, &tables[0], 0);
    for (int i = 1; i < inspect_order_tables; i++)
        table_render(&render, &tables[i]);
    render_object_end(&render);
    puts(text.data);
}

static enum ctl_exit show_run(struct ctl *ctl)
{
    struct config config;
    struct inspect_table tables[inspect_order_tables];
    int64_t id;
    if (!text_integer(ctl->arguments[0], 1, INT64_MAX, &id)) {
        fprintf(stderr, "imgwardctl: an order id is a positive decimal number.\n");
        return CTL_FAILED;
    }
    struct db *db = ctl_db(ctl, &config);
    if (db == NULL)
        return CTL_FAILED;
    enum iw_error error = inspect_order(ctl->context, db, id, tables);
    db_free(db);
    if (error != IW_OK)
        return ctl_failed(ctl);
    if (ctl_option(ctl, "--json") != NULL) {
        order_print_json(ctl, tables);
        return CTL_DONE;
    }
    row_print(ctl, &tables[0]);
    for (int i = 1; i < inspect_order_tables; i++)
        table_print(ctl, &tables[i]);
    return CTL_DONE;
}

/* ---- queue status ---- */

struct queue_facts {
    struct jobs_count *counts;
    unsigned count;
    struct inspect_table owners;
    int64_t rings; /* -1: Redis is away */
};

static void queue_print(const struct ctl *ctl, const struct queue_facts *facts)
{
    printf("%-8s  %-7s  %8s  %10s\n", "kind", "state", "jobs", "oldest, s");
    for (unsigned i = 0; i < facts->count; i++)
        printf("%-8s  %-7s  %8" PRId64 "  %10" PRId64 "\n", job_kind_name(facts->counts[i].kind),
               job_state_name(facts->counts[i].state), facts->counts[i].count, facts->counts[i].oldest_s);
    if (facts->count == 0)
        printf("no jobs\n");
    if (facts->rings >= 0)
        printf("\nbell: %" PRId64 " not heard yet\n\n", facts->rings);
    else
        printf("\nbell: Redis is away, jobs are found by the sweep\n\n");
    table_print(ctl, &facts->owners);
}

static void queue_print_json(const struct ctl *ctl, const struct queue_facts *facts)
{
    struct text text;
    struct render render;
    text_init(&text, ctl->context->arena);
    render_init(&render, &text);
    render_object_begin(&render, NULL);
    render_array_begin(&render, "jobs");
    for (unsigned i = 0; i < facts->count; i++) {
        render_object_begin(&render, NULL);
        render_string(&render, "kind", job_kind_name(facts->counts[i].kind));
        render_string(&render, "state", job_state_name(facts->counts[i].state));
        render_integer(&render, "count", facts->counts[i].count);
        render_integer(&render, "oldestSeconds", facts->counts[i].oldest_s);
        render_object_end(&render);
    }
    render_array_end(&render);
    if (facts->rings >= 0)
        render_integer(&render, "bell", facts->rings);
    else
        render_null(&render, "bell");
    table_render(&render, &facts->owners);
    render_object_end(&render);
    puts(text.data);
}

static int64_t rings_read(struct ctl *ctl, const struct config *config)
{
    const char *password;
    if (config_secret(ctl->context, config->redis_password_file, &password) != IW_OK) {
        context_clear(ctl->context);
        return -1;
    }
    struct redis *redis = redis_new(config, password);
    int64_t rings = queue_length(redis, config, ctl->context);
    redis_free(redis);
    return rings;
}

static enum ctl_exit status_run(struct ctl *ctl)
{
    struct config config;
    struct queue_facts facts = {.count = 0};
    struct db *db = ctl_db(ctl, &config);
    if (db == NULL)
        return CTL_FAILED;
    enum iw_error error = jobs_counts(ctl->context, db, &facts.counts, &facts.count);
    if (error == IW_OK)
        error = inspect_owners(ctl->context, db, &facts.owners);
    db_free(db);
    if (error != IW_OK)
        return ctl_failed(ctl);
    facts.rings = rings_read(ctl, &config);
    (ctl_option(ctl, "--json") != NULL ? queue_print_json : queue_print)(ctl, &facts);
    return CTL_DONE;
}

const struct ctl_command ctl_commands_order[] = {
    {.words = {"order", "show"},
     .arguments = "ID",
     .arguments_least = 1,
     .arguments_most = 1,
     .options = {{"--json", NULL, "as a JSON object"}},
     .help = "Shows an order of any account with its files, results, jobs and history.",
     .run = show_run},
    {.words = {"queue", "status"},
     .arguments = "",
     .options = {{"--json", NULL, "as a JSON object"}},
     .help = "Counts the jobs that wait, run, and ended within a day, and who runs them.",
     .run = status_run},
    {.words = {NULL}},
};
