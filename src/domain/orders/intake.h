/*
 * Takes uploads that clients sent straight to an object store into the service.
 *
 * An upload URL permits a PUT to version 0 of a key for as long as it is valid. So the object is
 * copied, with its ETag as the condition, to a version that no URL names. The row names the
 * copy. A later PUT changes nothing, and its object is deleted with the inputs of the order.
 *
 * Size and kind are checked before the copy. A file that is refused keeps the error in its row;
 * its job ends with that error (worker/picture.c).
 */
#ifndef DOMAIN_ORDERS_INTAKE_H
#define DOMAIN_ORDERS_INTAKE_H

#include <stdbool.h>
#include <stddef.h>

#include "domain/domain.h"
#include "domain/orders/order_query.h"
#include "service/files/storage.h"

/* One file of the order, with its object. */
struct intake_file {
    unsigned index; /* in the view */
    int64_t file_id;
    enum format format;
    enum iw_error refusal; /* IW_OK: taken */
    const char *sentence;  /* of the refusal */
};

struct intake {
    struct intake_file *files;
    struct storage_object *objects;
    struct storage_key *copies;
    size_t count;    /* files with an object */
    bool is_missing; /* a file has neither an object nor a row with bytes: nothing was copied */
};

/*
 * Finds and copies the objects of a pending order's files, outside of a transaction. Copies
 * nothing while a file is missing. The arrays are in the arena. SERVICE_UNAVAILABLE.
 */
enum iw_error intake_collect(struct domain *domain, const struct order_view *view,
                             struct intake *intake) IW_MUST_USE;

/*
 * Writes the rows of the collected files, in the transaction that starts the order; only updates the view
 * if a file is missing.
 */
enum iw_error intake_write(const struct domain *domain, int64_t account_id, const struct intake *intake,
                           struct order_view *view) IW_MUST_USE;

/* Deletes the refused objects after the order's start, or the copies if another request started the order. */
void intake_settle(struct domain *domain, const struct intake *intake, bool is_written);

/* True if the store has an object for each missing file of a pending order; lists its keys. */
enum iw_error intake_is_complete(struct domain *domain, const struct order_view *view,
                                 bool *is_complete) IW_MUST_USE;

#endif
