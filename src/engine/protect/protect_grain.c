#include "engine/protect/protect_grain.h"

#include <string.h>

#include "engine/watermark/clones.h"
#include "engine/protect/protect_hash.h"

/* tools/generator.py computes the same. */
enum {
    beyond_px = grain_px - grain_step_px, /* the furthest start of a pattern before a pixel */
    laid = grain_px / grain_step_px       /* overlapping patterns in each direction */
};

ENGINE_CLONES void grain_line(const struct grain *grain, uint64_t key, uint64_t y, uint64_t x, size_t count,
                              float *values)
{
    const uint64_t top = y / grain_step_px, last = (x + count - 1) / grain_step_px + laid - 1;
    const int64_t begin = (int64_t)x, end = begin + (int64_t)count;
    memset(values, 0, count * grain_colors * sizeof *values);
    for (uint64_t place = x / grain_step_px; place <= last; place++) {
        const int64_t first = (int64_t)place * grain_step_px - beyond_px;
        const int64_t from = first < begin ? begin : first,
                      to = first + grain_px < end ? first + grain_px : end;
        for (unsigned down = 0; down < laid; down++) {
            const uint64_t hash = hash_of((top + down) << 32 | place, key);
            const float sign = hash / grain_patterns & 1 ? -1 : 1;
            const float *pattern =
                grain->patterns[hash % grain_patterns][(laid - 1 - down) * grain_step_px + y % grain_step_px];
            for (int64_t i = from * grain_colors; i < to * grain_colors; i++)
                values[i - begin * grain_colors] += sign * pattern[i - first * grain_colors];
        }
    }
}
