/*
 * The error-correcting code of the watermark: 64 bits and a check of 24 bits,
 * in a polar code of 1,024 bits read by successive cancellation with a list.
 *
 * E. Arikan, "Channel Polarization", IEEE Trans. Inf. Theory 55(7), 2009;
 * I. Tal and A. Vardy, "List Decoding of Polar Codes", IEEE Trans. Inf. Theory
 * 61(5), 2015; the order of the bits by polarization weight: G. He et al.,
 * "Beta-expansion: A Theoretical Framework for Fast and Recursive Construction
 * of Polar Codes", Globecom 2017; nodes of one decision: G. Sarkis et al.,
 * "Fast List Decoders for Polar Codes", IEEE JSAC 34(2), 2016.
 */
#ifndef ENGINE_WATERMARK_POLAR_H
#define ENGINE_WATERMARK_POLAR_H

#include <stdbool.h>
#include <stdint.h>

#define POLAR_DEPTH        10u
#define POLAR_LENGTH       1024u
#define POLAR_NUMBER_BITS  64u
#define POLAR_CHECK_BITS   24u
#define POLAR_MESSAGE_BITS (POLAR_NUMBER_BITS + POLAR_CHECK_BITS)
#define POLAR_LIST         32u

/* Large (about 0.5 MB); made once a call and used for every word. */
struct polar;

/* NULL when there is no memory.  The caller owns it. */
struct polar *polar_new(void);
void polar_free(struct polar *polar);

/* The word of a number as signs: +1 for a coded 0, -1 for a coded 1. */
void polar_encode(const struct polar *polar, uint64_t number, int8_t word[POLAR_LENGTH]);

/*
 * Reads a word from log-likelihood ratios (positive: a coded 0).  True when a
 * path of the list passes the check; the number is then the likeliest such.
 */
bool polar_decode(struct polar *polar, const float ratios[POLAR_LENGTH], uint64_t *number);

#endif
