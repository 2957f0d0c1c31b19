/*
 * The protection engine: a small perturbation that depends on the picture and moves the latent
 * code that generative models' image encoders compute.
 *
 * It works on decoded pixels: 8 or 16 bits, grey or RGB. Alpha is never changed, and pixels
 * with alpha 0 stay unchanged. It knows no files, formats or metadata. It is deterministic:
 * the same picture, seed, weights and kind of processor give the same bits. It uses one
 * thread. All memory is allocated with malloc: 4.2 bytes per pixel and 8.2 KiB per column. No
 * code is generated at run time.
 *
 * doc/protection.md says which effect is claimed; doc/protection-engine.md says how the engine
 * works.
 */
#ifndef ENGINE_PROTECT_PROTECT_H
#define ENGINE_PROTECT_PROTECT_H

#include <stdbool.h>

#include "base/error.h"
#include "engine/image.h"

/* Strength, as a budget of visibility. A higher one scales the same perturbation up. */
enum protect_strength { PROTECT_LOW = 0, PROTECT_STANDARD, PROTECT_HIGH, protect_strength_count };

struct protect;      /* the weights, ready to run */
struct protect_plan; /* perturbation of one picture, not scaled yet */

struct protect_report {
    double visibility; /* budget of the strength, in units of the visibility model */
    double
        shown; /* visibility of the result, in the same units: measured by a comparison, estimated before */
    double coding;  /* visibility of the encoding without a change; 0: not measured */
    double share;   /* of the strength's effect that the result has, 0..1; share.h estimates it */
    double psnr_db; /* of the result against the original; 99: equal */
};

/* The share in whole percent. */
unsigned protect_percent(const struct protect_report *report);

/* "low", "standard", "high", and the reverse lookup; false for an unknown name. */
const char *protect_strength_name(enum protect_strength strength);
bool protect_strength_by_name(const char *name, enum protect_strength *strength);

/*
 * Reads a weights file from memory (format: tools/train/README.md). Checks magic, version, layer
 * table and size; the caller checks the SHA-256 at the end. Returns WEIGHTS_INVALID with a
 * sentence in *why, or NO_MEMORY. On success the caller owns *protect and may free the bytes.
 */
enum iw_error protect_new(struct protect **protect, const void *weights, size_t size,
                          const char **why) IW_MUST_USE;
void protect_free(struct protect *protect);

/*
 * Computes the perturbation of a picture, the same for all strengths. The seed determines the
 * network's noise. Borrows protect, which must live as long as the plan; does not keep the
 * picture. NO_MEMORY.
 */
enum iw_error protect_plan_new(struct protect_plan **plan, const struct protect *protect,
                               const struct image *image, uint64_t seed) IW_MUST_USE;
void protect_plan_free(struct protect_plan *plan);

/* Plan and render in one call: changes the picture in place. NO_MEMORY. */
enum iw_error protect_apply(const struct protect *protect, struct image *image,
                            enum protect_strength strength, uint64_t seed,
                            struct protect_report *report) IW_MUST_USE;

#endif
