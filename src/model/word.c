#include "model/word.h"

#include <stddef.h>
#include <string.h>

int word_find(const char *word, const char *const *words, int count)
{
    for (int i = 0; i < count; i++)
        if (words[i] != NULL && strcmp(words[i], word) == 0)
            return i;
    return -1;
}
