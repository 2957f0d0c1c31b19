/*
 * Adds the opt-out to an XMP packet, valid or not. The result is well-formed and has the opt-out, and a
 * second pass changes nothing.
 */
#include <stdlib.h>
#include <string.h>

#include <expat.h>

#include "codec/metadata/xmp.h"
#include "targets.h"

static void well_formed(const char *packet, size_t size)
{
    XML_Parser parser = XML_ParserCreateNS("UTF-8", '\n');
    if (parser == NULL || XML_Parse(parser, packet, (int)size, XML_TRUE) != XML_STATUS_OK)
        abort();
    XML_ParserFree(parser);
}

/* Edits a packet as the codecs do. */
static const char *opt_out(struct arena *arena, const char *packet, size_t size, size_t *size_out)
{
    static const struct xmp_request look = {.mining = NULL};
    struct xmp_request request = {.is_added = true,
                                  .extension_old = "0123456789ABCDEF0123456789ABCDEF",
                                  .extension_new = "00000000000000000000000000000000"};
    struct xmp_result result;
    xmp_edit(arena, packet, size, &look, &result);
    request.mining = xmp_mining_stronger(xmp_mining_least, result.is_readable ? result.mining : NULL);
    xmp_edit(arena, packet, size, &request, &result);
    if (!result.is_readable)
        return xmp_fresh(arena, request.mining, size_out);
    *size_out = result.size;
    return result.packet;
}

int fuzz_xmp(const unsigned char *data, size_t size)
{
    static const char prohibited[] = "http://ns.useplus.org/ldf/vocab/DMI-PROHIBITED";
    size_t once_size = 0, twice_size = 0;
    struct arena *arena = arena_new(0);
    char *exact = malloc(size + (size == 0));
    if (exact == NULL)
        return 0;
    if (size > 0)
        memcpy(exact, data, size);
    const char *once = opt_out(arena, exact, size, &once_size);
    /* A packet that needs no edit may end with zeros from its writer. */
    size_t once_text_size = once_size;
    while (once_text_size > 0 && once[once_text_size - 1] == '\0')
        once_text_size--;
    well_formed(once, once_text_size);
    if (memmem(once, once_size, prohibited, sizeof prohibited - 1) == NULL)
        abort();
    const char *twice = opt_out(arena, once, once_size, &twice_size);
    if (once_size != twice_size || memcmp(once, twice, once_size) != 0)
        abort();
    free(exact);
    arena_free(arena);
    return 0;
}
