/* The file formats that the service takes and makes: the one table of their names, first bytes and rules. */
#ifndef MODEL_FORMAT_H
#define MODEL_FORMAT_H

#include <stdbool.h>

#include "base/config.h"
#include "base/context.h"
#include "model/order.h"

enum format {
    FORMAT_NONE, /* not one of the formats below */
    FORMAT_JPEG,
    FORMAT_PNG,
    FORMAT_WEBP,
    FORMAT_ZIP,  /* archives only: sniffing never returns it */
    FORMAT_HEIC, /* this and the next: read for an extraction, never changed or written */
    FORMAT_AVIF,
    FORMAT_TIFF,
    FORMAT_GIF,
    FORMAT_BMP,
    FORMAT_COUNT
};

/* True for the formats that are changed and written. */
bool format_is_picture(enum format format);

/* These formats, as bits 1 << format. */
unsigned formats_changed(void);

/*
 * The formats that the files of an order may have: those that are changed. An extraction also reads those
 * that the configuration allows.
 */
unsigned formats_taken(const struct config *config, enum order_type type);

static inline bool format_is_in(enum format format, unsigned formats)
{
    return (formats >> format & 1) != 0;
}

/* The extensions of a set as a list: ".jpg, .jpeg, .png or .webp".  Allocated in the arena. */
const char *formats_extensions(struct arena *arena, unsigned formats);

/* The names of a set in a sentence: "JPEG, PNG or WebP".  Allocated in the arena. */
const char *formats_titles(struct arena *arena, unsigned formats);

/* True if the first bytes of a file are those of the format. */
bool format_begins(enum format format, const void *first_bytes, size_t n);

/* The column value: "jpeg", "png", "webp", "zip", "heic"; "" for FORMAT_NONE.  Static text. */
const char *format_name(enum format format);

/* The contract's fileFormat: "JPG", "PNG", "WEBP", "HEIC", "ZIP".  Static text; NULL for FORMAT_NONE. */
const char *format_word(enum format format);

/* The name in sentences: "JPEG", "WebP"; NULL for FORMAT_NONE.  Static text. */
const char *format_title(enum format format);

enum { format_extensions_max = 2 };

/* The extensions of the format with their dots; NULL fills unused places.  Static text. */
const char *const *format_extensions(enum format format);

/* "image/jpeg" and so on; NULL for FORMAT_NONE.  Static text. */
const char *format_media_type(enum format format);

/* The first extension of the format with its dot, ".jpg"; "" for FORMAT_NONE.  Static text. */
const char *format_extension(enum format format);

/* The format of a column value; FORMAT_NONE for any other text and for NULL. */
enum format format_by_name(const char *name);

/* The format of an extension with its dot, without regard to case; FORMAT_NONE for any other. */
enum format format_by_extension(const char *extension);

#endif
