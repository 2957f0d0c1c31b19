/*
 * Finds and blanks the pictures in an EXIF block in place, so no offset changes (TIFF 6.0; EXIF
 * 2.32, section 4.5). Independent of files, formats and pixels.
 */
#ifndef CODEC_METADATA_EXIF_H
#define CODEC_METADATA_EXIF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { exif_tables_max = 64 };

/* Prefix of the TIFF block in a JPEG, and by mistake in some other files. */
enum { exif_prefix_bytes = 6 };
extern const char exif_prefix[exif_prefix_bytes];

/* A TIFF block, modified in place, and its directories. */
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

/* Place of IFD1's JPEG thumbnail: room bytes at `at`, within the block. */
struct exif_thumbnail {
    size_t at;
    size_t room;
};

/* Finds the directories, after JPEG's prefix if there is one. False if this is no TIFF block. */
bool exif_open(struct exif *exif, unsigned char *bytes, size_t size);

/* False if there is no JPEG thumbnail that can be replaced in place. */
bool exif_thumbnail_find(const struct exif *exif, struct exif_thumbnail *thumbnail);

/* Sets length and size of the JPEG that was written to the thumbnail's room, and zeroes the rest of the room.
 */
void exif_thumbnail_set(const struct exif *exif, const struct exif_thumbnail *thumbnail, size_t size,
                        uint32_t width_px, uint32_t height_px);

/* Removes all directories after IFD0 from the chain and zeroes their pictures. True if there was one. */
bool exif_chain_cut(struct exif *exif);

/*
 * Zeroes the pictures of directories below IFD0 and every JPEG stream elsewhere in the block, as
 * in maker notes. keep is a thumbnail that stays, or NULL. True if there was one.
 */
bool exif_previews_blank(struct exif *exif, const struct exif_thumbnail *keep);

/* IFD0's orientation, 1..8 (EXIF 2.32, section 4.6.4); 1 if it is unknown. */
unsigned exif_orientation(const struct exif *exif);

/* The bytes of IFD0's field of the tag, in the block. NULL if there is none. */
const unsigned char *exif_field(const struct exif *exif, unsigned tag, size_t *size);

/* Removes the field of the tag from IFD0 and zeroes the value. */
void exif_field_remove(struct exif *exif, unsigned tag);

/*
 * Length of the JPEG stream at data with the end marker; 0 if there is none. For a truncated stream, the
 * length of the headers.
 */
size_t exif_jpeg_bytes(const unsigned char *data, size_t size);

/* Zeroes every JPEG stream. True if there was one. */
bool exif_jpegs_blank(unsigned char *data, size_t size);

#endif
