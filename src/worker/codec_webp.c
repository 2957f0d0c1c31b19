/* WebP through libwebp, which does the frame; the pieces of the container are taken and put back here. */
#include <webp/decode.h>
#include <webp/encode.h>

#include <stdlib.h>
#include <string.h>

#include "worker/codec_keep.h"

enum { riff_head_bytes = 12, chunk_head_bytes = 8, quality_default = 80 };

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
    uint32_t size;
    const unsigned char *data;
};

static uint32_t little_endian(const unsigned char *bytes)
{
    return KEEP_TAG(bytes[3], bytes[2], bytes[1], bytes[0]);
}

static enum iw_error webp_broken(struct context *context, const char *what)
{
    return context_fail(context, IW_IMAGE_CORRUPT, "The WebP image is broken: %s.", what);
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

/* A value that a flag announces, with its sign behind it; 0 without the flag. */
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
    unsigned probability[3]; /* of the tree that tells the segments, 0..255 */
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

static void vp8_skip_filter(struct bool_reader *reader)
{
    bool_bits(reader, 1 + 6 + 3);
    if (bool_bit(reader) && bool_bit(reader))
        for (int i = 0; i < 8; i++)
            bool_optional(reader, 6);
}

/* The mean quantiser, segments weighted by how often the segment tree takes them. */
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
 * libwebp maps a quality x = q/100 to a quantiser index 127 (1 - c) with
 * c = cbrt(2x/3) below 0.75 and cbrt(2x - 1) above; this is the way back.
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
    vp8_skip_filter(&reader);
    bool_bits(&reader, 2); /* partitions */
    double compression = 1 - vp8_mean_quantiser(&segments, (int)bool_bits(&reader, 7)) / 127;
    double linear = compression * compression * compression;
    return (float)(100 * (linear < 0.5 ? linear * 1.5 : (linear + 1) / 2));
}

/* ---- the container ---- */

static enum iw_error riff_end(struct context *context, const unsigned char *data, size_t size, size_t *end)
{
    if (size < riff_head_bytes + chunk_head_bytes)
        return webp_broken(context, "the file ends early");
    uint64_t riff_bytes = (uint64_t)little_endian(data + 4) + 8;
    if (riff_bytes > size || riff_bytes < riff_head_bytes + chunk_head_bytes)
        return webp_broken(context, "the file ends early");
    *end = (size_t)riff_bytes;
    return IW_OK;
}

static enum iw_error chunk_next(struct context *context, const unsigned char *data, size_t end,
                                size_t *offset, struct webp_chunk *chunk)
{
    if (end - *offset < chunk_head_bytes)
        return webp_broken(context, "the file ends early");
    chunk->tag = KEEP_TAG(data[*offset], data[*offset + 1], data[*offset + 2], data[*offset + 3]);
    chunk->size = little_endian(data + *offset + 4);
    chunk->data = data + *offset + chunk_head_bytes;
    size_t left = end - *offset - chunk_head_bytes;
    if (chunk->size > left)
        return webp_broken(context, "the file ends early");
    size_t padded = (size_t)chunk->size + (chunk->size & 1);
    *offset += chunk_head_bytes + (padded > left ? left : padded);
    return IW_OK;
}

static bool is_kept(uint32_t tag)
{
    static const uint32_t pixels[] = {TAG_VP8X, TAG_VP8L, TAG_VP8, TAG_ALPH, TAG_ANIM, TAG_ANMF};
    for (size_t i = 0; i < sizeof pixels / sizeof pixels[0]; i++)
        if (pixels[i] == tag)
            return false;
    return true;
}

static enum iw_error chunks_keep(struct context *context, const unsigned char *data, size_t size,
                                 struct codec_keep *keep)
{
    size_t end = 0;
    size_t offset = riff_head_bytes;
    enum iw_error error = riff_end(context, data, size, &end);
    keep->webp.quality = quality_default;
    while (error == IW_OK && offset < end) {
        struct webp_chunk chunk = {0, 0, NULL};
        error = chunk_next(context, data, end, &offset, &chunk);
        if (error == IW_OK && chunk.tag == TAG_VP8)
            keep->webp.quality = vp8_quality(chunk.data, chunk.size);
        if (error == IW_OK && is_kept(chunk.tag))
            error = keep_add(context, keep, chunk.tag, false, chunk.data, chunk.size);
    }
    return error;
}

/* ---- decoding ---- */

static enum iw_error webp_error(struct context *context, VP8StatusCode status)
{
    if (status == VP8_STATUS_OK)
        return IW_OK;
    context_cause(context, "libwebp: status %d", (int)status);
    switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY:
        return context_fail(context, IW_NO_MEMORY, NULL);
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return context_fail(context, IW_IMAGE_FORMAT_UNSUPPORTED,
                            "This kind of WebP image is not supported.");
    case VP8_STATUS_NOT_ENOUGH_DATA:
        return webp_broken(context, "the file ends early");
    default:
        return webp_broken(context, "its pixels cannot be decoded");
    }
}

/*
 * Bytes a pixel that libwebp 1.2.4 holds at its worst beside our own pixels,
 * measured at 24 to 100 megapixels.  Lossless pictures and alpha planes go
 * through its lossless encoder, which keeps ARGB and hash chains; its fastest
 * method, taken for large pictures, keeps fewer.
 */
enum {
    decode_bytes_px = 4,
    lossy_bytes_px = 3,
    alpha_bytes_px = 21,
    lossless_bytes_px = 28,
    lossless_fast_bytes_px = 20
};

static const uint64_t lossless_fast_from_px = 12000000;

static void webp_memory(struct codec_header *header)
{
    uint64_t pixels = (uint64_t)header->width_px * header->height_px;
    unsigned library = header->channels == 4 ? alpha_bytes_px : lossy_bytes_px;
    if (!header->is_lossy)
        library = pixels > lossless_fast_from_px ? lossless_fast_bytes_px : lossless_bytes_px;
    header->decode_memory_bytes = pixels * (header->channels + decode_bytes_px);
    header->encode_memory_bytes = pixels * (header->channels + library);
}

static enum iw_error codec_webp_probe(struct context *context, const unsigned char *data, size_t size,
                                      const struct codec_limits *limits, struct codec_header *header)
{
    size_t end = 0;
    WebPBitstreamFeatures features;
    enum iw_error error = riff_end(context, data, size, &end);
    if (error == IW_OK)
        error = webp_error(context, WebPGetFeatures(data, end, &features));
    if (error != IW_OK)
        return error;
    header->format = CODEC_WEBP;
    header->width_px = (uint32_t)features.width;
    header->height_px = (uint32_t)features.height;
    header->channels = features.has_alpha ? 4 : 3;
    header->depth_bits = 8;
    header->is_lossy = features.format != 2;
    header->is_animated = features.has_animation != 0;
    webp_memory(header);
    return codec_check(context, limits, header);
}

static enum iw_error codec_webp_decode(struct context *context, const unsigned char *data, size_t size,
                                       const struct codec_limits *limits, struct codec_picture *picture)
{
    (void)limits;
    size_t end = 0;
    const struct image *image = &picture->image;
    WebPDecoderConfig config;
    enum iw_error error = riff_end(context, data, size, &end);
    if (error == IW_OK)
        error = chunks_keep(context, data, size, picture->keep);
    if (error != IW_OK)
        return error;
    if (!WebPInitDecoderConfig(&config))
        return context_fail(context, IW_SERVER_INTERNAL_ERROR, NULL);
    config.output.colorspace = image->channels == 4 ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = image->pixels;
    config.output.u.RGBA.stride = (int)image->stride_bytes;
    config.output.u.RGBA.size = image->stride_bytes * image->height_px;
    error = webp_error(context, WebPDecode(data, end, &config));
    WebPFreeDecBuffer(&config.output);
    return error;
}

/* ---- encoding ---- */

struct webp_sink {
    struct codec_bytes *bytes;
    size_t capacity;
};

static int sink_take(const uint8_t *data, size_t size, const WebPPicture *webp)
{
    struct webp_sink *sink = webp->custom_ptr;
    return codec_bytes_append(sink->bytes, &sink->capacity, data, size);
}

static enum iw_error webp_encode_error(struct context *context, WebPEncodingError code)
{
    context_cause(context, "libwebp: encoding error %d", (int)code);
    if (code == VP8_ENC_ERROR_OUT_OF_MEMORY || code == VP8_ENC_ERROR_BITSTREAM_OUT_OF_MEMORY ||
        code == VP8_ENC_ERROR_BAD_WRITE)
        return context_fail(context, IW_NO_MEMORY, NULL);
    if (code == VP8_ENC_ERROR_PARTITION0_OVERFLOW || code == VP8_ENC_ERROR_PARTITION_OVERFLOW)
        return context_fail(context, IW_IMAGE_TOO_LARGE,
                            "The WebP image has more detail than its format can hold.");
    return context_fail(context, IW_SERVER_INTERNAL_ERROR, NULL);
}

static void webp_config(WebPConfig *config, const struct codec_picture *picture)
{
    const struct codec_header *header = &picture->header;
    bool is_large = (uint64_t)header->width_px * header->height_px > lossless_fast_from_px;
    WebPConfigInit(config);
    config->lossless = !header->is_lossy;
    /* For lossless files quality is effort. */
    config->quality = header->is_lossy ? picture->keep->webp.quality : is_large ? 0 : 20;
    config->method = header->is_lossy ? 4 : is_large ? 0 : 3;
    config->exact = 1;
    config->low_memory = 1;
    config->alpha_quality = 100;
}

static enum iw_error webp_encode_frame(struct context *context, const struct codec_picture *picture,
                                       struct codec_bytes *bytes)
{
    WebPConfig config;
    WebPPicture webp;
    struct webp_sink sink = {bytes, 0};
    const struct image *image = &picture->image;
    webp_config(&config, picture);
    if (!WebPPictureInit(&webp))
        return context_fail(context, IW_SERVER_INTERNAL_ERROR, NULL);
    webp.use_argb = config.lossless;
    webp.width = (int)image->width_px;
    webp.height = (int)image->height_px;
    webp.writer = sink_take;
    webp.custom_ptr = &sink;
    int (*import)(WebPPicture *, const uint8_t *, int) =
        image->channels == 4 ? WebPPictureImportRGBA : WebPPictureImportRGB;
    int is_done = import(&webp, image->pixels, (int)image->stride_bytes) && WebPEncode(&config, &webp);
    enum iw_error error = is_done ? IW_OK : webp_encode_error(context, webp.error_code);
    WebPPictureFree(&webp);
    return error;
}

/* Pieces that stand once in a file, at a place of their own and with a flag in VP8X. */
static const struct {
    uint32_t tag;
    unsigned flag;
} placed[] = {{TAG_ICCP, 0x20}, {TAG_EXIF, 0x08}, {TAG_XMP, 0x04}};
enum { placed_count = sizeof placed / sizeof placed[0], flag_alpha = 0x10, vp8x_bytes = 10 };

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

static unsigned char *put_chunk(unsigned char *at, const struct keep_chunk *chunk)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        *at++ = (unsigned char)(chunk->tag >> shift);
    at = put_number(at, (uint32_t)chunk->size, 4);
    memcpy(at, chunk->data, chunk->size);
    if (chunk->size & 1)
        at[chunk->size] = 0;
    return at + chunk->size + (chunk->size & 1);
}

/* What goes around the frame, in order: the profile in front of it, all else behind. */
struct webp_wrapping {
    const struct keep_chunk *first[placed_count];
    unsigned flags;
    size_t front_bytes; /* with the head of the file */
    size_t back_bytes;
};

/* True for a piece that is written: any that has no place, and the first of its kind that has one. */
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
            at = put_chunk(at, chunk);
        else
            back = put_chunk(back, chunk);
    }
}

/* The bit of a lossless frame that says its alpha is used: behind signature, width and height (RFC
 * 9649, 3.4). */
static void frame_alpha_announce(unsigned char *frame)
{
    enum { byte_at = chunk_head_bytes + 4, bit = 0x10 };
    if (memcmp(frame, "VP8L", 4) == 0)
        frame[byte_at] |= bit;
}

/*
 * Makes of the bare frame in bytes a file with the kept pieces around it, in
 * place.  libwebp leaves out an alpha plane that is opaque all over; what the file
 * said of itself is said again, so that its shape stays.
 */
static enum iw_error webp_wrap(struct context *context, const struct codec_picture *picture,
                               struct codec_bytes *bytes)
{
    /* libwebp writes a VP8X of its own when there is an alpha plane. */
    size_t skipped = riff_head_bytes +
                     (memcmp(bytes->data + riff_head_bytes, "VP8X", 4) == 0 ? chunk_bytes(vp8x_bytes) : 0);
    size_t frame_bytes = bytes->size - skipped;
    struct webp_wrapping plan = webp_plan(picture->keep, picture->image.channels == 4);
    size_t size = plan.front_bytes + frame_bytes + plan.back_bytes;
    unsigned char *data = realloc(bytes->data, size + 1);
    if (data == NULL)
        return context_fail(context, IW_NO_MEMORY, NULL);
    memmove(data + plan.front_bytes, data + skipped, frame_bytes);
    if (picture->image.channels == 4)
        frame_alpha_announce(data + plan.front_bytes);
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

const struct codec_driver codec_webp_driver = {codec_webp_probe, codec_webp_decode, NULL, codec_webp_encode};
