#include "service/secret/totp.h"

#include <stdlib.h>
#include <string.h>

#include <liboath/oath.h>

enum { step_s = 30, digits = 6, window_steps = 1 };

static void library_open(void)
{
    static bool is_open;
    if (!is_open && oath_init() != OATH_OK)
        abort();
    is_open = true;
}

bool totp_verify(const uint8_t secret[totp_secret_bytes], const char *code, int64_t now_ms, int64_t *step)
{
    uint64_t counter = 0;
    library_open();
    if (strlen(code) != digits || strspn(code, "0123456789") != digits)
        return false;
    int found = oath_totp_validate3((const char *)secret, totp_secret_bytes, (time_t)(now_ms / 1000), step_s,
                                    OATH_TOTP_DEFAULT_START_TIME, window_steps, NULL, &counter, code);
    *step = (int64_t)counter;
    return found >= 0;
}

const char *totp_secret_text(struct arena *arena, const uint8_t secret[totp_secret_bytes])
{
    char *encoded = NULL;
    size_t length = 0;
    library_open();
    if (oath_base32_encode((const char *)secret, totp_secret_bytes, &encoded, &length) != OATH_OK)
        abort();
    const char *text = arena_text_n(arena, encoded, length);
    free(encoded);
    return text;
}
