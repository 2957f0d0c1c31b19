/* Finds the pose of a marked picture by the pattern's tones, and reads the number there. */
#ifndef ENGINE_WATERMARK_SEARCH_H
#define ENGINE_WATERMARK_SEARCH_H

#include "base/error.h"
#include "engine/watermark/reader.h"
#include "engine/watermark/watermark.h"

/* Returns WATERMARK_NOT_FOUND if no pose gives a number. Modifies the whitened planes. */
enum iw_error search_read(struct reader *reader, struct whitened *whitened, const struct plane *plane,
                          struct watermark_report *report) IW_MUST_USE;

#endif
