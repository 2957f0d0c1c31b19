/*
 * Reads the first page of a TIFF by libtiff's RGBA interface: grey, palette, RGB, YCbCr, CMYK and Lab of up
 * to 16 bits, as RGB or RGBA of 8 bits.
 */
#include <tiffio.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/driver.h"

enum { message_bytes = 1024 }; /* of libtiff's RGBA interface */

struct tiff_source {
    struct context *context;
    const unsigned char *data;
    size_t size;
    toff_t at;
};

struct tiff {
    struct tiff_source source;
    TIFF *file;
    TIFFRGBAImage image;
    uint32_t rows_px; /* that are decoded at once: a strip, or a row of tiles */
};

/* ---- the file in memory ---- */

static tmsize_t source_read(thandle_t handle, void *bytes, tmsize_t wanted)
{
    struct tiff_source *source = handle;
    size_t left = source->at < source->size ? source->size - source->at : 0;
    size_t count = (size_t)wanted < left ? (size_t)wanted : left;
    memcpy(bytes, source->data + (source->size - left), count);
    source->at += count;
    return (tmsize_t)count;
}

static tmsize_t source_write(thandle_t handle, void *bytes, tmsize_t count)
{
    (void)handle, (void)bytes, (void)count;
    return 0;
}

static toff_t source_seek(thandle_t handle, toff_t to, int whence)
{
    struct tiff_source *source = handle;
    source->at = whence == SEEK_CUR ? source->at + to : whence == SEEK_END ? source->size + to : to;
    return source->at;
}

static int source_close(thandle_t handle)
{
    (void)handle;
    return 0;
}

static toff_t source_size(thandle_t handle)
{
    return ((struct tiff_source *)handle)->size;
}

static int source_map(thandle_t handle, void **data, toff_t *size)
{
    struct tiff_source *source = handle;
    *data = (void *)(uintptr_t)source->data;
    *size = source->size;
    return 1;
}

static void source_unmap(thandle_t handle, void *data, toff_t size)
{
    (void)handle, (void)data, (void)size;
}

/* The first message is the cause. */
static int message_take(TIFF *file, void *user, const char *module, const char *format, va_list arguments)
{
    struct tiff_source *source = user;
    char text[256];
    (void)file, (void)module;
    vsnprintf(text, sizeof text, format, arguments);
    if (source->context->cause == NULL)
        context_cause(source->context, "libtiff: %s", text);
    return 1;
}

static int warning_take(TIFF *file, void *user, const char *module, const char *format, va_list arguments)
{
    (void)file, (void)user, (void)module, (void)format, (void)arguments;
    return 1;
}

static TIFF *file_open(struct tiff_source *source, const struct codec_limits *limits)
{
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (options == NULL)
        return NULL;
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, (tmsize_t)limits->memory_max_bytes);
    TIFFOpenOptionsSetErrorHandlerExtR(options, message_take, source);
    TIFFOpenOptionsSetWarningHandlerExtR(options, warning_take, NULL);
    TIFF *file = TIFFClientOpenExt("TIFF", "r", source, source_read, source_write, source_seek, source_close,
                                   source_size, source_map, source_unmap, options);
    TIFFOpenOptionsFree(options);
    return file;
}

/* ---- the first page ---- */

/*
 * The compressions of office programs, scanners and picture editors. Others, such as old JPEG, JBIG and
 * PixarLog, have few writers and many faults.
 */
static bool is_compression_known(TIFF *file)
{
    static const uint16_t known[] = {COMPRESSION_NONE,      COMPRESSION_CCITTRLE,      COMPRESSION_CCITTFAX3,
                                     COMPRESSION_CCITTFAX4, COMPRESSION_LZW,           COMPRESSION_JPEG,
                                     COMPRESSION_PACKBITS,  COMPRESSION_ADOBE_DEFLATE, COMPRESSION_DEFLATE,
                                     COMPRESSION_ZSTD};
    uint16_t compression = COMPRESSION_NONE;
    TIFFGetFieldDefaulted(file, TIFFTAG_COMPRESSION, &compression);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i] == compression)
            return TIFFIsCODECConfigured(compression);
    return false;
}

/* The first picture of a raw photo is a preview of reduced size. */
static bool is_preview(TIFF *file)
{
    uint32_t kind = 0;
    return TIFFGetField(file, TIFFTAG_SUBFILETYPE, &kind) && (kind & FILETYPE_REDUCEDIMAGE) != 0;
}

static void tiff_close(struct tiff *tiff)
{
    if (tiff->image.tif != NULL)
        TIFFRGBAImageEnd(&tiff->image);
    if (tiff->file != NULL)
        TIFFClose(tiff->file);
}

/* Opens the first page. After an error only tiff_close follows. */
static enum iw_error tiff_open(struct tiff *tiff, struct context *context, const unsigned char *data,
                               size_t size, const struct codec_limits *limits)
{
    char message[message_bytes] = "";
    *tiff = (struct tiff){.source = {context, data, size, 0}};
    tiff->file = file_open(&tiff->source, limits);
    if (tiff->file == NULL)
        return driver_damaged(context, FORMAT_TIFF);
    if (is_preview(tiff->file))
        return context_fail(
            context, IW_IMAGE_FORMAT_UNSUPPORTED,
            "This is a raw photo (DNG, NEF, ARW). Develop it in a photo program, export it as "
            "JPEG and upload it again.");
    if (!is_compression_known(tiff->file) || !TIFFRGBAImageOK(tiff->file, message) ||
        !TIFFRGBAImageBegin(&tiff->image, tiff->file, 1, message)) {
        if (message[0] != '\0' && context->cause == NULL)
            context_cause(context, "libtiff: %s", message);
        return context_fail(context, IW_IMAGE_FORMAT_UNSUPPORTED,
                            "This TIFF file has pixels of a kind that is not read, such as raw or floating "
                            "point samples. Export it as JPEG or PNG and upload it again.");
    }
    bool is_tiled = TIFFIsTiled(tiff->file);
    TIFFGetFieldDefaulted(tiff->file, is_tiled ? TIFFTAG_TILELENGTH : TIFFTAG_ROWSPERSTRIP, &tiff->rows_px);
    if (tiff->rows_px == 0 || tiff->rows_px > tiff->image.height)
        tiff->rows_px = tiff->image.height;
    /* The rows are wanted as stored, as those of other formats: the reader finds a mark in any orientation.
     */
    tiff->image.req_orientation = tiff->image.orientation;
    return IW_OK;
}

/* The rows that are decoded at once, as libtiff's samples and as RGBA. */
static uint64_t part_bytes(const struct tiff *tiff)
{
    uint64_t samples = TIFFIsTiled(tiff->file) ? TIFFTileSize64(tiff->file) : TIFFStripSize64(tiff->file);
    uint64_t planes = tiff->image.isContig ? 1 : tiff->image.samplesperpixel;
    return samples * planes + (uint64_t)tiff->image.width * tiff->rows_px * sizeof(uint32_t);
}

static enum iw_error tiff_probe(struct context *context, const unsigned char *data, size_t size,
                                const struct codec_limits *limits, struct codec_header *header)
{
    struct tiff tiff;
    enum iw_error error = tiff_open(&tiff, context, data, size, limits);
    if (error == IW_OK) {
        header->format = FORMAT_TIFF;
        header->width_px = tiff.image.width;
        header->height_px = tiff.image.height;
        header->channels = tiff.image.alpha != 0 ? 4 : 3;
        header->depth_bits = 8;
        limits_estimate(header);
        header->decode_memory_bytes += part_bytes(&tiff);
        error = limits_check(context, limits, header);
    }
    tiff_close(&tiff);
    return error;
}

/* libtiff multiplies the colours by the alpha. */
static void row_copy(const uint32_t *raster, const struct image *image, uint32_t y)
{
    unsigned char *at = (unsigned char *)image->pixels + y * image->stride_bytes;
    for (uint32_t x = 0; x < image->width_px; x++, at += image->channels) {
        uint32_t alpha = image->channels == 4 ? TIFFGetA(raster[x]) : 255;
        const uint32_t colors[3] = {TIFFGetR(raster[x]), TIFFGetG(raster[x]), TIFFGetB(raster[x])};
        for (int c = 0; c < 3 && alpha != 0; c++) {
            uint32_t color = (colors[c] * 255 + alpha / 2) / alpha;
            at[c] = (unsigned char)(color < 255 ? color : 255);
        }
        if (image->channels == 4)
            at[3] = (unsigned char)alpha;
    }
}

/* Returns the rows before the first damaged part. */
static uint32_t rows_read(struct tiff *tiff, uint32_t *raster, const struct image *image)
{
    uint32_t y = 0, rows;
    for (; y < image->height_px; y += rows) {
        rows = tiff->rows_px < image->height_px - y ? tiff->rows_px : image->height_px - y;
        tiff->image.row_offset = (int)y;
        if (!TIFFRGBAImageGet(&tiff->image, raster, image->width_px, rows))
            return y;
        for (uint32_t i = 0; i < rows; i++)
            row_copy(raster + (size_t)i * image->width_px, image, y + i);
    }
    return y;
}

static enum iw_error tiff_decode(struct context *context, const unsigned char *data, size_t size,
                                 const struct codec_limits *limits, struct codec_picture *picture)
{
    struct tiff tiff;
    struct keep_loss *loss = &picture->keep->loss;
    const struct image *image = &picture->image;
    enum iw_error error = tiff_open(&tiff, context, data, size, limits);
    uint32_t *raster =
        error != IW_OK ? NULL : malloc((size_t)image->width_px * tiff.rows_px * sizeof *raster);
    if (error == IW_OK && raster == NULL)
        error = context_fail(context, IW_NO_MEMORY, NULL);
    if (error == IW_OK) {
        loss->rows_px = rows_read(&tiff, raster, image);
        picture->keep->orientation = tiff.image.orientation;
    }
    if (error == IW_OK && loss->rows_px < image->height_px && !limits->is_partial_allowed)
        error = driver_damaged(context, FORMAT_TIFF);
    free(raster);
    tiff_close(&tiff);
    return error;
}

const struct codec_driver tiff_driver = {.probe = tiff_probe, .decode = tiff_decode};
