#include "engine/watermark/reader.h"

#include <math.h>
#include <string.h>

#include "engine/clones.h"
#include "engine/watermark/texture.h"

/* Lattice units, at which the bands of lattice.c end. */
static const double luma_radius = 34.0;
static const double blue_radius = 22.0;

/* No published source; `./dev bench watermark` measures the effect. */
static const double chips_least = 256.0;      /* along the shorter side of any picture */
static const double chip_area_px = 1000000.0; /* larger pictures get larger chips */
static const double frequency_most = 0.485;   /* cycles a pixel, just below the Nyquist limit */

/* Activities that separate the classes. */
static const float class_bounds[reader_classes - 1] = {1.5f, 5.0f};

bool reader_init(struct reader *reader, const uint8_t key[32], enum lattice_form form,
                 struct workspace *workspace)
{
    memset(reader, 0, sizeof *reader);
    reader->workspace = workspace;
    reader->polar = polar_new();
    reader->lattice = workspace_take(workspace, 1, sizeof *reader->lattice);
    reader->soft = soft_new(workspace);
    reader->luma = workspace_take(workspace, reader_classes, sizeof *reader->luma);
    reader->blue = workspace_take(workspace, 1, sizeof *reader->blue);
    reader->basis = workspace_take_unset(workspace, 1, sizeof *reader->basis);
    if (reader->polar == NULL || workspace->failed)
        return false;
    lattice_init(reader->lattice, key, form);
    fold_basis_fill(reader->basis);
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
    double chip = fmin(sqrt((double)width_px * height_px / chip_area_px), shorter / chips_least);
    int side = chip <= 1 ? lattice_period : (int)lround(chip * lattice_period);

    return side % 8 == 0 ? side + 1 : side;
}

struct whitening {
    const struct plane *plane;
    float *result;
    bool is_blue;
};

static void row_whiten(const struct plane *plane, int y, float *detail, const float *activity, bool is_blue)
{
    size_t first = (size_t)y * (size_t)plane->width;

    texture_whiten_row(detail, activity, plane->luma + first,
                       plane->weight == NULL ? NULL : plane->weight + first, plane->width, is_blue);
}

static void whitened_row(void *closure, int y, float *detail, const float *activity)
{
    const struct whitening *whitening = closure;
    const struct plane *plane = whitening->plane;

    row_whiten(plane, y, detail, activity, whitening->is_blue);
    memcpy(whitening->result + (size_t)y * (size_t)plane->width, detail,
           (size_t)plane->width * sizeof *detail);
}

bool reader_whiten(struct reader *reader, const struct plane *plane, struct whitened *whitened)
{
    struct workspace *workspace = reader->workspace;
    size_t count = (size_t)plane->width * (size_t)plane->height;
    struct whitening luma = {plane, workspace_take_unset(workspace, count, sizeof(float)), false};
    struct whitening blue = {plane, NULL, true};

    if (plane->blue != NULL)
        blue.result = workspace_take_unset(workspace, count, sizeof(float));
    *whitened = (struct whitened){luma.result, blue.result};
    return !workspace->failed &&
           texture_rows(plane->luma, plane->width, plane->height, texture_luma_radius, workspace,
                        whitened_row, &luma) &&
           (plane->blue == NULL || texture_rows(plane->blue, plane->width, plane->height, texture_blue_radius,
                                                workspace, whitened_row, &blue));
}

/*
 * Pixels are classed by texture. Compression removes the mark from some classes only, so each class is
 * weighed by the signal that it retains.
 */
ENGINE_CLONES
static void classes_part(const float *restrict values, const float *restrict activity, float *restrict parts,
                         int width)
{
    for (int x = 0; x < width; x++) {
        float value = values[x];
        bool is_busy = activity[x] > class_bounds[0];
        bool is_busiest = activity[x] > class_bounds[1];

        parts[x] = is_busy ? 0 : value;
        parts[width + x] = is_busy && !is_busiest ? value : 0;
        parts[2 * width + x] = is_busiest ? value : 0;
    }
}

/* Whitening of a plane into folds. */
struct folding {
    const struct plane *plane;
    struct fold *folds; /* reader_classes for luma, one for Cb */
    float *parts;
    float *activity; /* receives luma's activity; NULL if not wanted */
};

static void luma_fold(void *closure, int y, float *detail, const float *activity)
{
    const struct folding *folding = closure;
    int width = folding->plane->width;

    if (folding->activity != NULL)
        memcpy(folding->activity + (size_t)y * (size_t)width, activity, (size_t)width * sizeof *activity);
    row_whiten(folding->plane, y, detail, activity, false);
    classes_part(detail, activity, folding->parts, width);
    for (unsigned class = 0; class < reader_classes; class ++)
        fold_row(&folding->folds[class], y, folding->parts + class * (size_t)width, width);
}

static void blue_fold(void *closure, int y, float *detail, const float *activity)
{
    const struct folding *folding = closure;

    row_whiten(folding->plane, y, detail, activity, true);
    fold_row(folding->folds, y, detail, folding->plane->width);
}

/* Lists the reader's fields as sources; returns their count, at most reader_sources. */
static unsigned sources_take(const struct reader *reader, unsigned classes, bool has_blue,
                             struct soft_source *sources)
{
    for (unsigned i = 0; i < classes; i++)
        sources[i] = (struct soft_source){&reader->lattice->luma, &reader->luma[i], i > 0};
    if (has_blue)
        sources[classes] = (struct soft_source){&reader->lattice->chroma, reader->blue, false};
    return classes + has_blue;
}

static bool sources_decode(struct reader *reader, const struct soft_source *sources, unsigned count)
{
    bool is_read = soft_read(reader->soft, sources, count, reader->lattice->number_mask, reader->polar,
                             reader->candidates, &reader->number, &reader->correlation);

    reader->attempts++;
    reader->correlation_most = fmax(reader->correlation_most, reader->correlation);
    return is_read;
}

bool reader_decode(struct reader *reader, unsigned classes, bool has_blue)
{
    struct soft_source sources[reader_sources];
    unsigned count = sources_take(reader, classes, has_blue, sources);

    return sources_decode(reader, sources, count);
}

bool reader_decode_both(struct reader *reader, const struct reader *under)
{
    struct soft_source sources[2 * reader_sources];
    unsigned count = sources_take(reader, reader_classes, true, sources);

    count += sources_take(under, reader_classes, true, sources + count);
    return sources_decode(reader, sources, count);
}

bool reader_read_untouched(struct reader *reader, const struct plane *plane, float *activity)
{
    struct workspace *workspace = reader->workspace;
    size_t mark = workspace_mark(workspace);
    struct folding folding = {.plane = plane, .activity = activity};
    bool has_blue = plane->blue != NULL;
    struct fold_scratch *scratch = workspace_take_unset(workspace, 1, sizeof *scratch);

    folding.parts = workspace_take_unset(workspace, reader_classes * (size_t)plane->width, sizeof(float));
    folding.folds = workspace_take(workspace, reader_classes, sizeof *folding.folds);
    if (workspace->failed || !texture_rows(plane->luma, plane->width, plane->height, texture_luma_radius,
                                           workspace, luma_fold, &folding))
        return false;
    for (unsigned class = 0; class < reader_classes; class ++)
        fold_field(&folding.folds[class], reader->basis, luma_radius, scratch, &reader->luma[class]);
    memset(folding.folds, 0, sizeof *folding.folds);
    if (has_blue && !texture_rows(plane->blue, plane->width, plane->height, texture_blue_radius, workspace,
                                  blue_fold, &folding))
        return false;
    if (has_blue)
        fold_field(folding.folds, reader->basis, blue_radius, scratch, reader->blue);
    workspace_rewind(workspace, mark);
    reader->pose = (struct pose){{1, 0, 0, 1}, {plane->width / 2, plane->height / 2}};
    reader->slant[0] = reader->slant[1] = 0;
    reader->has_pose = true;
    return reader_decode(reader, reader_classes, has_blue);
}

/* Frequencies of lattice points in a pose. */
struct posed {
    unsigned count;
    uint8_t kx[spectrum_batch];
    double fx[spectrum_batch];
    double fy[spectrum_batch];
    struct value values[spectrum_batch];
};

/* Reads the points of a row that a band needs, moved by a step, as far as they lie in the plane's band. */
static void posed_take(const struct spectrum *spectrum, const struct pose *pose, double step, int ky,
                       double radius, struct posed *posed)
{
    posed->count = 0;
    for (int kx = 0; kx <= lattice_reach && soft_is_needed(kx, ky, radius); kx++) {
        double fx = (pose->matrix[0] * (kx + step) + pose->matrix[2] * (ky + step)) / lattice_period;
        double fy = (pose->matrix[1] * (kx + step) + pose->matrix[3] * (ky + step)) / lattice_period;

        posed->kx[posed->count] = (uint8_t)kx;
        posed->fx[posed->count] = fx;
        posed->fy[posed->count] = fy;
        posed->count += fabs(fx) <= frequency_most && fabs(fy) <= frequency_most;
    }
    spectrum_corners_take(spectrum, posed->fx, posed->fy, posed->count, posed->values);
}

/* Phases from the sample at place 0 to the pattern's origin. They are linear in kx and ky. */
struct turns {
    struct value across[lattice_reach + 1];
    struct value down[soft_side];
};

static void turns_fill(const struct spectrum *spectrum, const struct pose *pose, struct turns *turns)
{
    double steps[2];

    for (int i = 0; i < 2; i++)
        steps[i] = (spectrum_corner_turn(spectrum, pose->matrix[2 * i], pose->matrix[2 * i + 1]) -
                    2 * M_PI * pose->offset[i]) /
                   lattice_period;
    for (int kx = 0; kx <= lattice_reach; kx++)
        turns->across[kx] = (struct value){(float)cos(kx * steps[0]), (float)sin(kx * steps[0])};
    for (int ky = -lattice_reach; ky <= lattice_reach; ky++)
        turns->down[ky + lattice_reach] =
            (struct value){(float)cos(ky * steps[1]), (float)sin(ky * steps[1])};
}

static struct value product_of(struct value a, struct value b)
{
    return (struct value){a.real * b.real - a.imaginary * b.imaginary,
                          a.real * b.imaginary + a.imaginary * b.real};
}

/* Reads the points row by row, as the spectrum lies in memory, and the powers half-way to the next point. */
static void field_posed(const struct spectrum *spectrum, const struct pose *pose, double radius,
                        struct soft_field *field)
{
    struct turns turns;
    struct posed posed;

    turns_fill(spectrum, pose, &turns);
    memset(field, 0, sizeof *field);
    for (int row = 0; row < soft_side - 1; row++) {
        posed_take(spectrum, pose, 0, row - lattice_reach, radius, &posed);
        for (unsigned i = 0; i < posed.count; i++)
            field->on[posed.kx[i]][row] =
                product_of(posed.values[i], product_of(turns.across[posed.kx[i]], turns.down[row]));
        posed_take(spectrum, pose, 0.5, row - lattice_reach, radius, &posed);
        for (unsigned i = 0; i < posed.count; i++)
            field->between[posed.kx[i]][row] = posed.values[i].real * posed.values[i].real +
                                               posed.values[i].imaginary * posed.values[i].imaginary;
    }
    soft_noise_fill(field);
}

bool reader_read_posed(struct reader *reader, const struct spectrum *luma, const struct spectrum *blue,
                       const struct pose *pose)
{
    reader->pose = *pose;
    reader->slant[0] = reader->slant[1] = 0;
    reader->has_pose = true;
    field_posed(luma, pose, luma_radius, reader->luma);
    if (blue != NULL)
        field_posed(blue, pose, blue_radius, reader->blue);
    return reader_decode(reader, 1, blue != NULL);
}
