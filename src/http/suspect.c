#include "http/suspect.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

enum { slots = 256, address_size = 48 };

/* One address; another of the same slot takes its place, so that the table never fills. */
static struct suspect {
    char address[address_size];
    int64_t until_ms; /* monotonic: the window's end */
    unsigned tries;
} suspects[slots];

/* FNV-1a (Fowler, Noll, Vo), folded to a slot. */
static struct suspect *slot_of(const char *address)
{
    uint32_t hash = 2166136261U;
    for (; *address != '\0'; address++)
        hash = (hash ^ (unsigned char)*address) * 16777619U;
    return &suspects[(hash ^ hash >> 16) % slots];
}

static bool is_live(const struct suspect *suspect, const char *address)
{
    return suspect->until_ms > clock_monotonic_ms() && strcmp(suspect->address, address) == 0;
}

unsigned suspect_wait_s(const char *address)
{
    const struct suspect *suspect = slot_of(address);
    if (!is_live(suspect, address) || suspect->tries < suspect_tries_max)
        return 0;
    int64_t left_ms = suspect->until_ms - clock_monotonic_ms();
    return left_ms <= 0 ? 1 : (unsigned)((left_ms + 999) / 1000);
}

void suspect_note(const char *address)
{
    struct suspect *suspect = slot_of(address);
    if (strlen(address) >= address_size)
        return; /* No address is as long. */
    if (!is_live(suspect, address)) {
        snprintf(suspect->address, sizeof suspect->address, "%s", address);
        suspect->until_ms = clock_monotonic_ms() + suspect_window_ms;
        suspect->tries = 0;
    }
    suspect->tries++;
}

void suspect_forget(void)
{
    memset(suspects, 0, sizeof suspects);
}
