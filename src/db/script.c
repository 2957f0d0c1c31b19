#include "db/script.h"

#include <string.h>

void script_init(struct script *script, const char *text, size_t length)
{
    *script = (struct script){.text = text, .length = length, .line = 1};
}

static char byte_at(const struct script *script, size_t ahead)
{
    size_t at = script->at + ahead;
    return at < script->length ? script->text[at] : '\0';
}

static void step(struct script *script, size_t count)
{
    for (; count > 0 && script->at < script->length; count--)
        if (script->text[script->at++] == '\n')
            script->line++;
}

/* "#" or "-- " to the end of the line.  MariaDB requires a blank or the end after the two dashes. */
static bool is_line_comment(const struct script *script)
{
    char third = byte_at(script, 2);
    return byte_at(script, 0) == '#' || (byte_at(script, 0) == '-' && byte_at(script, 1) == '-' &&
                                         (third == '\0' || strchr(" \t\r\n", third) != NULL));
}

/* Skips one comment; false if there is none here. */
static bool comment_skip(struct script *script)
{
    if (is_line_comment(script)) {
        while (script->at < script->length && byte_at(script, 0) != '\n')
            step(script, 1);
        return true;
    }
    /* MariaDB executes the forms with ! and M!. */
    if (byte_at(script, 0) != '/' || byte_at(script, 1) != '*' || byte_at(script, 2) == '!' ||
        byte_at(script, 2) == 'M')
        return false;
    step(script, 2);
    while (script->at < script->length && !(byte_at(script, 0) == '*' && byte_at(script, 1) == '/'))
        step(script, 1);
    step(script, 2);
    return true;
}

/* Skips a quoted piece.  A doubled quote reads as two adjacent pieces, with the same end. */
static void quote_skip(struct script *script)
{
    char quote = byte_at(script, 0);
    step(script, 1);
    while (script->at < script->length && byte_at(script, 0) != quote)
        step(script, byte_at(script, 0) == '\\' && quote != '`' ? 2 : 1);
    step(script, 1);
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n' || byte == '\f' || byte == '\v';
}

bool script_next(struct script *script, struct script_statement *statement)
{
    for (;;) {
        if (is_blank(byte_at(script, 0)) || byte_at(script, 0) == ';')
            step(script, 1);
        else if (!comment_skip(script))
            break;
    }
    size_t begin = script->at;
    statement->line = script->line;
    while (script->at < script->length && byte_at(script, 0) != ';') {
        char byte = byte_at(script, 0);
        if (byte == '\'' || byte == '"' || byte == '`')
            quote_skip(script);
        else if (!comment_skip(script))
            step(script, 1);
    }
    size_t end = script->at;
    while (end > begin && is_blank(script->text[end - 1]))
        end--;
    statement->text = script->text + begin;
    statement->length = end - begin;
    return statement->length > 0;
}
