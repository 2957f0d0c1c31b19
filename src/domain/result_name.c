#include "domain/result_name.h"

#include <stdbool.h>
#include <string.h>

#include "base/text.h"

static bool is_taken(const char *const *names, unsigned count, const char *name)
{
    for (unsigned i = 0; i < count; i++)
        if (text_equal_nocase(names[i], name))
            return true;
    return false;
}

/* "cat.jpg" and 2 make "cat (2).jpg". */
static const char *name_number(struct arena *arena, const char *name, unsigned number)
{
    const char *dot = strrchr(name, '.');
    int stem = (int)(dot != NULL && dot != name ? (size_t)(dot - name) : strlen(name));
    return arena_printf(arena, "%.*s (%u)%s", stem, name, number, name + stem);
}

const char **result_names(struct arena *arena, const char *const *names, unsigned count)
{
    const char **unique = arena_array(arena, count > 0 ? count : 1, sizeof *unique);
    for (unsigned i = 0; i < count; i++) {
        unique[i] = names[i];
        for (unsigned number = 2; is_taken(unique, i, unique[i]); number++)
            unique[i] = name_number(arena, names[i], number);
    }
    return unique;
}
