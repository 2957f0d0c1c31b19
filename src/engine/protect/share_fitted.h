/* Made by tools/train/protection_fit.py from 176 results; share.h has the formula. */
#ifndef ENGINE_PROTECT_SHARE_FITTED_H
#define ENGINE_PROTECT_SHARE_FITTED_H

#include "engine/protect/share.h"

static const double share_factors[share_octaves] = {0.264, 0.895, 0.988, 2.005, 1.567, 1.199, 1.136};
static const double share_colour = 0.354, share_rest = 0.254;

#endif
