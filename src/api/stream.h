/*
 * A list of all items (limit=-1), streamed in pieces, so that memory does not
 * grow with their number.  The database passes each item to a function of the
 * list, which calls stream_item before rendering it and stream_pass after.
 */
#ifndef API_STREAM_H
#define API_STREAM_H

#include "api/page.h"

struct stream {
    struct request *request;
    const struct page *page;
    const char *name;      /* of the array; static */
    struct render *render; /* NULL before the first item */
    struct arena *scratch; /* for one item; reset by stream_pass */
    int64_t count;
    enum iw_error error;
};

/* stream_end must follow. */
void stream_init(struct stream *stream, struct request *request, const struct page *page, const char *name);

/* Counts an item. *is_shown says whether to render it (false after the only page). Returns false to stop. */
bool stream_item(struct stream *stream, bool *is_shown);

/* Sends the rendered items once they fill a piece.  False: stop. */
bool stream_pass(struct stream *stream);

/* Ends the list with pageInfo.  error is that of the query, and is returned. */
enum iw_error stream_end(struct stream *stream, enum iw_error error) IW_MUST_USE;

#endif
