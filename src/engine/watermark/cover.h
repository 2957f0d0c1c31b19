/*
 * Where a picture holds a mark that was read. In a collage other pictures beside it may hold other marks,
 * so this part is excluded before the next reading.
 */
#ifndef ENGINE_WATERMARK_COVER_H
#define ENGINE_WATERMARK_COVER_H

#include <stdbool.h>

#include "engine/watermark/reader.h"

/*
 * Set the weight of the pixels that hold the reader's number in its pose to zero, in the plane that was read
 * and in the other one (NULL: none) of the same picture. The weights belong to the workspace.
 *
 * False: too little of the picture is left for another mark, nothing new was excluded, the pose is unknown,
 * or no memory.
 */
bool cover_exclude(struct reader *reader, struct plane *plane, struct plane *other);

#endif
