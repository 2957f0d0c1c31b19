/*
 * Functions with values 0..1, and the minimum and maximum of two values.  Ramp: 0 up to begin, then linear
 * over width, then 1.  Nearness: 1 for a small spread, 1/2 for the spread half, then falling steeply to 0.
 */
#ifndef ENGINE_PROTECT_RAMP_H
#define ENGINE_PROTECT_RAMP_H

struct ramp {
    float begin, width;
};

static inline float ramped(struct ramp ramp, float value)
{
    const float share = (value - ramp.begin) / ramp.width;
    return share < 0 ? 0 : share > 1 ? 1 : share;
}

static inline float least_of(float a, float b)
{
    return a < b ? a : b;
}

static inline float most_of(float a, float b)
{
    return a > b ? a : b;
}

static inline float nearness(float spread, float half)
{
    const float busy = spread / half, square = busy * busy, fourth = square * square;
    return 1 / (1 + fourth * fourth);
}

#endif
