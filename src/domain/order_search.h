/*
 * Which orders a filter has: by the segments of the account, and by the younger orders one by one.
 *
 * The work grows with the number of segments, not with the number of orders that match.
 */
#ifndef DOMAIN_ORDER_SEARCH_H
#define DOMAIN_ORDER_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "domain/domain.h"
#include "service/term.h"
#include "store/orders.h"
#include "store/segments.h"

/* A segment and its orders of the filter. */
struct search_piece {
    struct segment segment;
    size_t positions;     /* valid when has_matches */
    const uint8_t *facts; /* positions bytes */
    uint8_t **found;      /* a bitmap for each term; NULL: no order has it yet */
    uint8_t *matches;     /* a bitmap */
    size_t match_count;
};

struct search {
    struct domain *domain;
    const struct order_filter *filter;
    struct arena *arena;
    struct segment_mask mask;
    struct terms terms;          /* of the keyword; each must begin a term of the order */
    int64_t keyword_id;          /* the keyword as an id; 0: it is none */
    bool has_matches;            /* the pieces have bitmaps: the filter has a keyword or conditions */
    struct search_piece *pieces; /* newest first */
    size_t piece_count, piece_room;
    struct query_ids tail; /* with a keyword: the matches after the last segment, newest first */
    int64_t tail_above;    /* the last id of the last segment; 0: none */
    bool is_damaged;
};

/*
 * Reads segments and, for a keyword, the younger orders.  Call search_end in any case.  VALIDATION_FAILED:
 * too many words.
 */
enum iw_error search_begin(struct search *search, struct domain *domain,
                           const struct order_filter *filter) IW_MUST_USE;
void search_end(struct search *search);

/* The matches of all segments, and of the tail with a keyword. */
int64_t search_count(const struct search *search);

/* Collects ids of matches: tail and pieces, newest first. */
struct search_ids {
    int64_t skip; /* matches to leave out first */
    size_t most;  /* room of ids.items */
    struct query_ids ids;
};

/* Adds the next matches until ids is full.  NOT_FOUND: a segment changed since; search again. */
enum iw_error search_collect(const struct search *search, struct search_ids *found) IW_MUST_USE;

#endif
