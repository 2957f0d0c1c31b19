/* Reads the first frame of a GIF by giflib: RGB, or RGBA where the frame has a transparent colour. */
#include <gif_lib.h>

#include <stdlib.h>
#include <string.h>

#include "codec/driver.h"

struct gif_source {
    const unsigned char *data;
    size_t left;
};

static int source_read(GifFileType *gif, GifByteType *bytes, int wanted)
{
    struct gif_source *source = gif->UserData;
    size_t count = (size_t)wanted < source->left ? (size_t)wanted : source->left;
    memcpy(bytes, source->data, count);
    source->data += count;
    source->left -= count;
    return (int)count;
}

/* Reads an extension. An extension "graphics control" sets the transparent colour. */
static bool extension_read(GifFileType *gif, int *transparent)
{
    GraphicsControlBlock control;
    GifByteType *block;
    int code;
    if (DGifGetExtension(gif, &code, &block) == GIF_ERROR)
        return false;
    if (code == GRAPHICS_EXT_FUNC_CODE && block != NULL &&
        DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK)
        *transparent = control.TransparentColor;
    while (block != NULL)
        if (DGifGetExtensionNext(gif, &block) == GIF_ERROR)
            return false;
    return true;
}

/* Reads up to the header of the first frame. False if the file ends or is damaged before it. */
static bool frame_find(GifFileType *gif, int *transparent)
{
    GifRecordType record;
    *transparent = NO_TRANSPARENT_COLOR;
    while (DGifGetRecordType(gif, &record) == GIF_OK && record != TERMINATE_RECORD_TYPE) {
        if (record == IMAGE_DESC_RECORD_TYPE)
            return DGifGetImageDesc(gif) == GIF_OK;
        if (record == EXTENSION_RECORD_TYPE && !extension_read(gif, transparent))
            return false;
    }
    return false;
}

/* Opens the file at its first frame. After IMAGE_CORRUPT, *gif is NULL. */
static enum iw_error gif_open(struct context *context, struct gif_source *source, GifFileType **gif,
                              int *transparent)
{
    int code = 0;
    size_t size = source->left;
    *gif = DGifOpen(source, source_read, &code);
    bool is_there = *gif != NULL && frame_find(*gif, transparent);
    if (is_there && ((*gif)->Image.ColorMap != NULL || (*gif)->SColorMap != NULL))
        return IW_OK;
    if (*gif != NULL)
        DGifCloseFile(*gif, &code);
    *gif = NULL;
    return source->left == 0 ? driver_cut(context, size) : driver_damaged(context, FORMAT_GIF);
}

static enum iw_error gif_probe(struct context *context, const unsigned char *data, size_t size,
                               const struct codec_limits *limits, struct codec_header *header)
{
    GifFileType *gif;
    int transparent, code;
    struct gif_source source = {data, size};
    enum iw_error error = gif_open(context, &source, &gif, &transparent);
    if (error != IW_OK)
        return error;
    header->format = FORMAT_GIF;
    header->width_px = (uint32_t)gif->Image.Width;
    header->height_px = (uint32_t)gif->Image.Height;
    header->channels = transparent != NO_TRANSPARENT_COLOR ? 4 : 3;
    header->depth_bits = 8;
    DGifCloseFile(gif, &code);
    limits_estimate(header);
    return limits_check(context, limits, header);
}

/* Writes a line of indices into rows_px rows from y on. An index beyond the palette is black. */
static void line_paint(const GifFileType *gif, const GifPixelType *line, int transparent,
                       const struct image *image, uint32_t y, uint32_t rows_px)
{
    const ColorMapObject *map = gif->Image.ColorMap != NULL ? gif->Image.ColorMap : gif->SColorMap;
    unsigned char *row = (unsigned char *)image->pixels + y * image->stride_bytes, *at = row;
    for (uint32_t x = 0; x < image->width_px; x++, at += image->channels) {
        static const GifColorType black = {0, 0, 0};
        const GifColorType *color = line[x] < map->ColorCount ? &map->Colors[line[x]] : &black;
        at[0] = color->Red;
        at[1] = color->Green;
        at[2] = color->Blue;
        if (image->channels == 4)
            at[3] = line[x] == transparent ? 0 : 255;
    }
    for (uint32_t i = 1; i < rows_px && y + i < image->height_px; i++)
        memcpy(row + i * image->stride_bytes, row, image->stride_bytes);
}

/*
 * Reads the lines until the file ends. A pass of an interlaced frame paints the rows of the later passes too.
 * Source: GIF89a specification, appendix E.
 */
static void lines_read(GifFileType *gif, GifPixelType *line, int transparent, struct codec_picture *picture)
{
    static const struct {
        uint32_t first, step, rows_px;
    } passes[] = {{0, 1, 1}, {0, 8, 8}, {4, 8, 4}, {2, 4, 2}, {1, 2, 1}};
    const struct image *image = &picture->image;
    struct keep_loss *loss = &picture->keep->loss;
    unsigned pass = gif->Image.Interlace ? 1 : 0, end = gif->Image.Interlace ? 5 : 1;
    loss->rows_px = 0;
    for (; pass < end; pass++)
        for (uint32_t y = passes[pass].first; y < image->height_px; y += passes[pass].step) {
            if (DGifGetLine(gif, line, (int)image->width_px) == GIF_ERROR) {
                loss->is_coarse = gif->Image.Interlace;
                return;
            }
            line_paint(gif, line, transparent, image, y, passes[pass].rows_px);
            uint32_t painted = y + passes[pass].rows_px;
            if (painted > loss->rows_px)
                loss->rows_px = painted < image->height_px ? painted : image->height_px;
        }
}

static enum iw_error gif_decode(struct context *context, const unsigned char *data, size_t size,
                                const struct codec_limits *limits, struct codec_picture *picture)
{
    GifFileType *gif;
    int transparent, code;
    struct gif_source source = {data, size};
    enum iw_error error = gif_open(context, &source, &gif, &transparent);
    if (error != IW_OK)
        return error;
    GifPixelType *line = malloc(picture->image.width_px);
    if (line != NULL)
        lines_read(gif, line, transparent, picture);
    DGifCloseFile(gif, &code);
    const struct keep_loss *loss = &picture->keep->loss;
    if (line == NULL)
        return context_fail(context, IW_NO_MEMORY, NULL);
    free(line);
    if ((loss->rows_px < picture->image.height_px || loss->is_coarse) && !limits->is_partial_allowed)
        return source.left == 0 ? driver_cut(context, size) : driver_damaged(context, FORMAT_GIF);
    return IW_OK;
}

const struct codec_driver gif_driver = {.probe = gif_probe, .decode = gif_decode};
