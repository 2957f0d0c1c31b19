/* The words that enums have in database rows, JSON and query strings: each enum keeps a table of them. */
#ifndef MODEL_WORD_H
#define MODEL_WORD_H

/* The index of a word among count words; -1 if it is none of them.  Case counts; NULL words are skipped. */
int word_find(const char *word, const char *const *words, int count);

#endif
