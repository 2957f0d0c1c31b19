/*
 * The visibility model of the anti-AI engine: how visible a perturbation of a picture is, place by place.
 * tools/train/visibility.py computes the same and names the sources.  Thresholds: Watson and others 1997.
 * Luminance adaptation: Watson 1993.  Masking: Legge, Foley 1980; Daly 1993.  Pooling with exponent 4: Quick
 * 1974.  The bands are those of a Laplacian pyramid: Burt, Adelson 1983.
 *
 * Pictures are processed row by row; each level of a pyramid keeps its last rows. Planes are luma, blue and
 * red difference (BT.601). A picture without colour has only luma.
 */
#ifndef ENGINE_PROTECT_VISIBILITY_H
#define ENGINE_PROTECT_VISIBILITY_H

#include "base/error.h"
#include "engine/protect/canvas.h"
#include "engine/protect/weights.h"

enum {
    visibility_block = 4,   /* samples of a band, a side of the blocks that have one threshold */
    visibility_cell_px = 8, /* a side of the cells of the visibility maps */
    visibility_levels = model_levels + 1
};

/* A map with one value for each block. */
struct visibility_map {
    unsigned columns, rows;
    float *values;
};

struct visibility {
    const struct net_model *model; /* borrowed */
    unsigned width_px, height_px;  /* padded to the grid */
    unsigned planes;               /* 1 or 3 */
    /* Thresholds of blocks of a band. The last level has a threshold for each of its samples. */
    struct visibility_map thresholds[visibility_levels][model_planes];
    struct visibility_map means, peaks; /* of cells, filled by visibility_step: mean and largest power */
    float *line;                        /* scratch: a row or a column of cells */
    float *memory;
};

/* Computes the thresholds of a picture.  NO_MEMORY.  Freed by visibility_fini. */
enum iw_error visibility_init(struct visibility *visibility, const struct net_model *model,
                              const struct canvas *canvas) IW_MUST_USE;
void visibility_fini(struct visibility *visibility);

/*
 * The source of the gradient and the sink of the step for visibility_step: whole rows of RGB, from the top.
 * Both functions may change the values. A row is put after it was got.
 */
struct visibility_ends {
    void (*get)(void *data, unsigned y_px, float *values);
    void (*put)(void *data, unsigned y_px, float *values);
    void *data;
};

/*
 * Turns a gradient into a step: each band is multiplied by the square of its threshold.  This is the steepest
 * ascent if visibility is the length of a step (Amari: Natural gradient works efficiently in learning, Neural
 * Computation 10, 1998).  Fills means and peaks.  NO_MEMORY.
 */
enum iw_error visibility_step(struct visibility *visibility, const struct visibility_ends *ends) IW_MUST_USE;

/*
 * Measures a perturbation, row by row from the top.  visibility_run_new clears means and peaks, which the run
 * fills; NO_MEMORY.  Rows have differences in levels of 255 of one or three colours; they are 0 outside of
 * the picture.  visibility_run_end returns the visibility.  The caller frees the run.
 */
struct visibility_run;
enum iw_error visibility_run_new(struct visibility_run **run, struct visibility *visibility) IW_MUST_USE;
void visibility_run_row(struct visibility_run *run, const float *levels, unsigned width_px, unsigned colors);
double visibility_run_end(struct visibility_run *run);
void visibility_run_free(struct visibility_run *run);

/* Returns the visibility that visibility_step or a run measured, before visibility_even. */
double visibility_total(const struct visibility *visibility);

/*
 * Turns peaks into the factors that make the visibility of the step even over the picture. Returns the
 * visibility of the step with these factors.
 */
double visibility_even(struct visibility *visibility);

/* Splits a row of RGB into rows of luma, blue and red difference (BT.601). */
void visibility_opponent(const float *restrict values, size_t count, float *restrict luma,
                         float *restrict blue, float *restrict red);

/*
 * Writes a whole row of a map, enlarged by visibility_block or visibility_cell_px, bilinear. The array line
 * is scratch for two more values than the map has columns.
 */
void visibility_row(const struct visibility_map *map, unsigned factor, unsigned y, float *line,
                    float *values);

#endif
