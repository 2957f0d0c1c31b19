#include <imgward/watermark.h>

#include <math.h>
#include <string.h>

#include "engine/watermark/clones.h"
#include "engine/image.h"
#include "engine/watermark/informed.h"
#include "engine/watermark/jpegsim.h"
#include "engine/watermark/marker.h"
#include "engine/watermark/reader.h"
#include "engine/watermark/search.h"
#include "engine/watermark/shift.h"
#include "engine/watermark/texture.h"
#include "engine/watermark/underlay.h"

#define PSNR_DB             42.2
#define PSNR_LEAST_DB       40.4
#define REMARK_DB           1.8 /* taking an old mark away costs as much again, and is no loss of quality */
#define PSNR_STEP_DB        0.6
#define UNDERLAY_DB         2.0 /* that much weaker is what goes over an underlay: together they are as visible */
#define COARSENESS_50       1.0f /* of JPEG's steps, at quality 50 and 80 */
#define COARSENESS_80       0.4f
#define BLUE_SHARE          0.25   /* the amplitude of Cb to that of luma */
#define TONE_SHARE          0.25   /* of luma's energy */
#define BLUE_ENERGY         3.2584 /* of red, green and blue together for one of Cb */
#define GAIN_MOST           1.6 /* where more texture than this is needed for the distortion aimed at, less will do */
#define SUSPECT_SIDE_MIN_PX 48         /* nothing smaller can be read */
#define ROUNDING_ERROR      (1 / 12.0) /* the mean square of what rounding to whole levels does */
#define SAMPLED_PX          100000u    /* pixels that are enough to measure the distortion */
#define PREDICTED_PX        10000      /* and to predict it */

/* Some pixels of the plane. */
struct samples {
    struct plane plane;
    struct texture_mask texture;
    size_t count;
    float *mask; /* scratch, twice count */
};

/* An embedding under way. */
struct embedding {
    struct image *image;
    uint64_t number;
    bool is_marked; /* the picture bears old_number already */
    uint64_t old_number;
    struct workspace *workspace;
    struct reader reader;
    struct plane plane;
    struct texture_mask texture;
    float *activity;
    struct samples samples;
    float gain;
    float *luma_mask; /* at the gain in hand, where the picture is larger than the plane */
    float *blue_mask;
    int period_px;
    const float *luma_tile; /* of LATTICE_PERIOD, for looking ahead */
    const float *blue_tile;
    struct marker marker;
    void *row;
    double psnr_db;
    bool has_underlay;
    struct underlay underlay;
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

/* Pixels from all over the picture, for predicting what a gain does. */
static bool samples_take(struct embedding *embedding)
{
    struct workspace *workspace = embedding->workspace;
    const struct plane *plane = &embedding->plane;
    struct samples *samples = &embedding->samples;
    size_t every = plane_count(plane) / PREDICTED_PX + 1;
    size_t most = plane_count(plane) / every + 1;
    float *rows[4];
    size_t from;
    unsigned i;

    for (i = 0; i < 4; i++)
        rows[i] = workspace_take_unset(workspace, most, sizeof(float));
    samples->mask = workspace_take_unset(workspace, 2 * most, sizeof(float));
    if (workspace->failed)
        return false;
    samples->count = 0;
    for (from = 0; from < plane_count(plane); from += every) {
        rows[0][samples->count] = plane->luma[from];
        rows[1][samples->count] = embedding->activity[from];
        rows[2][samples->count] = plane->weight == NULL ? 1 : plane->weight[from];
        samples->count++;
    }
    samples->plane = (struct plane){.luma = rows[0], .weight = plane->weight == NULL ? NULL : rows[2]};
    samples->texture =
        (struct texture_mask){&samples->plane, rows[1], BLUE_SHARE, embedding->texture.has_underlay};
    return true;
}

static double energy_of(const float *mask, size_t count)
{
    double sum = 0;
    size_t i;

    for (i = 0; i < count; i++)
        sum += (double)(mask[i] * mask[i]);
    return sum / (double)count;
}

/* The distortion that a gain gives, as the samples' masks predict it, per sample of the picture. */
static double error_predicted(const struct embedding *embedding, double gain)
{
    const struct samples *samples = &embedding->samples;
    float *blue = embedding->plane.blue == NULL ? NULL : samples->mask + samples->count;
    double error;

    texture_mask_row(&samples->texture, 0, samples->count, (float)gain, samples->mask, blue);
    error = energy_of(samples->mask, samples->count);
    if (blue != NULL)
        error += BLUE_ENERGY / 3 * energy_of(blue, samples->count);
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

/* Takes a gain on, and stretches nothing where the picture is its own plane. */
static void gain_take(struct embedding *embedding, double gain)
{
    embedding->gain = (float)gain;
    embedding->marker.gain = (float)gain;
    if (embedding->luma_mask != NULL)
        texture_mask_row(&embedding->texture, 0, plane_count(&embedding->plane), (float)gain,
                         embedding->luma_mask, embedding->blue_mask);
}

/* Sets the gain so that the rounded result has the error wanted, or less. */
static void gain_set(struct embedding *embedding, double psnr_db)
{
    double wanted = error_of_psnr(psnr_db);
    double predicted = fmax(wanted - ROUNDING_ERROR, wanted / 2);
    double measured = 0;
    int i;

    for (i = 0; i < 3; i++) {
        gain_take(embedding, gain_find(embedding, predicted));
        measured = error_measure(embedding);
        if (measured <= 0 || (measured <= wanted && (measured > 0.985 * wanted || i == 1)))
            break;
        predicted *= wanted / measured;
    }
    embedding->psnr_db = measured > 0 ? 10 * log10(255.0 * 255.0 / measured) : 99;
}

/* As the samples of the marked picture will be: within black and white. */
ENGINE_CLONES
static void line_mark(const float *restrict from, const float *restrict mask, const float *restrict tile,
                      float most, int width, float *restrict to)
{
    float least = most - 255;
    int x;

    for (x = 0; x < width; x++) {
        float value = from[x] + mask[x] * tile[x];

        to[x] = value < least ? least : value > most ? most : value;
    }
}

/* One row of a channel with its part of the pattern; most is the channel's greatest value. */
static void row_mark(const float *from, const float *mask, const float *tile, int y, float most, int width,
                     float *to)
{
    const float *line = tile + (size_t)(y % LATTICE_PERIOD) * LATTICE_PERIOD;
    int left;

    for (left = 0; left < width; left += LATTICE_PERIOD)
        line_mark(from + left, mask + left, line, most,
                  width - left < LATTICE_PERIOD ? width - left : LATTICE_PERIOD, to + left);
}

/* The plane as it will be when marked. */
static void plane_mark(const struct embedding *embedding, float *masks, struct plane *marked)
{
    const struct plane *plane = &embedding->plane;
    float *blue_mask = plane->blue == NULL ? NULL : masks + plane->width;
    int y;

    for (y = 0; y < plane->height; y++) {
        size_t first = (size_t)y * (size_t)plane->width;

        texture_mask_row(&embedding->texture, first, (size_t)plane->width, embedding->gain, masks, blue_mask);
        row_mark(plane->luma + first, masks, embedding->luma_tile, y, 255, plane->width,
                 marked->luma + first);
        if (blue_mask != NULL)
            row_mark(plane->blue + first, blue_mask, embedding->blue_tile, y, 127.5f, plane->width,
                     marked->blue + first);
    }
}

/* Whether the number is read from the marked plane, after JPEG of a coarseness or, for 0, as it is. */
static bool reads_back(struct embedding *embedding, float coarseness)
{
    struct workspace *workspace = embedding->workspace;
    struct plane marked = embedding->plane;
    size_t count = plane_count(&marked);
    size_t mark = workspace_mark(workspace);
    float *masks = workspace_take_unset(workspace, 2 * (size_t)marked.width, sizeof(float));
    float *half = NULL;
    bool reads;

    marked.luma = workspace_take_unset(workspace, count, sizeof(float));
    if (marked.blue != NULL) {
        marked.blue = workspace_take_unset(workspace, count, sizeof(float));
        half = workspace_take_unset(
            workspace, (size_t)(marked.width + 1) / 2 * ((size_t)(marked.height + 1) / 2), sizeof(float));
    }
    if (workspace->failed)
        return false;
    plane_mark(embedding, masks, &marked);
    if (coarseness > 0) {
        jpegsim_luma(marked.luma, marked.width, marked.height, coarseness);
        if (marked.blue != NULL)
            jpegsim_chroma(marked.blue, marked.width, marked.height, coarseness, half);
    }
    reads = reader_read_untouched(&embedding->reader, &marked, NULL) &&
            embedding->reader.number == embedding->number;
    if (!workspace->failed)
        workspace_rewind(workspace, mark);
    return reads;
}

/* Takes the first strength from psnr_db down to psnr_least_db at which the mark outlives JPEG. */
static bool strength_raise(struct embedding *embedding, double psnr_db, double psnr_least_db,
                           float coarseness)
{
    double aim;

    for (aim = psnr_db; aim >= psnr_least_db; aim -= PSNR_STEP_DB) {
        gain_set(embedding, aim);
        if (reads_back(embedding, coarseness))
            return true;
        if (embedding->psnr_db > aim + 2 * PSNR_STEP_DB)
            break; /* the caps hold, more gain changes nothing */
    }
    return false;
}

/*
 * The strength at which the mark outlives JPEG 50.  Where that is out of reach,
 * what it would cost is not spent: a step at most, for JPEG 80.  That the mark
 * reads at all is a must.
 */
static bool strength_choose(struct embedding *embedding, double psnr_db, double psnr_least_db)
{
    if (strength_raise(embedding, psnr_db, psnr_least_db, COARSENESS_50) ||
        strength_raise(embedding, psnr_db, psnr_db - PSNR_STEP_DB, COARSENESS_80) || reads_back(embedding, 0))
        return true;
    gain_set(embedding, psnr_least_db);
    return reads_back(embedding, 0);
}

/* Looks whether the picture bears a mark of this key, where a new one would lie too. */
static bool old_mark_read(struct embedding *embedding)
{
    embedding->activity =
        workspace_take_unset(embedding->workspace, plane_count(&embedding->plane), sizeof(float));
    if (embedding->activity == NULL)
        return false;
    embedding->is_marked = reader_read_untouched(&embedding->reader, &embedding->plane, embedding->activity);
    embedding->old_number = embedding->reader.number;
    return !embedding->workspace->failed;
}

/* An underlay for what is flat, and over an old one: a marked drawing is not flat any more. */
static bool underlay_take(struct embedding *embedding, const uint8_t key[32])
{
    struct underlay *underlay = &embedding->underlay;

    embedding->has_underlay = underlay_is_for(embedding->image, &embedding->plane, embedding->activity);
    underlay->image = embedding->image;
    if (embedding->has_underlay || (embedding->is_marked && image_has_color(embedding->image))) {
        if (!underlay_prepare(underlay, key, embedding->number, embedding->workspace))
            return false;
        embedding->has_underlay = embedding->has_underlay || underlay->is_marked;
    }
    embedding->texture =
        (struct texture_mask){&embedding->plane, embedding->activity, BLUE_SHARE, embedding->has_underlay};
    return true;
}

/* A picture larger than its plane is marked by masks that are stretched. */
static void masks_take(struct embedding *embedding)
{
    size_t count = plane_count(&embedding->plane);

    if (embedding->period_px == LATTICE_PERIOD)
        return;
    embedding->luma_mask = workspace_take_unset(embedding->workspace, count, sizeof(float));
    if (embedding->plane.blue != NULL)
        embedding->blue_mask = workspace_take_unset(embedding->workspace, count, sizeof(float));
}

static bool embedding_prepare(struct embedding *embedding, const uint8_t key[32])
{
    struct workspace *workspace = embedding->workspace;
    struct image *image = embedding->image;
    struct marker *marker = &embedding->marker;
    size_t width = image->width_px;
    double step;

    embedding->period_px = reader_period_px(image->width_px, image->height_px);
    step = embedding->period_px == LATTICE_PERIOD ? 1 : (double)embedding->period_px / LATTICE_PERIOD;
    if (!reader_init(&embedding->reader, key, LATTICE_OVERLAY, workspace) ||
        !plane_read(image, PLANE_LUMA, step, workspace, &embedding->plane) || !old_mark_read(embedding) ||
        !underlay_take(embedding, key) || !samples_take(embedding) ||
        !tiles_make(embedding, LATTICE_PERIOD, &embedding->luma_tile, &embedding->blue_tile))
        return false;
    masks_take(embedding);
    embedding->row = workspace_take_unset(workspace, width, image_pixel_bytes(image));
    *marker =
        (struct marker){.image = image,
                        .texture = &embedding->texture,
                        .luma_mask = embedding->luma_mask,
                        .blue_mask = embedding->blue_mask,
                        .step = step,
                        .mask_width = embedding->plane.width,
                        .mask_height = embedding->plane.height,
                        .period_px = embedding->period_px,
                        .luma_tile = embedding->luma_tile,
                        .blue_tile = embedding->blue_tile,
                        .luma_row = workspace_take_unset(workspace, width, sizeof(float)),
                        .blue_row = workspace_take_unset(workspace, 2 * width, sizeof(float)),
                        .red_row = workspace_take_unset(workspace, width, sizeof(float)),
                        .changes = workspace_take_unset(workspace, width * image->channels, sizeof(int16_t))};
    if (embedding->period_px == LATTICE_PERIOD)
        return !workspace->failed;
    return marker_stretch_init(marker, workspace) &&
           tiles_make(embedding, embedding->period_px, &marker->luma_tile, &marker->blue_tile);
}

/* Marks the picture and measures what that did to it. */
static void picture_mark(struct embedding *embedding)
{
    const struct image *image = embedding->image;
    double samples = (double)image->width_px * image->height_px * (image_has_color(image) ? 3 : 1);
    double sum = 0;
    uint32_t y;

    if (embedding->has_underlay)
        embedding->marker.underlay = &embedding->underlay;
    for (y = 0; y < image->height_px; y++)
        sum += marker_row(&embedding->marker, y, image_row(image, y));
    embedding->psnr_db = sum > 0 ? 10 * log10(255.0 * 255.0 * samples / sum) : 99;
}

static enum iw_error embedding_run(struct embedding *embedding, const uint8_t key[32], double psnr_db,
                                   double psnr_least_db)
{
    bool reads;

    if (!embedding_prepare(embedding, key))
        return IW_NO_MEMORY;
    if (embedding->has_underlay) {
        psnr_db += UNDERLAY_DB;
        psnr_least_db = psnr_db;
    }
    if (embedding->is_marked) {
        psnr_db -= REMARK_DB;
        psnr_least_db -= REMARK_DB;
    }
    reads = strength_choose(embedding, psnr_db, psnr_least_db);
    if (embedding->workspace->failed)
        return IW_NO_MEMORY;
    if (!reads)
        return IW_WATERMARK_NOT_EMBEDDABLE;
    picture_mark(embedding);
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
    underlay_fini(&embedding.underlay);
    workspace_fini(&workspace);
    return error;
}

/* What a reading works on: the suspect, or the first rows of one of height_px rows, as planes. */
static enum iw_error extract_prepare(struct reader *reader, const struct image *image, uint32_t height_px,
                                     const uint8_t key[32], struct plane *plane)
{
    int period_px = reader_period_px(image->width_px, height_px);
    double step = period_px == LATTICE_PERIOD ? 1 : (double)period_px / LATTICE_PERIOD;

    if (!reader_init(reader, key, LATTICE_OVERLAY, reader->workspace) ||
        !plane_read(image, PLANE_LUMA, step, reader->workspace, plane))
        return IW_NO_MEMORY;
    return IW_OK;
}

/* A reading of both patterns.  A grey picture has no underlay. */
struct reading {
    struct reader reader; /* of the overlay */
    struct plane plane;
    struct reader under;
    struct plane color;
    bool has_color;
    uint64_t number;
    double correlation;
};

static void reading_take(struct reading *reading, const struct reader *reader)
{
    reading->number = reader->number;
    reading->correlation = reader->correlation;
}

static enum iw_error reading_prepare(struct reading *reading, const struct image *image, uint32_t height_px,
                                     const uint8_t key[32])
{
    enum iw_error error = extract_prepare(&reading->reader, image, height_px, key, &reading->plane);

    reading->has_color = image_has_color(image);
    if (error == IW_OK && reading->has_color &&
        !underlay_open(&reading->under, image, height_px, key, &reading->color))
        error = IW_NO_MEMORY;
    return error;
}

/* As it lies, without and with a shift. */
static bool reading_untouched(struct reading *reading)
{
    bool reads = reader_read_untouched(&reading->reader, &reading->plane, NULL);

    reading_take(reading, &reading->reader);
    if (reads || !reading->has_color || reading->reader.workspace->failed)
        return reads;
    if (reader_read_untouched(&reading->under, &reading->color, NULL)) {
        reading_take(reading, &reading->under);
        return true;
    }
    reads = !reading->reader.workspace->failed && reader_decode_both(&reading->reader, &reading->under);
    if (reads)
        reading_take(reading, &reading->reader);
    return reads;
}

static bool reading_shifted(struct reading *reading)
{
    bool reads = shift_read(&reading->reader, reading->plane.blue != NULL);

    if (reads)
        reading_take(reading, &reading->reader);
    if (!reads && reading->has_color && !reading->reader.workspace->failed) {
        reads = shift_read(&reading->under, true);
        if (reads)
            reading_take(reading, &reading->under);
    }
    return reads;
}

static enum iw_error posed_read(struct reading *reading, struct reader *reader, const struct plane *plane,
                                struct watermark_report *report)
{
    struct workspace *workspace = reader->workspace;
    size_t mark = workspace_mark(workspace);
    struct whitened whitened;
    enum iw_error error;

    if (workspace->failed || !reader_whiten(reader, plane, &whitened))
        return IW_NO_MEMORY;
    error = search_read(reader, &whitened, plane, report);
    reading_take(reading, reader);
    workspace_rewind(workspace, mark);
    return error;
}

static enum iw_error extract_blind(struct reading *reading, struct watermark_report *report)
{
    struct workspace *workspace = reading->reader.workspace;
    enum iw_error error;

    if (reading_untouched(reading) || (!workspace->failed && reading_shifted(reading))) {
        report->is_untouched = true;
        report->scale = 1;
        report->aspect = 1;
        return IW_OK;
    }
    error = posed_read(reading, &reading->reader, &reading->plane, report);
    if (error == IW_WATERMARK_NOT_FOUND && reading->has_color)
        error = posed_read(reading, &reading->under, &reading->color, report);
    return error;
}

/* Blind first; then, where there is an original, with its help. */
static enum iw_error extract_run(struct reading *reading, const struct image *image,
                                 const struct image *original, const uint8_t key[32],
                                 struct watermark_report *report)
{
    struct workspace *workspace = reading->reader.workspace;
    enum iw_error error = reading_prepare(reading, image, image->height_px, key);
    size_t mark = workspace_mark(workspace);

    if (error != IW_OK)
        return error;
    error = extract_blind(reading, report);
    if (error != IW_WATERMARK_NOT_FOUND || original == NULL)
        return error;
    workspace_rewind(workspace, mark);
    error = informed_read(&reading->reader, &reading->plane, original, report);
    reading_take(reading, &reading->reader);
    return error;
}

static void reading_begin(struct reading *reading, struct workspace *workspace)
{
    workspace_init(workspace);
    reading->reader.workspace = workspace;
    reading->under.workspace = workspace;
}

static void reading_end(struct reading *reading, struct watermark_report *report)
{
    report->correlation = reading->correlation;
    report->attempts = reading->reader.attempts + reading->under.attempts;
    reader_fini(&reading->reader);
    reader_fini(&reading->under);
    workspace_fini(reading->reader.workspace);
}

static enum iw_error extract(const struct image *image, const struct image *original, const uint8_t key[32],
                             uint64_t *number, struct watermark_report *report)
{
    struct watermark_report unasked;
    struct workspace workspace;
    struct reading reading = {0};
    enum iw_error error;

    if (report == NULL)
        report = &unasked;
    memset(report, 0, sizeof *report);
    if (image->width_px < SUSPECT_SIDE_MIN_PX || image->height_px < SUSPECT_SIDE_MIN_PX)
        return IW_WATERMARK_NOT_FOUND;
    reading_begin(&reading, &workspace);
    error = extract_run(&reading, image, original, key, report);
    if (error == IW_OK)
        *number = reading.number;
    reading_end(&reading, report);
    return error;
}

enum iw_error watermark_verify(const struct image *image, uint32_t height_px,
                               const uint8_t key[WATERMARK_KEY_BYTES], uint64_t number,
                               double correlation_least, struct watermark_report *report)
{
    struct workspace workspace;
    struct reading reading = {0};
    enum iw_error error;

    memset(report, 0, sizeof *report);
    reading_begin(&reading, &workspace);
    error = reading_prepare(&reading, image, height_px, key);
    if (error == IW_OK && !(reading_untouched(&reading) && reading.number == number &&
                            reading.correlation >= correlation_least))
        error = workspace.failed ? IW_NO_MEMORY : IW_WATERMARK_NOT_FOUND;
    reading_end(&reading, report);
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
