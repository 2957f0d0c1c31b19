/* Made by tools/train/protection_fit.py from 160 results; share.h has the formula. */
#ifndef ENGINE_PROTECT_SHARE_FITTED_H
#define ENGINE_PROTECT_SHARE_FITTED_H

#include "engine/protect/share.h"

static const double share_factors[share_octaves] = {0.263, 0.909, 0.966, 2.040, 1.525, 1.217, 1.144};
static const double share_colour = 0.346, share_rest = 0.251;

#endif
