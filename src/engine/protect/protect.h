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
    double reached; /* share of the intended change that is in the result, 0..1 */
    double psnr_db; /* of the result against the original; 99: equal */
};

/* Reached in whole percent. */
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

/*
 * Adds the perturbation to the picture that the plan was made from: scale times the strength's.
 * The scale is 1, or less where an encoder makes the change more visible. protect_undo reverts it.
 */
void protect_render(struct protect_plan *plan, struct image *image, enum protect_strength strength,
                    double scale, struct protect_report *report);

/* Restores the picture before the last protect_render, bit for bit. */
void protect_undo(const struct protect_plan *plan, struct image *image);

/* Sums over samples, in levels of 255. */
struct protect_sums {
    double samples;
    double squares; /* of the differences of another picture */
    double shared;  /* of the differences times the changes of protect_render */
    double changes; /* squares of these changes */
};

/*
 * Starts the comparison with another version of the picture, for example the decoded result.
 * image: the original, after protect_undo. NO_MEMORY.
 */
enum iw_error protect_compare_begin(struct protect_plan *plan, const struct image *image,
                                    struct protect_sums *sums) IW_MUST_USE;

/* Adds rows of the version, from the top. */
void protect_compare(const struct protect_plan *plan, const struct image *image, uint32_t first_row_px,
                     const struct image *rows, struct protect_sums *sums);

/* Replaces what protect_render reported at a scale by what the compared version has. */
void protect_compare_end(struct protect_plan *plan, const struct protect_sums *sums, double scale,
                         struct protect_report *report);

/* Colour (or grey) PSNR of two pictures with the same shape, without alpha; 99 when they are equal. */
double protect_psnr(const struct image *left, const struct image *right);

/* Plan and render in one call: changes the picture in place. NO_MEMORY. */
enum iw_error protect_apply(const struct protect *protect, struct image *image,
                            enum protect_strength strength, uint64_t seed,
                            struct protect_report *report) IW_MUST_USE;

#endif
