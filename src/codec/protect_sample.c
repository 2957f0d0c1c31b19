#include "codec/protect_sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * Strips are aligned to the 16-row grid of chroma blocks, as in the encoded picture. Their
 * outer rows are not measured, because chroma there comes from unrelated strips.
 */
enum { strip_rows = 48, margin_rows = 8, first_row = 64, grid_rows = 16 };

/*
 * Minimum period of strips, their minimum and usual count, and a limit on their pixels, which
 * keeps memory below an encoder's for the whole.
 */
enum { period_least = 192, strips_least = 6, strips_usual = 12, pixels_most = 12 << 20 };

/* ---- measuring */

/* Accumulates the error of another picture's rows. */
struct measure {
    struct context *context;
    const struct image *image;
    uint32_t strip_rows, margin_rows; /* period of rows, whose outer rows are skipped */
    uint32_t rows;                    /* counted */
    double error_sum;                 /* mean square error of each, relative to full range */
};

static struct image image_at(const struct image *image, uint32_t row)
{
    struct image one = *image;
    one.pixels = (unsigned char *)image->pixels + row * image->stride_bytes;
    one.height_px = 1;
    return one;
}

static void measure_rows(struct measure *measure, uint32_t first_row_px, const struct image *strip)
{
    for (uint32_t row = 0; row < strip->height_px; row++) {
        uint32_t inside = (first_row_px + row) % measure->strip_rows;
        if (inside < measure->margin_rows || inside >= measure->strip_rows - measure->margin_rows)
            continue;
        struct image beside = image_at(measure->image, first_row_px + row), here = image_at(strip, row);
        measure->error_sum += pow(10, -protect_psnr(&beside, &here) / 10);
        measure->rows++;
    }
}

static enum iw_error measure_strip(void *user, uint32_t first_row_px, const struct image *strip)
{
    struct measure *measure = user;
    const struct image *beside = measure->image;
    if (strip->width_px != beside->width_px || strip->height_px > beside->height_px - first_row_px ||
        strip->channels != beside->channels || strip->depth_bits != beside->depth_bits)
        return context_fail(measure->context, IW_SERVER_INTERNAL_ERROR,
                            "The encoded picture has another size or format.");
    measure_rows(measure, first_row_px, strip);
    return IW_OK;
}

static double measure_psnr_db(const struct measure *measure)
{
    return -10 * log10(measure->error_sum / measure->rows);
}

static enum iw_error measure_bytes(struct measure *measure, const struct codec_bytes *bytes)
{
    static const struct codec_limits limits = {0};
    return codec_decode_rows(measure->context, bytes->data, bytes->size, &limits, measure_strip, measure);
}

enum iw_error bytes_measure(struct context *context, const struct codec_bytes *bytes,
                            const struct image *image, double *psnr_db)
{
    struct measure measure = {context, image, image->height_px, 0, 0, 0};
    enum iw_error error = measure_bytes(&measure, bytes);
    if (error == IW_OK)
        *psnr_db = measure_psnr_db(&measure);
    return error;
}

/* ---- strips */

static uint32_t period_of(const struct codec_picture *picture)
{
    const uint64_t height_px = picture->image.height_px, pixels = height_px * picture->image.width_px;
    uint64_t period = height_px / strips_usual, sparse = strip_rows * pixels / pixels_most + 1;
    period = period > period_least ? period : period_least;
    period = period > sparse ? period : sparse;
    return (uint32_t)(period / grid_rows * grid_rows + (period % grid_rows != 0 ? grid_rows : 0));
}

static unsigned strips_of(const struct codec_picture *picture)
{
    uint32_t height_px = picture->image.height_px, last = first_row + strip_rows;
    return height_px < last ? 0 : (height_px - last) / period_of(picture) + 1;
}

bool sample_is_worth(const struct codec_picture *picture)
{
    /* The inks of a CMYK picture are stored by rows. */
    return picture->header.format == CODEC_JPEG && !picture->header.is_cmyk &&
           strips_of(picture) >= strips_least;
}

static size_t strip_bytes(const struct protect_sample *sample)
{
    return strip_rows * sample->picture.image.stride_bytes;
}

enum iw_error sample_take(struct context *context, const struct codec_picture *picture,
                          struct protect_sample *sample)
{
    sample->picture = *picture;
    sample->strips = strips_of(picture);
    sample->period_rows = period_of(picture);
    struct image *image = &sample->picture.image;
    image->height_px = sample->picture.header.height_px = sample->strips * strip_rows;
    image->pixels = malloc(image->height_px * image->stride_bytes);
    sample->plain = malloc(image->height_px * image->stride_bytes);
    if (image->pixels == NULL || sample->plain == NULL) {
        sample_free(sample);
        return context_fail(context, IW_NO_MEMORY, NULL);
    }
    for (unsigned i = 0; i < sample->strips; i++)
        memcpy((unsigned char *)sample->plain + i * strip_bytes(sample),
               (const unsigned char *)picture->image.pixels +
                   (first_row + (size_t)i * sample->period_rows) * image->stride_bytes,
               strip_bytes(sample));
    return IW_OK;
}

void sample_free(struct protect_sample *sample)
{
    free(sample->picture.image.pixels);
    free(sample->plain);
}

/* Render the strips at the scale. */
static void sample_render(struct protect_plan *plan, struct protect_sample *sample, double scale)
{
    struct image strip = sample->picture.image;
    memcpy(strip.pixels, sample->plain, sample->strips * strip_bytes(sample));
    strip.height_px = strip_rows;
    for (unsigned i = 0; i < sample->strips; i++) {
        protect_preview(plan, scale, first_row + i * sample->period_rows, &strip);
        strip.pixels = (unsigned char *)strip.pixels + strip_bytes(sample);
    }
}

enum iw_error sample_measure(struct context *context, struct protect_plan *plan,
                             struct protect_sample *sample, double scale, double *rendered_db,
                             double *encoded_db)
{
    struct codec_bytes bytes;
    struct image plain = sample->picture.image;
    plain.pixels = sample->plain;
    struct measure rendered = {context, &plain, strip_rows, margin_rows, 0, 0}, encoded = rendered;
    sample_render(plan, sample, scale);
    measure_rows(&rendered, 0, &sample->picture.image);
    enum iw_error error = codec_encode(context, &sample->picture, &bytes);
    if (error != IW_OK)
        return error;
    error = measure_bytes(&encoded, &bytes);
    *rendered_db = measure_psnr_db(&rendered);
    *encoded_db = measure_psnr_db(&encoded);
    codec_bytes_free(&bytes);
    return error;
}
