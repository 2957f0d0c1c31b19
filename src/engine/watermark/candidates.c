#include "engine/watermark/candidates.h"

#include <math.h>
#include <string.h>

#include "engine/clones.h"

enum {
    byte_values = 256,
    number_bytes = polar_number_bits / 8,
    word_bytes = polar_length / 8,
    word_parts = polar_length / 64,
    attempts_most = 256 /* of a reading; see doc/watermark.md */
};

/* At most one false answer in this many readings of pictures without a mark of the key. */
static const double readings_per_false_answer = 1e9;

static const double certainty_most = 1e15; /* JavaScript's numbers have 53 bits */

struct word {
    uint64_t parts[word_parts]; /* a set bit is a coded 1 */
};

/* The code is linear, so a word is the sum of the words of the number's bytes. */
struct candidates {
    const struct watermark_candidates *numbers;
    double correlation_least;
    struct word words[number_bytes][byte_values];
    float sums[word_bytes][byte_values]; /* of eight ratios with the signs of a byte of the word */
};

static struct word word_of(const struct polar *polar, uint64_t number)
{
    int8_t signs[polar_length];
    struct word word = {{0}};

    polar_encode(polar, number, signs);
    for (unsigned i = 0; i < polar_length; i++)
        word.parts[i / 64] |= (uint64_t)(signs[i] < 0) << (i % 64);
    return word;
}

static void word_add(struct word *to, const struct word *word)
{
    for (unsigned i = 0; i < word_parts; i++)
        to->parts[i] ^= word->parts[i];
}

/*
 * The CRC starts with a constant, so the word of the number 0 is not zero. Only the first byte's words
 * include that word.
 */
static void words_fill(struct candidates *candidates, const struct polar *polar)
{
    const struct word zero = word_of(polar, 0);

    for (unsigned byte = 0; byte < number_bytes; byte++) {
        struct word *words = candidates->words[byte];

        words[0] = byte == 0 ? zero : (struct word){{0}};
        for (unsigned bit = 0; bit < 8; bit++) {
            struct word added = word_of(polar, (uint64_t)1 << (8 * byte + bit));

            word_add(&added, &zero);
            for (unsigned value = 0; value < 1U << bit; value++) {
                words[value | 1U << bit] = words[value];
                word_add(&words[value | 1U << bit], &added);
            }
        }
    }
}

struct candidates *candidates_new(const struct watermark_candidates *numbers, const struct polar *polar,
                                  struct workspace *workspace)
{
    struct candidates *candidates = workspace_take_unset(workspace, 1, sizeof *candidates);

    if (candidates == NULL)
        return NULL;
    candidates->numbers = numbers;
    candidates->correlation_least =
        sqrt(2 * log(fmax((double)numbers->count, 1) * attempts_most * readings_per_false_answer));
    words_fill(candidates, polar);
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

static void sums_fill(struct candidates *candidates, const float ratios[polar_length])
{
    for (unsigned byte = 0; byte < word_bytes; byte++) {
        const float *ratio = ratios + (size_t)8 * byte;
        float *sums = candidates->sums[byte];

        sums[0] = 0;
        for (unsigned bit = 0; bit < 8; bit++)
            sums[0] += ratio[bit];
        for (unsigned bit = 0; bit < 8; bit++)
            for (unsigned value = 0; value < 1U << bit; value++)
                sums[value | 1U << bit] = sums[value] - 2 * ratio[bit];
    }
}

static float sum_of(const struct candidates *candidates, uint64_t number)
{
    struct word word = candidates->words[0][number & 0xff];
    float sum = 0;

    for (unsigned byte = 1; byte < number_bytes; byte++)
        word_add(&word, &candidates->words[byte][number >> (8 * byte) & 0xff]);
    for (unsigned part = 0; part < word_parts; part++)
        for (unsigned byte = 0; byte < 8; byte++)
            sum += candidates->sums[8 * part + byte][word.parts[part] >> (8 * byte) & 0xff];
    return sum;
}

ENGINE_CLONES
float candidates_best(struct candidates *candidates, uint64_t mask, const float ratios[polar_length],
                      uint64_t *number)
{
    float best = -INFINITY;

    sums_fill(candidates, ratios);
    for (size_t i = 0; i < candidates->numbers->count; i++) {
        float sum = sum_of(candidates, candidates->numbers->list[i] ^ mask);

        if (sum > best) {
            best = sum;
            *number = candidates->numbers->list[i];
        }
    }
    return best;
}
