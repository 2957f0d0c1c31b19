/* Lists: the parameters page, limit and keyword; the response {"data": {NAME: [...], "pageInfo": {...}}}. */
#ifndef API_PAGE_H
#define API_PAGE_H

#include "http/request.h"

enum { page_limit_all = -1 };

struct page {
    int64_t number;      /* from 1 */
    int64_t limit;       /* page_limit_all: everything on one page */
    const char *keyword; /* NULL if there is none */
};

/* Reads the query; invalid parameters add details.  Call context_validated after all are read. */
void page_read(struct request *request, struct page *page);

/*
 * Takes the account's place for a search or a list with limit=-1: an account may run one search and one
 * such list at a time. RATE_LIMIT_EXCEEDED if it is taken.  No effect for other pages.
 */
enum iw_error page_place_take(struct request *request, const struct page *page) IW_MUST_USE;

/* The same for another search. */
enum iw_error page_search_take(struct request *request) IW_MUST_USE;

/* The number of items before the page; INT64_MAX after the only page of page_limit_all. */
int64_t page_offset(const struct page *page);

/* Begins {"data": {NAME: [.  The caller renders the items, then calls page_end. */
struct render *page_begin(struct request *request, const char *name);

/* Ends the array, renders pageInfo and ends data. */
void page_end(struct render *render, const struct page *page, int64_t total);

/*
 * The same for a list of the newest rows: olderBefore is older_id, from which the next list of older rows
 * begins, or null.
 */
void page_window_end(struct render *render, const struct page *page, int64_t total, int64_t older_id);

#endif
