#include "model/picture.h"
#include "base/message.h"

#include <inttypes.h>

/* Measured at 100 megapixels (doc/pictures.md, "Limits"). */
static const struct picture_engine engines[ORDER_TYPE_COUNT] = {
    /*
     * Line buffers: 8.2 KiB. Thresholds, which are freed before an encoder runs: 110 MiB. A drawing of at
     * most 16 megapixels also has an index of a byte a pixel; the eighth of picture_allowed_bytes has room
     * for it.
     */
    [ORDER_ANTI_AI] = {.side_min_px = picture_protect_side_px,
                       .bytes_px = 3,
                       .bytes_column = 9 * 1024,
                       .early_bytes_100px = 116},
    [ORDER_WATERMARK_EMBED] = {.side_min_px = picture_embed_side_px, .bytes_px = 1},
    /* With noise: 17 MiB at 300 x 300 px, 82 MiB from one to 100 megapixels, 87 MiB with an original. */
    [ORDER_WATERMARK_EXTRACT] = {.bytes_px = 192, .bytes_max = 90 << 20, .is_read_only = true},
};

const struct picture_engine *picture_engine(enum order_type type)
{
    return &engines[type];
}

/*
 * Peak memory of libwebp 1.2.4 in addition to the pixels, bytes per pixel, measured at 24 to
 * 100 megapixels. Lossless pictures and alpha planes use the lossless encoder with ARGB and
 * hash chains. The fastest method, used for large pictures, needs less.
 */
enum {
    webp_decode_bytes_px = 4,
    webp_lossy_bytes_px = 3,
    webp_alpha_bytes_px = 21,
    webp_lossless_bytes_px = 28,
    webp_fast_bytes_px = 20
};

static void webp_load(const struct picture_form *form, uint64_t pixels, struct picture_load *load)
{
    unsigned library = form->channels == 4 ? webp_alpha_bytes_px : webp_lossy_bytes_px;
    if (form->is_lossless)
        library = pixels > picture_webp_fast_from_px ? webp_fast_bytes_px : webp_lossless_bytes_px;
    load->decode_bytes += pixels * webp_decode_bytes_px;
    load->encode_bytes += pixels * library;
}

static void jpeg_load(const struct picture_form *form, uint64_t pixels, struct picture_load *load)
{
    enum { inks = 4 };
    load->pixel_bytes += form->is_cmyk ? pixels * inks : 0;
    load->decode_bytes = load->encode_bytes = load->pixel_bytes + form->coefficient_bytes;
}

/* The result is extra; noise in the low byte of 16 bits does not compress. */
static void png_load(const struct picture_form *form, uint64_t pixels, struct picture_load *load)
{
    (void)pixels;
    load->encode_bytes += form->depth_bits == 16 ? load->pixel_bytes : load->pixel_bytes / 2;
}

/* A format without a row takes the pixels only. */
static void (*const loads[FORMAT_COUNT])(const struct picture_form *form, uint64_t pixels,
                                         struct picture_load *load) = {
    [FORMAT_JPEG] = jpeg_load, [FORMAT_PNG] = png_load, [FORMAT_WEBP] = webp_load};

struct picture_load picture_load(const struct picture_form *form)
{
    uint64_t pixels = (uint64_t)form->width_px * form->height_px;
    uint64_t bytes = pixels * form->channels * (form->depth_bits / 8);
    struct picture_load load = {form->width_px, form->height_px, bytes, bytes, bytes};
    if (loads[form->format] != NULL)
        loads[form->format](form, pixels, &load);
    return load;
}

uint64_t picture_work_bytes(const struct picture_load *load, const struct picture_engine *engine)
{
    uint64_t pixels = (uint64_t)load->width_px * load->height_px, bytes = pixels * engine->bytes_px;
    if (engine->bytes_max != 0 && bytes > engine->bytes_max)
        bytes = engine->bytes_max;
    bytes += (uint64_t)load->width_px * engine->bytes_column;
    uint64_t early_bytes = bytes + load->pixel_bytes + pixels / 100 * engine->early_bytes_100px;
    uint64_t late_bytes = engine->is_read_only ? 0 : bytes + load->encode_bytes;
    uint64_t work_bytes = early_bytes > late_bytes ? early_bytes : late_bytes;
    return work_bytes > load->decode_bytes ? work_bytes : load->decode_bytes;
}

uint64_t picture_allowed_bytes(uint64_t process_bytes)
{
    return process_bytes - process_bytes / 8;
}

enum iw_error picture_check_memory(struct context *context, const struct picture_load *load,
                                   const struct picture_engine *engine, uint64_t most_bytes)
{
    uint64_t needed_bytes = picture_work_bytes(load, engine);
    struct picture_load small = *load;
    if (most_bytes == 0 || needed_bytes <= most_bytes)
        return IW_OK;
    /* The same picture with shorter sides. */
    for (unsigned percent = 99; picture_work_bytes(&small, engine) > most_bytes && percent > 0; percent--) {
        uint64_t part = (uint64_t)percent * percent, whole = 10000;
        small = (struct picture_load){load->width_px * percent / 100, load->height_px * percent / 100,
                                      load->pixel_bytes / whole * part, load->decode_bytes / whole * part,
                                      load->encode_bytes / whole * part};
    }
    context->reason = "memory_estimate";
    return context_fail(context, IW_IMAGE_TOO_LARGE, message_picture_memory, load->width_px, load->height_px,
                        needed_bytes >> 20, most_bytes >> 20, small.width_px, small.height_px);
}

unsigned picture_megapixels(enum order_type type, uint64_t most_bytes)
{
    enum { megapixel = 1000000, megapixels_most = 1000 };
    unsigned megapixels = 0;
    for (uint32_t unit = 1; megapixels < megapixels_most; unit++) {
        const struct picture_form form = {FORMAT_JPEG, 3 * unit, 2 * unit, 3, 8, false, false, 0};
        const struct picture_load load = picture_load(&form);
        if (picture_work_bytes(&load, picture_engine(type)) > most_bytes)
            break;
        megapixels = (unsigned)((uint64_t)form.width_px * form.height_px / megapixel);
    }
    return megapixels;
}
