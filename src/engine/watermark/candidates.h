/*
 * Finds which of some known numbers a picture carries.
 *
 * The blind reader asks for one of 2^64 numbers. An account has far fewer numbers, so all their words can be
 * correlated with the received bits, and a much weaker mark is certain.
 */
#ifndef ENGINE_WATERMARK_CANDIDATES_H
#define ENGINE_WATERMARK_CANDIDATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/watermark/polar.h"
#include "engine/watermark/watermark.h"
#include "engine/watermark/workspace.h"

struct candidates;

/*
 * mask is XORed with each number before it is encoded. Returns NULL if memory is short. The words (64 bytes a
 * number) belong to the workspace, the numbers and the code to the caller.
 */
struct candidates *candidates_new(const struct watermark_candidates *numbers, uint64_t mask,
                                  const struct polar *polar, struct workspace *workspace);

/*
 * Finds the candidate whose word agrees best with the ratios (positive: a coded 0). deviation is that of a
 * word's sum in an unmarked picture. Returns the sum over all bits of the ratio times the sign of the word,
 * or 0 if all candidates are far below the threshold.
 */
double candidates_best(const struct candidates *candidates, const float ratios[polar_length],
                       double deviation, uint64_t *number);

/* Returns the least correlation, in standard deviations, at which a candidate is certain. */
double candidates_correlation_least(const struct candidates *candidates);

/* Returns a certainty for struct watermark_numbers. candidates may be NULL. */
int64_t candidates_certainty(const struct candidates *candidates, double correlation);

#endif
