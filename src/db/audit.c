#include "db/audit.h"

enum iw_error audit_insert(const struct db *db, int64_t account_id, const struct audit_event *event)
{
    const struct db_value values[] = {account_id > 0 ? db_integer(account_id) : db_null(),
                                      event->user_id > 0 ? db_integer(event->user_id) : db_null(),
                                      db_text(event->user_name),
                                      db_text(event->user_email),
                                      db_text(event->event),
                                      db_text(event->address),
                                      db_text(event->details),
                                      db_time(event->at_ms)};
    return db_run(db,
                  "INSERT INTO audit_events (account_id, user_id, user_name, user_email, event, address, "
                  "details, at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                  values, 8, NULL);
}

enum iw_error audit_page(const struct db *db, const struct audit_page *page, struct audit_rows *list)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(page->account_id), db_integer(page->before_id),
                                      db_integer(page->limit), db_integer(page->offset)};
    enum iw_error error =
        db_run(db,
               "SELECT COUNT(*), COALESCE(MIN(id), 0) FROM (SELECT id FROM audit_events WHERE account_id = ? "
               "AND id < ? ORDER BY id DESC LIMIT 5000) newest",
               values, 2, &rows);
    if (error != IW_OK)
        return error;
    struct db_row window = db_row(&rows, 0);
    *list = (struct audit_rows){.total = db_next_integer(&window)};
    if (list->total == audit_window)
        list->older_id = db_next_integer(&window);
    if (page->offset >= list->total)
        return IW_OK;
    error = db_run(db,
                   "SELECT id, at, event, user_id, user_name, address, details, user_email FROM audit_events "
                   "WHERE id IN "
                   "(SELECT id FROM (SELECT id FROM audit_events WHERE account_id = ? AND id < ? ORDER BY id "
                   "DESC LIMIT ? OFFSET ?) page) ORDER BY id DESC",
                   values, 4, &rows);
    if (error != IW_OK)
        return error;
    list->items = arena_array(db->context->arena, rows.count + 1, sizeof *list->items);
    list->count = rows.count;
    for (size_t row = 0; row < rows.count; row++) {
        struct db_row columns = db_row(&rows, row);
        struct audit_event *item = &list->items[row];
        *item = (struct audit_event){0};
        item->id = db_next_integer(&columns);
        item->at_ms = db_next_integer(&columns);
        item->event = db_next_text(&columns);
        item->user_id = db_next_integer(&columns);
        item->user_name = db_next_text(&columns);
        item->address = db_next_text(&columns);
        item->details = db_next_text(&columns);
        item->user_email = db_next_text(&columns);
    }
    return IW_OK;
}

_Static_assert(audit_window == 5000, "the statement above has the number");

enum iw_error audit_has(const struct db *db, int64_t user_id, const char *event, const char *details,
                        bool *has)
{
    int64_t count = 0;
    const struct db_value values[] = {db_integer(user_id), db_text(event), db_text(details)};
    enum iw_error error =
        query_number(db,
                     "SELECT EXISTS (SELECT 1 FROM audit_events WHERE user_id = ? AND event = "
                     "CONVERT(? USING ascii) AND details = ?)",
                     values, 3, &count);
    *has = count > 0;
    return error;
}

enum iw_error audit_forget(const struct db *db, int64_t before_ms, int64_t *count)
{
    const struct db_value values[] = {db_time(before_ms)};
    return query_change(db, "DELETE FROM audit_events WHERE at < ? LIMIT 1000", values, 1, count);
}
