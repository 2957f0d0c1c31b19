/*
 * An inverted index of entries, packed in bytes that a database stores; README.md has the format.
 *
 * An entry has an id, names, and a fact: one byte that lists filter by.  A segment has at most 65,535 entries
 * in the order of their ids; an entry's index in it is its position.  Memory comes from the caller's arenas.
 * This room knows no SQL and no orders.
 */
#ifndef SEARCH_SEARCH_H
#define SEARCH_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

enum {
    search_gone = 255,    /* the fact of an entry that was deleted; matches nothing */
    search_words_max = 32 /* of a query */
};

struct search_word {
    const char *text; /* UTF-8, not terminated */
    uint32_t length;  /* bytes, at least 1 */
    uint16_t position;
    bool is_symbol; /* neither letters nor digits */
};

/* A list that grows in its arena. */
struct search_words {
    struct arena *arena;
    struct search_word *items;
    size_t count;
};

/* The first bytes of the words of a row: two, or the only one and zero. */
struct search_bucket {
    char name[2];
    uint8_t length;
};

/* The words of a segment with the same bucket and the positions of their entries. */
struct search_row {
    struct search_bucket bucket;
    const char *data;
    size_t length;
};

/* ---- building a segment ---- */

/* Initialize with an arena; the rest is zero. */
struct search_build {
    struct arena *arena;
    struct text facts, ids; /* one byte and eight bytes an entry */
    struct search_words words;
    size_t next; /* position of the last name's entry */
};

/* Adds an entry.  Ids must increase. */
void search_build_entry(struct search_build *build, int64_t id, uint8_t fact, const char *name);

/* Adds another name of an entry.  Ids must not decrease; a name of an unknown id is ignored. */
void search_build_name(struct search_build *build, int64_t id, const char *name);

/* Packs the words.  Returns the number of rows. */
unsigned search_build_pack(struct search_build *build, struct search_row **rows);

/* ---- a query ---- */

/*
 * What entries must have: each word as the begin of one of theirs, and the value in the bits of the mask.
 * The entry with this id needs no words.
 */
struct search_query {
    bool has_keyword;
    struct search_words words; /* more than search_words_max: refuse the query */
    struct search_bucket buckets[search_words_max];
    uint8_t mask, value;
    int64_t id; /* 0: none */
    bool is_found[search_words_max];
};

/* Reads a keyword: its words, or its symbols when it has no words.  keyword NULL: all entries match. */
void search_query_init(struct search_query *query, struct arena *arena, const char *keyword);

/* True when the names of one entry have all words.  Call for each name.  Resets the arena scratch. */
bool search_query_look(struct search_query *query, struct arena *scratch, const char *name, bool is_first);

/* ---- a segment and a query ---- */

struct search_part {
    struct arena *arena;
    size_t count;         /* entries */
    const uint8_t *facts; /* count bytes */
    const uint8_t *ids;   /* 8 * count bytes; NULL: unknown */
    uint8_t **found;      /* for each word of the query a bitmap; NULL: no entry has it yet */
};

/* Copies facts and ids; ids may be NULL. */
void search_part_init(struct search_part *part, struct arena *arena, const uint8_t *facts, const uint8_t *ids,
                      size_t count);

/* Looks for the query's words in a row of the segment.  False: the row is damaged. */
bool search_part_row(struct search_part *part, const struct search_query *query,
                     const struct search_row *row);

/* The number of matches.  ids, if not NULL, gets theirs, the largest first, and needs room for all entries.
 */
size_t search_part_match(const struct search_part *part, const struct search_query *query, int64_t *ids);

#endif
