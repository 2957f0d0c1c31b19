#include "service/secret/common_password.h"

#include <ctype.h>
#include <string.h>

#include "base/text.h"

/* Each password stands between two line ends. */
static const char list[] = "\n"
#include "common_passwords.inc"
    ;

static bool is_listed(struct arena *arena, const char *text, size_t length)
{
    const char *line = arena_printf(arena, "\n%.*s\n", (int)length, text);
    return memmem(list, sizeof list - 1, line, length + 2) != NULL;
}

static bool is_weak_rest(struct arena *arena, const char *rest)
{
    return rest[strspn(rest, "0123456789")] == '\0' || is_listed(arena, rest, strlen(rest));
}

/* As "aaaaaaaaaaaa" (NIST SP 800-63B names repetitive characters). */
static bool is_one_character(const char *text, size_t length)
{
    return length > 0 && memcmp(text, text + 1, length - 1) == 0;
}

bool common_password_is(struct arena *arena, const char *password)
{
    char *lower = arena_text(arena, password);
    size_t length = strlen(lower);
    for (char *byte = lower; *byte != '\0'; byte++)
        *byte = (char)tolower((unsigned char)*byte);
    if (is_one_character(lower, length))
        return true;
    for (size_t first = 1; first <= length; first++)
        if (is_listed(arena, lower, first) && is_weak_rest(arena, lower + first))
            return true;
    return false;
}
