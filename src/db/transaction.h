/*
 * A transaction is a loop around the statements that belong together, in the function that needs them:
 *
 *     enum iw_error error;
 *     for (struct transaction t = transaction_begin(db); transaction_goes_on(&t, &error);) {
 *         error = orders_lock(...);
 *         if (error == IW_OK)
 *             error = orders_close(...);
 *     }
 *     return error;
 *
 * The end of the body commits if error is IW_OK, and rolls back otherwise. After a deadlock or a lock wait
 * timeout the body runs again, three times at most. It must not depend on the state of a failed run, so it
 * must set each variable that it reads. `continue` ends the body early. `return`, `break` and `goto` would
 * leave the transaction open, so lint rejects them there.
 *
 * A loop inside another loop on the same connection joins the outer transaction: its end neither commits nor
 * rolls back, and only the outer body is repeated. So a function with a loop may be called inside and outside
 * of a transaction.
 *
 * Errors: those of the body, of the commit, and of the start.  After SERVICE_UNAVAILABLE from the commit the
 * server may have committed.
 */
#ifndef DB_TRANSACTION_H
#define DB_TRANSACTION_H

#include "db/db.h"

struct transaction {
    const struct db *db;
    unsigned calls; /* of transaction_goes_on */
    bool is_joined;
};

/* Runs no statement.  Borrows db. */
struct transaction transaction_begin(const struct db *db);

/* True if the body should run, with error set to IW_OK; false if error is the result. */
bool transaction_goes_on(struct transaction *transaction, enum iw_error *error);

#endif
