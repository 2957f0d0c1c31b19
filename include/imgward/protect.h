/*
 * The anti-AI engine: a small, picture-dependent perturbation that moves the
 * latent code which generative models' image encoders compute.
 *
 * Works on decoded pixels (8 or 16 bits, grey or RGB; alpha is never touched,
 * and pixels of alpha 0 are left alone).  Knows nothing of files, formats or
 * metadata.  Deterministic: the same picture, seed, weights and kind of
 * processor give the same bits.  One thread; all memory is taken by malloc
 * when a plan is made, in proportion to the picture (3 bytes a pixel, a working set of
 * some 8 MiB, and 4.5 KiB a row, or 8 KiB a column where it is four times as high as
 * wide).  Nothing is compiled at run time.
 *
 * doc/protection.md says what the engine does and what it may claim to do, doc/protection-engine.md how.
 */
#ifndef IMGWARD_PROTECT_H
#define IMGWARD_PROTECT_H

#include <stdbool.h>

#include <imgward/error.h>
#include <imgward/image.h>

/* How strong: the PSNR of the result against the original. */
enum protect_strength { PROTECT_LOW = 0, PROTECT_STANDARD, PROTECT_HIGH, protect_strength_count };

struct protect;      /* the weights, ready to run */
struct protect_plan; /* one picture's perturbation, not yet scaled */

struct protect_report {
    double psnr_db;   /* reached after rounding */
    double target_db; /* asked for */
    double scale;     /* of the unit perturbation */
    bool is_limited;  /* less than asked for, because nothing would have hidden it */
};

/* 40, 37 or 34 dB. */
double protect_strength_db(enum protect_strength strength);

/* "low", "standard", "high" and back; the name of no strength gives false. */
const char *protect_strength_name(enum protect_strength strength);
bool protect_strength_by_name(const char *name, enum protect_strength *strength);

/*
 * Reads the weights from the bytes of a weights file (format: tools/README.md).
 * The closing SHA-256 is the caller's to check; magic, version, layer table and
 * size are checked here.  WEIGHTS_INVALID with a sentence in *why; NO_MEMORY.
 * On success the caller owns *protect; the bytes are no longer needed.
 */
enum iw_error protect_new(struct protect **protect, const void *weights, size_t size,
                          const char **why) IW_MUST_USE;
void protect_free(struct protect *protect);

/*
 * Computes the unit perturbation of a picture, as a strength wants it hidden.  The seed moves the network's
 * grid by 0 or 16 px each way and draws its noise.  Borrows protect; does not
 * keep the picture.  NO_MEMORY.
 */
enum iw_error protect_plan_new(struct protect_plan **plan, const struct protect *protect,
                               const struct image *image, enum protect_strength strength,
                               uint64_t seed) IW_MUST_USE;
void protect_plan_free(struct protect_plan *plan);

/*
 * The scale at which the rounded and clipped result has the PSNR.  Exact for
 * 8-bit samples: worked out from the joint histogram of perturbation and room
 * to the ends of the range.  is_limited (may be NULL) becomes true when the
 * picture hides nothing (one flat colour: 40 dB is the most it gets), hides so
 * little that too much of it would be in samples that move as far as the strength
 * lets them (flat art, along its outlines), or has no room for it, and a smaller
 * scale is given.
 */
double protect_plan_scale(const struct protect_plan *plan, double psnr_db, bool *is_limited);

/* The PSNR that a scale gives. */
double protect_plan_psnr(const struct protect_plan *plan, double scale);

/* Adds the perturbation to the picture the plan was made of.  Undone by protect_undo. */
void protect_render(struct protect_plan *plan, struct image *image, double scale);

/*
 * Does to the strip, rows first_row_px.. of the picture the plan was made of and
 * of its shape but for the height, what protect_render would do to them there;
 * the plan stays as it is.
 */
void protect_preview(struct protect_plan *plan, double scale, uint32_t first_row_px, struct image *strip);

/* Gives back, bit for bit, the picture before the last protect_render. */
void protect_undo(const struct protect_plan *plan, struct image *image);

/* Colour (or grey) PSNR of two pictures of one shape, alpha not counted; 99 when they are the same. */
double protect_psnr(const struct image *left, const struct image *right);

/* Plan, scale and render in one: changes the picture in place.  NO_MEMORY. */
enum iw_error protect_apply(const struct protect *protect, struct image *image,
                            enum protect_strength strength, uint64_t seed,
                            struct protect_report *report) IW_MUST_USE;

#endif
