/* A request body: parsed into the arena, then every node is read. */
#include <string.h>

#include "base/json.h"
#include "targets.h"

/* Reads every byte of the tree, so that a sanitizer detects wrong lengths. */
static size_t walked(const struct json *json)
{
    size_t sum = json->name != NULL ? strlen(json->name) : 0;
    if (json->kind == JSON_KIND_STRING)
        for (size_t i = 0; i <= json->length; i++)
            sum += (unsigned char)json->string[i];
    for (const struct json *child = json->first; child != NULL; child = child->next)
        sum += walked(child);
    return sum;
}

int fuzz_json(const unsigned char *data, size_t size)
{
    struct context context;
    const struct json *json = NULL;
    volatile size_t sum = 0;
    struct arena *arena = arena_new(0);
    context_init(&context, arena, NULL);
    if (json_read(&context, (const char *)data, size, &json) == IW_OK)
        sum = walked(json);
    (void)sum;
    arena_free(arena);
    return 0;
}
