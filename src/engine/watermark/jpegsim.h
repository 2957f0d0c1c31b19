/*
 * What JPEG's quantisation does to a plane, without any codec: the embedder
 * looks ahead with it.  ITU-T T.81, annex K: coarseness 1 is quality 50.
 */
#ifndef ENGINE_WATERMARK_JPEGSIM_H
#define ENGINE_WATERMARK_JPEGSIM_H

#include <stdbool.h>

/* Transforms, quantises and restores every 8x8 block in place. */
void jpegsim_luma(float *plane, int width, int height, float coarseness);

/* The same for chroma, taken at half its size both ways and stretched again; half: width * height / 4 + width
 * + height. */
void jpegsim_chroma(float *plane, int width, int height, float coarseness, float *half);

#endif
