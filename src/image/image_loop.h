/*
 * The request loop of the sealed image process. It receives requests from the socket, runs the
 * kind of work that the table names, and sends answers. Weights and key are loaded before the
 * seal. It uses no database, no network and no file names.
 */
#ifndef IMAGE_IMAGE_LOOP_H
#define IMAGE_IMAGE_LOOP_H

#include "base/crypto.h"
#include "codec/codec.h"
#include "engine/protect/protect.h"
#include "engine/watermark/watermark.h"
#include "image/image_protocol.h"

struct image_config {
    struct codec_limits limits; /* side_min_px is set per kind */
    unsigned cpu_seconds;       /* per picture; 0 if there is no limit */
    unsigned images_max;
    unsigned growth_max_percent; /* of a protected JPEG */
    unsigned formats_more;       /* that an extraction reads beside those that are changed */
    uint8_t watermark_key[WATERMARK_KEY_BYTES];
    bool has_watermark_key;
    char watermark_key_id[crypto_key_id_size]; /* empty without a key */
    struct protect *protect;                   /* NULL means no anti-AI work */
};

/*
 * Sends READY with the missing layers of the seal and their cause. Then serves until images_max
 * pictures are done or the other end closes.
 */
void image_loop_run(const struct image_config *config, int socket, unsigned seal_missing, const char *cause);

/* Sends READY with the context's error instead: the process cannot start. False without a worker. */
bool image_loop_refuse(int socket, const struct context *context, unsigned seal_missing);

#endif
