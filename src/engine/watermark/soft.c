#include "engine/watermark/soft.h"

#include <math.h>
#include <string.h>

/* No published source; `./dev bench watermark` measures the effect. */
enum {
    noise_side = 6, /* half points */
    parts_max = 4 * lattice_points_max
};
static const double ring_prior_points = 300.0; /* weight of the band's mean in an estimate, in points */
static const float part_most = 3.0f;           /* cap on one part, in standard deviations of the noise */

/*
 * An unmarked picture is independent of the keyed signs, so the probability that a given word correlates
 * above t is at most exp(-t^2 / 2) (Hoeffding). Over all 2^64 words, t = 11.8 leaves 1e-11 per attempt.
 */
static const double correlation_least = 11.8;

/* A received carrier of a coded bit. */
struct part {
    float ratio;
    uint16_t bit;
};

struct soft_reader {
    unsigned count;
    struct part parts[parts_max];
    struct value scaled[lattice_points_max];
    float ratios[polar_length];
};

struct soft_reader *soft_new(struct workspace *workspace)
{
    return workspace_take(workspace, 1, sizeof(struct soft_reader));
}

bool soft_is_needed(int kx, int ky, double radius)
{
    return kx * kx + ky * ky <= (radius + 2) * (radius + 2);
}

/* Returns the power after a row of column x; the other half of the plane mirrors this one. */
static float between_at(const struct soft_field *field, int x, int row)
{
    int column = x < 0 ? -x - 1 : x;

    if (x < 0)
        row = 2 * lattice_reach - 1 - row;
    return column <= lattice_reach && row >= 0 && row < soft_side ? field->between[column][row] : 0;
}

/* Sums the known powers, and counts them, first along the columns and then across. */
void soft_noise_fill(struct soft_field *field)
{
    float sums[lattice_reach + 1 + noise_side][soft_side];
    float counts[lattice_reach + 1 + noise_side][soft_side];

    for (int x = 0; x < lattice_reach + 1 + noise_side; x++) {
        float line[soft_side + noise_side];

        for (int i = 0; i < soft_side + noise_side; i++)
            line[i] = between_at(field, x - noise_side / 2, i - noise_side / 2);
        for (int row = 0; row < soft_side; row++) {
            sums[x][row] = counts[x][row] = 0;
            for (int i = 0; i < noise_side; i++) {
                sums[x][row] += line[row + i];
                counts[x][row] += line[row + i] > 0 ? 1 : 0;
            }
        }
    }
    for (int x = 0; x <= lattice_reach; x++) {
        for (int row = 0; row < soft_side; row++) {
            float sum = 0;
            float count = 0;

            for (int i = 0; i < noise_side; i++) {
                sum += sums[x + i][row];
                count += counts[x + i][row];
            }
            field->noise[x][row] = count > 0 ? sum / count : 0;
        }
    }
}

/* Normalises the band's points by their noise and measures the power above it, as a share of the noise. */
static void band_scale(struct soft_reader *reader, const struct lattice_band *band,
                       const struct soft_field *field, double excess[lattice_rings])
{
    double power[lattice_rings] = {0};
    double count[lattice_rings] = {0};
    double total = 0;

    for (unsigned i = 0; i < band->count; i++) {
        const struct lattice_point *point = &band->points[i];
        struct value at = field->on[point->kx][point->ky + lattice_reach];
        float noise = field->noise[point->kx][point->ky + lattice_reach];
        float factor = noise > 0 ? 1 / sqrtf(noise) : 0;

        reader->scaled[i] = (struct value){at.real * factor, at.imaginary * factor};
        double ratio = (double)(reader->scaled[i].real * reader->scaled[i].real +
                                reader->scaled[i].imaginary * reader->scaled[i].imaginary);
        power[point->ring] += fmin(ratio, 12);
        count[point->ring] += factor > 0;
        total += factor > 0 ? fmin(ratio, 12) - 1 : 0;
    }
    total = fmax(total / band->count, 0.01);
    for (unsigned i = 0; i < lattice_rings; i++)
        excess[i] =
            fmax((power[i] - count[i] + ring_prior_points * total) / (count[i] + ring_prior_points), 0.002);
}

static float clipped(float value)
{
    return value > part_most ? part_most : value < -part_most ? -part_most : value;
}

/*
 * With unit complex noise and amplitude a, a part's ratio is 2 * sqrt(2) * a * x. All classes of texture of
 * a part are added in the same place, because they share a keyed sign, and the bound on false positives
 * counts signs.
 */
static void band_add(struct soft_reader *reader, const struct lattice_band *band,
                     const double excess[lattice_rings], unsigned first)
{
    for (unsigned i = 0; i < band->count; i++) {
        const struct lattice_point *point = &band->points[i];
        float factor = (float)(2 * sqrt(2 * excess[point->ring]));
        struct part *part = &reader->parts[first + 2 * i];

        part[0].ratio += factor * (float)point->sign[0] * clipped(reader->scaled[i].real);
        part[0].bit = point->bit[0];
        part[1].ratio += factor * (float)point->sign[1] * clipped(reader->scaled[i].imaginary);
        part[1].bit = point->bit[1];
    }
    reader->count = first + 2 * band->count;
}

/* Returns the standard deviation of a word's sum in an unmarked picture. */
static double deviation_of(const struct soft_reader *reader)
{
    double squares = 0;

    for (unsigned i = 0; i < reader->count; i++)
        squares += (double)reader->parts[i].ratio * (double)reader->parts[i].ratio;
    return sqrt(squares);
}

/* Returns the correlation of a word's sum in standard deviations of an unmarked picture. */
static double correlation_of(const struct soft_reader *reader, double sum)
{
    double deviation = deviation_of(reader);

    return deviation > 0 ? sum / deviation : 0;
}

static bool blind_read(const struct soft_reader *reader, struct polar *polar, uint64_t *masked,
                       double *correlation)
{
    int8_t word[polar_length];
    double sum = 0;

    if (!polar_decode(polar, reader->ratios, correlation_least * deviation_of(reader), masked))
        return false;
    polar_encode(polar, *masked, word);
    for (unsigned i = 0; i < polar_length; i++)
        sum += (double)(reader->ratios[i] * (float)word[i]);
    *correlation = correlation_of(reader, sum);
    return *correlation >= correlation_least;
}

/* Adds up all sources. */
static void sources_add(struct soft_reader *reader, const struct soft_source *sources, unsigned count)
{
    unsigned first = 0;

    memset(reader->parts, 0, sizeof reader->parts);
    reader->count = 0;
    for (unsigned i = 0; i < count; i++) {
        double excess[lattice_rings];

        band_scale(reader, sources[i].band, sources[i].field, excess);
        if (!sources[i].is_same)
            first = reader->count;
        band_add(reader, sources[i].band, excess, first);
    }
    memset(reader->ratios, 0, sizeof reader->ratios);
    for (unsigned i = 0; i < reader->count; i++)
        reader->ratios[reader->parts[i].bit] += reader->parts[i].ratio;
}

/*
 * Fields without excess power are decoded, too. An evenly spread word at the threshold raises the power of
 * 2,000 points by only 1.6 deviations (H. Urkowitz 1967; doc/watermark.md).
 */
bool soft_read(struct soft_reader *reader, const struct soft_source *sources, unsigned count,
               uint64_t number_mask, struct polar *polar, struct candidates *candidates, uint64_t *number,
               double *correlation)
{
    *correlation = 0;
    sources_add(reader, sources, count);
    if (blind_read(reader, polar, number, correlation)) {
        *number ^= number_mask;
        return true;
    }
    if (candidates == NULL)
        return false;
    *correlation =
        correlation_of(reader, candidates_best(candidates, reader->ratios, deviation_of(reader), number));
    return *correlation >= candidates_correlation_least(candidates);
}
