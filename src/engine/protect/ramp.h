/*
 * From 0 to 1 and back.  A ramp: 0 up to where it begins, then as far as a value is on its way over the
 * width, then 1.  Nearness: 1 where a spread is less than what counts for half, 0 where it is more.  And the
 * less and the more of two values.
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
