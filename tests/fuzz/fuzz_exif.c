/*
 * Edits an EXIF block, Photoshop blocks and JPEG streams. Previews are blanked within the given
 * bytes; a second pass finds no thumbnail that the first pass removed.
 */
#include <stdlib.h>
#include <string.h>

#include "codec/codec.h"
#include "codec/metadata/exif.h"
#include "codec/metadata/photoshop.h"
#include "targets.h"

enum { tag_packet = 0x02BC };

/* A global sum, so that the compiler keeps the reads. */
static volatile unsigned bytes_sum;

static void blank(unsigned char *bytes, size_t size)
{
    struct exif exif;
    struct exif_thumbnail thumbnail;
    size_t field_size = 0;
    if (!exif_open(&exif, bytes, size))
        return;
    const unsigned char *field = exif_field(&exif, tag_packet, &field_size);
    if (field != NULL && field_size > 0)
        bytes_sum += field[field_size - 1];
    if (exif_thumbnail_find(&exif, &thumbnail)) {
        exif_previews_blank(&exif, &thumbnail);
        exif_thumbnail_set(&exif, &thumbnail, thumbnail.room / 2, 160, 120);
    }
    exif_field_remove(&exif, tag_packet);
    if (!exif_open(&exif, bytes, size))
        return;
    exif_chain_cut(&exif);
    exif_previews_blank(&exif, NULL);
    if (exif_open(&exif, bytes, size) && exif_thumbnail_find(&exif, &thumbnail))
        abort();
}

int fuzz_exif(const unsigned char *data, size_t size)
{
    unsigned char *bytes = malloc(size + (size == 0));
    bool is_changed = false;
    if (bytes == NULL)
        return 0;
    if (size > 0)
        memcpy(bytes, data, size);
    blank(bytes, size);
    if (size > 0)
        memcpy(bytes, data, size);
    if (photoshop_clean(bytes, size, &is_changed) > size)
        abort();
    exif_jpegs_blank(bytes, size);
    free(bytes);
    return 0;
}
