/*
 * Finds the part of a picture that holds a mark that was read. The rest of a collage may hold other marks,
 * so this part is excluded before the next reading.
 */
#ifndef ENGINE_WATERMARK_COVER_H
#define ENGINE_WATERMARK_COVER_H

#include <stdbool.h>

#include "engine/watermark/reader.h"

/*
 * Sets the weight to zero for the pixels that hold the reader's number in the reader's pose. The plane
 * other, which may be NULL, is the plane of the same picture that was not read; the same pixels are excluded
 * there. The workspace owns the weights.
 *
 * Returns false if too little of the picture is left for another mark, nothing new was excluded, the pose is
 * unknown, or memory is short.
 */
bool cover_exclude(struct reader *reader, struct plane *plane, struct plane *other);

#endif
