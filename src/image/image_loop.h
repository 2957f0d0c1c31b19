/*
 * The sealed end: takes requests from its socket, does what the table of kinds
 * says, answers.  Everything it needs by name (weights, key) is loaded before
 * it is sealed.  No database, no network, no file names.
 */
#ifndef IMAGE_IMAGE_LOOP_H
#define IMAGE_IMAGE_LOOP_H

#include <imgward/protect.h>
#include <imgward/watermark.h>

#include "codec/codec.h"
#include "image/image_protocol.h"

struct image_process {
    struct codec_limits limits; /* side_min_px comes from the kind */
    unsigned cpu_seconds;       /* per image; 0: no limit */
    unsigned images_max;
    uint8_t watermark_key[WATERMARK_KEY_BYTES];
    bool has_watermark_key;
    struct protect *protect; /* NULL: no anti-AI work */
};

/* One request: its files are mapped or written, never closed here.  Fills the answer, the error in it. */
void image_loop_serve(const struct image_process *process, const struct image_request *request,
                      const int files[image_file_count], struct image_answer *answer);

/*
 * Says READY, with the layers of the seal that are missing and why, and serves
 * until images_max are served or the other end closes.
 */
void image_loop_run(const struct image_process *process, int socket, unsigned seal_missing,
                    const char *cause);

#endif
