/*
 * A list of everything (limit=-1), passed on piece by piece: memory stays flat
 * whatever the number.  The database gives one item after the other to a
 * function of the list's own, which asks here before and after rendering it.
 */
#ifndef API_STREAM_H
#define API_STREAM_H

#include "api/page.h"

struct stream {
    struct request *request;
    const struct page *page;
    const char *name;      /* of the array; constant */
    struct render *render; /* NULL before the first item */
    struct arena *scratch; /* of one item */
    int64_t count;
    enum iw_error error;
};

/* stream_end must follow. */
void stream_init(struct stream *stream, struct request *request, const struct page *page, const char *name);

/* Counts an item and says in is_shown whether it is to be rendered: behind the only page none is.  False:
 * stop. */
bool stream_item(struct stream *stream, bool *is_shown);

/* Passes on what was rendered, when it is enough.  False: stop. */
bool stream_pass(struct stream *stream);

/* Ends the list with its pageInfo, or with the error that the reading ended with. */
enum iw_error stream_end(struct stream *stream, enum iw_error error) IW_MUST_USE;

#endif
