#include "engine/watermark/watermark.h"

#include <math.h>
#include <string.h>

#include "engine/clones.h"
#include "engine/watermark/cells.h"
#include "engine/watermark/cover.h"
#include "engine/image.h"
#include "engine/watermark/informed.h"
#include "engine/watermark/jpegsim.h"
#include "engine/watermark/marker.h"
#include "engine/watermark/reader.h"
#include "engine/watermark/search.h"
#include "engine/watermark/shift.h"
#include "engine/watermark/texture.h"
#include "engine/watermark/underlay.h"
#include "engine/watermark/view.h"

enum {
    small_px = 128 * 256,     /* the underlay of smaller pictures is searched at full resolution */
    suspect_side_min_px = 48, /* smaller pictures are not read */
    measured_px = 100000,     /* enough pixels to measure the distortion */
    predicted_px = 10000      /* enough pixels to predict it */
};

/* Strength. No published source; `./dev bench watermark` prints the PSNR and the robustness. */
static const double default_psnr_db = 42.2;
static const double default_psnr_least_db = 40.4;
static const double psnr_step_db = 0.6;
static const double remark_db = 1.8;   /* removing an old mark costs as much energy as adding a new one */
static const double underlay_db = 2.0; /* the overlay is weaker by this over a full underlay */
static const double gain_most = 1.6;

/*
 * Files of logos, charts and QR codes have fewer bits a pixel than sparse_bits_px, pages and maps more than
 * dense_bits_px.
 */
static const double sparse_bits_px = 0.25;
static const double dense_bits_px = 1.0;

static const double blue_share = 0.25; /* amplitude of Cb to that of luma */
static const double tone_share = 0.25; /* of luma's energy */

/* Sum of squares of one step of Cb in green and blue (color.h): 0.344136^2 + 1.772^2. */
static const double blue_energy = 3.2584;
static const double rounding_error = 1 / 12.0; /* mean square error of rounding to whole levels */

/* Coarseness of JPEG's quantisation at quality 50 and 80, relative to quality 50. */
static const float coarseness_50 = 1.0f;
static const float coarseness_80 = 0.4f;

/* A sample of the plane's pixels. */
struct samples {
    struct plane plane;
    struct texture_mask texture;
    size_t count;
    float *mask; /* scratch, twice count */
};

/* State of an embedding. */
struct embedding {
    struct image *image;
    uint64_t number;
    double file_bits_px; /* see watermark.h */
    bool is_compact;
    bool is_marked; /* the picture has the mark old_number */
    uint64_t old_number;
    struct workspace *workspace;
    struct reader reader;
    struct plane plane;
    struct texture_mask texture;
    float *activity;
    struct samples samples;
    float gain;
    float *luma_mask; /* at the current gain, for pictures larger than the plane */
    float *blue_mask;
    int period_px;
    const float *luma_tile; /* of lattice_period, for predictions */
    const float *blue_tile;
    struct marker marker;
    void *row;
    double psnr_db;
    struct underlay underlay;
};

static size_t plane_count(const struct plane *plane)
{
    return (size_t)plane->width * (size_t)plane->height;
}

/*
 * Makes the word to add. Over a mark of the same key, the word is the difference to the old word, which
 * removes the old mark; the picture already has the tones.
 */
static void overlay_word(const struct embedding *embedding, int8_t word[polar_length])
{
    uint64_t mask = embedding->reader.lattice->number_mask;
    int8_t old[polar_length];

    polar_encode(embedding->reader.polar, embedding->number ^ mask, word);
    if (!embedding->is_marked)
        return;
    polar_encode(embedding->reader.polar, embedding->old_number ^ mask, old);
    for (unsigned i = 0; i < polar_length; i++)
        word[i] = (int8_t)(word[i] - old[i]);
}

static bool tiles_make(struct embedding *embedding, int side_px, const float **luma, const float **blue)
{
    const struct lattice *lattice = embedding->reader.lattice;
    int8_t word[polar_length];
    struct lattice_content content = {.band = &lattice->luma, .word = word};

    overlay_word(embedding, word);
    content.band_weight = (float)sqrt(1 - tone_share);
    content.tone_weight = embedding->is_marked ? 0 : (float)sqrt(tone_share);
    *luma = lattice_tile(lattice, &content, side_px, embedding->workspace);
    *blue = NULL;
    if (embedding->plane.blue != NULL) {
        content = (struct lattice_content){.band = &lattice->chroma, .word = word, .band_weight = 1};
        *blue = lattice_tile(lattice, &content, side_px, embedding->workspace);
    }
    return !embedding->workspace->failed;
}

/* Takes evenly spread pixels for predicting the effect of a gain. */
static bool samples_take(struct embedding *embedding)
{
    struct workspace *workspace = embedding->workspace;
    const struct plane *plane = &embedding->plane;
    struct samples *samples = &embedding->samples;
    size_t every = plane_count(plane) / predicted_px + 1;
    size_t most = plane_count(plane) / every + 1;
    float *rows[4];

    for (unsigned i = 0; i < 4; i++)
        rows[i] = workspace_take_unset(workspace, most, sizeof(float));
    samples->mask = workspace_take_unset(workspace, 2 * most, sizeof(float));
    if (workspace->failed)
        return false;
    samples->count = 0;
    for (size_t from = 0; from < plane_count(plane); from += every) {
        rows[0][samples->count] = plane->luma[from];
        rows[1][samples->count] = embedding->activity[from];
        rows[2][samples->count] = plane->weight == NULL ? 1 : plane->weight[from];
        samples->count++;
    }
    samples->plane = (struct plane){.luma = rows[0], .weight = plane->weight == NULL ? NULL : rows[2]};
    samples->texture =
        (struct texture_mask){&samples->plane, rows[1], blue_share, embedding->texture.caps_flat};
    return true;
}

static double energy_of(const float *mask, size_t count)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += (double)(mask[i] * mask[i]);
    return sum / (double)count;
}

/* Returns the distortion per sample of the picture at a gain, predicted from the samples' masks. */
static double error_predicted(const struct embedding *embedding, double gain)
{
    const struct samples *samples = &embedding->samples;
    float *blue = embedding->plane.blue == NULL ? NULL : samples->mask + samples->count;

    texture_mask_row(&samples->texture, 0, samples->count, (float)gain, samples->mask, blue);
    double error = energy_of(samples->mask, samples->count);
    if (blue != NULL)
        error += blue_energy / 3 * energy_of(blue, samples->count);
    return error;
}

/* Finds the gain of a predicted error by bisection; the caps may keep the error lower. */
static double gain_find(const struct embedding *embedding, double error)
{
    double low = 0.01;
    double high = gain_most;

    for (int i = 0; i < 14; i++) {
        double middle = sqrt(low * high);

        if (error_predicted(embedding, middle) < error)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Measures the error after rounding and clipping on evenly spread rows. */
static double error_measure(struct embedding *embedding)
{
    const struct image *image = embedding->image;
    uint64_t pixels = (uint64_t)image->width_px * image->height_px;
    uint32_t every = (uint32_t)(pixels / measured_px) + 1;
    unsigned samples = image_has_color(image) ? 3 : 1;
    double sum = 0;
    uint64_t rows = 0;

    for (uint32_t y = every / 2; y < image->height_px; y += every) {
        sum += marker_row(&embedding->marker, y, embedding->row);
        rows++;
    }
    return sum / ((double)rows * image->width_px * samples);
}

/* Sets the gain so that the rounded result has at most the wanted error. */
static void gain_set(struct embedding *embedding, double psnr_db)
{
    double wanted = 255.0 * 255.0 * pow(10, -psnr_db / 10);
    double predicted = fmax(wanted - rounding_error, wanted / 2);
    double measured = 0;

    for (int i = 0; i < 3; i++) {
        embedding->gain = embedding->marker.gain = (float)gain_find(embedding, predicted);
        /* Only pictures larger than the plane need explicit masks. */
        if (embedding->luma_mask != NULL)
            texture_mask_row(&embedding->texture, 0, plane_count(&embedding->plane), embedding->gain,
                             embedding->luma_mask, embedding->blue_mask);
        measured = error_measure(embedding);
        if (measured <= 0 || (measured <= wanted && (measured > 0.985 * wanted || i == 1)))
            break;
        predicted *= wanted / measured;
    }
    embedding->psnr_db = measured > 0 ? 10 * log10(255.0 * 255.0 / measured) : 99;
}

/* Clips as the samples of the marked picture will be clipped. */
ENGINE_CLONES
static void line_mark(const float *restrict from, const float *restrict mask, const float *restrict tile,
                      float most, int width, float *restrict to)
{
    float least = most - 255;

    for (int x = 0; x < width; x++) {
        float value = from[x] + mask[x] * tile[x];

        to[x] = value < least ? least : value > most ? most : value;
    }
}

/* Marks a row of a channel; most is the channel's greatest value. */
static void row_mark(const float *from, const float *mask, const float *tile, int y, float most, int width,
                     float *to)
{
    const float *line = tile + (size_t)(y % lattice_period) * lattice_period;

    for (int left = 0; left < width; left += lattice_period)
        line_mark(from + left, mask + left, line, most,
                  width - left < lattice_period ? width - left : lattice_period, to + left);
}

/* Predicts the marked plane. */
static void plane_mark(const struct embedding *embedding, float *masks, struct plane *marked)
{
    const struct plane *plane = &embedding->plane;
    float *blue_mask = plane->blue == NULL ? NULL : masks + plane->width;

    for (int y = 0; y < plane->height; y++) {
        size_t first = (size_t)y * (size_t)plane->width;

        texture_mask_row(&embedding->texture, first, (size_t)plane->width, embedding->gain, masks, blue_mask);
        row_mark(plane->luma + first, masks, embedding->luma_tile, y, 255, plane->width,
                 marked->luma + first);
        if (blue_mask != NULL)
            row_mark(plane->blue + first, blue_mask, embedding->blue_tile, y, 127.5f, plane->width,
                     marked->blue + first);
    }
}

/* Returns true if the marked plane reads back after a simulated JPEG, or without JPEG if coarseness is 0. */
static bool reads_back(struct embedding *embedding, float coarseness)
{
    struct workspace *workspace = embedding->workspace;
    struct plane marked = embedding->plane;
    size_t count = plane_count(&marked);
    size_t mark = workspace_mark(workspace);
    float *masks = workspace_take_unset(workspace, 2 * (size_t)marked.width, sizeof(float));
    float *half = NULL;

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
    bool reads = reader_read_untouched(&embedding->reader, &marked, NULL) &&
                 embedding->reader.number == embedding->number;
    if (!workspace->failed)
        workspace_rewind(workspace, mark);
    return reads;
}

/* Finds the first strength from psnr_db down to psnr_least_db at which the mark survives JPEG. */
static bool strength_raise(struct embedding *embedding, double psnr_db, double psnr_least_db,
                           float coarseness)
{
    for (double aim = psnr_db; aim >= psnr_least_db; aim -= psnr_step_db) {
        gain_set(embedding, aim);
        if (reads_back(embedding, coarseness))
            return true;
        if (embedding->psnr_db > aim + 2 * psnr_step_db)
            break; /* the caps limit the gain already */
    }
    return false;
}

/* Reads an existing mark of this key at the place of the new one. */
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

static bool underlay_take(struct embedding *embedding, const uint8_t key[32])
{
    struct underlay *underlay = &embedding->underlay;
    const struct image *image = embedding->image;

    underlay->image = image;
    underlay->is_compact = embedding->is_compact;
    if (embedding->is_compact)
        underlay->level = image_has_color(image) ? UNDERLAY_FULL : UNDERLAY_NONE;
    else
        underlay->level = underlay_level(image, &embedding->plane, embedding->activity, embedding->workspace);
    if (underlay->level != UNDERLAY_NONE &&
        !underlay_prepare(underlay, key, embedding->number, embedding->workspace))
        return false;
    embedding->texture = (struct texture_mask){&embedding->plane, embedding->activity, blue_share,
                                               underlay->level == UNDERLAY_FULL};
    return true;
}

/* Prepares tiles and masks. Pictures larger than their plane are marked by interpolated masks. */
static bool masks_take(struct embedding *embedding)
{
    struct workspace *workspace = embedding->workspace;
    struct marker *marker = &embedding->marker;
    size_t count = plane_count(&embedding->plane);

    if (!samples_take(embedding) ||
        !tiles_make(embedding, lattice_period, &embedding->luma_tile, &embedding->blue_tile))
        return false;
    marker->texture = &embedding->texture;
    marker->luma_tile = embedding->luma_tile;
    marker->blue_tile = embedding->blue_tile;
    if (embedding->period_px == lattice_period)
        return !workspace->failed;
    embedding->luma_mask = workspace_take_unset(workspace, count, sizeof(float));
    if (embedding->plane.blue != NULL)
        embedding->blue_mask = workspace_take_unset(workspace, count, sizeof(float));
    marker->luma_mask = embedding->luma_mask;
    marker->blue_mask = embedding->blue_mask;
    marker->mask_width = embedding->plane.width;
    marker->mask_height = embedding->plane.height;
    return marker_stretch_init(marker, workspace) &&
           tiles_make(embedding, embedding->period_px, &marker->luma_tile, &marker->blue_tile);
}

static enum cells_density density_of(const struct embedding *embedding)
{
    if (embedding->file_bits_px >= dense_bits_px)
        return CELLS_DENSE;
    /* An old mark may have the usual stripes. */
    return embedding->is_marked || embedding->file_bits_px >= sparse_bits_px ? CELLS_USUAL : CELLS_SPARSE;
}

/* Prepares the cells of a compact mark, which has no masks. */
static bool cells_take(struct embedding *embedding)
{
    const struct reader *reader = &embedding->reader;
    struct marker *marker = &embedding->marker;
    uint64_t mask = reader->lattice->number_mask;
    int8_t word[polar_length];
    int8_t old[polar_length];
    const struct cells_words words = {word, embedding->is_marked ? old : NULL};

    polar_encode(reader->polar, embedding->number ^ mask, word);
    polar_encode(reader->polar, embedding->old_number ^ mask, old);
    marker->cells_px = 2 * embedding->period_px;
    marker->stripes = cells_stripes(embedding->image, embedding->period_px, density_of(embedding));
    marker->cells = cells_overlay(reader->lattice, words, marker->cells_px, embedding->workspace);
    return !embedding->workspace->failed;
}

static bool embedding_prepare(struct embedding *embedding, const uint8_t key[32])
{
    struct workspace *workspace = embedding->workspace;
    struct image *image = embedding->image;
    struct marker *marker = &embedding->marker;
    size_t width = image->width_px;

    embedding->period_px = reader_period_px(image->width_px, image->height_px);
    double step = embedding->period_px == lattice_period ? 1 : (double)embedding->period_px / lattice_period;
    if (!reader_init(&embedding->reader, key, LATTICE_OVERLAY, workspace) ||
        !plane_read(image, PLANE_LUMA, step, workspace, &embedding->plane) || !old_mark_read(embedding) ||
        !underlay_take(embedding, key))
        return false;
    embedding->row = workspace_take_unset(workspace, width, image_pixel_bytes(image));
    *marker =
        (struct marker){.image = image,
                        .step = step,
                        .period_px = embedding->period_px,
                        .luma_row = workspace_take_unset(workspace, width, sizeof(float)),
                        .blue_row = workspace_take_unset(workspace, 2 * width, sizeof(float)),
                        .red_row = workspace_take_unset(workspace, width, sizeof(float)),
                        .changes = workspace_take_unset(workspace, width * image->channels, sizeof(int16_t))};
    return embedding->is_compact ? cells_take(embedding) : masks_take(embedding);
}

/* Marks the picture and measures the error. */
static void picture_mark(struct embedding *embedding)
{
    const struct image *image = embedding->image;
    double samples = (double)image->width_px * image->height_px * (image_has_color(image) ? 3 : 1);
    double sum = 0;

    if (embedding->underlay.level != UNDERLAY_NONE)
        embedding->marker.underlay = &embedding->underlay;
    for (uint32_t y = 0; y < image->height_px; y++)
        sum += marker_row(&embedding->marker, y, image_row(image, y));
    embedding->psnr_db = sum > 0 ? 10 * log10(255.0 * 255.0 * samples / sum) : 99;
}

static enum iw_error embedding_run(struct embedding *embedding, const uint8_t key[32], double psnr_db,
                                   double psnr_least_db)
{
    if (!embedding_prepare(embedding, key))
        return IW_NO_MEMORY;
    if (embedding->is_compact) {
        picture_mark(embedding);
        return IW_OK;
    }
    if (embedding->underlay.level == UNDERLAY_FULL) {
        psnr_db += underlay_db;
        psnr_least_db = psnr_db;
    }
    if (embedding->is_marked) {
        psnr_db -= remark_db;
        psnr_least_db -= remark_db;
    }
    /*
     * Find the strength at which the mark survives JPEG 50. If no strength suffices, allow another step for
     * JPEG 80. The mark must at least read without JPEG.
     */
    bool reads = strength_raise(embedding, psnr_db, psnr_least_db, coarseness_50) ||
                 strength_raise(embedding, psnr_db, psnr_db - psnr_step_db, coarseness_80) ||
                 reads_back(embedding, 0);
    if (!reads) {
        gain_set(embedding, psnr_least_db);
        reads = reads_back(embedding, 0);
    }
    if (embedding->workspace->failed)
        return IW_NO_MEMORY;
    /*
     * Reading back tries only the overlay, which hard texture hides. A full underlay is read without the
     * overlay.
     */
    if (!reads && embedding->underlay.level != UNDERLAY_FULL)
        return IW_WATERMARK_NOT_EMBEDDABLE;
    picture_mark(embedding);
    return IW_OK;
}

enum iw_error watermark_embed(struct image *image, const uint8_t key[WATERMARK_KEY_BYTES], uint64_t number,
                              const struct watermark_embed_options *options, struct watermark_report *report)
{
    struct workspace workspace;
    struct embedding embedding = {.image = image, .number = number, .workspace = &workspace};
    embedding.file_bits_px = options != NULL ? options->file_bits_px : 0;
    embedding.is_compact = embedding.file_bits_px > 0;
    double psnr_db = options != NULL && options->psnr_db > 0 ? options->psnr_db : default_psnr_db;
    double psnr_least_db =
        options != NULL && options->psnr_least_db > 0 ? options->psnr_least_db : default_psnr_least_db;

    if (image->width_px < WATERMARK_SIDE_MIN_PX || image->height_px < WATERMARK_SIDE_MIN_PX)
        return IW_IMAGE_TOO_SMALL;
    workspace_init(&workspace);
    enum iw_error error = embedding_run(&embedding, key, psnr_db, psnr_least_db);
    if (report != NULL) {
        *report = (struct watermark_report){.psnr_db = embedding.psnr_db,
                                            .correlation = embedding.reader.correlation,
                                            .attempts = embedding.reader.attempts};
        if (error == IW_OK)
            view_make(&embedding.plane, &embedding.reader.pose, embedding.reader.slant, &report->view);
    }
    reader_fini(&embedding.reader);
    underlay_fini(&embedding.underlay);
    workspace_fini(&workspace);
    return error;
}

/* Prepares the reader and the plane of the suspect, or of the first rows of a picture of height_px rows. */
static enum iw_error extract_prepare(struct reader *reader, const struct image *image, uint32_t height_px,
                                     const uint8_t key[32], struct plane *plane)
{
    int period_px = reader_period_px(image->width_px, height_px);
    double step = period_px == lattice_period ? 1 : (double)period_px / lattice_period;

    if (!reader_init(reader, key, LATTICE_OVERLAY, reader->workspace) ||
        !plane_read(image, PLANE_LUMA, step, reader->workspace, plane))
        return IW_NO_MEMORY;
    return IW_OK;
}

/* State of reading both patterns. A grey picture has no underlay. */
struct reading {
    struct reader reader; /* of the overlay */
    struct plane plane;
    struct reader under;
    struct plane color;
    bool has_color;
    bool is_under;                 /* the underlay was read */
    struct candidates *candidates; /* NULL if there are no candidates */
    uint64_t number;
    double correlation;
};

static void reading_take(struct reading *reading, const struct reader *reader)
{
    reading->is_under = reader == &reading->under;
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

/* Reads without a pose: overlay, underlay, then both together. */
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

    if (workspace->failed || !reader_whiten(reader, plane, &whitened))
        return IW_NO_MEMORY;
    enum iw_error error = search_read(reader, &whitened, plane, report);
    reading_take(reading, reader);
    workspace_rewind(workspace, mark);
    return error;
}

static enum iw_error extract_blind(struct reading *reading, const struct image *image,
                                   struct watermark_report *report)
{
    struct workspace *workspace = reading->reader.workspace;

    if (reading_untouched(reading) || (!workspace->failed && reading_shifted(reading))) {
        report->is_untouched = true;
        report->scale = 1;
        report->aspect = 1;
        return IW_OK;
    }
    enum iw_error error = posed_read(reading, &reading->reader, &reading->plane, report);
    if (error != IW_WATERMARK_NOT_FOUND || !reading->has_color)
        return error;
    /*
     * The plane must not be reduced: a copy of a picture of 512 px at 0.15 of the size has chips of 0.3 px.
     */
    if ((uint64_t)image->width_px * image->height_px < small_px &&
        !plane_read(image, PLANE_COLOR, 1, workspace, &reading->color))
        return IW_NO_MEMORY;
    error = posed_read(reading, &reading->under, &reading->color, report);
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
    report->correlation_most = fmax(reading->reader.correlation_most, reading->under.correlation_most);
    report->attempts = reading->reader.attempts + reading->under.attempts;
    reader_fini(&reading->reader);
    reader_fini(&reading->under);
    workspace_fini(reading->reader.workspace);
}

/* Adds the number that was read, if it is new. */
static void numbers_add(struct watermark_numbers *numbers, const struct reading *reading)
{
    bool is_under = reading->is_under;

    for (unsigned i = 0; i < numbers->count; i++)
        if (numbers->numbers[i] == reading->number)
            return;
    numbers->certainties[numbers->count] = candidates_certainty(reading->candidates, reading->correlation);
    view_make_read(&reading->plane, is_under ? &reading->under : &reading->reader,
                   is_under ? &reading->color : &reading->plane, is_under ? 2 : 1,
                   &numbers->views[numbers->count]);
    numbers->numbers[numbers->count++] = reading->number;
}

/*
 * A mark may be read again in a part that was not excluded, so the rounds are bounded. The bound on false
 * answers allows candidates only in the attempts of the first reading.
 */
static enum iw_error others_extract(struct reading *reading, const struct image *image,
                                    struct watermark_numbers *numbers)
{
    enum iw_error error = IW_OK;
    struct workspace *workspace = reading->reader.workspace;

    struct plane *overlay = &reading->plane;
    struct plane *underlay = reading->has_color ? &reading->color : NULL;

    reading->reader.candidates = reading->under.candidates = NULL;
    for (unsigned round = 0; error == IW_OK && round < 2 * WATERMARK_NUMBERS_MOST; round++) {
        struct watermark_report unasked = {0};

        numbers_add(numbers, reading);
        /* Exclude the mark that was read; false if the picture cannot hold another mark. */
        bool is_excluded = numbers->count < WATERMARK_NUMBERS_MOST &&
                           (reading->is_under ? cover_exclude(&reading->under, underlay, overlay)
                                              : cover_exclude(&reading->reader, overlay, underlay));
        if (!is_excluded)
            break;
        error = extract_blind(reading, image, &unasked);
    }
    return workspace->failed ? IW_NO_MEMORY : IW_OK;
}

/* Reads, with the help of the original, the part that no other mark covers. */
static enum iw_error original_extract(struct reading *reading, const struct image *original,
                                      struct watermark_numbers *numbers, struct watermark_report *report)
{
    struct watermark_report unasked = {0};

    if (numbers->count == WATERMARK_NUMBERS_MOST)
        return IW_OK;
    enum iw_error error =
        informed_read(&reading->reader, &reading->plane, original, numbers->count == 0 ? report : &unasked);
    if (error == IW_OK) {
        reading_take(reading, &reading->reader);
        numbers_add(numbers, reading);
    }
    return error == IW_WATERMARK_NOT_FOUND && numbers->count > 0 ? IW_OK : error;
}

static enum iw_error candidates_prepare(struct reading *reading,
                                        const struct watermark_candidates *candidates)
{
    if (candidates == NULL || candidates->count == 0)
        return IW_OK;
    reading->candidates = candidates_new(candidates, reading->reader.lattice->number_mask,
                                         reading->reader.polar, reading->reader.workspace);
    reading->reader.candidates = reading->under.candidates = reading->candidates;
    return reading->candidates == NULL ? IW_NO_MEMORY : IW_OK;
}

enum iw_error watermark_extract(const struct image *image, const struct image *original,
                                const uint8_t key[WATERMARK_KEY_BYTES],
                                const struct watermark_candidates *candidates,
                                struct watermark_numbers *numbers, struct watermark_report *report)
{
    struct watermark_report unasked;
    struct workspace workspace;
    struct reading reading = {0};

    if (report == NULL)
        report = &unasked;
    memset(report, 0, sizeof *report);
    numbers->count = 0;
    if (image->width_px < suspect_side_min_px || image->height_px < suspect_side_min_px)
        return IW_WATERMARK_NOT_FOUND;
    reading_begin(&reading, &workspace);
    enum iw_error error = reading_prepare(&reading, image, image->height_px, key);
    if (error == IW_OK)
        error = candidates_prepare(&reading, candidates);
    if (error == IW_OK)
        error = extract_blind(&reading, image, report);
    double correlation = reading.correlation;
    if (error == IW_OK)
        error = others_extract(&reading, image, numbers);
    if (original != NULL && (error == IW_OK || error == IW_WATERMARK_NOT_FOUND)) {
        bool is_first = numbers->count == 0;
        error = original_extract(&reading, original, numbers, report);
        correlation = is_first ? reading.correlation : correlation;
    }
    reading_end(&reading, report);
    report->correlation = correlation;
    return error;
}

enum iw_error watermark_verify(const struct image *image, uint32_t height_px,
                               const uint8_t key[WATERMARK_KEY_BYTES], uint64_t number,
                               double correlation_least, struct watermark_report *report)
{
    struct workspace workspace;
    struct reading reading = {0};

    memset(report, 0, sizeof *report);
    reading_begin(&reading, &workspace);
    enum iw_error error = reading_prepare(&reading, image, height_px, key);
    if (error == IW_OK && !(reading_untouched(&reading) && reading.number == number &&
                            reading.correlation >= correlation_least))
        error = workspace.failed ? IW_NO_MEMORY : IW_WATERMARK_NOT_FOUND;
    reading_end(&reading, report);
    return error;
}
