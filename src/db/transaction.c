#include "db/transaction.h"

enum { runs_max = 3 };

struct transaction transaction_begin(const struct store *store)
{
    return (struct transaction){.store = store, .is_joined = db_is_begun(store->db)};
}

bool transaction_goes_on(struct transaction *transaction, enum iw_error *error)
{
    const struct store *store = transaction->store;
    unsigned runs = transaction->calls++;
    if (runs > 0 && transaction->is_joined)
        return false;
    if (runs > 0) {
        if (*error == IW_OK)
            *error = db_commit(store);
        if (*error == IW_OK)
            return false;
        db_rollback(store->db);
        if (!db_is_conflict(store->db) || runs == runs_max)
            return false;
        context_clear(store->context);
    }
    *error = transaction->is_joined ? IW_OK : db_begin(store);
    return *error == IW_OK;
}
