/*
 * The words of a name, for searches.
 *
 * A word is a run of letters or a run of digits.  A run of other visible characters is a term, too, so that a
 * keyword without letters and digits finds it.  Marks continue a run; blanks and controls end it.  Case and
 * normal form do not count: terms are the text's canonical caseless form (Unicode, D145) in NFC.
 */
#ifndef SERVICE_TERM_H
#define SERVICE_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <imgward/arena.h>

struct term {
    const char *text; /* UTF-8, not terminated */
    uint32_t length;  /* bytes, at least 1 */
    uint16_t position;
    bool is_word; /* letters or digits */
};

/* A list that grows in its arena. */
struct terms {
    struct arena *arena;
    struct term *items;
    size_t count, room;
};

void terms_init(struct terms *terms, struct arena *arena);

/* Adds one term with its length and position. */
void terms_add(struct terms *terms, struct term term);

/* Adds the terms of a text with this position.  Text that is not UTF-8 has none. */
void terms_read(struct terms *terms, const char *text, uint16_t position);

/* Sorts by bytes, then by position, and removes duplicates. */
void terms_sort(struct terms *terms);

/*
 * The different terms that a keyword asks for: its words, else its other terms.  A word that begins another
 * one is left out.
 */
void terms_of_keyword(struct terms *terms, struct arena *arena, const char *keyword);

/* True when the term begins with the wanted one. */
bool term_begins(const struct term *term, const struct term *wanted);

#endif
