/*
 * Reads the main picture of a HEIC or AVIF file by libheif, as RGB or RGBA of 8 bits, upright.
 *
 * libheif loads its decoders, and these prepare their tables, when they are first used. codec_open does that
 * before the process is sealed.
 */
#include <libheif/heif.h>

#include <stdlib.h>
#include <string.h>

#include "codec/driver.h"
#include "model/sniff.h"

/* Peaks of libheif 1.15 and the decoders at 24 megapixels, with the pixels: of 8 bits 9 to 14.2, of 10
 * bits 19.5. */
enum { bytes_px = 15, deep_bytes_px = 20 };

struct heif {
    struct heif_context *file;
    struct heif_image_handle *handle;
};

/*
 * libheif starts a thread for libde265, which decodes HEIC. The seal forbids threads, and without a thread
 * libde265 works in the calling thread. This definition takes the place of the library's in the whole
 * program.
 */
int de265_start_worker_threads(void *decoder, int count);
int de265_start_worker_threads(void *decoder, int count)
{
    (void)decoder, (void)count;
    return 0;
}

static void heif_prepare(void)
{
    heif_init(NULL);
}

static enum iw_error heif_refuse(struct context *context, const struct heif_error *error, enum format format,
                                 size_t size)
{
    context_cause(context, "libheif: %s", error->message);
    if (error->code == heif_error_Memory_allocation_error)
        return context_fail(
            context, IW_IMAGE_TOO_LARGE,
            "The picture needs more memory than is allowed. Scale it down and upload it again.");
    if (error->subcode == heif_suberror_End_of_data)
        return driver_cut(context, size);
    if (error->code == heif_error_Unsupported_feature || error->code == heif_error_Unsupported_filetype)
        return context_fail(context, IW_IMAGE_FORMAT_UNSUPPORTED,
                            "This %s file has a picture of a kind that is not read. Export it as JPEG and "
                            "upload it again.",
                            format_title(format));
    return driver_damaged(context, format);
}

/* The limits of decoding, in the calling thread. The header was checked; the stream may have other numbers.
 */
static void limits_set(struct heif_context *file, const struct codec_limits *limits)
{
    heif_context_set_max_decoding_threads(file, 0);
    if (limits->side_max_px != 0)
        heif_context_set_maximum_image_size_limit(file, (int)limits->side_max_px);
#ifdef HAVE_HEIF_SECURITY_LIMITS
    struct heif_security_limits *own = heif_context_get_security_limits(file);
    if (limits->pixels_max != 0)
        own->max_image_size_pixels = limits->pixels_max;
    if (limits->memory_max_bytes != 0)
        own->max_memory_block_size = limits->memory_max_bytes;
#endif
}

/* A file of one brand may hold a picture of the other codec, which may be switched off. */
static bool is_codec_off(const unsigned char *data, size_t size, const struct codec_limits *limits)
{
    enum { name_bytes = 4 };
    return (!format_is_in(FORMAT_HEIC, limits->formats_more) && memmem(data, size, "hvcC", name_bytes)) ||
           (!format_is_in(FORMAT_AVIF, limits->formats_more) && memmem(data, size, "av1C", name_bytes));
}

static void heif_close(struct heif *heif)
{
    heif_image_handle_release(heif->handle);
    heif_context_free(heif->file);
}

/* Opens the main picture. After an error only heif_close follows. */
static enum iw_error heif_open(struct heif *heif, struct context *context, const unsigned char *data,
                               size_t size, const struct codec_limits *limits)
{
    enum format format = sniff_format(data, size);
    *heif = (struct heif){.file = heif_context_alloc()};
    if (heif->file == NULL)
        return context_fail(context, IW_NO_MEMORY, NULL);
    if (is_codec_off(data, size, limits))
        return context_fail(context, IW_IMAGE_FORMAT_UNSUPPORTED, "%s",
                            sniff_advice(context->arena, data, size));
    struct heif_error error = heif_context_read_from_memory_without_copy(heif->file, data, size, NULL);
    if (error.code == heif_error_Ok)
        error = heif_context_get_primary_image_handle(heif->file, &heif->handle);
    return error.code == heif_error_Ok ? IW_OK : heif_refuse(context, &error, format, size);
}

static enum iw_error heif_probe(struct context *context, const unsigned char *data, size_t size,
                                const struct codec_limits *limits, struct codec_header *header)
{
    struct heif heif;
    enum iw_error error = heif_open(&heif, context, data, size, limits);
    if (error == IW_OK) {
        header->format = sniff_format(data, size);
        header->width_px = (uint32_t)heif_image_handle_get_width(heif.handle);
        header->height_px = (uint32_t)heif_image_handle_get_height(heif.handle);
        header->channels = heif_image_handle_has_alpha_channel(heif.handle) ? 4 : 3;
        header->depth_bits = 8;
        header->is_lossy = true;
        limits_estimate(header);
        bool is_deep = heif_image_handle_get_luma_bits_per_pixel(heif.handle) > 8;
        header->decode_memory_bytes =
            (uint64_t)header->width_px * header->height_px * (is_deep ? deep_bytes_px : bytes_px);
        error = limits_check(context, limits, header);
    }
    heif_close(&heif);
    return error;
}

/* Copies the decoded picture, whose size may differ from the header's. */
static enum iw_error pixels_copy(struct context *context, const struct heif_image *decoded,
                                 struct codec_picture *picture)
{
    int stride_bytes = 0;
    const struct image *image = &picture->image;
    const uint8_t *pixels = heif_image_get_plane_readonly(decoded, heif_channel_interleaved, &stride_bytes);
    if (pixels == NULL || stride_bytes < 0 || (size_t)stride_bytes < image->stride_bytes ||
        heif_image_get_primary_width(decoded) != (int)image->width_px ||
        heif_image_get_primary_height(decoded) != (int)image->height_px)
        return driver_damaged(context, picture->header.format);
    for (uint32_t y = 0; y < image->height_px; y++)
        memcpy((unsigned char *)image->pixels + y * image->stride_bytes, pixels + y * (size_t)stride_bytes,
               image->stride_bytes);
    return IW_OK;
}

static enum iw_error heif_decode(struct context *context, const unsigned char *data, size_t size,
                                 const struct codec_limits *limits, struct codec_picture *picture)
{
    struct heif heif;
    struct heif_image *decoded = NULL;
    enum iw_error error = heif_open(&heif, context, data, size, limits);
    if (error == IW_OK) {
        limits_set(heif.file, limits);
        struct heif_decoding_options *options = heif_decoding_options_alloc();
        if (options != NULL)
            options->convert_hdr_to_8bit = 1;
        struct heif_error why = heif_decode_image(heif.handle, &decoded, heif_colorspace_RGB,
                                                  picture->header.channels == 4 ? heif_chroma_interleaved_RGBA
                                                                                : heif_chroma_interleaved_RGB,
                                                  options);
        heif_decoding_options_free(options);
        error = why.code == heif_error_Ok ? pixels_copy(context, decoded, picture)
                                          : heif_refuse(context, &why, picture->header.format, size);
    }
    heif_image_release(decoded);
    heif_close(&heif);
    return error;
}

const struct codec_driver heif_driver = {.prepare = heif_prepare, .probe = heif_probe, .decode = heif_decode};
