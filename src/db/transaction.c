#include "db/transaction.h"

enum { runs_max = 3 };

struct transaction transaction_begin(const struct db *db)
{
    return (struct transaction){.db = db, .is_joined = db_is_begun(db->connection)};
}

bool transaction_goes_on(struct transaction *transaction, enum iw_error *error)
{
    const struct db *db = transaction->db;
    unsigned runs = transaction->calls++;
    if (runs > 0 && transaction->is_joined)
        return false;
    if (runs > 0) {
        if (*error == IW_OK)
            *error = db_commit(db);
        if (*error == IW_OK)
            return false;
        db_rollback(db->connection);
        if (!db_is_conflict(db->connection) || runs == runs_max)
            return false;
        context_clear(db->context);
    }
    *error = transaction->is_joined ? IW_OK : db_begin(db);
    return *error == IW_OK;
}
