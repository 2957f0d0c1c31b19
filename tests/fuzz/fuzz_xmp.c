/* An XMP packet: the opt-out is put in; the result is well-formed, says so, and a second time changes
 * nothing. */
#include <stdlib.h>
#include <string.h>

#include <expat.h>

#include "worker/codec_keep.h"
#include "targets.h"

static const char prohibited[] = "http://ns.useplus.org/ldf/vocab/DMI-PROHIBITED-AIMLTRAINING";

static void well_formed(const char *packet, size_t size)
{
    XML_Parser parser = XML_ParserCreateNS("UTF-8", '\n');
    if (parser == NULL || XML_Parse(parser, packet, (int)size, XML_TRUE) != XML_STATUS_OK)
        abort();
    XML_ParserFree(parser);
}

int fuzz_xmp(const unsigned char *data, size_t size)
{
    size_t once_size = 0, twice_size = 0;
    struct arena *arena = arena_new(0);
    char *exact = malloc(size + (size == 0));
    if (exact == NULL)
        return 0;
    if (size > 0)
        memcpy(exact, data, size);
    const char *once = xmp_opt_out(arena, exact, size, &once_size);
    /* What says so already may end in zeros, which its writer put there. */
    well_formed(once, strnlen(once, once_size));
    if (memmem(once, once_size, prohibited, sizeof prohibited - 1) == NULL)
        abort();
    const char *twice = xmp_opt_out(arena, once, once_size, &twice_size);
    if (once_size != twice_size || memcmp(once, twice, once_size) != 0)
        abort();
    free(exact);
    arena_free(arena);
    return 0;
}
