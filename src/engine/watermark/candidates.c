#include "engine/watermark/candidates.h"

#include <math.h>
#include <string.h>

#include "engine/clones.h"

enum {
    byte_values = 256,
    number_bytes = polar_number_bits / 8,
    half_bits = polar_length / 2,
    half_parts = half_bits / 64,
    planes = 3,
    level_most = (1 << planes) - 1,
    attempts_most = 256 /* of a reading; see doc/watermark.md */
};

/* At most one false answer in this many readings of pictures without a mark of the key. */
static const double readings_per_false_answer = 1e9;

static const double certainty_most = 1e15; /* JavaScript's numbers have 53 bits */

/*
 * First only half of the coded bits are compared. The key draws their places, so they are a simple random
 * sample. If a word correlates t deviations, such a half has t / 2 with a deviation of 1 / 2 (W. G. Cochran,
 * Sampling Techniques, 1977, theorem 2.2). Words four of these below are given up: one in 30,000 right ones.
 */
static const double half_deviations = 4;

/* A step of half a ratio's deviation; levels to 3.5 deviations. Rounding adds 2 % to the variance. */
static const double steps_per_deviation = 2;

struct half {
    uint64_t parts[half_parts]; /* a set bit is a coded 1 */
};

struct candidates {
    const struct watermark_candidates *numbers;
    uint64_t mask;
    const struct polar *polar;
    double correlation_least;
    struct half *halves; /* the first half of each number's word */
};

/* The ratios of the first half, as signs and levels. */
struct half_levels {
    struct half negative;
    struct half planes[planes]; /* the binary digits of the levels */
    double sum;
    double rest; /* of the ratios beyond the greatest level */
};

static struct half half_of(const struct polar *polar, uint64_t number)
{
    int8_t signs[polar_length];
    struct half half = {{0}};

    polar_encode(polar, number, signs);
    for (unsigned i = 0; i < half_bits; i++)
        half.parts[i / 64] |= (uint64_t)(signs[i] < 0) << (i % 64);
    return half;
}

static void half_add(struct half *to, const struct half *half)
{
    for (unsigned i = 0; i < half_parts; i++)
        to->parts[i] ^= half->parts[i];
}

/*
 * The code is linear, so a word is the sum of the words of the number's bytes. The CRC starts with a
 * constant, so the word of the number 0 is not zero. Only the first byte's words include that word.
 */
static void bytes_fill(struct half words[number_bytes][byte_values], const struct polar *polar)
{
    const struct half zero = half_of(polar, 0);

    for (unsigned byte = 0; byte < number_bytes; byte++) {
        words[byte][0] = byte == 0 ? zero : (struct half){{0}};
        for (unsigned bit = 0; bit < 8; bit++) {
            struct half added = half_of(polar, (uint64_t)1 << (8 * byte + bit));

            half_add(&added, &zero);
            for (unsigned value = 0; value < 1U << bit; value++) {
                words[byte][value | 1U << bit] = words[byte][value];
                half_add(&words[byte][value | 1U << bit], &added);
            }
        }
    }
}

struct candidates *candidates_new(const struct watermark_candidates *numbers, uint64_t mask,
                                  const struct polar *polar, struct workspace *workspace)
{
    struct candidates *candidates = workspace_take_unset(workspace, 1, sizeof *candidates);
    struct half(*words)[byte_values] = workspace_take_unset(workspace, number_bytes, sizeof *words);
    struct half *halves = workspace_take_unset(workspace, numbers->count, sizeof *halves);

    if (workspace->failed)
        return NULL;
    *candidates = (struct candidates){.numbers = numbers, .mask = mask, .polar = polar, .halves = halves};
    candidates->correlation_least =
        sqrt(2 * log(fmax((double)numbers->count, 1) * attempts_most * readings_per_false_answer));
    bytes_fill(words, polar);
    for (size_t i = 0; i < numbers->count; i++) {
        uint64_t masked = numbers->list[i] ^ mask;

        halves[i] = words[0][masked & 0xff];
        for (unsigned byte = 1; byte < number_bytes; byte++)
            half_add(&halves[i], &words[byte][masked >> (8 * byte) & 0xff]);
    }
    return candidates;
}

int64_t candidates_certainty(const struct candidates *candidates, double correlation)
{
    double answers = candidates == NULL ? ldexp(1, polar_number_bits) : (double)candidates->numbers->count;

    return (int64_t)fmin(fmax(exp(fmin(correlation * correlation / 2, 300)) / (answers * attempts_most), 1),
                         certainty_most);
}

double candidates_correlation_least(const struct candidates *candidates)
{
    return candidates->correlation_least;
}

static void levels_fill(struct half_levels *levels, const float ratios[polar_length], double step)
{
    memset(levels, 0, sizeof *levels);
    for (unsigned i = 0; i < half_bits; i++) {
        double size = fabs((double)ratios[i]) / step;
        unsigned level = (unsigned)fmin(size + 0.5, level_most);

        levels->negative.parts[i / 64] |= (uint64_t)(ratios[i] < 0) << (i % 64);
        for (unsigned plane = 0; plane < planes; plane++)
            levels->planes[plane].parts[i / 64] |= (uint64_t)(level >> plane & 1) << (i % 64);
        levels->sum += level;
        levels->rest += fmax(size - level_most, 0);
    }
}

/* Returns the sum of the levels whose signs the half word does not have. */
ENGINE_INLINE unsigned levels_against(const struct half_levels *levels, const struct half *half)
{
    unsigned sum = 0;

    for (unsigned i = 0; i < half_parts; i++) {
        uint64_t against = half->parts[i] ^ levels->negative.parts[i];

        for (unsigned plane = 0; plane < planes; plane++)
            sum += (unsigned)__builtin_popcountll(against & levels->planes[plane].parts[i]) << plane;
    }
    return sum;
}

static double sum_of(const struct candidates *candidates, uint64_t number, const float ratios[polar_length])
{
    int8_t word[polar_length];
    double sum = 0;

    polar_encode(candidates->polar, number ^ candidates->mask, word);
    for (unsigned i = 0; i < polar_length; i++)
        sum += (double)(ratios[i] * (float)word[i]);
    return sum;
}

ENGINE_CLONES
double candidates_best(const struct candidates *candidates, const float ratios[polar_length],
                       double deviation, uint64_t *number)
{
    double step = deviation / sqrt(polar_length) / steps_per_deviation;
    double least = (candidates->correlation_least - half_deviations) / 2 * deviation;
    double best = 0;
    struct half_levels levels;

    if (!(deviation > 0))
        return 0;
    levels_fill(&levels, ratios, step);
    double against_most = (levels.sum + levels.rest - least / step) / 2;
    for (size_t i = 0; i < candidates->numbers->count; i++) {
        if (levels_against(&levels, &candidates->halves[i]) > against_most)
            continue;
        double sum = sum_of(candidates, candidates->numbers->list[i], ratios);

        if (sum > best) {
            best = sum;
            *number = candidates->numbers->list[i];
        }
    }
    return best;
}
