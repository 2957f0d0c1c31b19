/* Parses a request body into the arena and reads every node. */
#include <string.h>

#include "base/json.h"
#include "targets.h"

/* Reads every byte of the value, so that a sanitizer detects wrong lengths. */
static size_t walked(const struct json *json)
{
    size_t sum = 0;
    const char *name = NULL;
    for (size_t i = 0; json_is(json, JSON_KIND_STRING) && i <= json_length(json); i++)
        sum += (unsigned char)json_string_of(json)[i];
    for (size_t i = 0; json_item(json, i) != NULL; i++)
        sum += walked(json_item(json, i));
    for (const struct json *member; (member = json_member_next(json, &name)) != NULL;)
        sum += strlen(name) + walked(member);
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
