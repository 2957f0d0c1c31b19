#include "store/segments.h"

#include <stdlib.h>
#include <string.h>

enum { id_bytes = 8, fact_status_bits = 0x07, fact_type_bits = 0x18, fact_channel_bits = 0x20 };

_Static_assert((int)ORDER_STATUS_COUNT <= 7 && (int)ORDER_TYPE_COUNT <= 4 && (int)ORDER_CHANNEL_COUNT <= 2,
               "a fact is one byte, and segment_gone is none");

struct segment_mask segment_mask_of(const struct order_filter *filter)
{
    struct segment_mask mask = {0, 0};
    if (filter->status >= 0)
        mask.bits |= fact_status_bits;
    if (filter->type >= 0)
        mask.bits |= fact_type_bits;
    if (filter->channel >= 0)
        mask.bits |= fact_channel_bits;
    mask.value = mask.bits & segment_fact((enum order_type)(filter->type < 0 ? 0 : filter->type),
                                          (enum order_channel)(filter->channel < 0 ? 0 : filter->channel),
                                          (enum order_status)(filter->status < 0 ? 0 : filter->status));
    return mask;
}

/* ---- reading ---- */

static bool read_row(void *user, const struct db_value *values, unsigned columns)
{
    const struct segments_reader *reader = user;
    if (columns != 7)
        abort();
    const uint8_t *data = (const uint8_t *)db_text_of(&values[6]);
    if (values[5].type == DB_NULL) {
        const struct segment segment = {.first_id = db_integer_of(&values[0]),
                                        .last_id = db_integer_of(&values[1]),
                                        .version = db_integer_of(&values[2]),
                                        .order_count = db_integer_of(&values[3]),
                                        .is_open = db_integer_of(&values[4]) != 0};
        return reader->segment(reader->user, &segment, data, data != NULL ? values[6].length : 0);
    }
    struct segments_words words = {.first_id = db_integer_of(&values[0]),
                                   .bucket_length = values[5].length,
                                   .data = (const char *)data,
                                   .length = values[6].length};
    if (words.bucket_length < 1 || words.bucket_length > sizeof words.bucket)
        return true;
    memcpy(words.bucket, values[5].text, words.bucket_length);
    return reader->words(reader->user, &words);
}

#define SEGMENT_ROWS                                                                                         \
    "SELECT first_id, last_id, version, order_count, is_open, NULL AS bucket, IF(?, facts, NULL) AS data "   \
    "FROM order_segments WHERE account_id = ?"
#define WORD_ROWS                                                                                            \
    " UNION ALL SELECT first_id, 0, 0, 0, 0, bucket, postings FROM order_words WHERE account_id = ? AND "    \
    "bucket IN "

/* The server sends the parts of UNION ALL in their order.  There are three statements: their number is small.
 */
enum iw_error segments_read(const struct store *store, int64_t account_id, bool has_facts,
                            const struct segments_buckets *buckets, const struct segments_reader *reader)
{
    static const struct {
        unsigned buckets;
        const char *sql;
    } sizes[] = {{0, SEGMENT_ROWS},
                 {4, SEGMENT_ROWS WORD_ROWS "(?, ?, ?, ?)"},
                 {segments_buckets_max, SEGMENT_ROWS WORD_ROWS
                  "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                  "?, ?, ?, ?)"}};
    struct db_value values[3 + segments_buckets_max] = {db_integer(has_facts), db_integer(account_id),
                                                        db_integer(account_id)};
    unsigned size = 0;
    while (sizes[size].buckets < buckets->count)
        size++;
    for (unsigned i = 0; i < sizes[size].buckets; i++) {
        unsigned at = i < buckets->count ? i : 0;
        values[3 + i] = db_bytes(buckets->names[at], buckets->lengths[at]);
    }
    return db_each(store, sizes[size].sql, values, size == 0 ? 2 : 3 + sizes[size].buckets, read_row,
                   (void *)(uintptr_t)reader);
}

int64_t segments_id(const uint8_t *bytes)
{
    uint64_t id = 0;
    for (int i = 0; i < id_bytes; i++)
        id = id << 8 | bytes[i];
    return (int64_t)id;
}

/* The callback of segments_ids. */
struct ids {
    void (*take)(void *user, const uint8_t *ids, size_t count);
    void *user;
    bool is_found;
};

static bool ids_row(void *user, const struct db_value *values, unsigned columns)
{
    struct ids *ids = user;
    if (columns != 1)
        abort();
    ids->is_found = true;
    ids->take(ids->user, (const uint8_t *)values[0].text, values[0].length / id_bytes);
    return true;
}

enum iw_error segments_ids(const struct store *store, int64_t account_id, const struct segment *segment,
                           void (*take)(void *user, const uint8_t *ids, size_t count), void *user)
{
    struct ids ids = {take, user, false};
    const struct db_value values[] = {db_integer(account_id), db_integer(segment->first_id),
                                      db_integer(segment->version)};
    enum iw_error error =
        db_each(store, "SELECT ids FROM order_segments WHERE account_id = ? AND first_id = ? AND version = ?",
                values, 3, ids_row, &ids);
    return error == IW_OK && !ids.is_found ? IW_NOT_FOUND : error;
}

/* ---- changes of orders ---- */

/* The place of an order in a segment. */
struct place {
    int64_t account_id;
    int64_t first_id;
    int64_t version;
    int64_t position; /* from 1 */
};

/*
 * NOT_FOUND for the orders after the last segment, which are most of those that change, and for an order that
 * the segment lacks: it was committed late, and the next comparison adds it.  Ids in a segment are aligned.
 */
static enum iw_error place_find(const struct store *store, int64_t order_id, struct place *place)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(order_id), db_integer(order_id), db_integer(order_id),
                                      db_integer(order_id)};
    enum iw_error error = db_run(
        store,
        "SELECT account_id, first_id, version, IF(last_id >= ?, LOCATE(UNHEX(LPAD(HEX(?), 16, '0')), "
        "ids), 0) FROM order_segments WHERE account_id = (SELECT account_id FROM orders WHERE id = ?) AND "
        "first_id <= ? ORDER BY first_id DESC LIMIT 1",
        values, 4, &rows);
    if (error != IW_OK)
        return error;
    int64_t at = rows.count > 0 ? db_integer_of(db_at(&rows, 0, 3)) : 0;
    if (at % id_bytes != 1)
        return IW_NOT_FOUND;
    *place = (struct place){.account_id = db_integer_of(db_at(&rows, 0, 0)),
                            .first_id = db_integer_of(db_at(&rows, 0, 1)),
                            .version = db_integer_of(db_at(&rows, 0, 2)),
                            .position = at / id_bytes + 1};
    return IW_OK;
}

enum iw_error segments_status_write(const struct store *store, int64_t order_id, enum order_status status)
{
    struct place place;
    enum iw_error error = place_find(store, order_id, &place);
    if (error != IW_OK)
        return error == IW_NOT_FOUND ? IW_OK : error;
    const struct db_value values[] = {db_integer(place.position),   db_integer(place.position),
                                      db_integer(fact_status_bits), db_integer(status),
                                      db_integer(place.account_id), db_integer(place.first_id),
                                      db_integer(place.version)};
    return db_run(
        store,
        "UPDATE order_segments SET facts = INSERT(facts, ?, 1, CHAR((ASCII(SUBSTRING(facts, ?, 1)) & "
        "~?) | ?)) WHERE account_id = ? AND first_id = ? AND version = ?",
        values, 7, NULL);
}

enum iw_error segments_order_forget(const struct store *store, int64_t order_id)
{
    struct place place;
    enum iw_error error = place_find(store, order_id, &place);
    if (error != IW_OK)
        return error == IW_NOT_FOUND ? IW_OK : error;
    const struct db_value values[] = {db_integer(place.position), db_integer(segment_gone),
                                      db_integer(place.account_id), db_integer(place.first_id),
                                      db_integer(place.version)};
    return db_run(
        store,
        "UPDATE order_segments SET order_count = order_count - 1, due_at = LEAST(due_at, "
        "UTC_TIMESTAMP(3) + INTERVAL 1 MINUTE), facts = INSERT(facts, ?, 1, CHAR(?)) WHERE account_id "
        "= ? AND first_id = ? AND version = ?",
        values, 5, NULL);
}

/* ---- building ---- */

enum iw_error segments_grown(const struct store *store, int64_t horizon_id, unsigned new_min,
                             int64_t *after_id, struct query_ids *account_ids)
{
    enum { accounts = 100 };
    struct db_rows rows;
    const struct db_value values[] = {db_integer(horizon_id), db_integer(new_min - 1), db_integer(*after_id),
                                      db_integer(accounts)};
    enum iw_error error = db_run(
        store,
        "SELECT a.id, COALESCE((SELECT o.id FROM orders o WHERE o.account_id = a.id AND o.id <= ? ORDER BY "
        "o.id DESC LIMIT 1 OFFSET ?), 0) > COALESCE((SELECT s.last_id FROM order_segments s WHERE "
        "s.account_id = a.id ORDER BY s.first_id DESC LIMIT 1), 0) FROM accounts a WHERE a.id > ? ORDER BY "
        "a.id "
        "LIMIT ?",
        values, 4, &rows);
    if (error != IW_OK)
        return error;
    account_ids->count = 0;
    account_ids->items = arena_array(store->context->arena, rows.count + 1, sizeof *account_ids->items);
    for (size_t i = 0; i < rows.count; i++)
        if (db_integer_of(db_at(&rows, i, 1)) != 0)
            account_ids->items[account_ids->count++] = db_integer_of(db_at(&rows, i, 0));
    *after_id = rows.count < accounts ? 0 : db_integer_of(db_at(&rows, rows.count - 1, 0));
    return IW_OK;
}

enum iw_error segments_has_new(const struct store *store, int64_t account_id, int64_t after_id,
                               int64_t horizon_id, int64_t least, bool *has_new)
{
    int64_t found = 0;
    const struct db_value values[] = {db_integer(account_id), db_integer(after_id), db_integer(horizon_id),
                                      db_integer(least - 1)};
    enum iw_error error = query_number(
        store,
        "SELECT 1 FROM orders FORCE INDEX (orders_list) WHERE account_id = ? AND id > ? AND id <= ? "
        "ORDER BY id LIMIT 1 OFFSET ?",
        values, 4, &found);
    *has_new = found != 0;
    return error;
}

enum iw_error segments_due(const struct store *store, int64_t *account_id, int64_t *first_id)
{
    struct db_rows rows;
    enum iw_error error = db_run(store,
                                 "SELECT account_id, first_id FROM order_segments WHERE due_at <= "
                                 "UTC_TIMESTAMP(3) ORDER BY due_at LIMIT 1",
                                 NULL, 0, &rows);
    if (error != IW_OK)
        return error;
    if (rows.count == 0)
        return IW_NOT_FOUND;
    *account_id = db_integer_of(db_at(&rows, 0, 0));
    *first_id = db_integer_of(db_at(&rows, 0, 1));
    return IW_OK;
}

#define SEGMENT                                                                                              \
    "SELECT first_id, last_id, version, order_count, is_open FROM order_segments WHERE account_id = ? "

static enum iw_error segment_read(const struct store *store, const char *sql, const struct db_value *values,
                                  unsigned count, struct segment *segment)
{
    struct db_rows rows;
    enum iw_error error = db_run(store, sql, values, count, &rows);
    if (error != IW_OK)
        return error;
    if (rows.count == 0)
        return IW_NOT_FOUND;
    *segment = (struct segment){.first_id = db_integer_of(db_at(&rows, 0, 0)),
                                .last_id = db_integer_of(db_at(&rows, 0, 1)),
                                .version = db_integer_of(db_at(&rows, 0, 2)),
                                .order_count = db_integer_of(db_at(&rows, 0, 3)),
                                .is_open = db_integer_of(db_at(&rows, 0, 4)) != 0};
    return IW_OK;
}

enum iw_error segments_newest(const struct store *store, int64_t account_id, struct segment *segment)
{
    const struct db_value values[] = {db_integer(account_id)};
    return segment_read(store, SEGMENT "ORDER BY first_id DESC LIMIT 1", values, 1, segment);
}

enum iw_error segments_find(const struct store *store, int64_t account_id, int64_t first_id,
                            struct segment *segment)
{
    const struct db_value values[] = {db_integer(account_id), db_integer(first_id)};
    return segment_read(store, SEGMENT "AND first_id = ?", values, 2, segment);
}

enum iw_error segments_lock(const struct store *store, int64_t account_id, int64_t first_id,
                            struct segment *segment)
{
    const struct db_value values[] = {db_integer(account_id), db_integer(first_id)};
    return segment_read(store, SEGMENT "AND first_id = ? FOR UPDATE SKIP LOCKED", values, 2, segment);
}

enum iw_error segments_insert(const struct store *store, int64_t account_id, int64_t first_id)
{
    const struct db_value values[] = {db_integer(account_id), db_integer(first_id), db_integer(first_id - 1)};
    return db_run(store,
                  "INSERT INTO order_segments (account_id, first_id, last_id, order_count, is_open, due_at, "
                  "facts, ids) VALUES (?, ?, ?, 0, TRUE, UTC_TIMESTAMP(3), '', '')",
                  values, 3, NULL);
}

enum iw_error segments_orders(const struct store *store, int64_t account_id, int64_t first_id,
                              int64_t last_id, unsigned most, struct segments_orders *orders)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(account_id), db_integer(first_id), db_integer(last_id),
                                      db_integer(most)};
    enum iw_error error = db_run(
        store,
        "SELECT id, type, channel, status, name, file_count + include_original FROM orders FORCE INDEX "
        "(orders_list) WHERE account_id = ? AND id >= ? AND id <= ? ORDER BY id LIMIT ? LOCK IN SHARE MODE "
        "SKIP LOCKED",
        values, 4, &rows);
    if (error != IW_OK)
        return error;
    orders->items = arena_array(store->context->arena, rows.count + 1, sizeof *orders->items);
    for (size_t i = 0; i < rows.count; i++) {
        enum order_type type;
        enum order_channel channel;
        enum order_status status;
        if (!order_type_read(db_text_of(db_at(&rows, i, 1)), &type) ||
            !order_channel_read(db_text_of(db_at(&rows, i, 2)), &channel) ||
            !order_status_read(db_text_of(db_at(&rows, i, 3)), &status))
            abort(); /* The schema has other words than the program: they are of different versions. */
        orders->items[i] = (struct segments_order){.id = db_integer_of(db_at(&rows, i, 0)),
                                                   .fact = segment_fact(type, channel, status),
                                                   .name = db_text_of(db_at(&rows, i, 4)),
                                                   .file_count = db_integer_of(db_at(&rows, i, 5))};
    }
    orders->count = (unsigned)rows.count;
    return IW_OK;
}

/* The callback of segments_file_names. */
struct names {
    bool (*take)(void *user, int64_t order_id, const char *name);
    void *user;
};

static bool name_row(void *user, const struct db_value *values, unsigned columns)
{
    const struct names *names = user;
    if (columns != 2)
        abort();
    return names->take(names->user, db_integer_of(&values[0]), db_text_of(&values[1]));
}

enum iw_error segments_file_names(const struct store *store, int64_t account_id, int64_t first_id,
                                  int64_t last_id,
                                  bool (*take)(void *user, int64_t order_id, const char *name), void *user)
{
    struct names names = {take, user};
    const struct db_value values[] = {db_integer(account_id), db_integer(first_id), db_integer(last_id)};
    return db_each(
        store,
        "SELECT f.order_id, f.name FROM orders o FORCE INDEX (orders_list) STRAIGHT_JOIN files f ON "
        "f.order_id = o.id WHERE o.account_id = ? AND o.id >= ? AND o.id <= ? ORDER BY o.id",
        values, 3, name_row, &names);
}

enum iw_error segments_is_equal(const struct store *store, int64_t account_id,
                                const struct segments_content *content, bool *is_equal)
{
    size_t count = (size_t)content->segment.order_count;
    int64_t number = 0;
    const struct db_value values[] = {db_bytes(content->facts, count),
                                      db_bytes(content->ids, count * id_bytes), db_integer(account_id),
                                      db_integer(content->segment.first_id)};
    enum iw_error error = query_number(
        store, "SELECT facts = ? AND ids = ? FROM order_segments WHERE account_id = ? AND first_id = ?",
        values, 4, &number);
    *is_equal = number != 0;
    return error;
}

enum iw_error segments_postpone(const struct store *store, int64_t account_id, int64_t first_id,
                                unsigned due_s)
{
    const struct db_value values[] = {db_integer(due_s), db_integer(account_id), db_integer(first_id)};
    return db_run(
        store,
        "UPDATE order_segments SET due_at = UTC_TIMESTAMP(3) + INTERVAL ? SECOND WHERE account_id = ? "
        "AND first_id = ?",
        values, 3, NULL);
}

static enum iw_error words_write(const struct store *store, int64_t account_id,
                                 const struct segments_words *words, int64_t first_id)
{
    const struct db_value values[] = {db_integer(account_id), db_bytes(words->bucket, words->bucket_length),
                                      db_integer(first_id), db_bytes(words->data, words->length)};
    return db_run(store,
                  "INSERT INTO order_words (account_id, bucket, first_id, postings) VALUES (?, ?, ?, ?)",
                  values, 4, NULL);
}

enum iw_error segments_write(const struct store *store, int64_t account_id,
                             const struct segments_content *content)
{
    const struct segment *segment = &content->segment;
    size_t count = (size_t)segment->order_count;
    const struct db_value place[] = {db_integer(account_id), db_integer(segment->first_id)};
    const struct db_value values[] = {db_integer(segment->last_id),
                                      db_integer(segment->order_count),
                                      db_integer(segment->is_open),
                                      db_integer(content->due_s),
                                      db_bytes(content->facts, count),
                                      db_bytes(content->ids, count * id_bytes),
                                      place[0],
                                      place[1]};
    enum iw_error error =
        db_run(store, "DELETE FROM order_words WHERE account_id = ? AND first_id = ?", place, 2, NULL);
    if (error == IW_OK)
        error =
            db_run(store,
                   "UPDATE order_segments SET version = version + 1, last_id = ?, order_count = ?, is_open "
                   "= ?, due_at = UTC_TIMESTAMP(3) + INTERVAL ? SECOND, facts = ?, ids = ? WHERE account_id "
                   "= ? AND first_id = ?",
                   values, 8, NULL);
    for (unsigned i = 0; error == IW_OK && i < content->row_count; i++)
        error = words_write(store, account_id, &content->rows[i], segment->first_id);
    return error;
}

enum iw_error segments_delete(const struct store *store, int64_t account_id, int64_t first_id)
{
    const struct db_value values[] = {db_integer(account_id), db_integer(first_id)};
    return db_run(store, "DELETE FROM order_segments WHERE account_id = ? AND first_id = ?", values, 2, NULL);
}
