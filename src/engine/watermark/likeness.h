/*
 * Compares two views: a picture with a mark, and the picture that the mark was added to.
 *
 * The pixels become local contrasts, because colours, gamma and brightness do not matter. A match is the sum
 * of products of contrasts over the common part, divided by the root of the sum of their squares. This is
 * the number of standard deviations by which the sum exceeds chance, because the products of different
 * pictures have a mean of 0. The best place counts, because a mark gives the place of a piece only modulo
 * the period.
 *
 * Source: J. P. Lewis, "Fast normalized cross-correlation", Vision Interface 1995 (matching by translation).
 */
#ifndef ENGINE_WATERMARK_LIKENESS_H
#define ENGINE_WATERMARK_LIKENESS_H

#include "engine/watermark/watermark.h"

/*
 * How much a picture resembles the picture that a mark was added to, in standard deviations of chance; 0 if
 * a view is invalid.
 */
struct watermark_likeness {
    double match;  /* at the best place */
    double inside; /* the same, if a picture is a piece of the other */
    double wanted; /* what the same picture would have inside, unless they match: small and flat pieces have
                      little */
};

/*
 * Reads a view from the WATERMARK_VIEW_BYTES bytes that were stored. Sets the width to 0 if they are
 * damaged.
 */
void likeness_view_read(const void *bytes, size_t length, struct watermark_view *view);

/*
 * OTHER if the mark was copied to another picture; UNKNOWN if too little is left to tell. report may be
 * NULL.
 */
enum watermark_match { WATERMARK_MATCH_OTHER, WATERMARK_MATCH_UNKNOWN, WATERMARK_MATCH_SAME };
enum watermark_match likeness_match(const struct watermark_view *marked, const struct watermark_view *seen,
                                    struct watermark_likeness *report);

#endif
