/*
 * Views: small grey pictures in the pose of the mark. An embedding makes a view of the picture before the
 * mark is added; an extraction makes a view of the picture that was read. likeness.c compares them.
 */
#ifndef ENGINE_WATERMARK_VIEW_H
#define ENGINE_WATERMARK_VIEW_H

#include "engine/watermark/reader.h"
#include "engine/watermark/watermark.h"

/*
 * Makes a view of a plane of luma. pose and slant map the plane to chips as in struct reader. The view has no
 * pixels if the map has no inverse, or the picture is larger than any view.
 */
void view_make(const struct plane *plane, const struct pose *pose, const double slant[2],
               struct watermark_view *view);

/*
 * Makes a view for the mark that a reader read. The plane luma shows the same picture in any size, and chips
 * is the number of luma's chips in a chip of the reader.
 */
void view_make_read(const struct plane *luma, const struct reader *reader, const struct plane *plane,
                    double chips, struct watermark_view *view);

#endif
