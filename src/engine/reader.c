#include "engine/reader.h"

#include <math.h>
#include <string.h>

#include <fftw3.h>

#include "engine/clones.h"
#include "engine/texture.h"

#define PI            3.14159265358979323846
#define LUMA_RADIUS   34.0 /* lattice units: the ends of the bands */
#define BLUE_RADIUS   22.0
#define CHIPS_LEAST   256.0     /* along the shorter side, however long the picture */
#define CHIP_AREA     1000000.0 /* pixels: larger pictures get larger chips */
#define LUMA_BLUR     2
#define BLUE_BLUR     5
#define FREQUENCY_MAX 0.485

/* Activities that divide the classes. */
static const float class_bounds[READER_CLASSES - 1] = {1.5f, 5.0f};

bool reader_init(struct reader *reader, const uint8_t key[32], struct workspace *workspace)
{
    memset(reader, 0, sizeof *reader);
    reader->workspace = workspace;
    reader->polar = polar_new();
    reader->lattice = workspace_take(workspace, 1, sizeof *reader->lattice);
    reader->soft = soft_new(workspace);
    reader->luma = workspace_take(workspace, READER_CLASSES, sizeof *reader->luma);
    reader->blue = workspace_take(workspace, 1, sizeof *reader->blue);
    if (reader->polar == NULL || workspace->failed)
        return false;
    lattice_init(reader->lattice, key);
    return true;
}

void reader_fini(struct reader *reader)
{
    polar_free(reader->polar);
    reader->polar = NULL;
}

int reader_period_px(uint32_t width_px, uint32_t height_px)
{
    double shorter = width_px < height_px ? width_px : height_px;
    double chip = fmin(sqrt((double)width_px * height_px / CHIP_AREA), shorter / CHIPS_LEAST);
    int side = chip <= 1 ? LATTICE_PERIOD : (int)lround(chip * LATTICE_PERIOD);

    return side % 8 == 0 ? side + 1 : side;
}

bool reader_whiten(struct reader *reader, const struct plane *plane, struct whitened *whitened)
{
    size_t count = (size_t)plane->width * (size_t)plane->height;
    struct texture texture;
    size_t i;

    if (!texture_measure(plane->luma, plane->width, plane->height, LUMA_BLUR, reader->workspace, &texture))
        return false;
    texture_whiten(&texture, plane, false);
    whitened->luma = texture.detail;
    whitened->classes = workspace_take(reader->workspace, count, 1);
    if (whitened->classes == NULL)
        return false;
    for (i = 0; i < count; i++)
        whitened->classes[i] =
            (uint8_t)((texture.activity[i] > class_bounds[0]) + (texture.activity[i] > class_bounds[1]));
    whitened->blue = NULL;
    if (plane->blue == NULL)
        return true;
    if (!texture_measure(plane->blue, plane->width, plane->height, BLUE_BLUR, reader->workspace, &texture))
        return false;
    texture_whiten(&texture, plane, true);
    whitened->blue = texture.detail;
    return true;
}

ENGINE_CLONES
static void line_add(float *to, const float *from, int width)
{
    int x;

    for (x = 0; x < width; x++)
        to[x] += from[x];
}

/* Lays all double periods of a plane over each other: what the lattice's half points see. */
static void plane_fold(const float *plane, int width, int height, float *fold)
{
    const int side = 2 * LATTICE_PERIOD;
    int left;
    int y;

    memset(fold, 0, sizeof *fold * (size_t)side * (size_t)side);
    for (y = 0; y < height; y++)
        for (left = 0; left < width; left += side)
            line_add(fold + (size_t)(y % side) * (size_t)side, plane + (size_t)y * (size_t)width + left,
                     width - left < side ? width - left : side);
}

/* What a spectrum of the folded plane says at a place of the half-step lattice. */
static struct value folded_at(const fftwf_complex *spectrum, int column, int row)
{
    const int side = 2 * LATTICE_PERIOD;
    const float *at = spectrum[(size_t)((row + side) % side) * (size_t)(side / 2 + 1) + (size_t)column];
    double turn = -PI * (column + row) / side;
    float cosine = (float)cos(turn);
    float sine = (float)sin(turn);

    return (struct value){at[0] * cosine - at[1] * sine, at[0] * sine + at[1] * cosine};
}

static float power_of(struct value value)
{
    return value.real * value.real + value.imaginary * value.imaginary;
}

static bool field_folded(struct reader *reader, const float *plane, int width, int height, double radius,
                         struct soft_field *field)
{
    const int side = 2 * LATTICE_PERIOD;
    unsigned mark = workspace_mark(reader->workspace);
    float *fold = workspace_take(reader->workspace, (size_t)side * (size_t)side, sizeof *fold);
    fftwf_complex *spectrum =
        workspace_take(reader->workspace, (size_t)side * (size_t)(side / 2 + 1), sizeof *spectrum);
    fftwf_plan plan;
    int kx;
    int ky;

    if (spectrum == NULL)
        return false;
    plane_fold(plane, width, height, fold);
    plan = fftwf_plan_dft_r2c_2d(side, side, fold, spectrum, FFTW_ESTIMATE);
    if (plan == NULL)
        return false;
    fftwf_execute(plan);
    fftwf_destroy_plan(plan);
    memset(field, 0, sizeof *field);
    for (kx = 0; kx <= LATTICE_REACH; kx++) {
        for (ky = -LATTICE_REACH; ky <= LATTICE_REACH; ky++) {
            if (!soft_is_needed(kx, ky, radius))
                continue;
            field->on[kx][ky + LATTICE_REACH] = folded_at(spectrum, 2 * kx, 2 * ky);
            field->between[kx][ky + LATTICE_REACH] = power_of(folded_at(spectrum, 2 * kx + 1, 2 * ky + 1));
        }
    }
    workspace_rewind(reader->workspace, mark);
    return true;
}

static bool reader_decode(struct reader *reader, unsigned classes, bool has_blue)
{
    reader->attempts++;
    return soft_read(reader->soft, reader->lattice, reader->polar, reader->luma, classes,
                     has_blue ? reader->blue : NULL, &reader->number, &reader->correlation);
}

ENGINE_CLONES
static void class_take(const struct whitened *whitened, unsigned class, size_t count, float *part)
{
    size_t i;

    for (i = 0; i < count; i++)
        part[i] = whitened->classes[i] == class ? whitened->luma[i] : 0;
}

bool reader_read_untouched(struct reader *reader, const struct whitened *whitened, int width, int height)
{
    unsigned mark = workspace_mark(reader->workspace);
    float *part = workspace_take(reader->workspace, (size_t)width * (size_t)height, sizeof *part);
    unsigned class;

    if (part == NULL)
        return false;
    for (class = 0; class < READER_CLASSES; class ++) {
        class_take(whitened, class, (size_t)width * (size_t)height, part);
        if (!field_folded(reader, part, width, height, LUMA_RADIUS, &reader->luma[class]))
            return false;
    }
    workspace_rewind(reader->workspace, mark);
    if (whitened->blue != NULL &&
        !field_folded(reader, whitened->blue, width, height, BLUE_RADIUS, reader->blue))
        return false;
    return reader_decode(reader, READER_CLASSES, whitened->blue != NULL);
}

/* The spectrum at a point of the lattice as the pose moves it; 0 beyond what the plane can hold. */
static struct value posed_at(const struct spectrum *spectrum, const struct pose *pose, double kx, double ky)
{
    double fx = (pose->matrix[0] * kx + pose->matrix[2] * ky) / LATTICE_PERIOD;
    double fy = (pose->matrix[1] * kx + pose->matrix[3] * ky) / LATTICE_PERIOD;

    if (fabs(fx) > FREQUENCY_MAX || fabs(fy) > FREQUENCY_MAX)
        return (struct value){0, 0};
    return spectrum_at(spectrum, fx, fy);
}

static void field_posed(const struct spectrum *spectrum, const struct pose *pose, double radius,
                        struct soft_field *field)
{
    int kx;
    int ky;

    memset(field, 0, sizeof *field);
    for (kx = 0; kx <= LATTICE_REACH; kx++) {
        for (ky = -LATTICE_REACH; ky <= LATTICE_REACH; ky++) {
            double turn = -2 * PI * (kx * pose->offset[0] + ky * pose->offset[1]) / LATTICE_PERIOD;
            float cosine = (float)cos(turn);
            float sine = (float)sin(turn);
            struct value at;

            if (!soft_is_needed(kx, ky, radius))
                continue;
            at = posed_at(spectrum, pose, kx, ky);
            field->on[kx][ky + LATTICE_REACH] = (struct value){at.real * cosine - at.imaginary * sine,
                                                               at.real * sine + at.imaginary * cosine};
            field->between[kx][ky + LATTICE_REACH] = power_of(posed_at(spectrum, pose, kx + 0.5, ky + 0.5));
        }
    }
}

bool reader_read_posed(struct reader *reader, const struct spectrum *luma, const struct spectrum *blue,
                       const struct pose *pose)
{
    field_posed(luma, pose, LUMA_RADIUS, reader->luma);
    if (blue != NULL)
        field_posed(blue, pose, BLUE_RADIUS, reader->blue);
    return reader_decode(reader, 1, blue != NULL);
}
