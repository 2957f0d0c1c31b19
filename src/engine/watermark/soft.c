#include "engine/watermark/soft.h"

#include <math.h>
#include <string.h>

#define NOISE_RADIUS 3
#define SHRINK       300.0 /* how many points' worth of the band's mean goes into a ring's estimate */
#define CLIP         3.0f  /* standard deviations of the noise at most from one part */
#define PARTS_MAX    (4 * LATTICE_POINTS_MAX)
/*
 * A picture without the mark knows nothing of the keyed signs, so the chance
 * that a given word correlates above t is at most exp(-t^2 / 2) (Hoeffding);
 * over all 2^64 words, t = 11.8 leaves 1e-11 a try.
 */
#define CORRELATION_LEAST 11.8

/* One carrier of a coded bit as received: its log-likelihood ratio, and which bit. */
struct part {
    float ratio;
    uint16_t bit;
};

struct soft_reader {
    unsigned count;
    struct part parts[PARTS_MAX];
    float noise[LATTICE_POINTS_MAX];
    struct value scaled[LATTICE_POINTS_MAX];
    float ratios[POLAR_LENGTH];
};

struct soft_reader *soft_new(struct workspace *workspace)
{
    return workspace_take(workspace, 1, sizeof(struct soft_reader));
}

bool soft_is_needed(int kx, int ky, double radius)
{
    return kx * kx + ky * ky <= (radius + 2) * (radius + 2);
}

float soft_noise_around(const struct soft_field *field, int kx, int ky)
{
    float sum = 0;
    int count = 0;
    int x;
    int y;

    for (x = kx - NOISE_RADIUS; x < kx + NOISE_RADIUS; x++) {
        for (y = ky - NOISE_RADIUS; y < ky + NOISE_RADIUS; y++) {
            int column = x < 0 ? -x - 1 : x;
            int row = (x < 0 ? -y - 1 : y) + LATTICE_REACH;

            if (column > LATTICE_REACH || row < 0 || row >= SOFT_SIDE || field->between[column][row] <= 0)
                continue;
            sum += field->between[column][row];
            count++;
        }
    }
    return count > 0 ? sum / (float)count : 0;
}

struct rings {
    double excess[LATTICE_RINGS]; /* power over the noise, as a share of the noise */
};

/* Divides the band's points by their noise and measures how much more than noise there is. */
static struct rings band_scale(struct soft_reader *reader, const struct lattice_band *band,
                               const struct soft_field *field)
{
    double power[LATTICE_RINGS] = {0};
    double count[LATTICE_RINGS] = {0};
    double total = 0;
    struct rings rings;
    unsigned i;

    for (i = 0; i < band->count; i++) {
        const struct lattice_point *point = &band->points[i];
        struct value at = field->on[point->kx][point->ky + LATTICE_REACH];
        float noise = soft_noise_around(field, point->kx, point->ky);
        float factor = noise > 0 ? 1 / sqrtf(noise) : 0;
        double ratio;

        reader->scaled[i] = (struct value){at.real * factor, at.imaginary * factor};
        ratio = (double)(reader->scaled[i].real * reader->scaled[i].real +
                         reader->scaled[i].imaginary * reader->scaled[i].imaginary);
        power[point->ring] += fmin(ratio, 12);
        count[point->ring] += factor > 0;
        total += factor > 0 ? fmin(ratio, 12) - 1 : 0;
    }
    total = fmax(total / band->count, 0.01);
    for (i = 0; i < LATTICE_RINGS; i++)
        rings.excess[i] = fmax((power[i] - count[i] + SHRINK * total) / (count[i] + SHRINK), 0.002);
    return rings;
}

static float clipped(float value)
{
    return value > CLIP ? CLIP : value < -CLIP ? -CLIP : value;
}

/*
 * With unit complex noise and amplitude a, a part's ratio is 2 * sqrt(2) * a * x.
 * What the classes of texture say of one part adds up in one place: it hangs on
 * one keyed sign, and the bound on false answers counts signs.
 */
static void band_add(struct soft_reader *reader, const struct lattice_band *band, const struct rings *rings,
                     unsigned first)
{
    unsigned i;

    for (i = 0; i < band->count; i++) {
        const struct lattice_point *point = &band->points[i];
        float factor = (float)(2 * sqrt(2 * rings->excess[point->ring]));
        struct part *part = &reader->parts[first + 2 * i];

        part[0].ratio += factor * (float)point->sign[0] * clipped(reader->scaled[i].real);
        part[0].bit = point->bit[0];
        part[1].ratio += factor * (float)point->sign[1] * clipped(reader->scaled[i].imaginary);
        part[1].bit = point->bit[1];
    }
    reader->count = first + 2 * band->count;
}

/* The correlation of a word with the parts, in standard deviations of chance. */
static double correlation_of(const struct soft_reader *reader, const int8_t word[POLAR_LENGTH])
{
    double sum = 0;
    double squares = 0;
    unsigned i;

    for (i = 0; i < reader->count; i++) {
        const struct part *part = &reader->parts[i];

        sum += (double)(part->ratio * (float)word[part->bit]);
        squares += (double)part->ratio * (double)part->ratio;
    }
    return squares > 0 ? sum / sqrt(squares) : 0;
}

bool soft_read(struct soft_reader *reader, const struct soft_source *sources, unsigned count,
               uint64_t number_mask, struct polar *polar, uint64_t *number, double *correlation)
{
    int8_t word[POLAR_LENGTH];
    unsigned first = 0;
    uint64_t masked;
    unsigned i;

    memset(reader->parts, 0, sizeof reader->parts);
    reader->count = 0;
    for (i = 0; i < count; i++) {
        struct rings rings = band_scale(reader, sources[i].band, sources[i].field);

        if (!sources[i].is_same)
            first = reader->count;
        band_add(reader, sources[i].band, &rings, first);
    }
    memset(reader->ratios, 0, sizeof reader->ratios);
    for (i = 0; i < reader->count; i++)
        reader->ratios[reader->parts[i].bit] += reader->parts[i].ratio;
    *correlation = 0;
    if (!polar_decode(polar, reader->ratios, &masked))
        return false;
    polar_encode(polar, masked, word);
    *correlation = correlation_of(reader, word);
    *number = masked ^ number_mask;
    return *correlation >= CORRELATION_LEAST;
}

double soft_quality_db(struct soft_reader *reader, const int8_t word[POLAR_LENGTH])
{
    double t = fmax(correlation_of(reader, word), 0.1);

    return 10 * log10(t * t / 2 / POLAR_MESSAGE_BITS);
}
