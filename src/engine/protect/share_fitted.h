/* Made by tools/train/protection_fit.py from 270 results; share.h has the formula. */
#ifndef ENGINE_PROTECT_SHARE_FITTED_H
#define ENGINE_PROTECT_SHARE_FITTED_H

#include "engine/protect/share.h"

static const double share_factors[share_octaves] = {0.267, 0.414, 0.815, 2.468, 1.381, 1.365, 2.386};
static const double share_colour = 0.384, share_rest = 0.298;

#endif
