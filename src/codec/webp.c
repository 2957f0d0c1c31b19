/*
 * WebP by libwebp, which receives only the picture's chunks; the container is read and written
 * here. The picture's own header is authoritative, not the container's size, flags and canvas.
 */
#include <webp/decode.h>
#include <webp/encode.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "codec/driver.h"
#include "codec/metadata/clean.h"
#include "codec/metadata/packets.h"

enum { riff_head_bytes = 12, chunk_head_bytes = 8, quality_default = 80, vp8x_bytes = 10 };

/* Bits of VP8X. */
enum { flag_alpha = 0x10, flag_animation = 0x02 };

#define TAG_VP8X KEEP_TAG('V', 'P', '8', 'X')
#define TAG_VP8L KEEP_TAG('V', 'P', '8', 'L')
#define TAG_VP8  KEEP_TAG('V', 'P', '8', ' ')
#define TAG_ALPH KEEP_TAG('A', 'L', 'P', 'H')
#define TAG_ANIM KEEP_TAG('A', 'N', 'I', 'M')
#define TAG_ANMF KEEP_TAG('A', 'N', 'M', 'F')
#define TAG_ICCP KEEP_TAG('I', 'C', 'C', 'P')
#define TAG_EXIF KEEP_TAG('E', 'X', 'I', 'F')
#define TAG_XMP  KEEP_TAG('X', 'M', 'P', ' ')

struct webp_chunk {
    uint32_t tag;
    uint32_t size; /* of the available data */
    const unsigned char *data;
    bool is_cut; /* the file ends within it */
};

/* Result of the walk over the chunks. */
struct webp_layout {
    const unsigned char *picture; /* head of its first chunk; libwebp reads from here */
    size_t picture_bytes;
    const unsigned char *frame; /* the data of VP8 or VP8L */
    size_t frame_bytes;
    bool is_lossless;
    bool is_cut;         /* within the picture */
    bool has_alpha_flag; /* from VP8X */
    bool is_animated;
    uint32_t frame_count;
    size_t end;
};

static uint32_t little_endian(const unsigned char *bytes)
{
    return KEEP_TAG(bytes[3], bytes[2], bytes[1], bytes[0]);
}

/* ---- the quality of a lossy frame, from its quantiser (RFC 6386, sections 7, 9 and 19.2) ---- */

struct bool_reader {
    const unsigned char *data;
    size_t size;
    size_t offset;
    uint32_t value;
    uint32_t range;
    int bit_count;
};

static unsigned bool_next_byte(struct bool_reader *reader)
{
    return reader->offset < reader->size ? reader->data[reader->offset++] : 0;
}

static void bool_start(struct bool_reader *reader, const unsigned char *data, size_t size)
{
    memset(reader, 0, sizeof *reader);
    reader->data = data;
    reader->size = size;
    reader->value = bool_next_byte(reader) << 8;
    reader->value |= bool_next_byte(reader);
    reader->range = 255;
}

static unsigned bool_bit(struct bool_reader *reader)
{
    const unsigned probability = 128;
    uint32_t split = 1 + (((reader->range - 1) * probability) >> 8);
    unsigned bit = reader->value >= split << 8;
    if (bit) {
        reader->range -= split;
        reader->value -= split << 8;
    } else {
        reader->range = split;
    }
    while (reader->range < 128) {
        reader->value <<= 1;
        reader->range <<= 1;
        if (++reader->bit_count == 8) {
            reader->bit_count = 0;
            reader->value |= bool_next_byte(reader);
        }
    }
    return bit;
}

static unsigned bool_bits(struct bool_reader *reader, int count)
{
    unsigned value = 0;
    while (count-- > 0)
        value = value << 1 | bool_bit(reader);
    return value;
}

/* Reads an optional value and its sign; 0 without the flag. */
static int bool_optional(struct bool_reader *reader, int count)
{
    if (!bool_bit(reader))
        return 0;
    int value = (int)bool_bits(reader, count);
    return bool_bit(reader) ? -value : value;
}

struct vp8_segments {
    bool is_absolute;
    bool has_quantisers;
    int quantiser[4];
    unsigned probability[3]; /* of the segment tree, 0..255 */
};

static void vp8_read_segments(struct bool_reader *reader, struct vp8_segments *segments)
{
    unsigned has_map = bool_bit(reader);
    segments->has_quantisers = bool_bit(reader);
    if (segments->has_quantisers) {
        segments->is_absolute = bool_bit(reader);
        for (int i = 0; i < 4; i++)
            segments->quantiser[i] = bool_optional(reader, 7);
        for (int i = 0; i < 4; i++)
            bool_optional(reader, 6);
    }
    for (int i = 0; i < 3; i++)
        segments->probability[i] = 255;
    for (int i = 0; has_map && i < 3; i++)
        if (bool_bit(reader))
            segments->probability[i] = bool_bits(reader, 8);
}

/* Mean quantiser over the segments, weighted by their probability. */
static double vp8_mean_quantiser(const struct vp8_segments *segments, int base)
{
    if (!segments->has_quantisers)
        return base;
    double p[3] = {segments->probability[0] / 255.0, segments->probability[1] / 255.0,
                   segments->probability[2] / 255.0};
    double weight[4] = {p[0] * p[1], p[0] * (1 - p[1]), (1 - p[0]) * p[2], (1 - p[0]) * (1 - p[2])};
    double mean = 0;
    for (int i = 0; i < 4; i++) {
        int quantiser = segments->quantiser[i] + (segments->is_absolute ? 0 : base);
        mean += weight[i] * (quantiser < 0 ? 0 : quantiser > 127 ? 127 : quantiser);
    }
    return mean;
}

/*
 * Inverts libwebp's mapping from quality to quantiser. It maps x = q/100 to index 127 (1 - c)
 * with c = cbrt(2x/3) below 0.75 and cbrt(2x - 1) above.
 */
static float vp8_quality(const unsigned char *frame, size_t size)
{
    enum { frame_head_bytes = 10 };
    if (size < frame_head_bytes + 8 || (frame[0] & 1) != 0)
        return quality_default;
    struct bool_reader reader;
    struct vp8_segments segments;
    memset(&segments, 0, sizeof segments);
    bool_start(&reader, frame + frame_head_bytes, size - frame_head_bytes);
    bool_bits(&reader, 2); /* colour space, clamping */
    if (bool_bit(&reader))
        vp8_read_segments(&reader, &segments);
    bool_bits(&reader, 1 + 6 + 3); /* the filter */
    if (bool_bit(&reader) && bool_bit(&reader))
        for (int i = 0; i < 8; i++)
            bool_optional(&reader, 6);
    bool_bits(&reader, 2); /* partitions */
    double compression = 1 - vp8_mean_quantiser(&segments, (int)bool_bits(&reader, 7)) / 127;
    double linear = compression * compression * compression;
    return (float)(100 * (linear < 0.5 ? linear * 1.5 : (linear + 1) / 2));
}

/* ---- the container ---- */

/* The container's own chunks; all others are metadata. */
static bool is_own_tag(uint32_t tag)
{
    static const uint32_t own[] = {TAG_VP8X, TAG_VP8L, TAG_VP8, TAG_ALPH, TAG_ANIM, TAG_ANMF};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (own[i] == tag)
            return true;
    return false;
}

static bool is_known_tag(uint32_t tag)
{
    return is_own_tag(tag) || tag == TAG_ICCP || tag == TAG_EXIF || tag == TAG_XMP;
}

/* Reads the next chunk. False at the end of the bytes, and if there is no chunk here. */
static bool webp_chunk_next(const unsigned char *data, size_t end, size_t *offset, struct webp_chunk *chunk)
{
    if (*offset > end || end - *offset < chunk_head_bytes)
        return false;
    chunk->tag = keep_number(data + *offset);
    for (int shift = 0; shift < 32; shift += 8)
        if ((chunk->tag >> shift & 0xFF) < ' ' || (chunk->tag >> shift & 0xFF) > '~')
            return false;
    uint32_t size = little_endian(data + *offset + 4);
    size_t left = end - *offset - chunk_head_bytes;
    chunk->data = data + *offset + chunk_head_bytes;
    chunk->is_cut = size > left;
    chunk->size = chunk->is_cut ? (uint32_t)left : size;
    *offset += chunk_head_bytes + (size_t)chunk->size;
    /* Chunks have even sizes; some writers omit the padding byte. */
    left = end - *offset;
    if ((size & 1) != 0 && left > 0 && (left < 4 || !is_known_tag(keep_number(data + *offset))))
        ++*offset;
    return true;
}

/* Records the picture's chunk and the alpha plane before it. */
static void layout_picture(struct webp_layout *layout, const struct webp_chunk *chunk,
                           const struct webp_chunk *alpha)
{
    const unsigned char *first = alpha->data != NULL ? alpha->data : chunk->data;
    layout->picture = first - chunk_head_bytes;
    layout->picture_bytes = (size_t)(chunk->data + chunk->size - layout->picture);
    layout->frame = chunk->data;
    layout->frame_bytes = chunk->size;
    layout->is_lossless = chunk->tag == TAG_VP8L;
    layout->is_cut = chunk->is_cut;
}

/* Searches the chunks of a file or frame for the picture. Returns the offset after the last chunk read. */
static size_t picture_find(const unsigned char *data, size_t end, size_t offset, struct webp_layout *layout)
{
    struct webp_chunk chunk, alpha = {0, 0, NULL, false};
    while (layout->picture == NULL && webp_chunk_next(data, end, &offset, &chunk)) {
        if (chunk.tag == TAG_VP8 || chunk.tag == TAG_VP8L)
            layout_picture(layout, &chunk, &alpha);
        if (chunk.tag == TAG_ALPH && !chunk.is_cut)
            alpha = chunk;
    }
    return offset;
}

/* True if a picture's chunk begins and fits, by its signature (RFC 6386, 9.1; RFC 9649, 3.4). */
static bool is_picture_start(const unsigned char *at, size_t left)
{
    if (left < chunk_head_bytes + 10 || little_endian(at + 4) > left - chunk_head_bytes)
        return false;
    const unsigned char *frame = at + chunk_head_bytes;
    return (keep_number(at) == TAG_VP8 && memcmp(frame + 3, "\x9d\x01\x2a", 3) == 0) ||
           (keep_number(at) == TAG_VP8L && frame[0] == 0x2f);
}

/* No chunk follows a piece with a wrong size, so search for the picture's signature. */
static size_t picture_search(const unsigned char *data, size_t size)
{
    for (size_t at = riff_head_bytes; at + chunk_head_bytes < size; at++) {
        const unsigned char *found = memchr(data + at, 'V', size - at);
        if (found == NULL)
            return size;
        at = (size_t)(found - data);
        if (is_picture_start(found, size - at))
            return at;
    }
    return size;
}

/* Records an animation's first frame: place, size and time, then its chunks (RFC 9649, 2.7.1.1). */
static void layout_frame(struct webp_layout *layout, const struct webp_chunk *chunk,
                         const unsigned char *canvas)
{
    enum { frame_head_bytes = 16, place_bytes = 6, size_bytes = 6 };
    static const unsigned char corner[place_bytes];
    if (layout->frame_count++ > 0 || chunk->size < frame_head_bytes)
        return;
    picture_find(chunk->data, chunk->size, frame_head_bytes, layout);
    layout->is_cut |= chunk->is_cut;
    bool is_canvas = canvas != NULL && memcmp(chunk->data, corner, place_bytes) == 0 &&
                     memcmp(chunk->data + place_bytes, canvas, size_bytes) == 0;
    layout->is_animated = !is_canvas;
}

/* Records the frames of a file without a picture. One frame that fills the canvas is a still picture. */
static void layout_frames(const unsigned char *data, size_t size, struct webp_layout *layout)
{
    struct webp_chunk chunk;
    size_t offset = riff_head_bytes;
    const unsigned char *canvas = NULL;
    bool has_flag = false;
    while (webp_chunk_next(data, size, &offset, &chunk)) {
        if (chunk.tag == TAG_VP8X && chunk.size >= vp8x_bytes) {
            canvas = chunk.data + 4;
            has_flag = (chunk.data[0] & flag_animation) != 0;
        }
        if (chunk.tag == TAG_ANMF)
            layout_frame(layout, &chunk, canvas);
    }
    layout->end = offset;
    layout->is_animated |= layout->frame_count > 1 || (has_flag && layout->frame_count == 0);
}

static enum iw_error webp_layout_walk(struct context *context, const unsigned char *data, size_t size,
                                      struct webp_layout *layout)
{
    memset(layout, 0, sizeof *layout);
    layout->end = size;
    picture_find(data, size, riff_head_bytes, layout);
    if (layout->picture != NULL) {
        /* The RIFF size is used if the picture lies within it. */
        uint64_t said = (uint64_t)little_endian(data + 4) + chunk_head_bytes;
        size_t picture_end = (size_t)(layout->picture - data) + layout->picture_bytes;
        layout->end = said >= picture_end && said < size ? (size_t)said : size;
    } else {
        layout_frames(data, size, layout);
        if (layout->frame_count == 0 && !layout->is_animated)
            picture_find(data, size, picture_search(data, size), layout);
    }
    struct webp_chunk first;
    size_t offset = riff_head_bytes;
    if (webp_chunk_next(data, size, &offset, &first) && first.tag == TAG_VP8X && first.size > 0 &&
        layout->frame_count == 0)
        layout->has_alpha_flag = (first.data[0] & flag_alpha) != 0;
    if (layout->picture != NULL || layout->is_animated)
        return IW_OK;
    bool is_cut = (uint64_t)little_endian(data + 4) + chunk_head_bytes > size;
    if (is_cut)
        return driver_cut(context, size);
    context_cause(context, "WebP: it contains no picture");
    return driver_damaged(context, FORMAT_WEBP);
}

/* Truncated pieces are dropped. */
static enum iw_error webp_chunks_keep(struct context *context, const unsigned char *data,
                                      const struct webp_layout *layout, struct codec_keep *keep)
{
    struct webp_chunk chunk;
    size_t offset = riff_head_bytes;
    enum iw_error error = IW_OK;
    keep->webp.quality =
        layout->is_lossless ? quality_default : vp8_quality(layout->frame, layout->frame_bytes);
    while (error == IW_OK && webp_chunk_next(data, layout->end, &offset, &chunk))
        if (!is_own_tag(chunk.tag) && !chunk.is_cut)
            error = keep_add(context, keep, chunk.tag, false, chunk.data, chunk.size);
    return error;
}

/* ---- decoding ---- */

/* Newer libwebp reports a damaged alpha plane as out of memory.  Only an allocation that fails sets errno. */
static bool is_no_memory(VP8StatusCode status)
{
    return status == VP8_STATUS_OUT_OF_MEMORY && errno == ENOMEM;
}

static enum iw_error webp_error(struct context *context, const struct webp_layout *layout, size_t size,
                                VP8StatusCode status)
{
    if (status == VP8_STATUS_OK)
        return IW_OK;
    context_cause(context, "libwebp: status %d", (int)status);
    if (is_no_memory(status))
        return context_fail(context, IW_NO_MEMORY, NULL);
    if (status == VP8_STATUS_UNSUPPORTED_FEATURE)
        return context_fail(
            context, IW_IMAGE_FORMAT_UNSUPPORTED,
            "This kind of WebP picture is not supported. Export it again and upload it again.");
    return layout->is_cut ? driver_cut(context, size) : driver_damaged(context, FORMAT_WEBP);
}

/* The lossless format allows one pixel more per side than libwebp writes. */
static enum iw_error webp_check_side(struct context *context, const struct codec_limits *limits,
                                     const struct codec_header *header)
{
    if (limits->engine.is_read_only ||
        (header->width_px <= WEBP_MAX_DIMENSION && header->height_px <= WEBP_MAX_DIMENSION))
        return IW_OK;
    return context_fail(context, IW_IMAGE_TOO_LARGE, message_webp_side, header->width_px, header->height_px,
                        WEBP_MAX_DIMENSION);
}

static enum iw_error codec_webp_probe(struct context *context, const unsigned char *data, size_t size,
                                      const struct codec_limits *limits, struct codec_header *header)
{
    struct webp_layout layout;
    WebPBitstreamFeatures features;
    enum iw_error error = webp_layout_walk(context, data, size, &layout);
    header->format = FORMAT_WEBP;
    header->is_animated = layout.is_animated;
    header->frame_count = layout.frame_count;
    if (error == IW_OK && layout.picture == NULL)
        return limits_check_animation(context, limits, header);
    if (error == IW_OK)
        error = webp_error(context, &layout, size,
                           WebPGetFeatures(layout.picture, layout.picture_bytes, &features));
    if (error != IW_OK)
        return error;
    header->width_px = (uint32_t)features.width;
    header->height_px = (uint32_t)features.height;
    header->channels = features.has_alpha || layout.has_alpha_flag ? 4 : 3;
    header->depth_bits = 8;
    header->is_lossy = !layout.is_lossless;
    limits_estimate(header);
    error = limits_check(context, limits, header);
    return error != IW_OK ? error : webp_check_side(context, limits, header);
}

/* Decodes the rows that the bytes have, top to bottom. */
static enum iw_error webp_decode_partial(struct context *context, const struct webp_layout *layout,
                                         WebPDecoderConfig *config, struct keep_loss *loss)
{
    int rows = 0;
    WebPIDecoder *decoder = WebPIDecode(NULL, 0, config);
    if (decoder == NULL)
        return context_fail(context, IW_NO_MEMORY, NULL);
    VP8StatusCode status = WebPIUpdate(decoder, layout->picture, layout->picture_bytes);
    if (WebPIDecGetRGB(decoder, &rows, NULL, NULL, NULL) == NULL)
        rows = 0;
    WebPIDelete(decoder);
    if (is_no_memory(status))
        return context_fail(context, IW_NO_MEMORY, NULL);
    if (status != VP8_STATUS_OK && (uint32_t)rows < loss->rows_px)
        loss->rows_px = (uint32_t)rows;
    return IW_OK;
}

static enum iw_error codec_webp_decode(struct context *context, const unsigned char *data, size_t size,
                                       const struct codec_limits *limits, struct codec_picture *picture)
{
    struct webp_layout layout;
    const struct image *image = &picture->image;
    WebPDecoderConfig config;
    enum iw_error error = webp_layout_walk(context, data, size, &layout);
    if (error == IW_OK)
        error = webp_chunks_keep(context, data, &layout, picture->keep);
    if (error != IW_OK)
        return error;
    picture->keep->end = layout.end;
    if (!WebPInitDecoderConfig(&config))
        return context_fail(context, IW_SERVER_INTERNAL_ERROR, NULL);
    config.output.colorspace = image->channels == 4 ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = image->pixels;
    config.output.u.RGBA.stride = (int)image->stride_bytes;
    config.output.u.RGBA.size = image->stride_bytes * image->height_px;
    errno = 0;
    if (limits->is_partial_allowed)
        error = webp_decode_partial(context, &layout, &config, &picture->keep->loss);
    else
        error = webp_error(context, &layout, size, WebPDecode(layout.picture, layout.picture_bytes, &config));
    /* A frame that lost bytes in its middle may decode to its end. */
    if (error == IW_OK && layout.is_cut && !limits->is_partial_allowed)
        error = driver_cut(context, size);
    WebPFreeDecBuffer(&config.output);
    return error;
}

/* ---- encoding ---- */

struct webp_sink {
    struct codec_bytes *bytes;
    size_t capacity;
};

static int webp_append(const uint8_t *data, size_t size, const WebPPicture *webp)
{
    struct webp_sink *sink = webp->custom_ptr;
    return bytes_append(sink->bytes, &sink->capacity, data, size);
}

static bool is_overflow(WebPEncodingError code)
{
    return code == VP8_ENC_ERROR_PARTITION0_OVERFLOW || code == VP8_ENC_ERROR_PARTITION_OVERFLOW;
}

static enum iw_error webp_encode_error(struct context *context, WebPEncodingError code)
{
    context_cause(context, "libwebp: encoding error %d", (int)code);
    if (code == VP8_ENC_ERROR_OUT_OF_MEMORY || code == VP8_ENC_ERROR_BITSTREAM_OUT_OF_MEMORY ||
        code == VP8_ENC_ERROR_BAD_WRITE)
        return context_fail(context, IW_NO_MEMORY, NULL);
    return context_fail(context, IW_SERVER_INTERNAL_ERROR, NULL);
}

static void webp_config(WebPConfig *config, const struct codec_picture *picture)
{
    const struct codec_header *header = &picture->header;
    bool is_large = (uint64_t)header->width_px * header->height_px > picture_webp_fast_from_px;
    WebPConfigInit(config);
    config->lossless = !header->is_lossy;
    /* For lossless files quality means effort. Drawings take a quarter less at 75, the library's default. */
    int effort = is_large ? 0 : header->is_small ? 75 : 20;
    config->quality = header->is_lossy ? picture->keep->webp.quality : (float)effort;
    config->method = header->is_lossy ? 4 : is_large ? 0 : 3;
    config->exact = 1;
    config->low_memory = 1;
    config->alpha_quality = 100;
}

/* Encodes the bare frame; *code receives the library's error. */
static enum iw_error webp_encode_as(struct context *context, const struct codec_picture *picture,
                                    const WebPConfig *config, struct codec_bytes *bytes,
                                    WebPEncodingError *code)
{
    WebPPicture webp;
    struct webp_sink sink = {bytes, 0};
    const struct image *image = &picture->image;
    if (!WebPPictureInit(&webp))
        return context_fail(context, IW_SERVER_INTERNAL_ERROR, NULL);
    webp.use_argb = config->lossless;
    webp.width = (int)image->width_px;
    webp.height = (int)image->height_px;
    webp.writer = webp_append;
    webp.custom_ptr = &sink;
    int (*import)(WebPPicture *, const uint8_t *, int) =
        image->channels == 4 ? WebPPictureImportRGBA : WebPPictureImportRGB;
    int is_done = import(&webp, image->pixels, (int)image->stride_bytes) && WebPEncode(config, &webp);
    *code = webp.error_code;
    WebPPictureFree(&webp);
    return is_done || is_overflow(*code) ? IW_OK : webp_encode_error(context, *code);
}

/*
 * The first partition of a lossy frame holds at most 512 KiB of modes (RFC 6386, 9.3), too
 * little for very many blocks. The second attempt makes the modes as short as the library can.
 */
static enum iw_error webp_encode_frame(struct context *context, const struct codec_picture *picture,
                                       struct codec_bytes *bytes)
{
    enum { limit_most = 100 };
    WebPConfig config;
    WebPEncodingError code = VP8_ENC_OK;
    webp_config(&config, picture);
    enum iw_error error = webp_encode_as(context, picture, &config, bytes, &code);
    if (error == IW_OK && is_overflow(code)) {
        bytes_free(bytes);
        config.partition_limit = limit_most;
        error = webp_encode_as(context, picture, &config, bytes, &code);
    }
    return error == IW_OK && code != VP8_ENC_OK ? webp_encode_error(context, code) : error;
}

/* Pieces that occur once, at a fixed place and with a flag in VP8X. */
static const struct {
    uint32_t tag;
    unsigned flag;
} placed[] = {{TAG_ICCP, 0x20}, {TAG_EXIF, 0x08}, {TAG_XMP, 0x04}};
enum { placed_count = sizeof placed / sizeof placed[0] };

static unsigned char *put_number(unsigned char *at, uint32_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *at++ = (unsigned char)(value >> (8 * i));
    return at;
}

static size_t chunk_bytes(size_t size)
{
    return chunk_head_bytes + size + (size & 1);
}

static unsigned char *webp_put_chunk(unsigned char *at, const struct keep_chunk *chunk)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        *at++ = (unsigned char)(chunk->tag >> shift);
    at = put_number(at, (uint32_t)chunk->size, 4);
    memcpy(at, chunk->data, chunk->size);
    if (chunk->size & 1)
        at[chunk->size] = 0;
    return at + chunk->size + (chunk->size & 1);
}

/* Pieces around the frame in order: the profile before it, all others after it. */
struct webp_wrapping {
    const struct keep_chunk *first[placed_count];
    unsigned flags;
    size_t front_bytes; /* with the file's head */
    size_t back_bytes;
};

/* True for a piece that is written: any without a fixed place, or the first of its kind. */
static bool is_written(const struct webp_wrapping *wrapping, const struct keep_chunk *chunk)
{
    for (int i = 0; i < placed_count; i++)
        if (placed[i].tag == chunk->tag)
            return wrapping->first[i] == chunk;
    return true;
}

static struct webp_wrapping webp_plan(const struct codec_keep *keep, bool has_alpha)
{
    struct webp_wrapping plan;
    memset(&plan, 0, sizeof plan);
    plan.front_bytes = riff_head_bytes + chunk_bytes(vp8x_bytes);
    plan.flags = has_alpha ? flag_alpha : 0;
    for (const struct keep_chunk *chunk = keep->first; chunk != NULL; chunk = chunk->next) {
        for (int i = 0; i < placed_count; i++)
            if (placed[i].tag == chunk->tag && plan.first[i] == NULL) {
                plan.first[i] = chunk;
                plan.flags |= placed[i].flag;
            }
        if (is_written(&plan, chunk))
            *(chunk->tag == TAG_ICCP ? &plan.front_bytes : &plan.back_bytes) += chunk_bytes(chunk->size);
    }
    return plan;
}

static void wrapping_write(const struct webp_wrapping *plan, const struct codec_picture *picture,
                           unsigned char *data, size_t frame_bytes)
{
    size_t size = plan->front_bytes + frame_bytes + plan->back_bytes;
    memcpy(data, "RIFF", 4);
    put_number(data + 4, (uint32_t)(size - 8), 4);
    memcpy(data + 8, "WEBPVP8X", 8);
    unsigned char *at = put_number(data + 16, vp8x_bytes, 4);
    at = put_number(at, plan->flags, 4);
    at = put_number(at, picture->header.width_px - 1, 3);
    at = put_number(at, picture->header.height_px - 1, 3);
    unsigned char *back = data + plan->front_bytes + frame_bytes;
    for (const struct keep_chunk *chunk = picture->keep->first; chunk != NULL; chunk = chunk->next) {
        if (!is_written(plan, chunk))
            continue;
        if (chunk->tag == TAG_ICCP)
            at = webp_put_chunk(at, chunk);
        else
            back = webp_put_chunk(back, chunk);
    }
}

/*
 * Wraps the bare frame in bytes with the kept pieces, in place. libwebp drops an alpha plane
 * that is opaque. The original flags are restored, so the picture keeps its channels.
 */
static enum iw_error webp_wrap(struct context *context, const struct codec_picture *picture,
                               struct codec_bytes *bytes)
{
    /* libwebp writes a VP8X chunk for an alpha plane. */
    size_t skipped = riff_head_bytes +
                     (memcmp(bytes->data + riff_head_bytes, "VP8X", 4) == 0 ? chunk_bytes(vp8x_bytes) : 0);
    size_t frame_bytes = bytes->size - skipped;
    struct webp_wrapping plan = webp_plan(picture->keep, picture->image.channels == 4);
    size_t size = plan.front_bytes + frame_bytes + plan.back_bytes;
    unsigned char *data = realloc(bytes->data, size + 1);
    if (data == NULL)
        return context_fail(context, IW_NO_MEMORY, NULL);
    unsigned char *frame = data + plan.front_bytes;
    memmove(frame, data + skipped, frame_bytes);
    /* The alpha bit of a lossless frame is after signature, width and height (RFC 9649, 3.4). */
    if (picture->image.channels == 4 && memcmp(frame, "VP8L", 4) == 0)
        frame[chunk_head_bytes + 4] |= 0x10;
    wrapping_write(&plan, picture, data, frame_bytes);
    bytes->data = data;
    bytes->size = size;
    return IW_OK;
}

static enum iw_error codec_webp_encode(struct context *context, const struct codec_picture *picture,
                                       struct codec_bytes *bytes)
{
    enum iw_error error = webp_encode_frame(context, picture, bytes);
    if (error == IW_OK && (picture->keep->first != NULL || picture->image.channels == 4))
        error = webp_wrap(context, picture, bytes);
    return error;
}

static const unsigned char *webp_icc(struct arena *arena, const struct codec_keep *keep, size_t *size)
{
    (void)arena;
    const struct keep_chunk *chunk = keep_find(keep, KEEP_TAG('I', 'C', 'C', 'P'), "", 0);
    if (chunk == NULL || chunk->size > driver_icc_max_bytes)
        return NULL;
    *size = chunk->size;
    return chunk->data;
}

/* Share of the distance from the file's quality to 100; above 1: lossless. */
static const float webp_ways[] = {0.5F, 0.85F, 2.0F};

/* Memory of libwebp's lossless encoder in addition to the picture, bytes per pixel; measured, see
 * model/picture.c. */
enum { webp_lossless_bytes_px = 28 };

/* Ten photographs of quality 95 keep no more of a change at a higher one: colours have half the resolution.
 */
static const float quality_enough = 95;

static float *webp_quality(struct codec_picture *picture)
{
    float *quality = &picture->keep->webp.quality;
    return picture->header.is_lossy && *quality < quality_enough ? quality : NULL;
}

static bool webp_finer(struct codec_picture *picture, unsigned level)
{
    float *quality = &picture->keep->webp.quality;
    if (level > sizeof webp_ways / sizeof webp_ways[0] || !picture->header.is_lossy)
        return false;
    if (webp_ways[level - 1] <= 1) {
        *quality += webp_ways[level - 1] * (100 - *quality);
        return true;
    }
    picture->header.is_lossy = false;
    picture->header.encode_memory_bytes = (uint64_t)picture->header.width_px * picture->header.height_px *
                                          (picture->header.channels + webp_lossless_bytes_px);
    return true;
}

/* The frame. */
static struct transfer_bytes webp_compressed(const unsigned char *data, size_t size)
{
    const unsigned char *at = memmem(data, size, "VP8 ", 4);
    if (at == NULL)
        at = memmem(data, size, "VP8L", 4);
    size_t left = at == NULL ? 0 : size - (size_t)(at - data);
    if (left <= chunk_head_bytes)
        return (struct transfer_bytes){data, 0};
    size_t said = little_endian(at + 4);
    left -= chunk_head_bytes;
    return (struct transfer_bytes){at + chunk_head_bytes, said < left ? said : left};
}

const struct codec_driver webp_driver = {
    .probe = codec_webp_probe,
    .decode = codec_webp_decode,
    .encode = codec_webp_encode,
    .compressed = webp_compressed,
    .icc = webp_icc,
    .exif = {TAG_EXIF, 0},
    .clean = clean_webp,
    .xmp = &packets_webp,
    .finer = webp_finer,
    .quality = webp_quality,
};
