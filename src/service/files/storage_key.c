#include "service/files/storage_key.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/crypto.h"
#include "base/text.h"

int storage_numbers_print(char text[storage_key_size], const struct storage_key *key, char separator)
{
    const size_t room = storage_key_size;
    int length = snprintf(text, room, "%" PRId64 "%c%" PRId64 ".%" PRId64, key->order_id, separator,
                          key->number, key->version);
    if (key->part > 0)
        length += snprintf(text + length, room - (size_t)length, ".%" PRId64, key->part);
    return length;
}

const char *storage_key_text(struct arena *arena, const struct storage_key *key)
{
    char numbers[storage_key_size];
    storage_numbers_print(numbers, key, '/');
    return arena_printf(arena, "%s/%s", filekey_folder(key->kind), numbers);
}

bool storage_numbers_read(const char *text, char separator, struct storage_key *key)
{
    char copy[storage_key_size];
    int64_t *const fields[] = {&key->order_id, &key->number, &key->version, &key->part};
    size_t length = strlen(text), count = 0;
    if (length >= sizeof copy)
        return false;
    memcpy(copy, text, length + 1);
    key->part = 0;
    for (char *at = copy, *end; at != NULL; at = end, count++) {
        end = strchr(at, count == 0 ? separator : '.');
        if (end != NULL)
            *end++ = '\0';
        bool is_order_or_part = count == 0 || count == 3;
        if (count == 4 || !text_integer(at, is_order_or_part ? 1 : 0, INT64_MAX, fields[count]))
            return false;
    }
    return count >= 3;
}

bool storage_key_read(const char *text, struct storage_key *key)
{
    const char *slash = strchr(text, '/');
    for (int kind = 0; slash != NULL && kind < FILEKEY_KIND_COUNT; kind++) {
        const char *folder = filekey_folder((enum filekey_kind)kind);
        size_t length = strlen(folder);
        if (length != (size_t)(slash - text) || memcmp(text, folder, length) != 0)
            continue;
        key->kind = (enum filekey_kind)kind;
        return storage_numbers_read(slash + 1, '/', key);
    }
    return false;
}

int64_t storage_version_new(void)
{
    int64_t version;
    do {
        version = (int64_t)(crypto_random_u64() >> 1);
    } while (version == 0);
    return version;
}
