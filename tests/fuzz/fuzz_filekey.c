/* Parses the path of a presigned URL; a file key prints to the same text. */
#include <stdlib.h>
#include <string.h>

#include "model/filekey.h"
#include "targets.h"

int fuzz_filekey(const unsigned char *data, size_t size)
{
    struct filekey key;
    char printed[filekey_size];
    char *text = malloc(size + 1);
    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (filekey_read(text, &key)) {
        filekey_print(&key, printed);
        if (strcmp(printed, text) != 0)
            abort();
    }
    free(text);
    return 0;
}
