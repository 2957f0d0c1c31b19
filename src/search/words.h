/* The words of names; private to this room. */
#ifndef SEARCH_WORDS_H
#define SEARCH_WORDS_H

#include "search/search.h"

void words_add(struct search_words *words, struct search_word word);

/* Adds the words of a text with this position.  Text that is not UTF-8 has none. */
void words_read(struct search_words *words, const char *text, uint16_t position);

/* Sorts by bytes, then by position, and removes duplicates. */
void words_sort(struct search_words *words);

#endif
