#include "base/trace.h"

#include <stdint.h>
#include <string.h>

#include "base/crypto.h"

/* The fields of a traceparent, "00-TRACE-PARENT-FLAGS": where they begin, and their digits. */
enum {
    trace_at = 3,
    trace_digits = trace_id_size - 1,
    parent_at = trace_at + trace_digits + 1,
    parent_digits = 16,
    flags_at = parent_at + parent_digits + 1,
    flags_digits = 2,
    traceparent_length = flags_at + flags_digits
};

/* True for this many lower-case hexadecimal digits. */
static bool is_hex(const char *text, size_t digits)
{
    return strspn(text, "0123456789abcdef") >= digits;
}

/* True for the digits of an id, of which one at least is not zero. */
static bool is_id(const char *text, size_t digits)
{
    return is_hex(text, digits) && strspn(text, "0") < digits;
}

/* Version ff is forbidden. Version 00 ends here; a later version may continue after a dash. */
static bool is_end(const char *traceparent)
{
    if (strncmp(traceparent, "ff", 2) == 0)
        return false;
    char next = traceparent[traceparent_length];
    return next == '\0' || (next == '-' && strncmp(traceparent, "00", 2) != 0);
}

bool trace_read(const char *traceparent, struct trace *trace)
{
    if (traceparent == NULL || strlen(traceparent) < traceparent_length)
        return false;
    bool is_valid = is_hex(traceparent, 2) && traceparent[trace_at - 1] == '-' &&
                    is_id(traceparent + trace_at, trace_digits) && traceparent[parent_at - 1] == '-' &&
                    is_id(traceparent + parent_at, parent_digits) && traceparent[flags_at - 1] == '-' &&
                    is_hex(traceparent + flags_at, flags_digits) && is_end(traceparent);
    if (!is_valid)
        return false;
    memcpy(trace->id, traceparent + trace_at, trace_digits);
    trace->id[trace_digits] = '\0';
    trace->is_sampled = strchr("13579bdf", traceparent[traceparent_length - 1]) != NULL;
    trace->is_given = true;
    return true;
}

void trace_begin(struct trace *trace, struct arena *arena, const char *wanted)
{
    uint8_t random[trace_digits / 2];
    *trace = (struct trace){.is_sampled = true};
    if (wanted == NULL || strlen(wanted) != trace_digits || !is_id(wanted, trace_digits)) {
        crypto_random(random, sizeof random);
        wanted = crypto_hex(arena, random, sizeof random);
    }
    memcpy(trace->id, wanted, trace_id_size);
}

const char *trace_parent(struct arena *arena, const struct trace *trace)
{
    uint8_t parent[parent_digits / 2];
    crypto_random(parent, sizeof parent);
    return arena_printf(arena, "00-%s-%s-%s", trace->id, crypto_hex(arena, parent, sizeof parent),
                        trace->is_sampled ? "01" : "00");
}
