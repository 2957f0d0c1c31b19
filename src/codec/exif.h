/*
 * The pictures inside an EXIF block: found, bounded and blanked in place, so that
 * no offset moves (TIFF 6.0; EXIF 2.32, section 4.5).  Bytes in, bytes out: knows
 * nothing of files, formats and pixels.
 */
#ifndef CODEC_EXIF_H
#define CODEC_EXIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { exif_tables_max = 64 };

/* A TIFF block that may be changed in place, its directories found once. */
struct exif {
    unsigned char *bytes;
    size_t size;
    bool is_little;
    struct exif_table {
        size_t at;
        unsigned entry_count;
    } tables[exif_tables_max]; /* 0: IFD0; chain_count - 1 more of the chain; then those below IFD0 */
    unsigned table_count;
    unsigned chain_count;
};

/* Where the JPEG thumbnail of IFD1 stands: room bytes at `at`, all inside the block. */
struct exif_thumbnail {
    size_t at;
    size_t room;
};

/* Finds the directories; false when the bytes are no TIFF block. */
bool exif_open(struct exif *exif, unsigned char *bytes, size_t size);

/* False when there is no JPEG thumbnail that can be replaced in place. */
bool exif_thumbnail_find(const struct exif *exif, struct exif_thumbnail *thumbnail);

/* Tells the length and the sides of the JPEG that was put in the thumbnail's room; the rest of it is zeroed.
 */
void exif_thumbnail_set(const struct exif *exif, const struct exif_thumbnail *thumbnail, size_t size,
                        uint32_t width_px, uint32_t height_px);

/* Takes all directories behind IFD0 out of the chain and zeroes their pictures; true when there was one. */
bool exif_chain_cut(struct exif *exif);

/*
 * Zeroes the pictures that directories below IFD0 point at, and every JPEG stream
 * elsewhere in the block, as maker notes hold them.  keep: the thumbnail that
 * stays, NULL for none.  True when there was one.
 */
bool exif_previews_blank(struct exif *exif, const struct exif_thumbnail *keep);

/* The bytes of IFD0's field of the tag, as they stand in the block; NULL when there is none. */
const unsigned char *exif_field(const struct exif *exif, unsigned tag, size_t *size);

/* Takes the field of the tag out of IFD0 and zeroes its value. */
void exif_field_remove(struct exif *exif, unsigned tag);

/*
 * The length of the JPEG stream that begins at data, its end marker included; 0 when
 * none begins there.  One that is cut has the length of its headers.
 */
size_t jpeg_stream_bytes(const unsigned char *data, size_t size);

/* Zeroes every JPEG stream within; true when there was one. */
bool jpeg_streams_blank(unsigned char *data, size_t size);

#endif
