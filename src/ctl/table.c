#include "ctl/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "db/db.h"

/* JSON that is built in the arena of the command. */
struct output {
    struct text text;
    struct render render;
};

static void output_init(struct output *output, const struct ctl *ctl)
{
    text_init(&output->text, ctl->context->arena);
    render_init(&output->render, &output->text);
}

void table_object_print(const struct ctl *ctl, table_members *members, const void *facts)
{
    struct output output;
    output_init(&output, ctl);
    render_object_begin(&output.render, NULL);
    members(&output.render, facts);
    render_object_end(&output.render);
    puts(output.text.data);
}

void table_array_print(const struct ctl *ctl, table_members *members, const void *rows, size_t count,
                       size_t row_bytes)
{
    struct output output;
    output_init(&output, ctl);
    render_array_begin(&output.render, NULL);
    for (size_t row = 0; row < count; row++) {
        render_object_begin(&output.render, NULL);
        members(&output.render, (const char *)rows + row * row_bytes);
        render_object_end(&output.render);
    }
    render_array_end(&output.render);
    puts(output.text.data);
}

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

static int column_width(const struct ctl *ctl, const struct query_table *table, unsigned column)
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

void table_print(const struct ctl *ctl, const struct query_table *table)
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

void table_row_print(const struct ctl *ctl, const struct query_table *table)
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

void table_row_render(struct render *render, const struct query_table *table, size_t row)
{
    for (unsigned column = 0; column < table->rows.columns; column++)
        value_render(render, table->columns[column], db_at(&table->rows, row, column));
}

void table_render(struct render *render, const struct query_table *table)
{
    render_array_begin(render, table->name);
    for (size_t row = 0; row < table->rows.count; row++) {
        render_object_begin(render, NULL);
        table_row_render(render, table, row);
        render_object_end(render);
    }
    render_array_end(render);
}

void table_show(const struct ctl *ctl, const struct query_table *table)
{
    struct output output;
    if (ctl_option(ctl, "--json") == NULL) {
        table_print(ctl, table);
        return;
    }
    output_init(&output, ctl);
    render_array_begin(&output.render, NULL);
    for (size_t row = 0; row < table->rows.count; row++) {
        render_object_begin(&output.render, NULL);
        table_row_render(&output.render, table, row);
        render_object_end(&output.render);
    }
    render_array_end(&output.render);
    puts(output.text.data);
}
