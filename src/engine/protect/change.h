/*
 * The change of a picture by a plan: adds it, takes it back, and compares the decoded result of an encoder
 * with the original.
 */
#ifndef ENGINE_PROTECT_CHANGE_H
#define ENGINE_PROTECT_CHANGE_H

#include "engine/protect/protect.h"

/*
 * Adds the perturbation to the picture that the plan was made from: scale times the strength's.
 * The scale is 1, less where an encoder makes the change more visible, or more where it keeps less of it.
 * change_undo reverts it.
 */
void change_add(struct protect_plan *plan, struct image *image, enum protect_strength strength, double scale,
                struct protect_report *report);

/* Restores the picture before the last change_add, bit for bit. */
void change_undo(const struct protect_plan *plan, struct image *image);

/*
 * Returns a row of the change of the last change_add in levels, before it is rounded to whole levels: a value
 * for each colour. Valid until the plan is used again.
 */
const float *change_row(const struct protect_plan *plan, uint32_t y);

/*
 * From now on change_row and comparisons are for stripes of the picture, which stand for all of it. With
 * every 0 they are for the whole picture.
 */
void change_stripes(struct protect_plan *plan, struct image_stripes stripes);

/* Sums over samples, in levels of 255. */
struct change_sums {
    double samples;
    double squares; /* of the differences of another picture */
};

/*
 * Starts the comparison with another version of the picture, for example the decoded result.
 * image: the original, after change_undo. NO_MEMORY.
 */
enum iw_error change_compare_begin(struct protect_plan *plan, const struct image *image,
                                   struct change_sums *sums) IW_MUST_USE;

/* Adds rows of the version, from the top. Pixels with alpha 0 in the original count as equal. */
void change_compare(struct protect_plan *plan, const struct image *image, uint32_t first_row_px,
                    const struct image *rows, struct change_sums *sums);

/* Replaces what change_add reported by what the compared version has. */
void change_compare_end(struct protect_plan *plan, const struct change_sums *sums,
                        struct protect_report *report);

/*
 * Ends a comparison with the decoded encoding of the original. From now on comparisons do not count its
 * differences as a share. Sets the report's coding and visibility.
 */
void change_coding_end(struct protect_plan *plan, enum protect_strength strength,
                       struct protect_report *report);

/*
 * Prepares the change of a drawing in a form that takes few bytes, see flat.h. The picture is as the plan was
 * made from it. *is_flat receives false if it has few flat colours or 16 bits. Otherwise *report describes
 * the change without a form. NO_MEMORY.
 */
enum iw_error change_flat_new(struct protect_plan *plan, struct image *image, enum protect_strength strength,
                              bool *is_flat, struct protect_report *report) IW_MUST_USE;

/*
 * If the picture is flat: from now on change_add at scale 1 adds this form (less than flat_forms) at the
 * largest scale within the budget. *shown receives its visibility. NO_MEMORY.
 */
enum iw_error change_flat_form(struct protect_plan *plan, const struct image *image,
                               enum protect_strength strength, unsigned form, double *shown) IW_MUST_USE;

/* From now on change_add adds the change without a form again. */
void change_flat_end(struct protect_plan *plan);

/*
 * Colour (or grey) PSNR of two pictures with the same shape, without alpha; 99 if they are equal.  Pixels
 * with alpha 0 in the left one count as equal.
 */
double change_psnr(const struct image *left, const struct image *right);

/* Ends a comparison, if there is one. */
void change_compare_fini(struct protect_plan *plan);

/* Stores the values of a piece. Returns the octave of their scale. */
uint8_t change_units_store(const float *values, size_t count, int8_t *units);

/* Restores the values of a piece, each with an error of about a sixteenth. */
void change_units_load(const int8_t *units, uint8_t octave, size_t count, float *values);

#endif
