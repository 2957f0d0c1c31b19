/*
 * The error-correcting code of the watermark: 64 bits and a CRC of 24 bits in a polar code of
 * 1,024 bits. The decoder is successive cancellation with a list.
 *
 * Polar codes: E. Arikan, "Channel Polarization", IEEE Trans. Inf. Theory 55(7), 2009.
 * List decoding: I. Tal and A. Vardy, "List Decoding of Polar Codes", IEEE Trans. Inf. Theory
 * 61(5), 2015.
 * Bit order by polarization weight: G. He et al., "Beta-expansion: A Theoretical Framework for
 * Fast and Recursive Construction of Polar Codes", Globecom 2017.
 * Nodes of one decision: G. Sarkis et al., "Fast List Decoders for Polar Codes", IEEE JSAC
 * 34(2), 2016.
 */
#ifndef ENGINE_WATERMARK_POLAR_H
#define ENGINE_WATERMARK_POLAR_H

#include <stdbool.h>
#include <stdint.h>

enum {
    polar_depth = 10,
    polar_length = 1 << polar_depth,
    polar_number_bits = 64,
    polar_check_bits = 24,
    polar_message_bits = polar_number_bits + polar_check_bits,
    polar_list = 32 /* paths of the list decoder */
};

/* About 0.5 MB; allocated once per call and reused for every word. */
struct polar;

/* Returns NULL if memory is short. The caller owns the result. */
struct polar *polar_new(void);
void polar_free(struct polar *polar);

/* Encodes a number as signs: +1 for a coded 0, -1 for a coded 1. */
void polar_encode(const struct polar *polar, uint64_t number, int8_t word[polar_length]);

/*
 * Decodes log-likelihood ratios (positive: a coded 0). Returns true if a path of the list passes the CRC;
 * number is then that of the most likely such path. Gives up words whose sum of word * ratio is below
 * sum_least.
 */
bool polar_decode(struct polar *polar, const float ratios[polar_length], double sum_least, uint64_t *number);

#endif
