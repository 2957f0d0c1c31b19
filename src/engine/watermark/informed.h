/*
 * Reads a mark with the help of the unmarked original. The residual holds the mark and the
 * damage, without the picture.
 */
#ifndef ENGINE_WATERMARK_INFORMED_H
#define ENGINE_WATERMARK_INFORMED_H

#include "base/error.h"
#include "engine/watermark/reader.h"
#include "engine/watermark/watermark.h"

/* Returns WATERMARK_NOT_FOUND if the pictures do not match or no number is read. */
enum iw_error informed_read(struct reader *reader, const struct plane *suspect, const struct image *original,
                            struct watermark_report *report) IW_MUST_USE;

#endif
