/*
 * A ramp: 0 up to where it begins, then as far as a value is on its way over the width, then 1.
 */
#ifndef ENGINE_RAMP_H
#define ENGINE_RAMP_H

struct ramp {
    float begin, width;
};

static inline float ramped(struct ramp ramp, float value)
{
    const float share = (value - ramp.begin) / ramp.width;
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

#endif
