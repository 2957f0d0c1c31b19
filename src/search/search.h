/*
 * An inverted index of entries, packed into bytes that a database stores; README.md describes the format.
 *
 * An entry has an id, names, and a fact: one byte by which lists filter. A segment has at most 65,535 entries
 * in the order of their ids; the index of an entry in the segment is the entry's position. Memory comes from
 * the caller's arenas. This room does not depend on SQL or orders.
 */
#ifndef SEARCH_SEARCH_H
#define SEARCH_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

enum {
    search_gone = 255,     /* the fact of a deleted entry; matches nothing */
    search_words_max = 32, /* of a query, tags included */
    search_tag_bytes = 16
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

/* The first two bytes of the words of a row; the second byte is zero if the words have only one byte. */
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

/* Adds a tag of the last entry: bytes that only search_query_tag finds, and no keyword. */
void search_build_tag(struct search_build *build, const uint8_t tag[search_tag_bytes]);

/* Packs the words.  Returns the number of rows. */
unsigned search_build_pack(struct search_build *build, struct search_row **rows);

/* ---- a query ---- */

/*
 * The conditions for entries: each word is the beginning of a word of the entry, each tag is a tag of the
 * entry, and the bits of the mask have the value. The entry with this id needs no words.
 */
struct search_query {
    bool has_keyword;
    struct search_words words; /* tags last; refuse the query if there are more than search_words_max */
    size_t tag_count;
    struct search_bucket buckets[search_words_max];
    uint8_t mask, value;
    int64_t id; /* 0 if there is none */
    bool is_found[search_words_max];
};

/*
 * Reads the words of a keyword, or the symbols if there are no words. If keyword is NULL, all entries match.
 */
void search_query_init(struct search_query *query, struct arena *arena, const char *keyword);

/* Adds a tag.  Call it after search_query_init. */
void search_query_tag(struct search_query *query, const uint8_t tag[search_tag_bytes]);

/* Returns true if the names of one entry have all words; tags are not looked for. Call it for each name.
 * Resets the arena scratch. */
bool search_query_look(struct search_query *query, struct arena *scratch, const char *name, bool is_first);

/* ---- a segment and a query ---- */

struct search_part {
    struct arena *arena;
    size_t count;         /* entries */
    const uint8_t *facts; /* count bytes */
    const uint8_t *ids;   /* 8 * count bytes; NULL if unknown */
    uint8_t **found;      /* one bitmap for each word of the query; NULL until an entry has the word */
};

/* Copies facts and ids; ids may be NULL. */
void search_part_init(struct search_part *part, struct arena *arena, const uint8_t *facts, const uint8_t *ids,
                      size_t count);

/* Looks for the query's words in a row of the segment. Returns false if the row is damaged. */
bool search_part_row(struct search_part *part, const struct search_query *query,
                     const struct search_row *row);

/*
 * Returns the number of matches. If ids is not NULL, it gets their ids, the largest first; it needs room for
 * all entries.
 */
size_t search_part_match(const struct search_part *part, const struct search_query *query, int64_t *ids);

#endif
