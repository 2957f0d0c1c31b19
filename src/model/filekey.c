#include "model/filekey.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* Whether a number follows the order id. */
enum number { NUMBER_NEVER, NUMBER_ALWAYS, NUMBER_OPTIONAL };

/* The texts of a kind.  URLs that are valid and rows of released versions contain them: they never change. */
static const struct {
    const char *word; /* first segment of the URL path */
    enum number number;
    const char *ending;
    const char *folder; /* in the file store */
} forms[FILEKEY_KIND_COUNT] = {
    [FILEKEY_UPLOAD] = {"in", NUMBER_ALWAYS, "", "in"},
    [FILEKEY_ORIGINAL] = {"in", NUMBER_ALWAYS, "o", "original"},
    [FILEKEY_RESULT] = {"out", NUMBER_ALWAYS, "", "out"},
    [FILEKEY_ZIP] = {"zip", NUMBER_NEVER, "", "zip"},
    [FILEKEY_THUMBNAIL] = {"thumb", NUMBER_OPTIONAL, "", "thumb"},
};

const char *filekey_folder(enum filekey_kind kind)
{
    return forms[kind].folder;
}

size_t filekey_print(const struct filekey *key, char text[filekey_size])
{
    enum number number = forms[key->kind].number;
    bool has_number = number == NUMBER_ALWAYS || (number == NUMBER_OPTIONAL && key->number != 0);
    int length = has_number
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

/* Reads "<word>/<order>" or "<word>/<order>/<number><ending>" of one kind.  Changes the text. */
static bool form_read(char *text, enum filekey_kind kind, struct filekey *key)
{
    size_t word = strlen(forms[kind].word), ending = strlen(forms[kind].ending);
    *key = (struct filekey){.kind = kind};
    if (strncmp(text, forms[kind].word, word) != 0 || text[word] != '/')
        return false;
    char *order = text + word + 1, *number = strchr(order, '/');
    if (forms[kind].number == (number != NULL ? NUMBER_NEVER : NUMBER_ALWAYS))
        return false;
    if (number == NULL)
        return text_integer(order, 1, INT64_MAX, &key->order_id);
    *number++ = '\0';
    size_t length = strlen(number);
    if (length < ending || strcmp(number + length - ending, forms[kind].ending) != 0)
        return false;
    number[length - ending] = '\0';
    return text_integer(order, 1, INT64_MAX, &key->order_id) &&
           text_integer(number, 1, INT64_MAX, &key->number);
}

bool filekey_read(const char *text, struct filekey *key)
{
    size_t length = strlen(text);
    for (int kind = 0; length < filekey_size && kind < FILEKEY_KIND_COUNT; kind++) {
        char copy[filekey_size];
        memcpy(copy, text, length + 1);
        if (form_read(copy, (enum filekey_kind)kind, key))
            return true;
    }
    return false;
}
