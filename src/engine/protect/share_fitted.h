/* Made by tools/train/protection_fit.py from 328 results; share.h has the formula. */
#ifndef ENGINE_PROTECT_SHARE_FITTED_H
#define ENGINE_PROTECT_SHARE_FITTED_H

#include "engine/protect/share.h"

static const double share_factors[share_octaves] = {0.394, 0.524, 0.877, 3.235, 1.381, 1.089, 1.136};
static const double share_colour = 0.601, share_rest = 0.484;

#endif
