/*
 * A change of a picture, carried by the coefficients of a JPEG: which of them move, by how many steps.
 * Knows no files and no library.  tests/bench/protect.py --jpeg measures what the constants of carry.c do.
 */
#ifndef CODEC_CARRY_H
#define CODEC_CARRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { carry_side = 8, carry_entries = 64, carry_bins = 256, carry_levels = 3 };

/* Rounding: a coefficient of 0 moves from half a step on. */
static const float carry_dead_least = 0.5F;

/* The rule of a picture. */
struct carry {
    float scale; /* of the change */
    float dead;  /* the least change of a coefficient that is 0, in steps */
    /* Coefficients that were 0 and want carry_dead_least or more, by their change in parts of a step. */
    uint32_t waiting[carry_bins];
};

/* One component. Entries are in the order of rows. */
struct carry_table {
    bool is_luma;
    float low_share;              /* of the change, for the mean and the lowest frequency */
    uint16_t from[carry_entries]; /* steps of the file */
    uint16_t to[carry_entries];   /* steps of the result */
};

/*
 * The steps of a result at a level of codec_change: about whole parts of those of the file.  Rounding a step
 * to a whole number moves coefficients by up to half of the new step.
 */
void carry_finer(struct carry_table *table, unsigned level, bool has_colors);

/*
 * The steps of a difference of colours that gets the resolution of luma, h x v times the file's.  They are
 * not coarser than those of the file.
 */
void carry_resampled(struct carry_table *table, unsigned h, unsigned v);

/* Luma, blue and red difference (BT.601) of rows of a picture, in levels; beyond its edges the last repeats.
 */
struct carry_band {
    size_t width, rows;
    float *planes[3];
};

/* Writes a row of levels. colors: 1 or 3. */
void carry_band_put(const struct carry_band *band, size_t row, const float *levels, size_t width_px,
                    unsigned colors);

/* Computes the coefficients of a block: of means of h x v samples from a place of a plane. */
void carry_transform(const struct carry_band *band, unsigned plane, size_t x, size_t y, unsigned h,
                     unsigned v, float coefficients[carry_entries]);

/* What entries_move needs, from a table. */
struct carry_rule {
    float steps[carry_entries], shares[carry_entries], dead[carry_entries], dead_zero[carry_entries];
    int most[carry_entries], least[carry_entries];
};

void carry_rule(const struct carry *carry, const struct carry_table *table, struct carry_rule *rule);

/*
 * Sets the coefficients of a block from its source and a change, both in levels.  A coefficient that
 * does not move keeps its value exactly, if the result has the file's steps.
 */
void carry_block(struct carry *carry, const struct carry_rule *rule, const float source[carry_entries],
                 const float change[carry_entries], int16_t block[carry_entries]);

/* Returns the dead zone that leaves so many coefficients more at 0 than the last one, or fewer; at least
 * carry_dead_least. */
float carry_dead(const struct carry *carry, double count);

#endif
