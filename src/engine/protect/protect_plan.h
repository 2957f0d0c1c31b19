/*
 * A plan of the anti-AI engine: the step of a picture, and the factors that make its visibility even.
 * Rendering scales it to a budget of visibility.  Units are lowered where their change exceeds the headroom
 * of a sample.  The headroom is the same upwards and downwards, so that no tint arises and undo is exact.
 */
#ifndef ENGINE_PROTECT_PROTECT_PLAN_H
#define ENGINE_PROTECT_PROTECT_PLAN_H

#include <imgward/protect.h>

#include "engine/protect/protect_net.h"
#include "engine/protect/protect_unit.h"
#include "engine/protect/protect_visibility.h"

/* The handle of <imgward/protect.h>; defined here so that tests run it with other kernels. */
struct protect {
    struct net net;
};

struct protect_plan {
    const struct net_weights *weights; /* borrowed */
    uint32_t width_px, height_px;
    unsigned colors; /* of the picture and the units, 1 or 3 */
    unsigned depth_bits;
    size_t row_units; /* of a padded row */
    struct visibility_map shares;
    double total; /* visibility of the step with these shares */
    int floor_rank;
    float *lines;    /* three rows of scratch */
    float amplitude; /* of the last protect_render, levels */
    int8_t *units;
};

/* The units of a row. */
static inline int8_t *plan_row(const struct protect_plan *plan, uint32_t y)
{
    return plan->units + y * plan->row_units;
}

/* Fills a plan whose units and shares are allocated.  NO_MEMORY. */
enum iw_error plan_fill(struct protect_plan *plan, const struct protect *protect, const struct image *image,
                        uint64_t seed) IW_MUST_USE;

#endif
