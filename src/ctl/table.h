/* Rows of the database as an operator sees them: printed in columns, or as JSON. */
#ifndef CTL_TABLE_H
#define CTL_TABLE_H

#include "base/render.h"
#include "ctl/ctl.h"
#include "store/query.h"

/* The name of the table, the names of its columns, its rows, an empty line. */
void ctl_table_print(const struct ctl *ctl, const struct query_table *table);

/* One row, a line a column. */
void ctl_row_print(const struct ctl *ctl, const struct query_table *table);

/* The members of one row, into an object that is begun. */
void ctl_row_render(struct render *render, const struct query_table *table, size_t row);

/* An array of objects under the table's name. */
void ctl_table_render(struct render *render, const struct query_table *table);

/* What a listing does with its table: a JSON array with the option --json, columns otherwise. */
void ctl_table_show(const struct ctl *ctl, const struct query_table *table);

#endif
