/*
 * The unit perturbation of a picture: the network run over it, bounded, under the
 * texture mask, as whole numbers.  These are signed roots: most of a perturbation is
 * small, and some strokes are twenty times as strong.
 */
#ifndef ENGINE_PROTECT_UNIT_H
#define ENGINE_PROTECT_UNIT_H

#include <stdbool.h>
#include <stdint.h>

#include <imgward/error.h>
#include <imgward/image.h>

#include "engine/protect_canvas.h"
#include "engine/protect_net.h"

enum { unit_peak = 127 /* units are -127..127; one of u stands for u² / unit_peak */ };

/* What a strength asks of the unit perturbation. */
struct unit_way {
    enum net_network network;
    struct canvas_hiding hiding;
    float amplitude; /* how far what is drawn moves what the next pass looks at, where the mask is 1 */
};

/*
 * Fills units, row by row, one value a pixel for a grey picture and three for
 * one of RGB.  is_bare becomes true when there is nowhere any texture that would
 * hide something.  NO_MEMORY.
 */
enum iw_error unit_compute(const struct net *net, const struct image *image, const struct unit_way *way,
                           uint64_t seed, int8_t *units, bool *is_bare) IW_MUST_USE;

#endif
