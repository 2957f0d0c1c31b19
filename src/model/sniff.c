#include "model/sniff.h"
#include "base/message.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* A HEIF file of the general brand mif1: the list of brands says which codec. Canon's raw photo is a TIFF. */
static enum format sniff_family(const unsigned char *data, size_t n)
{
    enum { brand_bytes = 4, brands_at = 16 };
    if (n < brands_at || memcmp(data + 4, "ftypmif1", 8) != 0)
        return FORMAT_NONE;
    size_t size = (size_t)data[2] << 8 | data[3];
    for (size_t at = brands_at; at + brand_bytes <= n && at + brand_bytes <= size; at += brand_bytes)
        if (memcmp(data + at, "avif", brand_bytes) == 0)
            return FORMAT_AVIF;
    return FORMAT_HEIC;
}

enum format sniff_format(const void *first_bytes, size_t n)
{
    static const size_t canon_at = 8;
    if (n >= canon_at + 4 && memcmp((const char *)first_bytes + canon_at, "CR\2\0", 4) == 0)
        return FORMAT_NONE;
    for (int i = 0; i < FORMAT_COUNT; i++)
        if (format_begins((enum format)i, first_bytes, n))
            return (enum format)i;
    return sniff_family(first_bytes, n);
}

/* ---- unsupported formats ---- */

#define EXPORT_AS_JPEG "Export it as JPEG and upload it again."
#define EXPORT_AS_PNG  "Export it as PNG and upload it again."
#define SEND_BYTES     "Send only the bytes of the picture file as the body of the PUT."
#define TRANSFERRED_AS_TEXT                                                                                  \
    " was changed by a transfer in text mode. Transfer it in binary mode and upload it again."
#define READ_AS_TEXT " was changed because a program read it as text. Read and send it as binary data."

/*
 * Binary formats, by bytes at an offset. The first matching row is used. After a colon, the formats follow
 * that every order accepts.
 */
static const struct {
    size_t offset;
    size_t size;
    const char *bytes;
    const char *advice;
} others[] = {
    {4, 7, "ftyphei", "This is a HEIC file (iPhone photo). " EXPORT_AS_JPEG},
    {4, 7, "ftyphev", "This is a HEIC image sequence. " EXPORT_AS_JPEG},
    {4, 8, "ftypavif", "This is an AVIF file. " EXPORT_AS_JPEG},
    {4, 8, "ftypavis", "This is an animated AVIF file. Save each frame that you need as JPEG or PNG."},
    {4, 8, "ftypmif1", "This is a HEIF file (HEIC or AVIF). " EXPORT_AS_JPEG},
    {4, 8, "ftypmsf1", "This is a HEIF image sequence. " EXPORT_AS_JPEG},
    {4, 7, "ftypcrx", "This is a Canon raw photo (CR3). Develop it in a photo program. " EXPORT_AS_JPEG},
    {4, 4, "ftyp", "This is a video file (MP4 or QuickTime). Only pictures are accepted:"},
    {0, 6, "GIF87a", "This is a GIF file. " EXPORT_AS_PNG},
    {0, 6, "GIF89a", "This is a GIF file. " EXPORT_AS_PNG},
    {8, 4, "CR\2\0", "This is a Canon raw photo (CR2). Develop it in a photo program. " EXPORT_AS_JPEG},
    {0, 4, "II*\0", "This is a TIFF file or a raw photo (DNG, NEF, ARW). " EXPORT_AS_JPEG},
    {0, 4, "MM\0*", "This is a TIFF file or a raw photo (DNG, NEF). " EXPORT_AS_JPEG},
    {0, 4, "II+\0", "This is a BigTIFF file. " EXPORT_AS_JPEG},
    {0, 4, "MM\0+", "This is a BigTIFF file. " EXPORT_AS_JPEG},
    {0, 4, "IIRO", "This is an Olympus raw photo (ORF). Develop it in a photo program. " EXPORT_AS_JPEG},
    {0, 4, "IIU\0", "This is a Panasonic raw photo (RW2). Develop it in a photo program. " EXPORT_AS_JPEG},
    {0, 8, "FUJIFILM", "This is a Fujifilm raw photo (RAF). Develop it in a photo program. " EXPORT_AS_JPEG},
    {0, 2, "\xff\x0a", "This is a JPEG XL file. " EXPORT_AS_JPEG},
    {4, 8, "JXL \r\n\x87\n", "This is a JPEG XL file. " EXPORT_AS_JPEG},
    {4, 8, "jP  \r\n\x87\n", "This is a JPEG 2000 file. " EXPORT_AS_JPEG},
    {0, 4, "\xff\x4f\xff\x51", "This is a JPEG 2000 codestream. " EXPORT_AS_JPEG},
    {0, 4, "8BPS", "This is a Photoshop document (PSD). " EXPORT_AS_JPEG},
    {0, 8, "gimp xcf", "This is a GIMP document (XCF). " EXPORT_AS_PNG},
    {0, 4, "%PDF", "This is a PDF document. Export its page as JPEG or PNG and upload that."},
    {0, 4, "%!PS", "This is a PostScript file. " EXPORT_AS_PNG},
    {0, 4, "\xc5\xd0\xd3\xc6", "This is an EPS file. " EXPORT_AS_PNG},
    {0, 4, "PK\3\4", "This is a ZIP archive or an office document. Upload each picture by itself."},
    {0, 2, "\x1f\x8b", "This is a file packed by gzip. Unpack it and upload the picture."},
    {0, 6, "7z\xbc\xaf\x27\x1c", "This is a 7z archive. Upload each picture by itself."},
    {0, 4, "Rar!", "This is a RAR archive. Upload each picture by itself."},
    {0, 4, "\0\0\1\0", "This is an icon file (ICO). " EXPORT_AS_PNG},
    {0, 4, "\x76\x2f\x31\x01", "This is an OpenEXR file. " EXPORT_AS_JPEG},
    {0, 4, "qoif", "This is a QOI file. " EXPORT_AS_PNG},
    {0, 4, "DDS ", "This is a DDS texture. " EXPORT_AS_PNG},
    {0, 4, "\x1a\x45\xdf\xa3", "This is a WebM or Matroska video. Only pictures are accepted:"},
    {0, 5, "\x89PNG\n", "This PNG file" TRANSFERRED_AS_TEXT},
    {0, 6, "\x89PNG\r\r", "This PNG file" TRANSFERRED_AS_TEXT},
    {0, 8, "\xef\xbf\xbdPNG\r\n", "This PNG file" READ_AS_TEXT},
    {0, 3, "\x7fX\x7f", "This JPEG file" TRANSFERRED_AS_TEXT},
    {0, 4, "\tPNG", "This PNG file" TRANSFERRED_AS_TEXT},
    {0, 4, "?PNG", "This PNG file" READ_AS_TEXT},
    {0, 5, "\xc2\x89PNG", "This PNG file" READ_AS_TEXT},
    {0, 6, "\xc3\xbf\xc3\x98\xc3\xbf", "This JPEG file" READ_AS_TEXT},
    {0, 5, "????\0", "This file" READ_AS_TEXT},
    {9, 6, "WEBPVP", "This WebP file" READ_AS_TEXT}, /* bytes of the size became two or three each */
    {10, 6, "WEBPVP", "This WebP file" READ_AS_TEXT},
    {11, 6, "WEBPVP", "This WebP file" READ_AS_TEXT},
    {12, 6, "WEBPVP", "This WebP file" READ_AS_TEXT},
    {14, 6, "WEBPVP", "This WebP file" READ_AS_TEXT},
    {0, 2, "\xff\xfe",
     "This is text in UTF-16, as PowerShell's \">\" writes it. Save the picture as binary data."},
    {0, 6, "\xef\xbf\xbd\xef\xbf\xbd", "This file" READ_AS_TEXT},
    {0, 2, "BM", "This is a BMP file. " EXPORT_AS_PNG},
    {0, 4, "/9j/", "This is a JPEG picture encoded as Base64 text. Decode it and upload the bytes."},
    {0, 11, "iVBORw0KGgo", "This is a PNG picture encoded as Base64 text. Decode it and upload the bytes."},
    {0, 5, "UklGR", "This is a WebP picture encoded as Base64 text. Decode it and upload the bytes."},
    {0, 11, "data:image/", "This is a data URL, which is text. Decode its Base64 part and upload the bytes."},
    {0, 2, "--", "This is a form (multipart/form-data). " SEND_BYTES},
    {0, 8, "[object ", "This is the text \"[object ...]\" of a program. " SEND_BYTES},
    {0, 1, "{", "This looks like JSON. " SEND_BYTES},
};

/* Text formats, by a word in the first bytes, ignoring case. */
static const struct {
    const char *word;
    const char *advice;
} texts[] = {
    {"<svg", "This is an SVG drawing. " EXPORT_AS_PNG},
    {"<!doctype html", "This is an HTML page, not a picture. Use the address of the picture itself."},
    {"<html", "This is an HTML page, not a picture. Use the address of the picture itself."},
    {"<head", "This is an HTML page, not a picture. Use the address of the picture itself."},
    {"<br />\n<b>", "This file begins with a message of a PHP program. Correct its cause. " SEND_BYTES},
    {"<?xml", "This is an XML document, not a picture. Upload a picture in one of these formats:"},
};

static bool holds_word(const unsigned char *data, size_t n, const char *word)
{
    size_t length = strlen(word);
    for (size_t at = 0; at + length <= n && at + length <= sniff_bytes; at++)
        if (strncasecmp((const char *)data + at, word, length) == 0)
            return true;
    return false;
}

/* A byte order mark and blanks may precede the first word. */
static bool is_markup(const unsigned char *data, size_t n)
{
    size_t at = n >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (at < n && at < sniff_bytes && strchr(" \t\r\n", data[at]) != NULL && data[at] != 0)
        at++;
    return at < n && data[at] == '<';
}

/* A picture behind other bytes: a blank line, a byte order mark, a message of the script that sent it. */
static enum format format_behind(const unsigned char *data, size_t n)
{
    enum format format = FORMAT_NONE;
    for (size_t at = 1; at < n && at < sniff_bytes && !format_is_picture(format); at++)
        format = sniff_format(data + at, n - at);
    return format;
}

/* The advice for binary data, or NULL. */
static const char *binary_advice(const unsigned char *data, size_t n)
{
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (n >= others[i].offset + others[i].size &&
            memcmp(data + others[i].offset, others[i].bytes, others[i].size) == 0)
            return others[i].advice;
    return NULL;
}

/* The advice for markup, or NULL. */
static const char *text_advice(const unsigned char *data, size_t n)
{
    for (size_t i = 0; is_markup(data, n) && i < sizeof texts / sizeof texts[0]; i++)
        if (holds_word(data, n, texts[i].word))
            return texts[i].advice;
    return NULL;
}

const char *sniff_advice(struct arena *arena, const void *first_bytes, size_t n)
{
    if (n == 0)
        return message_file_empty;
    const char *titles = formats_titles(arena, formats_changed());
    const char *advice = binary_advice(first_bytes, n);
    enum format format = advice == NULL ? format_behind(first_bytes, n) : FORMAT_NONE;
    if (format_is_picture(format))
        return arena_printf(arena,
                            "Other bytes, such as a blank line or a program's message, stand before the %s "
                            "picture. " SEND_BYTES,
                            format_title(format));
    if (advice == NULL)
        advice = text_advice(first_bytes, n);
    if (advice == NULL)
        return arena_printf(
            arena, "The file is not a %s picture, by its first bytes. Convert it to one and upload that.",
            titles);
    return advice[strlen(advice) - 1] == ':' ? arena_printf(arena, "%s %s.", advice, titles) : advice;
}
