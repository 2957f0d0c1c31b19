#include "db/key_ids.h"

enum iw_error key_ids_read(const struct db *db, const char *purpose, const char **ids)
{
    struct db_rows rows;
    const struct db_value values[] = {db_text(purpose)};
    enum iw_error error = db_run(db, "SELECT ids FROM key_ids WHERE purpose = ?", values, 1, &rows);
    *ids = "";
    if (error != IW_OK || rows.count == 0)
        return error;
    struct db_row columns = db_row(&rows, 0);
    *ids = db_next_text(&columns);
    return IW_OK;
}

enum iw_error key_ids_record(const struct db *db, const char *purpose, const char *ids)
{
    const struct db_value values[] = {db_text(purpose), db_text(ids)};
    return db_run(db,
                  "INSERT IGNORE INTO key_ids (purpose, ids, recorded_at) VALUES (?, ?, UTC_TIMESTAMP(3))",
                  values, 2, NULL);
}

enum iw_error key_ids_replace(const struct db *db, const char *purpose, const char *before, const char *ids)
{
    const struct db_value values[] = {db_text(ids), db_text(purpose), db_text(before), db_text(before)};
    return db_run(db,
                  "UPDATE key_ids SET ids = ?, recorded_at = UTC_TIMESTAMP(3) WHERE purpose = ? AND "
                  "(ids = ? OR ? IS NULL)",
                  values, 4, NULL);
}
