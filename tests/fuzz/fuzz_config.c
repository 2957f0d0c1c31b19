/* Reads a configuration file: it is accepted, or refused with line numbers; a reload keeps fixed keys. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/config.h"
#include "targets.h"

enum { line_max_bytes = 4096 };

static void value_check(const struct config *config, const struct config_key *key)
{
    const char *place = (const char *)config + key->offset;
    if ((key->type == CONFIG_INTEGER || key->type == CONFIG_FOLLOWING) &&
        (*(const int64_t *)(const void *)place < key->minimum ||
         *(const int64_t *)(const void *)place > key->maximum))
        abort();
    if (config_is_text(key->type) && strlen(*(const char *const *)(const void *)place) > line_max_bytes)
        abort();
}

int fuzz_config(const unsigned char *data, size_t size)
{
    struct context context;
    struct config config, before;
    char path[64];
    size_t count;
    int file = memfd_create("config", 0);
    if (file < 0 || write(file, data, size) != (ssize_t)size)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    struct arena *arena = arena_new(0);
    context_init(&context, arena, NULL);
    config_init(&config);
    before = config;
    enum iw_error error = config_read(&context, path, &config);
    const struct config_key *keys = config_keys(&count);
    for (size_t i = 0; i < count && error == IW_OK; i++)
        value_check(&config, &keys[i]);
    if (error != IW_OK && (context.detail_count == 0 || memcmp(&config, &before, sizeof config) != 0))
        abort();
    config_keep_fixed(&config, &before, arena);
    arena_free(arena);
    close(file);
    return 0;
}
