/*
 * PNG through libpng, which sees only the chunks that make pixels; all others
 * are read, checked and written back here, byte for byte.  libpng leaves by
 * longjmp, which stays within this file: every library call is made by a step
 * that png_guarded runs, and all that a step changes lives in the job.
 */
#include <png.h>

#include <endian.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "worker/codec_keep.h"

enum {
    signature_bytes = 8,
    chunk_frame_bytes = 12, /* length, name, checksum */
    header_chunk_bytes = 13,
    compression_level = 5,
    deflate_buffer_bytes = 256 * 1024
};

#define TAG_IHDR KEEP_TAG('I', 'H', 'D', 'R')
#define TAG_PLTE KEEP_TAG('P', 'L', 'T', 'E')
#define TAG_IDAT KEEP_TAG('I', 'D', 'A', 'T')
#define TAG_IEND KEEP_TAG('I', 'E', 'N', 'D')
#define TAG_ACTL KEEP_TAG('a', 'c', 'T', 'L')
#define TAG_TRNS KEEP_TAG('t', 'R', 'N', 'S')
#define TAG_BKGD KEEP_TAG('b', 'K', 'G', 'D')
#define TAG_SBIT KEEP_TAG('s', 'B', 'I', 'T')
#define TAG_HIST KEEP_TAG('h', 'I', 'S', 'T')

/* Chunks whose name says that they depend on the pixels, and which we know to hold when pixels change a
 * little. */
static const uint32_t tags_kept[] = {
    KEEP_TAG('g', 'A', 'M', 'A'), KEEP_TAG('c', 'H', 'R', 'M'), KEEP_TAG('s', 'R', 'G', 'B'),
    KEEP_TAG('i', 'C', 'C', 'P'), KEEP_TAG('c', 'I', 'C', 'P'), KEEP_TAG('m', 'D', 'C', 'V'),
    KEEP_TAG('c', 'L', 'L', 'I'), KEEP_TAG('s', 'P', 'L', 'T'), KEEP_TAG('t', 'I', 'M', 'E'),
    KEEP_TAG('o', 'F', 'F', 's'), KEEP_TAG('p', 'C', 'A', 'L'), KEEP_TAG('s', 'C', 'A', 'L'),
    KEEP_TAG('s', 'T', 'E', 'R'), KEEP_TAG('e', 'X', 'I', 'f'), KEEP_TAG('c', 'a', 'B', 'X'),
};

struct png_chunk {
    uint32_t tag;
    uint32_t size;
    const unsigned char *data;
};

/* What the walk over the chunks finds. */
struct png_layout {
    uint32_t width_px;
    uint32_t height_px;
    unsigned depth_bits; /* of the file: 1, 2, 4, 8, 16 */
    unsigned color_type;
    bool is_interlaced;
    bool has_transparency;
    bool has_palette;
    bool has_pixels;
    bool has_end;
    bool is_animated;
};

struct png_job {
    struct context *context;
    enum iw_error error;
    png_structp png;
    png_infop info;
    const unsigned char *data;
    size_t size;
    size_t offset;
    const struct image *image;
    const struct codec_keep *keep;
    struct codec_bytes *bytes;
    size_t capacity;
};

static uint32_t big_endian(const unsigned char *bytes)
{
    return KEEP_TAG(bytes[0], bytes[1], bytes[2], bytes[3]);
}

/* ---- the walk over the chunks ---- */

static enum iw_error png_broken(struct context *context, const char *what)
{
    return context_fail(context, IW_IMAGE_CORRUPT, "The PNG image is broken: %s.", what);
}

/* Takes the next chunk; checks its checksum unless it is pixels, which libpng checks. */
static enum iw_error chunk_next(struct context *context, const unsigned char *data, size_t size,
                                size_t *offset, struct png_chunk *chunk)
{
    if (size - *offset < chunk_frame_bytes)
        return png_broken(context, "the file ends early");
    chunk->size = big_endian(data + *offset);
    chunk->tag = big_endian(data + *offset + 4);
    chunk->data = data + *offset + 8;
    if (chunk->size > size - *offset - chunk_frame_bytes)
        return png_broken(context, "the file ends early");
    if (chunk->tag != TAG_IDAT &&
        crc32(0, chunk->data - 4, chunk->size + 4) != big_endian(chunk->data + chunk->size))
        return png_broken(context, "a checksum is wrong");
    *offset += chunk_frame_bytes + (size_t)chunk->size;
    return IW_OK;
}

static enum iw_error layout_header(struct context *context, const struct png_chunk *chunk,
                                   struct png_layout *layout)
{
    /* Bit n: a depth of n is allowed with the colour type. */
    static const uint32_t depths[7] = {
        [0] = 0x10116, [2] = 0x10100, [3] = 0x116, [4] = 0x10100, [6] = 0x10100};
    if (chunk->tag != TAG_IHDR || chunk->size != header_chunk_bytes)
        return png_broken(context, "it does not begin with a header");
    layout->width_px = big_endian(chunk->data);
    layout->height_px = big_endian(chunk->data + 4);
    layout->depth_bits = chunk->data[8];
    layout->color_type = chunk->data[9];
    layout->is_interlaced = chunk->data[12] == 1;
    if (layout->color_type > 6 || layout->depth_bits > 16 ||
        !(depths[layout->color_type] >> layout->depth_bits & 1) || chunk->data[10] != 0 ||
        chunk->data[11] != 0 || chunk->data[12] > 1)
        return png_broken(context, "the header is not valid");
    return IW_OK;
}

/* bKGD and sBIT speak in the samples of the file: kept when those stay the same. */
static bool is_shape_same(const struct png_layout *layout)
{
    return layout->color_type != PNG_COLOR_TYPE_PALETTE && layout->depth_bits >= 8 &&
           !layout->has_transparency;
}

static bool is_kept(const struct png_layout *layout, uint32_t tag)
{
    const uint32_t safe_to_copy = 0x20;
    if (tag == TAG_TRNS || tag == TAG_HIST || tag == TAG_PLTE)
        return false;
    if (tag == TAG_BKGD || tag == TAG_SBIT)
        return is_shape_same(layout);
    for (size_t i = 0; i < sizeof tags_kept / sizeof tags_kept[0]; i++)
        if (tags_kept[i] == tag)
            return true;
    return (tag & safe_to_copy) != 0;
}

static enum iw_error layout_chunk(struct context *context, const struct png_chunk *chunk,
                                  struct png_layout *layout)
{
    const uint32_t ancillary = 0x20000000;
    switch (chunk->tag) {
    case TAG_IDAT:
        layout->has_pixels = true;
        return IW_OK;
    case TAG_IEND:
        layout->has_end = true;
        return IW_OK;
    case TAG_PLTE:
        layout->has_palette = true;
        return IW_OK;
    case TAG_TRNS:
        layout->has_transparency |= !layout->has_pixels;
        return IW_OK;
    case TAG_ACTL:
        layout->is_animated |= !layout->has_pixels;
        return IW_OK;
    default:
        if (!(chunk->tag & ancillary))
            return context_fail(context, IW_IMAGE_FORMAT_UNSUPPORTED,
                                "The PNG image holds a chunk that is not known.");
        return IW_OK;
    }
}

static bool is_pixel_chunk(uint32_t tag)
{
    return tag == TAG_IDAT || tag == TAG_IEND || tag == TAG_IHDR;
}

static enum iw_error layout_walk(struct context *context, const unsigned char *data, size_t size,
                                 struct png_layout *layout)
{
    struct png_chunk chunk;
    size_t offset = signature_bytes;
    memset(layout, 0, sizeof *layout);
    enum iw_error error = chunk_next(context, data, size, &offset, &chunk);
    if (error == IW_OK)
        error = layout_header(context, &chunk, layout);
    while (error == IW_OK && !layout->has_end) {
        error = chunk_next(context, data, size, &offset, &chunk);
        if (error == IW_OK)
            error = layout_chunk(context, &chunk, layout);
    }
    if (error == IW_OK && !layout->has_pixels)
        error = png_broken(context, "it holds no pixels");
    if (error == IW_OK && layout->color_type == PNG_COLOR_TYPE_PALETTE && !layout->has_palette)
        error = png_broken(context, "its palette is missing");
    return error;
}

static enum iw_error chunks_keep(struct context *context, const unsigned char *data, size_t size,
                                 const struct png_layout *layout, struct codec_keep *keep)
{
    struct png_chunk chunk = {0, 0, NULL};
    size_t offset = signature_bytes;
    bool is_after_pixels = false;
    enum iw_error error = IW_OK;
    while (error == IW_OK && chunk.tag != TAG_IEND) {
        error = chunk_next(context, data, size, &offset, &chunk);
        is_after_pixels |= chunk.tag == TAG_IDAT;
        if (error == IW_OK && !is_pixel_chunk(chunk.tag) && is_kept(layout, chunk.tag))
            error = keep_add(context, keep, chunk.tag, is_after_pixels, chunk.data, chunk.size);
    }
    return error;
}

/* ---- errors ---- */

static void png_exit(png_structp png, png_const_charp message)
{
    struct png_job *job = png_get_error_ptr(png);
    if (job->error == IW_OK)
        job->error = context_fail(job->context, IW_IMAGE_CORRUPT, "The PNG image is broken: %s.", message);
    png_longjmp(png, 1);
}

static void png_warning_ignore(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

static void png_out_of_memory(struct png_job *job)
{
    job->error = context_fail(job->context, IW_NO_MEMORY, NULL);
}

static void png_guarded(struct png_job *job, void (*step)(struct png_job *job))
{
    if (setjmp(png_jmpbuf(job->png)) == 0)
        step(job);
}

/* ---- decoding ---- */

static enum iw_error codec_png_probe(struct context *context, const unsigned char *data, size_t size,
                                     const struct codec_limits *limits, struct codec_header *header)
{
    struct png_layout layout;
    enum iw_error error = layout_walk(context, data, size, &layout);
    if (error != IW_OK)
        return error;
    bool is_color = (layout.color_type & PNG_COLOR_MASK_COLOR) != 0;
    bool has_alpha = (layout.color_type & PNG_COLOR_MASK_ALPHA) != 0 || layout.has_transparency;
    header->format = CODEC_PNG;
    header->width_px = layout.width_px;
    header->height_px = layout.height_px;
    header->channels = (is_color ? 3U : 1U) + has_alpha;
    header->depth_bits = layout.depth_bits == 16 ? 16 : 8;
    header->is_lossy = false;
    header->is_animated = layout.is_animated;
    uint64_t pixel_bytes =
        (uint64_t)layout.width_px * layout.height_px * header->channels * (header->depth_bits / 8);
    /* The result comes on top; noise in the lower byte of 16 bits does not deflate. */
    header->decode_memory_bytes = pixel_bytes;
    header->encode_memory_bytes = header->depth_bits == 16 ? 2 * pixel_bytes : pixel_bytes + pixel_bytes / 2;
    return codec_check(context, limits, header);
}

static void source_take(png_structp png, png_bytep bytes, size_t size)
{
    struct png_job *job = png_get_io_ptr(png);
    if (size > job->size - job->offset)
        png_error(png, "the file ends early");
    memcpy(bytes, job->data + job->offset, size);
    job->offset += size;
}

static void png_expand(png_structp png, png_infop info)
{
    unsigned color_type = png_get_color_type(png, info);
    unsigned depth_bits = png_get_bit_depth(png, info);
    if (color_type == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(png);
    if (color_type == PNG_COLOR_TYPE_GRAY && depth_bits < 8)
        png_set_expand_gray_1_2_4_to_8(png);
    if (png_get_valid(png, info, PNG_INFO_tRNS))
        png_set_tRNS_to_alpha(png);
    if (depth_bits == 16 && BYTE_ORDER == LITTLE_ENDIAN)
        png_set_swap(png);
}

static void png_step_decode(struct png_job *job)
{
    png_structp png = job->png;
    const struct image *image = job->image;
    png_set_read_fn(png, job, source_take);
    png_set_user_limits(png, image->width_px, image->height_px);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
    png_read_info(png, job->info);
    png_expand(png, job->info);
    int passes = png_set_interlace_handling(png);
    png_read_update_info(png, job->info);
    if (png_get_rowbytes(png, job->info) != image->stride_bytes)
        png_error(png, "its transparency does not match its colours");
    for (int pass = 0; pass < passes; pass++)
        for (uint32_t y = 0; y < image->height_px; y++)
            png_read_row(png, (png_bytep)image->pixels + y * image->stride_bytes, NULL);
    png_read_end(png, NULL);
}

static enum iw_error codec_png_decode(struct context *context, const unsigned char *data, size_t size,
                                      const struct codec_limits *limits, struct codec_picture *picture)
{
    struct png_layout layout;
    (void)limits;
    enum iw_error error = layout_walk(context, data, size, &layout);
    if (error == IW_OK)
        error = chunks_keep(context, data, size, &layout, picture->keep);
    if (error != IW_OK)
        return error;
    picture->keep->png.is_interlaced = layout.is_interlaced;
    struct png_job job = {.context = context, .data = data, .size = size, .image = &picture->image};
    job.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &job, png_exit, png_warning_ignore);
    job.info = job.png == NULL ? NULL : png_create_info_struct(job.png);
    if (job.info == NULL)
        png_out_of_memory(&job);
    else
        png_guarded(&job, png_step_decode);
    png_destroy_read_struct(&job.png, &job.info, NULL);
    return job.error;
}

/* ---- encoding ---- */

static void destination_take(png_structp png, png_bytep bytes, size_t size)
{
    struct png_job *job = png_get_io_ptr(png);
    if (codec_bytes_append(job->bytes, &job->capacity, bytes, size))
        return;
    png_out_of_memory(job);
    png_error(png, "no memory");
}

static void destination_flush(png_structp png)
{
    (void)png;
}

static void chunks_write(struct png_job *job, bool is_after_pixels)
{
    for (const struct keep_chunk *chunk = job->keep->first; chunk != NULL; chunk = chunk->next) {
        png_byte name[5] = {(png_byte)(chunk->tag >> 24), (png_byte)(chunk->tag >> 16),
                            (png_byte)(chunk->tag >> 8), (png_byte)chunk->tag, 0};
        if (chunk->is_after_pixels == is_after_pixels)
            png_write_chunk(job->png, name, chunk->data, chunk->size);
    }
}

static void png_step_encode(struct png_job *job)
{
    static const int color_types[] = {[1] = PNG_COLOR_TYPE_GRAY,
                                      [2] = PNG_COLOR_TYPE_GRAY_ALPHA,
                                      [3] = PNG_COLOR_TYPE_RGB,
                                      [4] = PNG_COLOR_TYPE_RGB_ALPHA};
    png_structp png = job->png;
    const struct image *image = job->image;
    png_set_write_fn(png, job, destination_take, destination_flush);
    png_set_user_limits(png, image->width_px, image->height_px);
    png_set_compression_level(png, compression_level);
    png_set_compression_buffer_size(png, deflate_buffer_bytes);
    png_set_IHDR(png, job->info, image->width_px, image->height_px, (int)image->depth_bits,
                 color_types[image->channels],
                 job->keep->png.is_interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, job->info);
    chunks_write(job, false);
    if (image->depth_bits == 16 && BYTE_ORDER == LITTLE_ENDIAN)
        png_set_swap(png);
    int passes = png_set_interlace_handling(png);
    for (int pass = 0; pass < passes; pass++)
        for (uint32_t y = 0; y < image->height_px; y++)
            png_write_row(png, (png_const_bytep)image->pixels + y * image->stride_bytes);
    chunks_write(job, true);
    png_write_end(png, NULL);
}

static enum iw_error codec_png_encode(struct context *context, const struct codec_picture *picture,
                                      struct codec_bytes *bytes)
{
    struct png_job job = {
        .context = context, .image = &picture->image, .keep = picture->keep, .bytes = bytes};
    job.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &job, png_exit, png_warning_ignore);
    job.info = job.png == NULL ? NULL : png_create_info_struct(job.png);
    if (job.info == NULL)
        png_out_of_memory(&job);
    else
        png_guarded(&job, png_step_encode);
    png_destroy_write_struct(&job.png, &job.info);
    return job.error;
}

const struct codec_driver codec_png_driver = {codec_png_probe, codec_png_decode, NULL, codec_png_encode};
