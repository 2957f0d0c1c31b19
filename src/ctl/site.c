#include "ctl/site.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { site_bytes_max = 4 * 1024 * 1024 };

const char *site_read(struct context *context, const char *file)
{
    struct text text;
    char piece[4096];
    size_t size;
    /* Only root's PATH contains sbin. */
    static const char command[] = "PATH=\"$PATH:/usr/sbin:/sbin\" nginx -T "
                                  "${IMGWARD_NGINX_FILE:+-c \"$IMGWARD_NGINX_FILE\"} 2>/dev/null";
    /* nginx resolves a relative path under its prefix, not in the current folder. */
    char *whole = file != NULL ? realpath(file, NULL) : NULL;
    bool is_set =
        (file == NULL || whole != NULL) && setenv("IMGWARD_NGINX_FILE", whole != NULL ? whole : "", 1) == 0;
    free(whole);
    if (!is_set)
        return NULL;
    FILE *pipe = popen(command, "re");
    if (pipe == NULL)
        return NULL;
    text_init(&text, context->arena);
    while ((size = fread(piece, 1, sizeof piece, pipe)) > 0)
        if (text.length < site_bytes_max)
            text_add(&text, piece, size);
    return pclose(pipe) == 0 && text.length > 0 ? text.data : NULL;
}

const char *site_directive(struct context *context, const char *site, const char *name)
{
    size_t length = strlen(name);
    for (const char *line = site; line != NULL && *line != '\0';) {
        const char *word = line + strspn(line, " \t");
        if (strncmp(word, name, length) == 0 && (word[length] == ' ' || word[length] == '\t')) {
            const char *value = word + length + strspn(word + length, " \t");
            return arena_text_n(context->arena, value, strcspn(value, ";\n"));
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return NULL;
}
