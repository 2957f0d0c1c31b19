/*
 * Reads the number off planes: whitens them, takes their spectrum on the
 * lattice, and decodes.  First as if nothing had been done to the picture,
 * then, with a spectrum, in any pose.
 */
#ifndef ENGINE_WATERMARK_READER_H
#define ENGINE_WATERMARK_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/watermark/fold.h"
#include "engine/watermark/lattice.h"
#include "engine/watermark/plane.h"
#include "engine/watermark/polar.h"
#include "engine/watermark/soft.h"
#include "engine/watermark/spectrum.h"
#include "engine/watermark/workspace.h"

/* How a plane lies to the pattern: chips = matrix * (pixel - middle of the plane) + offset. */
struct pose {
    double matrix[4]; /* row by row */
    double offset[2]; /* chips, in a period */
};

#define READER_CLASSES 3 /* of texture */
#define READER_SOURCES (READER_CLASSES + 1)

struct reader {
    struct workspace *workspace;
    struct polar *polar; /* the reader's own */
    struct lattice *lattice;
    struct soft_reader *soft;
    struct soft_field *luma; /* READER_CLASSES of them */
    struct soft_field *blue;
    struct fold_basis *basis;
    uint64_t number;    /* as read last */
    double correlation; /* of the word read last */
    unsigned attempts;
};

/* False when there is no memory; reader_fini is due in any case. */
bool reader_init(struct reader *reader, const uint8_t key[32], enum lattice_form form,
                 struct workspace *workspace);
void reader_fini(struct reader *reader);

/* The side in pixels of the pattern's period in a picture of this size. */
int reader_period_px(uint32_t width_px, uint32_t height_px);

/* The whitened luma and Cb (or NULL) of a plane; the workspace's.  False when there is no memory. */
struct whitened {
    float *luma;
    float *blue;
};
bool reader_whiten(struct reader *reader, const struct plane *plane, struct whitened *whitened);

/*
 * Reads a plane of one chip a pixel that begins where the pattern does; activity,
 * if not NULL, takes luma's for the texture's mask.
 */
bool reader_read_untouched(struct reader *reader, const struct plane *plane, float *activity);

/* Decodes what the reader's fields hold: so many classes of luma, and Cb or not. */
bool reader_decode(struct reader *reader, unsigned classes, bool has_blue);

/* Decodes what both readers' fields of an untouched picture in colour hold together; the first reader's
 * answer. */
bool reader_decode_both(struct reader *reader, const struct reader *under);

/* Reads spectra (blue may be NULL) in a pose. */
bool reader_read_posed(struct reader *reader, const struct spectrum *luma, const struct spectrum *blue,
                       const struct pose *pose);

#endif
