/*
 * Compares two views: is the picture with a mark the one that the mark was added to?
 *
 * The pixels become local contrasts, as colours, gamma and brightness do not matter. A match is the sum of
 * products of contrasts over the common part, divided by the root of their squares. That is the number of
 * standard deviations by which it exceeds chance, as the views of different pictures have products of mean 0.
 * The best place counts, because a mark gives the place of a piece only modulo its period.
 *
 * Source: J. P. Lewis, "Fast normalized cross-correlation", Vision Interface 1995 (matching by translation).
 */
#ifndef ENGINE_WATERMARK_LIKENESS_H
#define ENGINE_WATERMARK_LIKENESS_H

#include "engine/watermark/watermark.h"

/*
 * How much a picture resembles the one that a mark was added to, in standard deviations of chance. 0 where a
 * view is invalid.
 */
struct watermark_likeness {
    double match;  /* at the best place */
    double inside; /* the same, if one of the pictures is a piece of the other */
    double wanted; /* what the same picture would have inside, unless they match: small and flat pieces have
                      little */
};

/* Takes the first WATERMARK_VIEW_BYTES of a view from where they were stored; no view if they are damaged. */
void likeness_view_read(const void *bytes, size_t length, struct watermark_view *view);

/* OTHER: the mark was copied to another picture. UNKNOWN: too little is left to tell. report may be NULL. */
enum watermark_match { WATERMARK_MATCH_OTHER, WATERMARK_MATCH_UNKNOWN, WATERMARK_MATCH_SAME };
enum watermark_match likeness_match(const struct watermark_view *marked, const struct watermark_view *seen,
                                    struct watermark_likeness *report);

#endif
