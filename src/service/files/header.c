#include "service/files/header.h"

#include <string.h>

/* The step after a complete part: the header was found, the part must grow, or the next part begins. */
enum header_step { HEADER_FOUND, HEADER_LONGER, HEADER_NEXT, HEADER_NONE };

enum {
    jpeg_marker_bytes = 4, /* with the length of its segment */
    jpeg_frame_bytes = 10, /* marker, length, precision, height, width, number of components */
    jpeg_component_bytes = 3,
    png_head_bytes = 26, /* signature, chunk header, width, height, depth, colour type */
    riff_chunk_bytes = 8,
    vp8_head_bytes = 18, /* with the chunk header */
    vp8l_head_bytes = 13,
    riff_start_bytes = 12,
    components_max = 4
};

static uint32_t big_endian(const uint8_t *bytes, int count)
{
    uint32_t value = 0;
    for (int i = 0; i < count; i++)
        value = value << 8 | bytes[i];
    return value;
}

static uint32_t little_endian(const uint8_t *bytes, int count)
{
    uint32_t value = 0;
    for (int i = count - 1; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

/* The next part begins skip bytes after this one and has wanted bytes. */
static enum header_step part_next(struct header *header, uint64_t skip_bytes, size_t wanted)
{
    header->skip_bytes = skip_bytes;
    header->wanted = wanted;
    return HEADER_NEXT;
}

static enum header_step part_longer(struct header *header, size_t wanted)
{
    header->wanted = wanted;
    return HEADER_LONGER;
}

/* ---- JPEG ---- */

/* A progressive picture is kept completely in memory, as coefficients of two bytes. */
static uint64_t coefficients(const struct picture_form *form, const uint8_t *components, unsigned count)
{
    unsigned h_max = 1, v_max = 1, area = 0;
    for (unsigned c = 0; c < count; c++) {
        unsigned h = components[jpeg_component_bytes * c + 1] >> 4,
                 v = components[jpeg_component_bytes * c + 1] & 15;
        h_max = h > h_max ? h : h_max;
        v_max = v > v_max ? v : v_max;
        area += h * v;
    }
    return (uint64_t)form->width_px * form->height_px * 2 * area / (h_max * v_max);
}

static enum header_step frame_read(struct header *header)
{
    const uint8_t *head = header->head;
    struct picture_form *form = &header->form;
    unsigned count = head[9];
    bool is_progressive = head[1] == 0xC2 || head[1] == 0xCA;
    if (count == 0 || count > components_max)
        return HEADER_NONE;
    if (header->wanted == jpeg_frame_bytes)
        return part_longer(header, jpeg_frame_bytes + jpeg_component_bytes * count);
    form->depth_bits = 8;
    form->height_px = big_endian(head + 5, 2);
    form->width_px = big_endian(head + 7, 2);
    form->channels = count == 1 ? 1 : 3;
    form->is_cmyk = count == 4;
    form->coefficient_bytes = is_progressive ? coefficients(form, head + jpeg_frame_bytes, count) : 0;
    return HEADER_FOUND;
}

/* Bytes that are not a marker are skipped, as libjpeg does. */
static enum header_step jpeg_part(struct header *header)
{
    const uint8_t *head = header->head;
    unsigned length = big_endian(head + 2, 2), code = head[1];
    bool is_bare = code == 0 || code == 0xFF || code == 0x01 || (code >= 0xD0 && code <= 0xD8);
    bool is_frame = code >= 0xC0 && code <= 0xCF && code != 0xC4 && code != 0xC8 && code != 0xCC;
    if (header->wanted > jpeg_marker_bytes)
        return frame_read(header);
    if (head[0] != 0xFF || is_bare) {
        /* Moves one byte further. */
        memmove(header->head, header->head + 1, --header->count);
        return HEADER_LONGER;
    }
    if (is_frame)
        return part_longer(header, jpeg_frame_bytes);
    if (code == 0xDA || code == 0xD9 || length < 2)
        return HEADER_NONE;
    return part_next(header, length - 2, jpeg_marker_bytes);
}

/* ---- PNG ---- */

static enum header_step png_part(struct header *header)
{
    static const uint8_t channels[] = {1, 0, 3, 3, 2, 0, 4};
    const uint8_t *head = header->head;
    struct picture_form *form = &header->form;
    unsigned color = head[25];
    if (memcmp(head + 12, "IHDR", 4) != 0 || color >= sizeof channels || channels[color] == 0)
        return HEADER_NONE;
    form->width_px = big_endian(head + 16, 4);
    form->height_px = big_endian(head + 20, 4);
    form->depth_bits = head[24] == 16 ? 16 : 8;
    form->channels = channels[color];
    return HEADER_FOUND;
}

/* ---- WebP ---- */

/* A chunk name has four characters. Anything else is damage, in which a decoder searches for the picture. */
static bool is_chunk_name(const uint8_t *name)
{
    for (int i = 0; i < 4; i++)
        if (name[i] < ' ' || name[i] > '~')
            return false;
    return true;
}

static enum header_step webp_read(struct header *header)
{
    enum { side_bits = 14 };
    const uint8_t *frame = header->head + riff_chunk_bytes;
    struct picture_form *form = &header->form;
    const uint32_t mask = (1 << side_bits) - 1, word = little_endian(frame + 1, 4);
    bool is_lossless = header->wanted == vp8l_head_bytes;
    if (is_lossless ? frame[0] != 0x2F : memcmp(frame + 3, "\x9D\x01\x2A", 3) != 0)
        return HEADER_NONE;
    form->depth_bits = 8;
    form->is_lossless = is_lossless;
    form->width_px = is_lossless ? (word & mask) + 1 : little_endian(frame + 6, 2) & mask;
    form->height_px = is_lossless ? (word >> side_bits & mask) + 1 : little_endian(frame + 8, 2) & mask;
    /* The flags may add an alpha channel later; this is the minimum. */
    if (form->channels == 0)
        form->channels = is_lossless && (word >> 2 * side_bits & 1) != 0 ? 4 : 3;
    return HEADER_FOUND;
}

static enum header_step webp_part(struct header *header)
{
    const uint8_t *head = header->head;
    uint64_t size = little_endian(head + 4, 4);
    if (header->wanted == riff_start_bytes)
        return part_next(header, 0, riff_chunk_bytes);
    if (header->wanted > riff_chunk_bytes)
        return webp_read(header);
    if (memcmp(head, "VP8 ", 4) == 0)
        return part_longer(header, vp8_head_bytes);
    if (memcmp(head, "VP8L", 4) == 0)
        return part_longer(header, vp8l_head_bytes);
    if (memcmp(head, "ANMF", 4) == 0 || !is_chunk_name(head))
        return HEADER_NONE;
    if (memcmp(head, "ALPH", 4) == 0)
        header->form.channels = 4;
    return part_next(header, size + (size & 1), riff_chunk_bytes);
}

static const struct {
    size_t first_bytes;
    enum header_step (*part)(struct header *header);
} formats[FORMAT_COUNT] = {
    [FORMAT_JPEG] = {jpeg_marker_bytes, jpeg_part},
    [FORMAT_PNG] = {png_head_bytes, png_part},
    [FORMAT_WEBP] = {riff_start_bytes, webp_part},
};

bool header_add(struct header *header, const void *bytes, size_t size)
{
    const uint8_t *at = bytes, *end = at + size;
    if (formats[header->form.format].part == NULL)
        return false;
    if (header->wanted == 0)
        header->wanted = formats[header->form.format].first_bytes;
    while (at < end && !header->is_over) {
        uint64_t rest = (uint64_t)(end - at), passed = header->skip_bytes < rest ? header->skip_bytes : rest;
        header->skip_bytes -= passed;
        at += passed;
        if (at == end)
            return false;
        header->head[header->count++] = *at++;
        if (header->count < header->wanted)
            continue;
        enum header_step step = formats[header->form.format].part(header);
        if (step == HEADER_NEXT)
            header->count = 0;
        header->is_over = step == HEADER_FOUND || step == HEADER_NONE;
        if (step == HEADER_FOUND)
            return true;
    }
    return false;
}

enum iw_error header_check(struct context *context, const struct header *header, enum order_type type,
                           int64_t image_memory_bytes)
{
    const struct picture_load load = picture_load(&header->form);
    return picture_check_memory(context, &load, picture_engine(type),
                                picture_allowed_bytes((uint64_t)image_memory_bytes));
}
