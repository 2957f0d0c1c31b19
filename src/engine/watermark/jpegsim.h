/*
 * Simulates JPEG's quantisation on a plane, without a codec, so that the embedder can predict
 * it. Coarseness 1 is quality 50. Source: ITU-T T.81, annexes A and K.
 */
#ifndef ENGINE_WATERMARK_JPEGSIM_H
#define ENGINE_WATERMARK_JPEGSIM_H

#include <stdbool.h>

/* Transforms, quantises and restores every 8x8 block in place. */
void jpegsim_luma(float *plane, int width, int height, float coarseness);

/*
 * Does the same for chroma, subsampled 2x2 and stretched back. half is scratch of width * height / 4 + width
 * + height values.
 */
void jpegsim_chroma(float *plane, int width, int height, float coarseness, float *half);

#endif
