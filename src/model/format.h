/* The file formats that the service takes and makes: one table of their names everywhere. */
#ifndef MODEL_FORMAT_H
#define MODEL_FORMAT_H

#include <stdbool.h>

enum format {
    FORMAT_NONE, /* not one of the formats below */
    FORMAT_JPEG,
    FORMAT_PNG,
    FORMAT_WEBP,
    FORMAT_ZIP, /* archives only: sniffing never returns it */
    FORMAT_COUNT
};

/* True for the formats that clients upload. */
static inline bool format_is_picture(enum format format)
{
    return format == FORMAT_JPEG || format == FORMAT_PNG || format == FORMAT_WEBP;
}

/* The column value: "jpeg", "png", "webp", "zip"; "" for FORMAT_NONE.  Static text. */
const char *format_name(enum format format);

/* The contract's fileFormat: "JPG", "PNG", "WEBP", "ZIP".  Static text; NULL for FORMAT_NONE. */
const char *format_word(enum format format);

/* "image/jpeg" and so on; NULL for FORMAT_NONE.  Static text. */
const char *format_media_type(enum format format);

/* The first extension of the format with its dot, ".jpg"; "" for FORMAT_NONE.  Static text. */
const char *format_extension(enum format format);

/* The format of a column value; FORMAT_NONE for any other text and for NULL. */
enum format format_by_name(const char *name);

/* The format of an extension with its dot, without regard to case; FORMAT_NONE for any other. */
enum format format_by_extension(const char *extension);

#endif
