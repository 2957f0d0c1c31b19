/*
 * The words of a segment of orders and the positions of the orders that have them, packed in rows of the
 * table order_words.
 *
 * A row has all terms with the same first two bytes.  A row of one byte has one term, which stands for all
 * terms with that first byte.  So a search for the begin of a word reads one row a segment.
 *
 * A term begins with three parts: the number of bytes shared with the term before, the number of further
 * bytes, and these bytes.  Its positions follow as gaps or as a bitmap, whichever is shorter.  Before them
 * stands their length times two, plus one for a bitmap.  Numbers have seven bits a byte, the lowest first.
 * (Manning et al., Introduction to Information Retrieval, chapter 5: front coding and gap encoding.)
 */
#ifndef DOMAIN_POSTING_H
#define DOMAIN_POSTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <imgward/arena.h>

#include "service/term.h"
#include "store/segments.h"

/* The number of bytes of the row's name for a term that begins with this one: 1 or 2. */
size_t posting_bucket(const struct term *term);

/*
 * Packs the terms of a segment of orders.  Adds the one-byte terms and sorts.  The arena of the terms owns
 * the rows.
 */
void posting_pack(struct terms *terms, unsigned orders, struct segments_words **rows, unsigned *count);

/*
 * Sets the bit of each order that has a term of the row that begins with wanted.  False for damaged data;
 * then some bits may be set.
 */
bool posting_mark(const struct segments_words *row, const struct term *wanted, uint8_t *bits,
                  unsigned orders);

#endif
