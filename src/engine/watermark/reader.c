#include "engine/watermark/reader.h"

#include <math.h>
#include <string.h>

#include "engine/watermark/clones.h"
#include "engine/watermark/texture.h"

#define PI            3.14159265358979323846
#define LUMA_RADIUS   34.0 /* lattice units: the ends of the bands */
#define BLUE_RADIUS   22.0
#define CHIPS_LEAST   256.0     /* along the shorter side, however long the picture */
#define CHIP_AREA     1000000.0 /* pixels: larger pictures get larger chips */
#define FREQUENCY_MAX 0.485

/* Activities that divide the classes. */
static const float class_bounds[READER_CLASSES - 1] = {1.5f, 5.0f};

bool reader_init(struct reader *reader, const uint8_t key[32], enum lattice_form form,
                 struct workspace *workspace)
{
    memset(reader, 0, sizeof *reader);
    reader->workspace = workspace;
    reader->polar = polar_new();
    reader->lattice = workspace_take(workspace, 1, sizeof *reader->lattice);
    reader->soft = soft_new(workspace);
    reader->luma = workspace_take(workspace, READER_CLASSES, sizeof *reader->luma);
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
    double chip = fmin(sqrt((double)width_px * height_px / CHIP_AREA), shorter / CHIPS_LEAST);
    int side = chip <= 1 ? LATTICE_PERIOD : (int)lround(chip * LATTICE_PERIOD);

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

static void row_keep(void *closure, int y, float *detail, const float *activity)
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
           texture_rows(plane->luma, plane->width, plane->height, TEXTURE_LUMA_RADIUS, workspace, row_keep,
                        &luma) &&
           (plane->blue == NULL || texture_rows(plane->blue, plane->width, plane->height, TEXTURE_BLUE_RADIUS,
                                                workspace, row_keep, &blue));
}

/*
 * Pixels fall in classes by their texture: compression wipes the mark from some
 * and leaves it in others, so that each class is weighed by what it still holds.
 */
ENGINE_CLONES
static void classes_part(const float *restrict values, const float *restrict activity, float *restrict parts,
                         int width)
{
    int x;

    for (x = 0; x < width; x++) {
        float value = values[x];
        bool is_busy = activity[x] > class_bounds[0];
        bool is_busiest = activity[x] > class_bounds[1];

        parts[x] = is_busy ? 0 : value;
        parts[width + x] = is_busy && !is_busiest ? value : 0;
        parts[2 * width + x] = is_busiest ? value : 0;
    }
}

/* A plane on its way into folds, whitened. */
struct folding {
    const struct plane *plane;
    struct fold *folds; /* READER_CLASSES for luma, one for Cb */
    float *parts;
    float *activity; /* where luma's is kept, or NULL */
};

static void luma_fold(void *closure, int y, float *detail, const float *activity)
{
    const struct folding *folding = closure;
    int width = folding->plane->width;
    unsigned class;

    if (folding->activity != NULL)
        memcpy(folding->activity + (size_t)y * (size_t)width, activity, (size_t)width * sizeof *activity);
    row_whiten(folding->plane, y, detail, activity, false);
    classes_part(detail, activity, folding->parts, width);
    for (class = 0; class < READER_CLASSES; class ++)
        fold_row(&folding->folds[class], y, folding->parts + class * (size_t)width, width);
}

static void blue_fold(void *closure, int y, float *detail, const float *activity)
{
    const struct folding *folding = closure;

    row_whiten(folding->plane, y, detail, activity, true);
    fold_row(folding->folds, y, detail, folding->plane->width);
}

/* The reader's fields as sources, at most READER_SOURCES; how many. */
static unsigned sources_take(const struct reader *reader, unsigned classes, bool has_blue,
                             struct soft_source *sources)
{
    unsigned i;

    for (i = 0; i < classes; i++)
        sources[i] = (struct soft_source){&reader->lattice->luma, &reader->luma[i], i > 0};
    if (has_blue)
        sources[classes] = (struct soft_source){&reader->lattice->chroma, reader->blue, false};
    return classes + has_blue;
}

bool reader_decode(struct reader *reader, unsigned classes, bool has_blue)
{
    struct soft_source sources[READER_SOURCES];
    unsigned count = sources_take(reader, classes, has_blue, sources);

    reader->attempts++;
    return soft_read(reader->soft, sources, count, reader->lattice->number_mask, reader->polar,
                     &reader->number, &reader->correlation);
}

bool reader_decode_both(struct reader *reader, const struct reader *under)
{
    struct soft_source sources[2 * READER_SOURCES];
    unsigned count = sources_take(reader, READER_CLASSES, true, sources);

    count += sources_take(under, READER_CLASSES, true, sources + count);
    reader->attempts++;
    return soft_read(reader->soft, sources, count, reader->lattice->number_mask, reader->polar,
                     &reader->number, &reader->correlation);
}

bool reader_read_untouched(struct reader *reader, const struct plane *plane, float *activity)
{
    struct workspace *workspace = reader->workspace;
    size_t mark = workspace_mark(workspace);
    struct folding folding = {.plane = plane, .activity = activity};
    bool has_blue = plane->blue != NULL;
    struct fold_scratch *scratch = workspace_take_unset(workspace, 1, sizeof *scratch);
    unsigned class;

    folding.parts = workspace_take_unset(workspace, READER_CLASSES * (size_t)plane->width, sizeof(float));
    folding.folds = workspace_take(workspace, READER_CLASSES, sizeof *folding.folds);
    if (workspace->failed || !texture_rows(plane->luma, plane->width, plane->height, TEXTURE_LUMA_RADIUS,
                                           workspace, luma_fold, &folding))
        return false;
    for (class = 0; class < READER_CLASSES; class ++)
        fold_field(&folding.folds[class], reader->basis, LUMA_RADIUS, scratch, &reader->luma[class]);
    memset(folding.folds, 0, sizeof *folding.folds);
    if (has_blue && !texture_rows(plane->blue, plane->width, plane->height, TEXTURE_BLUE_RADIUS, workspace,
                                  blue_fold, &folding))
        return false;
    if (has_blue)
        fold_field(folding.folds, reader->basis, BLUE_RADIUS, scratch, reader->blue);
    workspace_rewind(workspace, mark);
    return reader_decode(reader, READER_CLASSES, has_blue);
}

/* Where the pose moves a point of the lattice; false beyond what the plane can hold. */
static bool posed_take(const struct pose *pose, double kx, double ky, double frequency[2])
{
    frequency[0] = (pose->matrix[0] * kx + pose->matrix[2] * ky) / LATTICE_PERIOD;
    frequency[1] = (pose->matrix[1] * kx + pose->matrix[3] * ky) / LATTICE_PERIOD;
    return fabs(frequency[0]) <= FREQUENCY_MAX && fabs(frequency[1]) <= FREQUENCY_MAX;
}

/* A point of the lattice, and the power half-way to the next. */
static void point_posed(const struct spectrum *spectrum, const struct pose *pose, int kx, int ky,
                        struct soft_field *field)
{
    double frequency[2];

    if (posed_take(pose, kx, ky, frequency)) {
        double turn = -2 * PI * (kx * pose->offset[0] + ky * pose->offset[1]) / LATTICE_PERIOD;
        struct value at = spectrum_at(spectrum, frequency[0], frequency[1]);
        float cosine = (float)cos(turn);
        float sine = (float)sin(turn);

        field->on[kx][ky + LATTICE_REACH] =
            (struct value){at.real * cosine - at.imaginary * sine, at.real * sine + at.imaginary * cosine};
    }
    if (posed_take(pose, kx + 0.5, ky + 0.5, frequency))
        field->between[kx][ky + LATTICE_REACH] = spectrum_power_at(spectrum, frequency[0], frequency[1]);
}

static void field_posed(const struct spectrum *spectrum, const struct pose *pose, double radius,
                        struct soft_field *field)
{
    int kx;
    int ky;

    memset(field, 0, sizeof *field);
    for (kx = 0; kx <= LATTICE_REACH; kx++)
        for (ky = -LATTICE_REACH; ky <= LATTICE_REACH; ky++)
            if (soft_is_needed(kx, ky, radius))
                point_posed(spectrum, pose, kx, ky, field);
}

bool reader_read_posed(struct reader *reader, const struct spectrum *luma, const struct spectrum *blue,
                       const struct pose *pose)
{
    field_posed(luma, pose, LUMA_RADIUS, reader->luma);
    if (blue != NULL)
        field_posed(blue, pose, BLUE_RADIUS, reader->blue);
    return reader_decode(reader, 1, blue != NULL);
}
