/*
 * Reads a picture that was cropped, and neither turned nor resized: the pattern
 * lies as it did but for a shift by whole chips, which the tones' phases tell.
 */
#ifndef ENGINE_WATERMARK_SHIFT_H
#define ENGINE_WATERMARK_SHIFT_H

#include <stdbool.h>

#include "engine/watermark/reader.h"

/*
 * Goes on from reader_read_untouched, whose fields the reader still holds; tries
 * the likeliest shifts.  False when none reads or there is no memory.
 */
bool shift_read(struct reader *reader, bool has_blue);

#endif
