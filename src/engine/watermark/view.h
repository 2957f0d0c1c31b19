/*
 * Views: small grey pictures in the pose of the mark. An embedding makes one of the picture before it is
 * marked, an extraction one of what it read. likeness.c compares them.
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

/* The same for what a reader read; luma is a plane of the same picture in any size. chips: luma's chips for
 * one of the reader. */
void view_make_read(const struct plane *luma, const struct reader *reader, const struct plane *plane,
                    double chips, struct watermark_view *view);

#endif
