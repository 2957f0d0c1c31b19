/*
 * A plan of the anti-AI engine: the step of a picture, and the factors that make its visibility even.
 * Rendering scales the step to a budget of visibility. Units are lowered if their change exceeds the headroom
 * of a sample. The headroom is the same upwards and downwards as far as the range allows, and undo is exact.
 *
 * A perturbation of any scale takes one byte a sample.  Units are small floats: a sign, four bits of exponent
 * and three bits of mantissa.  The units of a piece of a row share the octave of their scale.
 */
#ifndef ENGINE_PROTECT_PLAN_H
#define ENGINE_PROTECT_PLAN_H

#include "engine/protect/flat.h"
#include "engine/protect/net.h"
#include "engine/protect/protect.h"
#include "engine/protect/share.h"
#include "engine/protect/visibility.h"

enum { unit_peak = 127, plan_piece_px = 64 };

/* The handle of engine/protect/protect.h; defined here so that tests run it with other kernels. */
struct protect {
    struct net net;
};

struct protect_plan {
    const struct net_weights *weights; /* borrowed */
    uint32_t width_px, height_px;
    unsigned colors; /* of the picture and the units, 1 or 3 */
    unsigned depth_bits;
    size_t row_units, row_pieces; /* of a padded row */
    struct visibility_map shares;
    double total;                 /* visibility of the step with these shares */
    struct visibility visibility; /* of a comparison, valid if there is a run */
    struct visibility_run *run;
    float amplitude;          /* of the last change_add, levels */
    float whole_amplitude;    /* of the first change_add; 0 before it */
    struct share_sums whole;  /* of the first change_add: the change is not limited yet */
    struct share_sums coding; /* of an encoding without a change: the squares count */
    struct share_run share;   /* of the last change_add or comparison */
    struct share_run bounded; /* of change_add, with the limited change as the wanted one */
    float *share_rows;
    struct flat *flat; /* NULL, or the change of a drawing, which is used if is_flat */
    bool is_flat;
    struct image_stripes stripes; /* of the picture, whose rows are asked for */
    /* Scratch rows of rendering: factors of the units, changes in levels before rounding, and two more. */
    float *factors, *wanted, *levels, *changes;
    float *debts; /* sums of the tint above a row, in levels: of each piece and colour */
    int8_t *units;
    uint8_t *octaves; /* of the pieces */
};

/* A piece of a row of units. */
struct plan_piece {
    int8_t *units;
    uint8_t *octave;
    size_t first, count, end; /* units of the row; count is 0 if the row has ended */
};

static inline int8_t *plan_row(const struct protect_plan *plan, uint32_t y)
{
    return plan->units + y * plan->row_units;
}

/* Returns the piece that begins at a unit of a row. */
static inline struct plan_piece plan_piece(const struct protect_plan *plan, uint32_t y, size_t first)
{
    const size_t units = (size_t)plan_piece_px * plan->colors, left = plan->row_units - first;
    const size_t count = left < units ? left : units;
    return (struct plan_piece){plan_row(plan, y) + first,
                               plan->octaves + y * plan->row_pieces + first / units, first, count,
                               first + count};
}

#endif
