#include "engine/watermark/shift.h"

#include <math.h>
#include <string.h>

#include "engine/watermark/clones.h"

#define PI        3.14159265358979323846
#define TRIES     32
#define TONE_MOST 3.0f /* standard deviations of noise that one tone counts for */
#define LANES     104  /* LATTICE_PERIOD, and room to fill vectors */

struct shift {
    int x;
    int y;
    float score;
};

struct shifting {
    struct reader *reader;
    bool has_blue;
    float cosine[LATTICE_PERIOD]; /* of turns by a period's parts */
    float sine[LATTICE_PERIOD];
    float scores[LATTICE_PERIOD][LANES]; /* for shifts down and across */
    struct shift best[TRIES];            /* the greatest first */
    unsigned count;
    struct soft_field luma[READER_CLASSES]; /* as they were without a shift */
    struct soft_field blue;
};

static int turn_of(int steps)
{
    return (steps % LATTICE_PERIOD + LATTICE_PERIOD) % LATTICE_PERIOD;
}

/* A tone as seen in all classes together, over the noise, turned back by the phase that it has. */
static struct value tone_value(const struct reader *reader, const struct lattice_tone *tone)
{
    struct value sum = {0, 0};
    float noise = 0;
    float size;
    float factor;
    unsigned class;

    for (class = 0; class < READER_CLASSES; class ++) {
        struct value at = reader->luma[class].on[tone->kx][tone->ky + LATTICE_REACH];

        sum.real += at.real;
        sum.imaginary += at.imaginary;
        noise += soft_noise_around(&reader->luma[class], tone->kx, tone->ky);
    }
    if (noise <= 0)
        return (struct value){0, 0};
    size = sqrtf((sum.real * sum.real + sum.imaginary * sum.imaginary) / noise);
    factor = (size > TONE_MOST ? TONE_MOST / size : 1) / sqrtf(noise);
    return (struct value){factor * (sum.real * tone->cosine + sum.imaginary * tone->sine),
                          factor * (sum.imaginary * tone->cosine - sum.real * tone->sine)};
}

ENGINE_CLONES
static void line_add(float *restrict scores, const float *restrict real, const float *restrict imaginary,
                     float cosine, float sine)
{
    int x;

    for (x = 0; x < LANES; x++)
        scores[x] += real[x] * cosine + imaginary[x] * sine;
}

/* Adds how well one tone agrees with every shift. */
static void tone_add(struct shifting *shifting, const struct lattice_tone *tone)
{
    struct value value = tone_value(shifting->reader, tone);
    float real[LANES] = {0};
    float imaginary[LANES] = {0};
    int i;

    for (i = 0; i < LATTICE_PERIOD; i++) {
        int turn = turn_of(tone->kx * i);
        float cosine = shifting->cosine[turn];
        float sine = shifting->sine[turn];

        real[i] = value.real * cosine + value.imaginary * sine;
        imaginary[i] = value.imaginary * cosine - value.real * sine;
    }
    for (i = 0; i < LATTICE_PERIOD; i++) {
        int turn = turn_of(tone->ky * i);

        line_add(shifting->scores[i], real, imaginary, shifting->cosine[turn], shifting->sine[turn]);
    }
}

static void scores_fill(struct shifting *shifting)
{
    unsigned tone;
    int i;

    for (i = 0; i < LATTICE_PERIOD; i++) {
        shifting->cosine[i] = (float)cos(2 * PI * i / LATTICE_PERIOD);
        shifting->sine[i] = (float)sin(2 * PI * i / LATTICE_PERIOD);
    }
    for (tone = 0; tone < LATTICE_TONES; tone++)
        tone_add(shifting, &shifting->reader->lattice->tones[tone]);
}

static bool is_peak(const struct shifting *shifting, int x, int y)
{
    int i;
    int j;

    for (j = -1; j <= 1; j++)
        for (i = -1; i <= 1; i++)
            if (shifting->scores[turn_of(y + j)][turn_of(x + i)] > shifting->scores[y][x])
                return false;
    return true;
}

/* Keeps the best in order. */
static void shift_offer(struct shifting *shifting, const struct shift *shift)
{
    unsigned at;

    if (shifting->count == TRIES && shift->score <= shifting->best[TRIES - 1].score)
        return;
    at = shifting->count < TRIES ? shifting->count++ : TRIES - 1;
    for (; at > 0 && shifting->best[at - 1].score < shift->score; at--)
        shifting->best[at] = shifting->best[at - 1];
    shifting->best[at] = *shift;
}

static void shifts_rank(struct shifting *shifting)
{
    int x;
    int y;

    for (y = 0; y < LATTICE_PERIOD; y++) {
        for (x = 0; x < LATTICE_PERIOD; x++) {
            struct shift shift = {x, y, shifting->scores[y][x]};

            if (shift.score > 0 && (x != 0 || y != 0) && is_peak(shifting, x, y))
                shift_offer(shifting, &shift);
        }
    }
}

/* A field as it is without the shift; what lies between the points is power and knows no shift. */
static void field_shift(const struct shifting *shifting, const struct shift *shift,
                        const struct soft_field *from, struct soft_field *to)
{
    int kx;
    int ky;

    for (kx = 0; kx <= LATTICE_REACH; kx++) {
        for (ky = -LATTICE_REACH; ky <= LATTICE_REACH; ky++) {
            struct value at = from->on[kx][ky + LATTICE_REACH];
            int turn = turn_of(kx * shift->x + ky * shift->y);
            float cosine = shifting->cosine[turn];
            float sine = shifting->sine[turn];

            to->on[kx][ky + LATTICE_REACH] = (struct value){at.real * cosine + at.imaginary * sine,
                                                            at.imaginary * cosine - at.real * sine};
        }
    }
}

static bool shift_try(struct shifting *shifting, const struct shift *shift)
{
    struct reader *reader = shifting->reader;
    unsigned class;

    for (class = 0; class < READER_CLASSES; class ++)
        field_shift(shifting, shift, &shifting->luma[class], &reader->luma[class]);
    if (shifting->has_blue)
        field_shift(shifting, shift, &shifting->blue, reader->blue);
    return reader_decode(reader, READER_CLASSES, shifting->has_blue);
}

bool shift_read(struct reader *reader, bool has_blue)
{
    size_t mark = workspace_mark(reader->workspace);
    struct shifting *shifting = workspace_take(reader->workspace, 1, sizeof *shifting);
    bool is_read = false;
    unsigned i;

    if (shifting == NULL)
        return false;
    shifting->reader = reader;
    shifting->has_blue = has_blue;
    memcpy(shifting->luma, reader->luma, sizeof shifting->luma);
    memcpy(&shifting->blue, reader->blue, sizeof shifting->blue);
    scores_fill(shifting);
    shifts_rank(shifting);
    for (i = 0; i < shifting->count && !is_read; i++)
        is_read = shift_try(shifting, &shifting->best[i]);
    workspace_rewind(reader->workspace, mark);
    return is_read;
}
