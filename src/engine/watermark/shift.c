#include "engine/watermark/shift.h"

#include <math.h>
#include <string.h>

#include "engine/clones.h"

/* No published source; `./dev bench watermark` measures the effect. */
enum {
    shifts_tried = 32,
    score_lanes = 104 /* lattice_period, padded to whole vectors of 8 floats */
};
static const float tone_most = 3.0f; /* cap on one tone, in standard deviations of the noise */

struct shift {
    int x;
    int y;
    float score;
};

struct shifting {
    struct reader *reader;
    bool has_blue;
    float cosine[lattice_period]; /* at multiples of 1 / lattice_period of a turn */
    float sine[lattice_period];
    float scores[lattice_period][score_lanes]; /* by vertical and horizontal shift */
    struct shift best[shifts_tried];           /* in descending order */
    unsigned count;
    struct soft_field luma[reader_classes]; /* copies without a shift */
    struct soft_field blue;
};

static int turn_of(int steps)
{
    return (steps % lattice_period + lattice_period) % lattice_period;
}

/* Returns a tone, summed over all classes and divided by the noise, relative to the keyed phase. */
static struct value tone_value(const struct reader *reader, const struct lattice_tone *tone)
{
    struct value sum = {0, 0};
    float noise = 0;

    for (unsigned class = 0; class < reader_classes; class ++) {
        struct value at = reader->luma[class].on[tone->kx][tone->ky + lattice_reach];

        sum.real += at.real;
        sum.imaginary += at.imaginary;
        noise += reader->luma[class].noise[tone->kx][tone->ky + lattice_reach];
    }
    if (noise <= 0)
        return (struct value){0, 0};
    float size = sqrtf((sum.real * sum.real + sum.imaginary * sum.imaginary) / noise);
    float factor = (size > tone_most ? tone_most / size : 1) / sqrtf(noise);
    return (struct value){factor * (sum.real * tone->cosine + sum.imaginary * tone->sine),
                          factor * (sum.imaginary * tone->cosine - sum.real * tone->sine)};
}

ENGINE_CLONES
static void score_line(float *restrict scores, const float *restrict real, const float *restrict imaginary,
                       float cosine, float sine)
{
    for (int x = 0; x < score_lanes; x++)
        scores[x] += real[x] * cosine + imaginary[x] * sine;
}

/* Adds the agreement of a tone with every shift. */
static void tone_add(struct shifting *shifting, const struct lattice_tone *tone)
{
    struct value value = tone_value(shifting->reader, tone);
    float real[score_lanes] = {0};
    float imaginary[score_lanes] = {0};

    for (int i = 0; i < lattice_period; i++) {
        int turn = turn_of(tone->kx * i);
        float cosine = shifting->cosine[turn];
        float sine = shifting->sine[turn];

        real[i] = value.real * cosine + value.imaginary * sine;
        imaginary[i] = value.imaginary * cosine - value.real * sine;
    }
    for (int i = 0; i < lattice_period; i++) {
        int turn = turn_of(tone->ky * i);

        score_line(shifting->scores[i], real, imaginary, shifting->cosine[turn], shifting->sine[turn]);
    }
}

static void scores_fill(struct shifting *shifting)
{
    for (int i = 0; i < lattice_period; i++) {
        shifting->cosine[i] = (float)cos(2 * M_PI * i / lattice_period);
        shifting->sine[i] = (float)sin(2 * M_PI * i / lattice_period);
    }
    for (unsigned tone = 0; tone < lattice_tones; tone++)
        tone_add(shifting, &shifting->reader->lattice->tones[tone]);
}

static bool is_peak(const struct shifting *shifting, int x, int y)
{
    for (int j = -1; j <= 1; j++)
        for (int i = -1; i <= 1; i++)
            if (shifting->scores[turn_of(y + j)][turn_of(x + i)] > shifting->scores[y][x])
                return false;
    return true;
}

/* Keeps the shift if it is among the best, in descending order. */
static void shift_offer(struct shifting *shifting, const struct shift *shift)
{
    if (shifting->count == shifts_tried && shift->score <= shifting->best[shifts_tried - 1].score)
        return;
    unsigned at = shifting->count < shifts_tried ? shifting->count++ : shifts_tried - 1;
    for (; at > 0 && shifting->best[at - 1].score < shift->score; at--)
        shifting->best[at] = shifting->best[at - 1];
    shifting->best[at] = *shift;
}

static void shifts_rank(struct shifting *shifting)
{
    for (int y = 0; y < lattice_period; y++) {
        for (int x = 0; x < lattice_period; x++) {
            struct shift shift = {x, y, shifting->scores[y][x]};

            if (shift.score > 0 && (x != 0 || y != 0) && is_peak(shifting, x, y))
                shift_offer(shifting, &shift);
        }
    }
}

/* Undoes a shift in a field. The values between the points are powers, which a shift does not change. */
static void field_shift(const struct shifting *shifting, const struct shift *shift,
                        const struct soft_field *from, struct soft_field *to)
{
    for (int kx = 0; kx <= lattice_reach; kx++) {
        for (int ky = -lattice_reach; ky <= lattice_reach; ky++) {
            struct value at = from->on[kx][ky + lattice_reach];
            int turn = turn_of(kx * shift->x + ky * shift->y);
            float cosine = shifting->cosine[turn];
            float sine = shifting->sine[turn];

            to->on[kx][ky + lattice_reach] = (struct value){at.real * cosine + at.imaginary * sine,
                                                            at.imaginary * cosine - at.real * sine};
        }
    }
}

static bool shift_try(struct shifting *shifting, const struct shift *shift)
{
    struct reader *reader = shifting->reader;

    for (unsigned class = 0; class < reader_classes; class ++)
        field_shift(shifting, shift, &shifting->luma[class], &reader->luma[class]);
    if (shifting->has_blue)
        field_shift(shifting, shift, &shifting->blue, reader->blue);
    return reader_decode(reader, reader_classes, shifting->has_blue);
}

bool shift_read(struct reader *reader, bool has_blue)
{
    size_t mark = workspace_mark(reader->workspace);
    struct shifting *shifting = workspace_take(reader->workspace, 1, sizeof *shifting);
    bool is_read = false;

    if (shifting == NULL)
        return false;
    shifting->reader = reader;
    shifting->has_blue = has_blue;
    memcpy(shifting->luma, reader->luma, sizeof shifting->luma);
    memcpy(&shifting->blue, reader->blue, sizeof shifting->blue);
    scores_fill(shifting);
    shifts_rank(shifting);
    struct pose upright = reader->pose;
    for (unsigned i = 0; i < shifting->count && !is_read; i++) {
        reader->pose.offset[0] = upright.offset[0] + shifting->best[i].x;
        reader->pose.offset[1] = upright.offset[1] + shifting->best[i].y;
        is_read = shift_try(shifting, &shifting->best[i]);
    }
    workspace_rewind(reader->workspace, mark);
    return is_read;
}
