/*
 * Reads the number from planes: whitening, spectrum on the lattice, decoding. The first attempt assumes an
 * unmodified picture; later attempts take a spectrum and a pose.
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

/* Pose of a plane relative to the pattern: chips = matrix * (pixel - centre of the plane) + offset. */
struct pose {
    double matrix[4]; /* row by row */
    double offset[2]; /* chips, within a period */
};

enum {
    reader_classes = 3, /* of texture */
    reader_sources = reader_classes + 1
};

struct reader {
    struct workspace *workspace;
    struct polar *polar; /* owned */
    struct lattice *lattice;
    struct soft_reader *soft;
    struct candidates *candidates; /* NULL if there are no candidates */
    struct soft_field *luma;       /* reader_classes of them */
    struct soft_field *blue;
    struct fold_basis *basis;
    struct pose pose;   /* of the last attempt */
    double slant[2];    /* perspective: the map to chips is divided by 1 + slant . (pixel - centre) */
    bool has_pose;      /* false if the picture was bent */
    uint64_t number;    /* read last */
    double correlation; /* of the word that was read last */
    unsigned attempts;
    double correlation_most; /* highest of all attempts, over decoded and candidates' words */
};

/* Returns false if memory is short. Call reader_fini in any case. */
bool reader_init(struct reader *reader, const uint8_t key[32], enum lattice_form form,
                 struct workspace *workspace);
void reader_fini(struct reader *reader);

/* Returns the side in pixels of the pattern's period in a picture of this size. */
int reader_period_px(uint32_t width_px, uint32_t height_px);

/*
 * Luma and Cb (may be NULL) of a plane after whitening. Memory belongs to the workspace. reader_whiten
 * returns false if memory is short.
 */
struct whitened {
    float *luma;
    float *blue;
};
bool reader_whiten(struct reader *reader, const struct plane *plane, struct whitened *whitened);

/*
 * Reads a plane of one chip a pixel that is aligned with the pattern. activity, unless NULL,
 * receives luma's activity for the mask.
 */
bool reader_read_untouched(struct reader *reader, const struct plane *plane, float *activity);

/* Decodes the reader's fields: the given number of classes of luma, and Cb if has_blue. */
bool reader_decode(struct reader *reader, unsigned classes, bool has_blue);

/* Decodes both readers' fields of an aligned colour picture together. The first reader receives the result.
 */
bool reader_decode_both(struct reader *reader, const struct reader *under);

/* Reads spectra in a pose; blue may be NULL. */
bool reader_read_posed(struct reader *reader, const struct spectrum *luma, const struct spectrum *blue,
                       const struct pose *pose);

#endif
