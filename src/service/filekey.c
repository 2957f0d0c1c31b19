#include "service/filekey.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* What stands before the order, and whether a number (and what letter) follows it. */
static const struct {
    const char *word;
    bool has_number;
    const char *ending;
} forms[] = {
    [FILEKEY_UPLOAD] = {"in", true, ""},        [FILEKEY_ORIGINAL] = {"in", true, "o"},
    [FILEKEY_RESULT] = {"out", true, ""},       [FILEKEY_ZIP] = {"zip", false, ""},
    [FILEKEY_THUMBNAIL] = {"thumb", false, ""},
};

enum { form_count = sizeof forms / sizeof forms[0] };

size_t filekey_print(const struct filekey *key, char text[filekey_size])
{
    int length = forms[key->kind].has_number
                     ? snprintf(text, filekey_size, "%s/%" PRId64 "/%" PRId64 "%s", forms[key->kind].word,
                                key->order_id, key->number, forms[key->kind].ending)
                     : snprintf(text, filekey_size, "%s/%" PRId64, forms[key->kind].word, key->order_id);
    return (size_t)length;
}

const char *filekey_text(struct arena *arena, const struct filekey *key)
{
    char text[filekey_size];
    return arena_text_n(arena, text, filekey_print(key, text));
}

/* Splits a copy of the text at its slashes; the count of pieces, 0 when there are more than three. */
static int pieces_split(char *text, char *pieces[3])
{
    int count = 0;
    for (char *at = text; at != NULL; count++) {
        if (count == 3)
            return 0;
        pieces[count] = at;
        at = strchr(at, '/');
        if (at != NULL)
            *at++ = '\0';
    }
    return count;
}

/* Cuts the ending off the number; false when it does not end so. */
static bool ending_cut(char *number, const char *ending)
{
    size_t length = strlen(number), size = strlen(ending);
    if (length < size || strcmp(number + length - size, ending) != 0)
        return false;
    number[length - size] = '\0';
    return true;
}

static bool form_matches(int form, char *pieces[3], int count, struct filekey *key)
{
    if (strcmp(forms[form].word, pieces[0]) != 0 || count != (forms[form].has_number ? 3 : 2))
        return false;
    key->kind = (enum filekey_kind)form;
    key->number = 0;
    if (!text_integer(pieces[1], 1, INT64_MAX, &key->order_id))
        return false;
    return !forms[form].has_number || text_integer(pieces[2], 1, INT64_MAX, &key->number);
}

bool filekey_read(const char *text, struct filekey *key)
{
    char copy[filekey_size];
    char *pieces[3];
    size_t length = strlen(text);
    if (length >= sizeof copy)
        return false;
    memcpy(copy, text, length + 1);
    int count = pieces_split(copy, pieces);
    bool is_original = count == 3 && strcmp(pieces[0], "in") == 0 && ending_cut(pieces[2], "o");
    for (int form = 0; count > 0 && form < form_count; form++)
        if ((form == FILEKEY_UPLOAD || form == FILEKEY_ORIGINAL) && is_original != (form == FILEKEY_ORIGINAL))
            continue;
        else if (form_matches(form, pieces, count, key))
            return true;
    return false;
}
