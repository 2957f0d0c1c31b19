/* Rows and objects for operators, printed in columns or as JSON. */
#ifndef CTL_TABLE_H
#define CTL_TABLE_H

#include "base/render.h"
#include "ctl/ctl.h"
#include "db/query.h"

/* Renders the members of an open object from a row of a list, or from the facts of a command. */
typedef void table_members(struct render *render, const void *facts);

/* Prints a JSON object. */
void table_object_print(const struct ctl *ctl, table_members *members, const void *facts);

/* Prints a JSON array with an object for each of the rows, which have row_bytes each. */
void table_array_print(const struct ctl *ctl, table_members *members, const void *rows, size_t count,
                       size_t row_bytes);

/* Prints the table's name, the column names, the rows and an empty line. */
void table_print(const struct ctl *ctl, const struct query_table *table);

/* Prints one row, one line per column. */
void table_row_print(const struct ctl *ctl, const struct query_table *table);

/* Renders one row as members of an open object. */
void table_row_render(struct render *render, const struct query_table *table, size_t row);

/* Renders an array of objects, named after the table. */
void table_render(struct render *render, const struct query_table *table);

/* Prints a list: as a JSON array with the option --json, otherwise in columns. */
void table_show(const struct ctl *ctl, const struct query_table *table);

#endif
