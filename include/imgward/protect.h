/*
 * The protection engine: a small perturbation that depends on the picture and moves the latent
 * code that generative models' image encoders compute.
 *
 * It works on decoded pixels: 8 or 16 bits, grey or RGB. Alpha is never changed, and pixels
 * with alpha 0 stay unchanged. It knows no files, formats or metadata. It is deterministic:
 * the same picture, seed, weights and kind of processor give the same bits. It uses one
 * thread. All memory is allocated with malloc when a plan is made: 3 bytes per pixel, a
 * working set of about 8 MiB, and 4.5 KiB per row. Pictures four times as high as wide need 8
 * KiB per column instead of the memory per row. No code is generated at run time.
 *
 * doc/protection.md says which effect is claimed; doc/protection-engine.md says how the engine
 * works.
 */
#ifndef IMGWARD_PROTECT_H
#define IMGWARD_PROTECT_H

#include <stdbool.h>

#include <imgward/error.h>
#include <imgward/image.h>

/* Strength, as PSNR of the result against the original. */
enum protect_strength { PROTECT_LOW = 0, PROTECT_STANDARD, PROTECT_HIGH, protect_strength_count };

struct protect;      /* the weights, ready to run */
struct protect_plan; /* perturbation of one picture, not scaled yet */

struct protect_report {
    double psnr_db;   /* PSNR of the rounded result */
    double target_db; /* requested PSNR */
    double scale;     /* factor of the unit perturbation */
    bool is_limited;  /* weaker than requested, because the picture would not mask more */
};

/* 40, 37 or 34 dB. */
double protect_strength_db(enum protect_strength strength);

/* "low", "standard", "high", and the reverse lookup; false for an unknown name. */
const char *protect_strength_name(enum protect_strength strength);
bool protect_strength_by_name(const char *name, enum protect_strength *strength);

/*
 * Reads a weights file from memory (format: tools/README.md). Checks magic, version, layer
 * table and size; the caller checks the SHA-256 at the end. Returns WEIGHTS_INVALID with a
 * sentence in *why, or NO_MEMORY. On success the caller owns *protect and may free the bytes.
 */
enum iw_error protect_new(struct protect **protect, const void *weights, size_t size,
                          const char **why) IW_MUST_USE;
void protect_free(struct protect *protect);

/*
 * Computes the unit perturbation of a picture, masked as the strength requires. The seed
 * shifts the network's grid by 0 or 16 px in each direction and seeds its noise. Borrows
 * protect; does not keep the picture. NO_MEMORY.
 */
enum iw_error protect_plan_new(struct protect_plan **plan, const struct protect *protect,
                               const struct image *image, enum protect_strength strength,
                               uint64_t seed) IW_MUST_USE;
void protect_plan_free(struct protect_plan *plan);

/*
 * The scale at which the rounded and clipped result has the PSNR psnr_db. For 8-bit samples it
 * is exact, computed from the joint histogram of perturbation and distance to the ends of the
 * range.
 *
 * *is_limited (may be NULL) becomes true, and the scale is smaller, in three cases. The
 * picture masks nothing: one flat colour gets at most 40 dB. It masks so little that too many
 * samples would reach the strength's limit: flat art, along its outlines. Its samples are too
 * close to the ends of the range.
 */
double protect_plan_scale(const struct protect_plan *plan, double psnr_db, bool *is_limited);

/* The PSNR of the result at a scale. */
double protect_plan_psnr(const struct protect_plan *plan, double scale);

/* Adds the perturbation to the picture that the plan was made from. protect_undo reverts it. */
void protect_render(struct protect_plan *plan, struct image *image, double scale);

/*
 * Applies protect_render to a strip only: rows first_row_px and following of the plan's
 * picture, with the same width and format. The plan is not changed.
 */
void protect_preview(struct protect_plan *plan, double scale, uint32_t first_row_px, struct image *strip);

/* Restores the picture before the last protect_render, bit for bit. */
void protect_undo(const struct protect_plan *plan, struct image *image);

/* Colour (or grey) PSNR of two pictures with the same shape, without alpha; 99 when they are equal. */
double protect_psnr(const struct image *left, const struct image *right);

/* Plan, scale and render in one call: changes the picture in place. NO_MEMORY. */
enum iw_error protect_apply(const struct protect *protect, struct image *image,
                            enum protect_strength strength, uint64_t seed,
                            struct protect_report *report) IW_MUST_USE;

#endif
