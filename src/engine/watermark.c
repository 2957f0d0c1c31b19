#include <imgward/watermark.h>

#include <math.h>
#include <string.h>

#include "engine/clones.h"
#include "engine/image.h"
#include "engine/informed.h"
#include "engine/jpegsim.h"
#include "engine/marker.h"
#include "engine/reader.h"
#include "engine/search.h"
#include "engine/texture.h"

#define PSNR_DB             42.2
#define PSNR_LEAST_DB       40.4
#define REMARK_DB           1.8 /* taking an old mark away costs as much again, and is no loss of quality */
#define PSNR_STEP_DB        0.6
#define BLUE_SHARE          0.25   /* the amplitude of Cb to that of luma */
#define TONE_SHARE          0.25   /* of luma's energy */
#define BLUE_ENERGY         3.2584 /* of red, green and blue together for one of Cb */
#define GAIN_MOST           1.6 /* where more texture than this is needed for the distortion aimed at, less will do */
#define SUSPECT_SIDE_MIN_PX 48      /* nothing smaller can be read */
#define SAMPLED_PX          400000u /* pixels that are enough to measure the distortion */
#define PREDICTED_PX        10000   /* and to predict it */

/* An embedding under way. */
struct embedding {
    struct image *image;
    uint64_t number;
    bool is_marked; /* the picture bears old_number already */
    uint64_t old_number;
    struct workspace *workspace;
    struct reader reader;
    struct plane plane;
    struct texture_mask shape;
    struct texture_mask mask; /* shape at the gain in hand */
    int period_px;
    const float *luma_tile; /* of LATTICE_PERIOD, for looking ahead */
    const float *blue_tile;
    struct marker marker;
    void *row;
    double psnr_db;
};

static size_t plane_count(const struct plane *plane)
{
    return (size_t)plane->width * (size_t)plane->height;
}

/*
 * The word to be laid on.  Over a mark of the same key it is the difference to
 * the old word: that takes the old mark away, and the tones are there already.
 */
static void word_make(const struct embedding *embedding, int8_t word[POLAR_LENGTH])
{
    uint64_t mask = embedding->reader.lattice->number_mask;
    int8_t old[POLAR_LENGTH];
    unsigned i;

    polar_encode(embedding->reader.polar, embedding->number ^ mask, word);
    if (!embedding->is_marked)
        return;
    polar_encode(embedding->reader.polar, embedding->old_number ^ mask, old);
    for (i = 0; i < POLAR_LENGTH; i++)
        word[i] = (int8_t)(word[i] - old[i]);
}

static bool tiles_make(struct embedding *embedding, int side_px, const float **luma, const float **blue)
{
    const struct lattice *lattice = embedding->reader.lattice;
    int8_t word[POLAR_LENGTH];
    struct lattice_content content = {.band = &lattice->luma, .word = word};

    word_make(embedding, word);
    content.band_weight = (float)sqrt(1 - TONE_SHARE);
    content.tone_weight = embedding->is_marked ? 0 : (float)sqrt(TONE_SHARE);
    *luma = lattice_tile(lattice, &content, side_px, embedding->workspace);
    *blue = NULL;
    if (embedding->plane.blue != NULL) {
        content = (struct lattice_content){.band = &lattice->chroma, .word = word, .band_weight = 1};
        *blue = lattice_tile(lattice, &content, side_px, embedding->workspace);
    }
    return !embedding->workspace->failed;
}

ENGINE_CLONES
static void mask_scale(const float *shape, const float *cap, float gain, float *mask, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++) {
        float value = gain * shape[i];

        mask[i] = value < cap[i] ? value : cap[i];
    }
}

static void masks_fill(struct embedding *embedding, double gain)
{
    const struct texture_mask *shape = &embedding->shape;
    size_t count = plane_count(&embedding->plane);

    mask_scale(shape->luma_shape, shape->luma_cap, (float)gain, embedding->mask.luma_shape, count);
    if (embedding->plane.blue != NULL)
        mask_scale(shape->blue_shape, shape->blue_cap, (float)(gain * BLUE_SHARE), embedding->mask.blue_shape,
                   count);
}

/* The mean square of a mask at a gain, from every so many pixels. */
static double mask_energy(const float *shape, const float *cap, float gain, size_t count, size_t every)
{
    double sum = 0;
    size_t samples = 0;
    size_t i;

    for (i = 0; i < count; i += every) {
        float value = fminf(gain * shape[i], cap[i]);

        sum += (double)(value * value);
        samples++;
    }
    return sum / (double)samples;
}

/* The distortion that a gain gives, as the masks predict it, per sample. */
static double error_predicted(const struct embedding *embedding, double gain)
{
    const struct texture_mask *shape = &embedding->shape;
    size_t count = plane_count(&embedding->plane);
    size_t every = count / PREDICTED_PX + 1;
    double error = mask_energy(shape->luma_shape, shape->luma_cap, (float)gain, count, every);

    if (embedding->plane.blue != NULL)
        error += BLUE_ENERGY / 3 *
                 mask_energy(shape->blue_shape, shape->blue_cap, (float)(gain * BLUE_SHARE), count, every);
    return error;
}

static double error_of_psnr(double psnr_db)
{
    return 255.0 * 255.0 * pow(10, -psnr_db / 10);
}

/* The gain whose predicted error is the one wanted, by bisection; the caps may keep it lower. */
static double gain_find(const struct embedding *embedding, double error)
{
    double low = 0.01;
    double high = GAIN_MOST;
    int i;

    for (i = 0; i < 14; i++) {
        double middle = sqrt(low * high);

        if (error_predicted(embedding, middle) < error)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Measures on evenly spread rows what rounding and clipping leave of the error. */
static double error_measure(struct embedding *embedding)
{
    const struct image *image = embedding->image;
    uint64_t pixels = (uint64_t)image->width_px * image->height_px;
    uint32_t every = (uint32_t)(pixels / SAMPLED_PX) + 1;
    unsigned samples = image_has_color(image) ? 3 : 1;
    double sum = 0;
    uint64_t rows = 0;
    uint32_t y;

    for (y = every / 2; y < image->height_px; y += every) {
        sum += marker_row(&embedding->marker, y, embedding->row);
        rows++;
    }
    return sum / ((double)rows * image->width_px * samples);
}

/* Sets the gain so that the rounded result has the error wanted, or less. */
static void gain_set(struct embedding *embedding, double psnr_db)
{
    double wanted = error_of_psnr(psnr_db);
    double predicted = wanted;
    double measured = 0;
    int i;

    for (i = 0; i < 3; i++) {
        masks_fill(embedding, gain_find(embedding, predicted));
        measured = error_measure(embedding);
        if (measured <= 0 || (measured <= wanted && (measured > 0.985 * wanted || i == 1)))
            break;
        predicted *= wanted / measured;
    }
    embedding->psnr_db = measured > 0 ? 10 * log10(255.0 * 255.0 / measured) : 99;
}

ENGINE_CLONES
static void line_add(const float *from, const float *mask, const float *tile, int width, float *to)
{
    int x;

    for (x = 0; x < width; x++)
        to[x] = from[x] + mask[x] * tile[x];
}

static void pattern_add(const struct embedding *embedding, const float *from, const float *mask,
                        const float *tile, float *to)
{
    int width = embedding->plane.width;
    int left;
    int y;

    for (y = 0; y < embedding->plane.height; y++) {
        size_t row = (size_t)y * (size_t)width;
        const float *line = tile + (size_t)(y % LATTICE_PERIOD) * LATTICE_PERIOD;

        for (left = 0; left < width; left += LATTICE_PERIOD) {
            size_t at = row + (size_t)left;

            line_add(from + at, mask + at, line,
                     width - left < LATTICE_PERIOD ? width - left : LATTICE_PERIOD, to + at);
        }
    }
}

/* As the samples of the marked picture will be: within black and white. */
ENGINE_CLONES
static void luma_clip(float *luma, size_t count)
{
    size_t i;

    for (i = 0; i < count; i++)
        luma[i] = luma[i] < 0 ? 0 : luma[i] > 255 ? 255 : luma[i];
}

/* Whether the number is read from the marked plane, as it is or after JPEG at quality 50. */
static bool reads_back(struct embedding *embedding, bool is_compressed)
{
    struct plane marked = embedding->plane;
    size_t count = plane_count(&marked);
    unsigned mark = workspace_mark(embedding->workspace);
    struct whitened whitened;
    bool reads;

    marked.luma = workspace_take(embedding->workspace, count, sizeof(float));
    marked.blue = marked.blue == NULL ? NULL : workspace_take(embedding->workspace, 2 * count, sizeof(float));
    if (embedding->workspace->failed)
        return false;
    pattern_add(embedding, embedding->plane.luma, embedding->mask.luma_shape, embedding->luma_tile,
                marked.luma);
    if (marked.blue != NULL)
        pattern_add(embedding, embedding->plane.blue, embedding->mask.blue_shape, embedding->blue_tile,
                    marked.blue);
    luma_clip(marked.luma, count);
    if (is_compressed) {
        jpegsim_luma(marked.luma, marked.width, marked.height);
        luma_clip(marked.luma, count);
        if (marked.blue != NULL)
            jpegsim_chroma(marked.blue, marked.width, marked.height, marked.blue + count);
    }
    reads = reader_whiten(&embedding->reader, &marked, &whitened) &&
            reader_read_untouched(&embedding->reader, &whitened, marked.width, marked.height) &&
            embedding->reader.number == embedding->number;
    if (!embedding->workspace->failed)
        workspace_rewind(embedding->workspace, mark);
    return reads;
}

/* Raises the strength within the bounds until the mark outlives JPEG 50; that it reads at all is a must. */
static bool strength_choose(struct embedding *embedding, double psnr_db, double psnr_least_db)
{
    double aim;

    for (aim = psnr_db; aim >= psnr_least_db; aim -= PSNR_STEP_DB) {
        gain_set(embedding, aim);
        if (reads_back(embedding, true))
            return true;
        if (embedding->psnr_db > aim + 2 * PSNR_STEP_DB)
            break; /* the caps hold, more gain changes nothing */
    }
    return reads_back(embedding, false);
}

/* Looks whether the picture bears a mark of this key, where a new one would lie too. */
static bool old_mark_read(struct embedding *embedding)
{
    unsigned mark = workspace_mark(embedding->workspace);
    const struct plane *plane = &embedding->plane;
    struct whitened whitened;

    if (!reader_whiten(&embedding->reader, plane, &whitened))
        return false;
    embedding->is_marked = reader_read_untouched(&embedding->reader, &whitened, plane->width, plane->height);
    embedding->old_number = embedding->reader.number;
    if (embedding->workspace->failed)
        return false;
    workspace_rewind(embedding->workspace, mark);
    return true;
}

static bool embedding_prepare(struct embedding *embedding, const uint8_t key[32])
{
    struct workspace *workspace = embedding->workspace;
    struct image *image = embedding->image;
    struct marker *marker = &embedding->marker;
    double step;
    size_t count;

    embedding->period_px = reader_period_px(image->width_px, image->height_px);
    step = embedding->period_px == LATTICE_PERIOD ? 1 : (double)embedding->period_px / LATTICE_PERIOD;
    if (!reader_init(&embedding->reader, key, workspace) ||
        !plane_read(image, step, workspace, &embedding->plane) || !old_mark_read(embedding) ||
        !texture_mask(&embedding->plane, workspace, &embedding->shape) ||
        !tiles_make(embedding, LATTICE_PERIOD, &embedding->luma_tile, &embedding->blue_tile))
        return false;
    count = plane_count(&embedding->plane);
    embedding->mask.luma_shape = workspace_take(workspace, count, sizeof(float));
    embedding->mask.blue_shape = workspace_take(workspace, count, sizeof(float));
    embedding->row = workspace_take(workspace, image->width_px, image_pixel_bytes(image));
    *marker =
        (struct marker){.image = image,
                        .step = step,
                        .mask_width = embedding->plane.width,
                        .mask_height = embedding->plane.height,
                        .period_px = embedding->period_px,
                        .luma_tile = embedding->luma_tile,
                        .blue_tile = embedding->blue_tile,
                        .luma_mask = embedding->mask.luma_shape,
                        .blue_mask = embedding->mask.blue_shape,
                        .luma_row = workspace_take(workspace, image->width_px, sizeof(float)),
                        .blue_row = workspace_take(workspace, 2 * (size_t)image->width_px, sizeof(float))};
    if (embedding->period_px == LATTICE_PERIOD)
        return !workspace->failed;
    return !workspace->failed &&
           tiles_make(embedding, embedding->period_px, &marker->luma_tile, &marker->blue_tile);
}

static enum iw_error embedding_run(struct embedding *embedding, const uint8_t key[32], double psnr_db,
                                   double psnr_least_db)
{
    uint32_t y;
    bool reads;

    if (!embedding_prepare(embedding, key))
        return IW_NO_MEMORY;
    if (embedding->is_marked) {
        psnr_db -= REMARK_DB;
        psnr_least_db -= REMARK_DB;
    }
    reads = strength_choose(embedding, psnr_db, psnr_least_db);
    if (embedding->workspace->failed)
        return IW_NO_MEMORY;
    if (!reads)
        return IW_WATERMARK_NOT_EMBEDDED;
    for (y = 0; y < embedding->image->height_px; y++)
        marker_row(&embedding->marker, y, image_row(embedding->image, y));
    return IW_OK;
}

enum iw_error watermark_embed(struct image *image, const uint8_t key[WATERMARK_KEY_BYTES], uint64_t number,
                              const struct watermark_embed_options *options, struct watermark_report *report)
{
    struct workspace workspace;
    struct embedding embedding = {.image = image, .number = number, .workspace = &workspace};
    double psnr_db = options != NULL && options->psnr_db > 0 ? options->psnr_db : PSNR_DB;
    double psnr_least_db =
        options != NULL && options->psnr_least_db > 0 ? options->psnr_least_db : PSNR_LEAST_DB;
    enum iw_error error;

    if (image->width_px < WATERMARK_SIDE_MIN_PX || image->height_px < WATERMARK_SIDE_MIN_PX)
        return IW_IMAGE_TOO_SMALL;
    workspace_init(&workspace);
    error = embedding_run(&embedding, key, psnr_db, psnr_least_db);
    if (report != NULL)
        *report = (struct watermark_report){.psnr_db = embedding.psnr_db,
                                            .correlation = embedding.reader.correlation,
                                            .attempts = embedding.reader.attempts};
    reader_fini(&embedding.reader);
    workspace_fini(&workspace);
    return error;
}

/* What a reading works on: the suspect as planes. */
static enum iw_error extract_prepare(struct reader *reader, const struct image *image, const uint8_t key[32],
                                     struct plane *plane)
{
    int period_px = reader_period_px(image->width_px, image->height_px);
    double step = period_px == LATTICE_PERIOD ? 1 : (double)period_px / LATTICE_PERIOD;

    if (!reader_init(reader, key, reader->workspace) || !plane_read(image, step, reader->workspace, plane))
        return IW_NO_MEMORY;
    return IW_OK;
}

static enum iw_error extract_blind(struct reader *reader, const struct plane *plane,
                                   struct watermark_report *report)
{
    struct whitened whitened;

    if (!reader_whiten(reader, plane, &whitened))
        return IW_NO_MEMORY;
    if (reader_read_untouched(reader, &whitened, plane->width, plane->height)) {
        report->is_untouched = true;
        report->scale = 1;
        report->aspect = 1;
        return IW_OK;
    }
    if (reader->workspace->failed)
        return IW_NO_MEMORY;
    return search_read(reader, &whitened, plane, report);
}

/* Blind first; then, where there is an original, with its help. */
static enum iw_error extract_run(struct reader *reader, const struct image *image,
                                 const struct image *original, const uint8_t key[32],
                                 struct watermark_report *report)
{
    struct workspace *workspace = reader->workspace;
    struct plane plane;
    enum iw_error error = extract_prepare(reader, image, key, &plane);
    unsigned mark = workspace_mark(workspace);

    if (error != IW_OK)
        return error;
    error = extract_blind(reader, &plane, report);
    if (error != IW_WATERMARK_NOT_FOUND || original == NULL)
        return error;
    workspace_rewind(workspace, mark);
    return informed_read(reader, &plane, original, report);
}

static enum iw_error extract(const struct image *image, const struct image *original, const uint8_t key[32],
                             uint64_t *number, struct watermark_report *report)
{
    struct watermark_report unasked;
    struct workspace workspace;
    struct reader reader = {.workspace = &workspace};
    enum iw_error error;

    if (report == NULL)
        report = &unasked;
    memset(report, 0, sizeof *report);
    if (image->width_px < SUSPECT_SIDE_MIN_PX || image->height_px < SUSPECT_SIDE_MIN_PX)
        return IW_WATERMARK_NOT_FOUND;
    workspace_init(&workspace);
    error = extract_run(&reader, image, original, key, report);
    if (error == IW_OK)
        *number = reader.number;
    report->correlation = reader.correlation;
    report->attempts = reader.attempts;
    reader_fini(&reader);
    workspace_fini(&workspace);
    return error;
}

enum iw_error watermark_extract(const struct image *image, const uint8_t key[WATERMARK_KEY_BYTES],
                                uint64_t *number, struct watermark_report *report)
{
    return extract(image, NULL, key, number, report);
}

enum iw_error watermark_extract_informed(const struct image *suspect, const struct image *original,
                                         const uint8_t key[WATERMARK_KEY_BYTES], uint64_t *number,
                                         struct watermark_report *report)
{
    return extract(suspect, original, key, number, report);
}
