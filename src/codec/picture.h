/* A decoded picture. */
#ifndef CODEC_PICTURE_H
#define CODEC_PICTURE_H

#include "codec/limits.h"
#include "engine/image.h"

struct codec_driver; /* private to the codecs: the row of the format */
struct codec_keep;   /* private to the codecs: everything besides the pixels */

struct codec_picture {
    struct codec_header header;
    struct image image; /* may be changed in place, but not its dimensions */
    struct codec_keep *keep;
    const struct codec_driver *driver;
};

/*
 * Receives rows from first_row_px on as a picture of strip->height_px rows. Any result but
 * IW_OK ends the decoding with it.
 */
typedef enum iw_error codec_rows_taker(void *user, uint32_t first_row_px, const struct image *strip);

#endif
