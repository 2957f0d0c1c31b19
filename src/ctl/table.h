/* Database rows for operators, printed in columns or as JSON. */
#ifndef CTL_TABLE_H
#define CTL_TABLE_H

#include "base/render.h"
#include "ctl/ctl.h"
#include "store/query.h"

/* Prints the table's name, the column names, the rows and an empty line. */
void ctl_table_print(const struct ctl *ctl, const struct query_table *table);

/* Prints one row, a line per column. */
void ctl_row_print(const struct ctl *ctl, const struct query_table *table);

/* Renders one row as members of an open object. */
void ctl_row_render(struct render *render, const struct query_table *table, size_t row);

/* Renders an array of objects, named after the table. */
void ctl_table_render(struct render *render, const struct query_table *table);

/* Prints a list: as a JSON array with the option --json, else in columns. */
void ctl_table_show(const struct ctl *ctl, const struct query_table *table);

#endif
