/*
 * Reads a cropped picture that is neither rotated nor resized. The pattern is shifted by whole
 * chips; the tones' phases reveal the shift.
 */
#ifndef ENGINE_WATERMARK_SHIFT_H
#define ENGINE_WATERMARK_SHIFT_H

#include <stdbool.h>

#include "engine/watermark/reader.h"

/*
 * Tries the most likely shifts after reader_read_untouched, whose fields the reader still holds. Returns
 * false if no shift gives a number or memory is short.
 */
bool shift_read(struct reader *reader, bool has_blue);

#endif
