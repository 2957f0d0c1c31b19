/*
 * PNG by libpng, which receives only the chunks that define pixels: header, palette,
 * transparency and pixel data. All others are read, checked and written here, byte for byte;
 * damage in a chunk costs that chunk only.
 *
 * Pixels are accepted when one of their checksums is right: that of each pixel chunk, or that
 * of the compressed stream.
 *
 * libpng reports errors with longjmp, which stays within this file. Every library call is in a
 * step that png_guarded runs, and all state that a step changes is in the job.
 */
#include <png.h>

#include <endian.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/message.h"
#include "codec/driver.h"
#include "codec/metadata/clean.h"
#include "codec/metadata/packets.h"
#include "codec/metadata/png_text.h"
#include "codec/palette.h"

enum {
    signature_bytes = 8,
    chunk_head_bytes = 8,   /* length, name */
    chunk_frame_bytes = 12, /* length, name, checksum */
    header_chunk_bytes = 13,
    palette_bytes_max = 3 * 256,
    transparency_bytes_max = 256,
    stream_sum_bytes = 4, /* Adler-32, the end of the compressed stream (RFC 1950, 2.2) */
    deflate_buffer_bytes = 256 * 1024,
    twice_most_px = 4 * 1000 * 1000 /* the second attempt costs up to 0.08 s a megapixel */
};

#define TAG_IHDR KEEP_TAG('I', 'H', 'D', 'R')
#define TAG_PLTE KEEP_TAG('P', 'L', 'T', 'E')
#define TAG_IDAT KEEP_TAG('I', 'D', 'A', 'T')
#define TAG_IEND KEEP_TAG('I', 'E', 'N', 'D')
#define TAG_ACTL KEEP_TAG('a', 'c', 'T', 'L')
#define TAG_FCTL KEEP_TAG('f', 'c', 'T', 'L')
#define TAG_FDAT KEEP_TAG('f', 'd', 'A', 'T')
#define TAG_CGBI KEEP_TAG('C', 'g', 'B', 'I')
#define TAG_TRNS KEEP_TAG('t', 'R', 'N', 'S')
#define TAG_BKGD KEEP_TAG('b', 'K', 'G', 'D')
#define TAG_SBIT KEEP_TAG('s', 'B', 'I', 'T')
#define TAG_HIST KEEP_TAG('h', 'I', 'S', 'T')

/*
 * Filters and level of a deflate stream. The compact watermark repeats along and down the rows: on drawings
 * the second and third way take a third less than the first, and street maps less without filters. Level 9
 * takes 1 % less than 8 and twice the time.
 */
enum png_way { WAY_ALL, WAY_PLAIN, WAY_UP, WAY_FAST, WAYS };
static const struct {
    int filters;
    int strategy;
    int level;
} ways[] = {
    [WAY_ALL] = {PNG_ALL_FILTERS, Z_FILTERED, 5},
    [WAY_PLAIN] = {PNG_FILTER_NONE, Z_DEFAULT_STRATEGY, 8},
    [WAY_UP] = {PNG_FILTER_NONE | PNG_FILTER_UP, Z_DEFAULT_STRATEGY, 8},
    [WAY_FAST] = {PNG_FILTER_NONE, Z_DEFAULT_STRATEGY, 5},
};

/* Chunks whose name marks them as dependent on the pixels, but which remain valid after a small change. */
static const uint32_t tags_kept[] = {
    KEEP_TAG('g', 'A', 'M', 'A'), KEEP_TAG('c', 'H', 'R', 'M'), KEEP_TAG('s', 'R', 'G', 'B'),
    KEEP_TAG('i', 'C', 'C', 'P'), KEEP_TAG('c', 'I', 'C', 'P'), KEEP_TAG('m', 'D', 'C', 'V'),
    KEEP_TAG('c', 'L', 'L', 'I'), KEEP_TAG('s', 'P', 'L', 'T'), KEEP_TAG('t', 'I', 'M', 'E'),
    KEEP_TAG('o', 'F', 'F', 's'), KEEP_TAG('p', 'C', 'A', 'L'), KEEP_TAG('s', 'C', 'A', 'L'),
    KEEP_TAG('s', 'T', 'E', 'R'), KEEP_TAG('e', 'X', 'I', 'f'), KEEP_TAG('c', 'a', 'B', 'X'),
};

struct png_chunk {
    uint32_t tag;
    uint32_t size; /* of the available data */
    const unsigned char *data;
    bool is_cut;   /* the file ends within it */
    bool is_sound; /* complete, with the right checksum */
};

/* Result of the walk over the chunks. */
struct png_layout {
    uint32_t width_px;
    uint32_t height_px;
    unsigned depth_bits; /* of the file: 1, 2, 4, 8, 16 */
    unsigned color_type;
    bool is_interlaced;
    const unsigned char *palette; /* NULL if there is none */
    uint32_t palette_bytes;
    const unsigned char *transparency; /* NULL if there is none that is valid */
    uint32_t transparency_bytes;
    bool has_pixels;
    uint64_t pixel_bytes; /* of all pixel chunks, compressed */
    bool has_end;
    bool is_pixel_sum_wrong; /* of a pixel chunk */
    bool has_animation;      /* acTL before the pixels */
    bool has_frame_data;     /* fdAT */
    uint32_t frame_count;    /* fcTL */
    size_t end;              /* after the last chunk that counts */
};

struct png_job {
    struct context *context;
    enum iw_error error;
    png_structp png;
    png_infop info;
    const unsigned char *data;
    size_t size;
    const struct png_layout *layout;
    struct png_feed *feed; /* the input of libpng */
    const struct image *image;
    struct keep_loss *loss; /* NULL if a loss is an error */
    bool are_rows_read;     /* the rows have begun: */
    int pass;               /* the current pass and row */
    uint32_t row_px;
    const struct codec_keep *keep;
    struct codec_bytes *bytes;
    size_t capacity;
    const struct palette *palette; /* for writing; NULL: as samples */
    unsigned depth_bits;           /* for writing */
    enum png_way way;              /* for writing */
    unsigned char *row;            /* of indices or of grey of less than 8 bits */
};

/* ---- the walk over the chunks ---- */

static enum iw_error png_broken(struct context *context, const char *cause)
{
    context_cause(context, "PNG: %s", cause);
    return driver_damaged(context, FORMAT_PNG);
}

static bool is_tag(uint32_t tag)
{
    for (int shift = 0; shift < 32; shift += 8) {
        unsigned letter = (tag >> shift & 0xFF) | 0x20;
        if (letter < 'a' || letter > 'z')
            return false;
    }
    return true;
}

/* Reads the next chunk. False at the end of the file, and if there is no chunk here. */
static bool png_chunk_next(const unsigned char *data, size_t size, size_t *offset, struct png_chunk *chunk)
{
    if (size - *offset < chunk_head_bytes)
        return false;
    uint32_t length = keep_number(data + *offset);
    size_t left = size - *offset - chunk_head_bytes;
    chunk->tag = keep_number(data + *offset + 4);
    chunk->data = data + *offset + chunk_head_bytes;
    chunk->size = length < left ? length : (uint32_t)left;
    chunk->is_cut = left < (size_t)length + 4;
    if (!is_tag(chunk->tag))
        return false;
    chunk->is_sound =
        !chunk->is_cut && crc32(0, chunk->data - 4, length + 4) == keep_number(chunk->data + length);
    *offset += chunk->is_cut ? chunk_head_bytes + left : chunk_frame_bytes + (size_t)length;
    return true;
}

static enum iw_error layout_header(struct context *context, const struct png_chunk *chunk,
                                   struct png_layout *layout)
{
    /* Bit n: depth n is valid for the colour type. */
    static const uint32_t depths[7] = {
        [0] = 0x10116, [2] = 0x10100, [3] = 0x116, [4] = 0x10100, [6] = 0x10100};
    if (chunk->tag == TAG_CGBI)
        return context_fail(context, IW_IMAGE_FORMAT_UNSUPPORTED,
                            "This is a PNG that Xcode changed for an iPhone app (CgBI), which is no standard "
                            "PNG. Upload the PNG that the app was built from.");
    if (chunk->tag != TAG_IHDR || chunk->size != header_chunk_bytes || !chunk->is_sound)
        return png_broken(context, "no valid header at the start");
    layout->width_px = keep_number(chunk->data);
    layout->height_px = keep_number(chunk->data + 4);
    layout->depth_bits = chunk->data[8];
    layout->color_type = chunk->data[9];
    layout->is_interlaced = chunk->data[12] == 1;
    if (layout->color_type > 6 || layout->depth_bits > 16 ||
        !(depths[layout->color_type] >> layout->depth_bits & 1) || chunk->data[10] != 0 ||
        chunk->data[11] != 0 || chunk->data[12] > 1)
        return png_broken(context, "the header is not valid");
    return IW_OK;
}

static bool png_is_kept(const struct png_layout *layout, uint32_t tag)
{
    const uint32_t safe_to_copy = 0x20;
    if (tag == TAG_TRNS || tag == TAG_HIST || tag == TAG_PLTE)
        return false;
    /* bKGD and sBIT refer to the file's samples; keep them if the result has the same kind. */
    if (tag == TAG_BKGD || tag == TAG_SBIT)
        return layout->color_type != PNG_COLOR_TYPE_PALETTE && layout->depth_bits >= 8 &&
               layout->transparency == NULL;
    for (size_t i = 0; i < sizeof tags_kept / sizeof tags_kept[0]; i++)
        if (tags_kept[i] == tag)
            return true;
    return (tag & safe_to_copy) != 0;
}

static bool has_palette_type(const struct png_layout *layout)
{
    return layout->color_type == PNG_COLOR_TYPE_PALETTE;
}

/* The first palette counts. For indices it must be valid; otherwise it is a suggestion. */
static void layout_palette(const struct png_chunk *chunk, struct png_layout *layout)
{
    if (layout->palette != NULL || layout->has_pixels || !chunk->is_sound || chunk->size == 0 ||
        chunk->size % 3 != 0)
        return;
    uint32_t most = has_palette_type(layout) ? 3U << layout->depth_bits : palette_bytes_max;
    layout->palette = chunk->data;
    layout->palette_bytes = chunk->size < most ? chunk->size : most;
}

/* As libpng does, ignores a chunk that is damaged, misplaced, empty or of the wrong size. */
static void layout_transparency(const struct png_chunk *chunk, struct png_layout *layout)
{
    bool is_fit = false;
    if (layout->color_type == PNG_COLOR_TYPE_GRAY)
        is_fit = chunk->size == 2;
    if (layout->color_type == PNG_COLOR_TYPE_RGB)
        is_fit = chunk->size == 6;
    if (has_palette_type(layout))
        is_fit = layout->palette != NULL && chunk->size > 0 && chunk->size <= layout->palette_bytes / 3;
    if (!is_fit || !chunk->is_sound || layout->has_pixels || layout->transparency != NULL)
        return;
    layout->transparency = chunk->data;
    layout->transparency_bytes = chunk->size;
}

/*
 * An animation has two frames, or one frame that is not the still picture (PNG specification, third edition,
 * 11.3.6). Image editors leave acTL behind without frames.
 */
static bool is_animated(const struct png_layout *layout)
{
    return layout->has_animation &&
           (layout->frame_count > 1 || (layout->frame_count == 1 && layout->has_frame_data));
}

/* A palette of greys is a grey picture: the result has no colours, and a third of the samples. */
static bool is_color(const struct png_layout *layout)
{
    if (!has_palette_type(layout))
        return (layout->color_type & PNG_COLOR_MASK_COLOR) != 0;
    for (uint32_t i = 0; i < layout->palette_bytes; i += 3)
        if (layout->palette[i] != layout->palette[i + 1] || layout->palette[i] != layout->palette[i + 2])
            return true;
    return false;
}

/* Records a chunk. An unknown critical chunk changes the meaning of the pixels. */
static enum iw_error layout_chunk(struct context *context, const struct png_chunk *chunk,
                                  struct png_layout *layout)
{
    const uint32_t ancillary = 0x20000000;
    switch (chunk->tag) {
    case TAG_IDAT:
        layout->has_pixels = true;
        layout->pixel_bytes += chunk->size;
        layout->is_pixel_sum_wrong |= !chunk->is_sound;
        return IW_OK;
    case TAG_IEND:
        layout->has_end = true;
        return IW_OK;
    case TAG_PLTE:
        layout_palette(chunk, layout);
        return IW_OK;
    case TAG_TRNS:
        layout_transparency(chunk, layout);
        return IW_OK;
    case TAG_ACTL:
        layout->has_animation |= !layout->has_pixels && chunk->is_sound;
        return IW_OK;
    case TAG_FCTL:
        layout->frame_count += chunk->is_sound;
        return IW_OK;
    case TAG_FDAT:
        layout->has_frame_data |= chunk->is_sound;
        return IW_OK;
    default:
        if ((chunk->tag & ancillary) || !chunk->is_sound)
            return IW_OK;
        return context_fail(context, IW_IMAGE_FORMAT_UNSUPPORTED,
                            "The PNG picture uses an extension (chunk %.4s) that is not supported. Export it "
                            "as standard PNG and upload it again.",
                            (const char *)chunk->data - 4);
    }
}

/* Walks to the end chunk, or to the first place without a chunk. */
static enum iw_error png_layout_walk(struct context *context, const unsigned char *data, size_t size,
                                     struct png_layout *layout)
{
    struct png_chunk chunk;
    memset(layout, 0, sizeof *layout);
    layout->end = signature_bytes;
    if (!png_chunk_next(data, size, &layout->end, &chunk) || chunk.is_cut)
        return driver_cut(context, size);
    enum iw_error error = layout_header(context, &chunk, layout);
    while (error == IW_OK && !layout->has_end && png_chunk_next(data, size, &layout->end, &chunk))
        error = layout_chunk(context, &chunk, layout);
    if (error != IW_OK)
        return error;
    if (!layout->has_pixels || (has_palette_type(layout) && layout->palette == NULL))
        return layout->has_end ? png_broken(context, "pixels or palette missing") : driver_cut(context, size);
    return IW_OK;
}

static enum iw_error png_chunks_keep(struct context *context, const unsigned char *data,
                                     const struct png_layout *layout, struct codec_keep *keep)
{
    struct png_chunk chunk;
    size_t offset = signature_bytes;
    bool is_after_pixels = false;
    enum iw_error error = IW_OK;
    while (error == IW_OK && offset < layout->end && png_chunk_next(data, layout->end, &offset, &chunk)) {
        is_after_pixels |= chunk.tag == TAG_IDAT;
        bool is_pixel_chunk = chunk.tag == TAG_IDAT || chunk.tag == TAG_IEND || chunk.tag == TAG_IHDR;
        if (chunk.is_sound && !is_pixel_chunk && png_is_kept(layout, chunk.tag))
            error = keep_add(context, keep, chunk.tag, is_after_pixels, chunk.data, chunk.size);
    }
    return error;
}

/* ---- the input of libpng ---- */

/* A PNG made of the pieces that count, which are fed one after another. */
struct png_feed {
    const unsigned char *data;
    size_t end;
    size_t offset; /* of the next chunk of the file */
    const unsigned char *piece;
    size_t piece_bytes;
    unsigned part;                         /* of the next pixel chunk: head, data, checksum */
    struct png_chunk chunk;                /* the data of the file that is left */
    uint32_t data_bytes;                   /* of it, in the pixel chunk that is fed */
    uint64_t before_sum_bytes;             /* left before the stream's checksum */
    unsigned char frame[chunk_head_bytes]; /* head of a pixel chunk */
    unsigned char head[signature_bytes + 3 * chunk_frame_bytes + header_chunk_bytes + palette_bytes_max +
                       transparency_bytes_max];
};

static unsigned char *put_big_endian(unsigned char *at, uint32_t value)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        *at++ = (unsigned char)(value >> shift);
    return at;
}

static unsigned char *png_put_chunk(unsigned char *at, uint32_t tag, const unsigned char *data, uint32_t size)
{
    unsigned char *name = put_big_endian(at, size);
    memcpy(put_big_endian(name, tag), data, size);
    return put_big_endian(name + 4 + size, (uint32_t)crc32(0, name, size + 4));
}

static void feed_start(struct png_feed *feed, const unsigned char *data, const struct png_layout *layout)
{
    enum { first_chunk = signature_bytes + chunk_head_bytes };
    unsigned char *at = feed->head;
    memset(feed, 0, offsetof(struct png_feed, head));
    memcpy(at, data, signature_bytes);
    at = png_put_chunk(at + signature_bytes, TAG_IHDR, data + first_chunk, header_chunk_bytes);
    if (has_palette_type(layout))
        at = png_put_chunk(at, TAG_PLTE, layout->palette, layout->palette_bytes);
    if (layout->transparency != NULL)
        at = png_put_chunk(at, TAG_TRNS, layout->transparency, layout->transparency_bytes);
    feed->data = data;
    feed->end = layout->end;
    feed->offset = signature_bytes;
    if (layout->pixel_bytes > stream_sum_bytes)
        feed->before_sum_bytes = layout->pixel_bytes - stream_sum_bytes;
    feed->piece = feed->head;
    feed->piece_bytes = (size_t)(at - feed->head);
}

/* Finds the next pixel chunk. False if there is none. */
static bool feed_chunk(struct png_feed *feed)
{
    while (feed->offset < feed->end && png_chunk_next(feed->data, feed->end, &feed->offset, &feed->chunk))
        if (feed->chunk.tag == TAG_IDAT)
            return true;
    return false;
}

/*
 * The size of the next pixel chunk, or 0 if there is none. The stream's checksum is in a separate chunk:
 * libpng reads it after the last row, where a wrong checksum is only a warning.
 */
static uint32_t feed_size(struct png_feed *feed)
{
    while (feed->chunk.size == 0)
        if (!feed_chunk(feed))
            return 0;
    bool is_split = feed->before_sum_bytes > 0 && feed->before_sum_bytes < feed->chunk.size;
    uint32_t size = is_split ? (uint32_t)feed->before_sum_bytes : feed->chunk.size;
    feed->before_sum_bytes -= feed->before_sum_bytes > 0 ? size : 0;
    return size;
}

/* Feed the next piece. libpng ignores the checksums of chunks, so their bytes are arbitrary. */
static bool feed_piece(struct png_feed *feed)
{
    static const unsigned char checksum[4];
    switch (feed->part++) {
    case 0:
        feed->data_bytes = feed_size(feed);
        if (feed->data_bytes == 0)
            return false;
        put_big_endian(put_big_endian(feed->frame, feed->data_bytes), TAG_IDAT);
        feed->piece = feed->frame;
        feed->piece_bytes = sizeof feed->frame;
        break;
    case 1:
        feed->piece = feed->chunk.data;
        feed->piece_bytes = feed->data_bytes;
        feed->chunk.data += feed->data_bytes;
        feed->chunk.size -= feed->data_bytes;
        break;
    default:
        feed->part = 0;
        feed->piece = checksum;
        feed->piece_bytes = sizeof checksum;
    }
    return true;
}

/* Upper bound of the size of all passes with filter bytes. */
static uint64_t raw_bytes(const struct png_layout *layout)
{
    static const unsigned samples[7] = {1, 0, 3, 1, 2, 0, 4};
    uint64_t row =
        ((uint64_t)layout->width_px * samples[layout->color_type] * layout->depth_bits + 7) / 8 + 1;
    /* Adam7 pads the rows of each of the seven passes to whole bytes. */
    return layout->is_interlaced ? 2 * (row + 7) * ((uint64_t)layout->height_px + 7)
                                 : row * layout->height_px;
}

/* True if the compressed stream is complete and has the right checksum. */
static bool is_stream_whole(const unsigned char *data, const struct png_layout *layout)
{
    static unsigned char out[64 * 1024];
    struct png_feed feed;
    z_stream stream;
    int state = Z_OK;
    feed_start(&feed, data, layout);
    memset(&stream, 0, sizeof stream);
    if (inflateInit(&stream) != Z_OK)
        return false;
    while (state == Z_OK && feed_chunk(&feed)) {
        stream.next_in = (Bytef *)(uintptr_t)feed.chunk.data;
        stream.avail_in = feed.chunk.size;
        while (state == Z_OK && stream.avail_in > 0 && stream.total_out <= raw_bytes(layout) + sizeof out) {
            stream.next_out = out;
            stream.avail_out = sizeof out;
            state = inflate(&stream, Z_NO_FLUSH);
        }
        if (stream.avail_in > 0)
            break;
    }
    inflateEnd(&stream);
    return state == Z_STREAM_END;
}

/* ---- errors ---- */

static void png_exit(png_structp png, png_const_charp message)
{
    struct png_job *job = png_get_error_ptr(png);
    context_cause(job->context, "libpng: %s", message);
    if (job->error == IW_OK && job->bytes != NULL)
        job->error = context_fail(job->context, IW_SERVER_INTERNAL_ERROR, NULL);
    else if (job->error == IW_OK)
        job->error = job->layout->has_end ? driver_damaged(job->context, FORMAT_PNG)
                                          : driver_cut(job->context, job->size);
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
    enum iw_error error = png_layout_walk(context, data, size, &layout);
    if (error != IW_OK)
        return error;
    bool has_alpha = (layout.color_type & PNG_COLOR_MASK_ALPHA) != 0 || layout.transparency != NULL;
    header->format = FORMAT_PNG;
    header->width_px = layout.width_px;
    header->height_px = layout.height_px;
    header->channels = (is_color(&layout) ? 3U : 1U) + has_alpha;
    header->depth_bits = layout.depth_bits == 16 ? 16 : 8;
    header->is_lossy = false;
    header->is_animated = is_animated(&layout);
    header->frame_count = layout.frame_count;
    limits_estimate(header);
    return limits_check(context, limits, header);
}

static void source_take(png_structp png, png_bytep bytes, size_t size)
{
    struct png_job *job = png_get_io_ptr(png);
    struct png_feed *feed = job->feed;
    while (size > 0) {
        if (feed->piece_bytes == 0 && !feed_piece(feed))
            png_error(png, "the pixel data end early");
        size_t count = size < feed->piece_bytes ? size : feed->piece_bytes;
        memcpy(bytes, feed->piece, count);
        feed->piece += count;
        feed->piece_bytes -= count;
        bytes += count;
        size -= count;
    }
}

static void png_expand(png_structp png, png_infop info, bool is_grey)
{
    unsigned color_type = png_get_color_type(png, info);
    unsigned depth_bits = png_get_bit_depth(png, info);
    if (color_type == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(png);
    if (color_type == PNG_COLOR_TYPE_PALETTE && is_grey)
        png_set_rgb_to_gray_fixed(png, PNG_ERROR_ACTION_NONE, PNG_RGB_TO_GRAY_DEFAULT,
                                  PNG_RGB_TO_GRAY_DEFAULT);
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
    /* codec_png_decode has checked the sums; feed_size makes a wrong checksum of the stream harmless. */
    png_set_crc_action(png, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
    /* Some writers declare a smaller window than they use. */
    png_set_option(png, PNG_MAXIMUM_INFLATE_WINDOW, PNG_OPTION_ON);
    png_read_info(png, job->info);
    png_expand(png, job->info, !image_has_color(image));
    int passes = png_set_interlace_handling(png);
    png_read_update_info(png, job->info);
    if (png_get_rowbytes(png, job->info) != image->stride_bytes)
        png_error(png, "the row size differs from the header");
    job->are_rows_read = true;
    for (job->pass = 0; job->pass < passes; job->pass++)
        for (job->row_px = 0; job->row_px < image->height_px; job->row_px++) {
            png_bytep row = (png_bytep)image->pixels + job->row_px * image->stride_bytes;
            /* For a partial picture, a pass also fills the places of the later passes. */
            png_read_row(png, job->loss == NULL ? row : NULL, job->loss == NULL ? NULL : row);
        }
}

/* An error in the rows of a partial picture is a loss of the rows that follow. */
static void rows_end(struct png_job *job)
{
    bool is_loss = job->error == IW_IMAGE_CORRUPT && job->loss != NULL && job->are_rows_read;
    /* libpng does not always read the stream's end after the last row. */
    if (job->error == IW_OK && job->loss != NULL && !job->layout->has_end)
        job->loss->is_coarse = !is_stream_whole(job->data, job->layout);
    if (!is_loss)
        return;
    context_clear(job->context);
    job->error = IW_OK;
    /* Passes after the first refine all rows. */
    if (job->pass == 0)
        job->loss->rows_px = job->row_px;
    else
        job->loss->is_coarse = true;
}

static enum iw_error codec_png_decode(struct context *context, const unsigned char *data, size_t size,
                                      const struct codec_limits *limits, struct codec_picture *picture)
{
    struct png_layout layout;
    struct keep_loss *loss = limits->is_partial_allowed ? &picture->keep->loss : NULL;
    enum iw_error error = png_layout_walk(context, data, size, &layout);
    if (error == IW_OK)
        error = png_chunks_keep(context, data, &layout, picture->keep);
    if (error != IW_OK)
        return error;
    /* If a chunk's checksum is wrong or the end is missing, the stream's checksum must be right. */
    bool is_doubtful = layout.has_end ? layout.is_pixel_sum_wrong : loss == NULL;
    bool is_broken = is_doubtful && !is_stream_whole(data, &layout);
    if (is_broken && loss == NULL)
        return layout.has_end ? png_broken(context, "checksums of the pixels are wrong")
                              : driver_cut(context, size);
    if (loss != NULL)
        loss->is_coarse = is_broken;
    picture->keep->end = layout.has_end ? layout.end : size;
    picture->keep->png.is_interlaced = layout.is_interlaced;
    picture->keep->png.is_palette = has_palette_type(&layout);
    picture->keep->png.depth_bits = layout.depth_bits;
    struct png_feed feed;
    feed_start(&feed, data, &layout);
    struct png_job job = {.context = context,
                          .data = data,
                          .size = size,
                          .layout = &layout,
                          .feed = &feed,
                          .image = &picture->image,
                          .loss = loss};
    job.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &job, png_exit, png_warning_ignore);
    job.info = job.png == NULL ? NULL : png_create_info_struct(job.png);
    if (job.info == NULL)
        png_out_of_memory(&job);
    else
        png_guarded(&job, png_step_decode);
    rows_end(&job);
    png_destroy_read_struct(&job.png, &job.info, NULL);
    return job.error;
}

/* ---- encoding ---- */

static void png_append(png_structp png, png_bytep bytes, size_t size)
{
    struct png_job *job = png_get_io_ptr(png);
    if (bytes_append(job->bytes, &job->capacity, bytes, size))
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

/* ---- samples of less than 8 bits, and indices ---- */

/* 8-bit difference of two neighbouring grey levels. */
static unsigned grey_step(unsigned depth_bits)
{
    return 255U / ((1U << depth_bits) - 1);
}

static bool is_grey_of(const struct image *image, unsigned depth_bits)
{
    for (uint32_t y = 0; y < image->height_px; y++) {
        const unsigned char *row = (const unsigned char *)image->pixels + y * image->stride_bytes;
        for (uint32_t x = 0; x < image->width_px; x++)
            if (row[x] % grey_step(depth_bits) != 0)
                return false;
    }
    return true;
}

/* True: a chunk refers to the kind of the samples, so that they cannot become indices. */
static bool has_sample_chunk(const struct png_job *job)
{
    for (const struct keep_chunk *chunk = job->keep->first; chunk != NULL; chunk = chunk->next)
        if (chunk->tag == TAG_SBIT || chunk->tag == TAG_BKGD ||
            (chunk->tag == KEEP_TAG('i', 'C', 'C', 'P') && !image_has_color(job->image)))
            return true;
    return false;
}

/* True: the result of a small file gets a palette, although the file has none. */
static bool is_indexable(const struct png_job *job, const struct palette *palette)
{
    const struct image *image = job->image;
    unsigned file_depth_bits = job->keep->png.depth_bits;
    bool is_grey = image->channels == 1;
    if (is_grey && (palette->count > 16 || (file_depth_bits < 8 && is_grey_of(image, file_depth_bits))))
        return false;
    return !has_sample_chunk(job);
}

/*
 * Chooses the file's sample format again if the result fits it, and a palette for a small file whose result
 * has few colours.
 */
static void shape_choose(struct png_job *job, bool is_small, struct palette *palette)
{
    const struct keep_png *keep = &job->keep->png;
    const struct image *image = job->image;
    job->depth_bits = image->depth_bits;
    if ((keep->is_palette || is_small) && palette_collect(image, palette) &&
        (keep->is_palette || is_indexable(job, palette))) {
        palette_order(palette);
        job->palette = palette;
        job->depth_bits = palette->count <= 2 ? 1 : palette->count <= 4 ? 2 : palette->count <= 16 ? 4 : 8;
        if (job->depth_bits > keep->depth_bits)
            context_note(job->context, "PALETTE_EXPANDED", message_palette_larger, 1U << keep->depth_bits,
                         palette->count);
    }
    if (job->palette != NULL || keep->is_palette || image->channels != 1 || keep->depth_bits >= 8)
        return;
    if (is_grey_of(image, keep->depth_bits))
        job->depth_bits = keep->depth_bits;
    else
        context_note(job->context, "PALETTE_EXPANDED", message_greys_more, 1U << keep->depth_bits);
}

static void png_write_palette(struct png_job *job)
{
    png_color colors[palette_colors_max];
    png_byte alphas[palette_colors_max];
    int translucent = 0;
    for (unsigned i = 0; i < job->palette->count; i++) {
        uint32_t color = job->palette->colors[i];
        colors[i] = (png_color){(png_byte)(color >> 24), (png_byte)(color >> 16), (png_byte)(color >> 8)};
        alphas[i] = (png_byte)color;
        translucent += alphas[i] != 255;
    }
    png_set_PLTE(job->png, job->info, colors, (int)job->palette->count);
    /* A picture with transparency keeps it, even if all of it is opaque. */
    if (image_has_alpha(job->image))
        png_set_tRNS(job->png, job->info, alphas, translucent > 0 ? translucent : 1, NULL);
}

static void png_row_write(struct png_job *job, uint32_t y)
{
    const struct image *image = job->image;
    const unsigned char *row = (const unsigned char *)image->pixels + y * image->stride_bytes;
    if (job->palette != NULL)
        palette_row(job->palette, image, y, job->row);
    else if (job->depth_bits < 8)
        for (uint32_t x = 0; x < image->width_px; x++)
            job->row[x] = (unsigned char)(row[x] / grey_step(job->depth_bits));
    png_write_row(job->png, job->palette != NULL || job->depth_bits < 8 ? job->row : row);
}

static void png_step_encode(struct png_job *job)
{
    static const int color_types[] = {[1] = PNG_COLOR_TYPE_GRAY,
                                      [2] = PNG_COLOR_TYPE_GRAY_ALPHA,
                                      [3] = PNG_COLOR_TYPE_RGB,
                                      [4] = PNG_COLOR_TYPE_RGB_ALPHA};
    png_structp png = job->png;
    const struct image *image = job->image;
    png_set_write_fn(png, job, png_append, destination_flush);
    png_set_user_limits(png, image->width_px, image->height_px);
    png_set_filter(png, PNG_FILTER_TYPE_BASE, ways[job->way].filters);
    png_set_compression_strategy(png, ways[job->way].strategy);
    png_set_compression_level(png, ways[job->way].level);
    png_set_compression_buffer_size(png, deflate_buffer_bytes);
    png_set_IHDR(png, job->info, image->width_px, image->height_px, (int)job->depth_bits,
                 job->palette != NULL ? PNG_COLOR_TYPE_PALETTE : color_types[image->channels],
                 job->keep->png.is_interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    if (job->palette != NULL)
        png_write_palette(job);
    /* Readers drop a colour space after PLTE (PNG 1.2, 4.2.2). */
    png_write_info_before_PLTE(png, job->info);
    chunks_write(job, false);
    png_write_info(png, job->info);
    if (job->depth_bits < 8)
        png_set_packing(png);
    if (image->depth_bits == 16 && BYTE_ORDER == LITTLE_ENDIAN)
        png_set_swap(png);
    int passes = png_set_interlace_handling(png);
    for (int pass = 0; pass < passes; pass++)
        for (uint32_t y = 0; y < image->height_px; y++)
            png_row_write(job, y);
    chunks_write(job, true);
    png_write_end(png, NULL);
}

static enum iw_error png_encode_as(const struct png_job *shape, enum png_way way, struct codec_bytes *bytes)
{
    struct png_job job = *shape;
    job.way = way;
    job.bytes = bytes;
    job.row = malloc(job.image->width_px);
    job.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &job, png_exit, png_warning_ignore);
    job.info = job.png == NULL ? NULL : png_create_info_struct(job.png);
    if (job.info == NULL || job.row == NULL)
        png_out_of_memory(&job);
    else
        png_guarded(&job, png_step_encode);
    png_destroy_write_struct(&job.png, &job.info);
    free(job.row);
    return job.error;
}

/* The ways to try, as bits. A small file is a drawing: with a watermark it repeats, protected it does not. */
static unsigned ways_of(const struct png_job *job, const struct codec_picture *picture)
{
    const struct image *image = &picture->image;
    bool is_large = (uint64_t)image->width_px * image->height_px > twice_most_px;
    if (job->palette != NULL || job->depth_bits < 8)
        return 1U << (is_large ? WAY_FAST : WAY_PLAIN);
    if (!is_large && picture->header.is_small)
        return 1U << WAY_ALL | 1U << WAY_PLAIN | 1U << WAY_UP;
    if (!is_large && picture->keep->color_count != 0)
        return 1U << WAY_ALL | 1U << WAY_PLAIN;
    return 1U << WAY_ALL;
}

/*
 * Encodes in each way of the set and keeps the smallest result. A small change of flat colours takes a fifth
 * less without filters, a change of gradients up to a third more.
 */
static enum iw_error codec_png_encode(struct context *context, const struct codec_picture *picture,
                                      struct codec_bytes *bytes)
{
    struct palette palette;
    struct png_job job = {.context = context, .image = &picture->image, .keep = picture->keep};
    enum iw_error error = IW_OK;
    shape_choose(&job, picture->header.is_small, &palette);
    unsigned tried = ways_of(&job, picture);
    for (unsigned way = 0; way < WAYS && error == IW_OK; way++) {
        struct codec_bytes other = {NULL, 0};
        if ((tried >> way & 1) == 0)
            continue;
        error = png_encode_as(&job, (enum png_way)way, &other);
        bool is_smaller = error == IW_OK && (bytes->data == NULL || other.size < bytes->size);
        struct codec_bytes larger = is_smaller ? *bytes : other;
        if (is_smaller)
            *bytes = other;
        bytes_free(&larger);
    }
    return error;
}

static const unsigned char *png_icc(struct arena *arena, const struct codec_keep *keep, size_t *size)
{
    const struct keep_chunk *chunk = keep_find(keep, KEEP_TAG('i', 'C', 'C', 'P'), "", 0);
    const unsigned char *end = chunk == NULL ? NULL : memchr(chunk->data, 0, chunk->size);
    if (end == NULL || end + 2 > chunk->data + chunk->size)
        return NULL;
    return png_text_inflate(arena, end + 2, (size_t)(chunk->data + chunk->size - end - 2),
                            driver_icc_max_bytes, size);
}

const struct codec_driver png_driver = {
    .probe = codec_png_probe,
    .decode = codec_png_decode,
    .encode = codec_png_encode,
    .icc = png_icc,
    .has_color_chunks = true,
    .exif = {KEEP_TAG('e', 'X', 'I', 'f'), 0},
    .clean = clean_png,
    .xmp = &packets_png,
};
