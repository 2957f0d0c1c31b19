/*
 * Cuts a file of SQL into its statements, so that a migration can be run and
 * reported one statement at a time.
 *
 * Knows quotes ('', "", ``), both comment forms and escapes; a statement ends at
 * a semicolon outside of these.  There is no DELIMITER: migrations hold no
 * stored programs.  Works on text alone.
 */
#ifndef STORE_SCRIPT_H
#define STORE_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>

struct script {
    const char *text;
    size_t length;
    size_t at;
    unsigned line; /* of at, from 1 */
};

struct script_statement {
    const char *text; /* borrows from the script; no semicolon, no blanks around */
    size_t length;
    unsigned line; /* where it begins, from 1 */
};

void script_init(struct script *script, const char *text, size_t length);

/*
 * The next statement; false at the end.  Comments and blanks before a statement
 * are left out.  A last statement without a semicolon counts; so does one with
 * an unclosed quote, which the database then refuses.
 */
bool script_next(struct script *script, struct script_statement *statement);

#endif
