/*
 * Splits a file of SQL into statements, so that a migration runs and reports one statement at a time.
 *
 * A statement ends at a semicolon outside of quotes ('', "", ``) and comments. DELIMITER is not supported,
 * because migrations contain no stored programs.
 */
#ifndef DB_SCRIPT_H
#define DB_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

struct script {
    const char *text;
    size_t length;
    size_t at;
    unsigned line; /* of at, from 1 */
};

struct script_statement {
    const char *text; /* borrows from the script; without the semicolon and surrounding blanks */
    size_t length;
    unsigned line; /* of its first byte, from 1 */
};

void script_init(struct script *script, const char *text, size_t length);

/*
 * Reads the next statement. Returns false at the end. Skips comments and blanks before it. The last statement
 * needs no semicolon. An unclosed quote extends to the end of the file; the database refuses that statement.
 */
bool script_next(struct script *script, struct script_statement *statement);

#endif
