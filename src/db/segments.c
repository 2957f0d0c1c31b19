#include "db/segments.h"

#include <stdlib.h>
#include <string.h>

#include "base/crypto.h"

enum {
    id_bytes = 8,
    fact_status_bits = 0x07,
    fact_type_bits = 0x18,
    fact_channel_bits = 0x20,
    /* A search reads about 1 KiB a segment and word; building a segment takes about 50 ms. */
    orders_max = 4096,
    /* Names of files. An order's texts count as a name for each 255 bytes; 255 characters are the longest. */
    names_max = 8192,
    name_bytes = 255,
    texts_of_extraction = 4, /* names, because its text is read when the extraction ends */
    /* Orders are read in steps that double, because a segment may have few orders of many names. */
    step_min = 128,
    /* 1: segments have texts and tags. With a higher number, those of earlier releases are built again. */
    version_now = 1,
    /* A segment that does not grow holds all orders of the range, also those that were committed late. */
    late_max = 2 * orders_max
};

_Static_assert((int)ORDER_STATUS_COUNT <= 7 && (int)ORDER_TYPE_COUNT <= 4 && (int)ORDER_CHANNEL_COUNT <= 2,
               "a fact is one byte, and search_gone is none");

/* -1 counts as 0. */
static uint8_t fact_of(int type, int channel, int status)
{
    return (uint8_t)((status > 0 ? status : 0) | (type > 0 ? type : 0) << 3 |
                     (channel > 0 ? channel : 0) << 5);
}

/* The tag of a line of metadata. */
static void line_digest(const char *line, size_t length, uint8_t digest[sha256_bytes])
{
    _Static_assert((int)search_tag_bytes <= (int)sha256_bytes, "a tag is the begin of a digest");
    crypto_sha256(line, length, digest);
}

void segments_filter(const struct order_filter *filter, struct search_query *query)
{
    query->mask =
        (uint8_t)((filter->status >= 0 ? fact_status_bits : 0) | (filter->type >= 0 ? fact_type_bits : 0) |
                  (filter->channel >= 0 ? fact_channel_bits : 0));
    query->value = fact_of(filter->type, filter->channel, filter->status);
    for (unsigned i = 0; i < filter->metadata_count; i++) {
        uint8_t digest[sha256_bytes];
        line_digest(filter->metadata[i], strcspn(filter->metadata[i], "\n"), digest);
        search_query_tag(query, digest);
    }
}

/* ---- reading ---- */

/* Columns of a segment: first_id, last_id, order_count, is_open. */
static struct segment segment_read(struct db_row *columns)
{
    struct segment segment;
    segment.first_id = db_next_integer(columns);
    segment.last_id = db_next_integer(columns);
    segment.order_count = db_next_integer(columns);
    segment.is_open = db_next_bool(columns);
    return segment;
}

static bool index_row(void *user, struct db_row *columns)
{
    const struct segments_reader *reader = user;
    struct search_row row = {.length = 0}; /* all bytes of the name of a bucket are compared */
    size_t bucket_length, ids_length;
    const struct segment segment = segment_read(columns);
    const void *bucket = db_next_bytes(columns, &bucket_length);
    row.data = db_next_bytes(columns, &row.length);
    const void *ids = db_next_bytes(columns, &ids_length);
    if (bucket == NULL) {
        bool has_ids = ids_length == id_bytes * row.length;
        reader->segment(reader->user, &segment, (const uint8_t *)row.data, has_ids ? ids : NULL, row.length);
        return true;
    }
    if (bucket_length < 1 || bucket_length > sizeof row.bucket.name)
        return true;
    row.bucket.length = (uint8_t)bucket_length;
    memcpy(row.bucket.name, bucket, bucket_length);
    reader->row(reader->user, segment.first_id, &row);
    return true;
}

#define SEGMENT_COLUMNS                                                                                      \
    "SELECT s.first_id, s.last_id, s.order_count, s.is_open, NULL AS bucket, IF(?, s.facts, NULL) AS data, "
#define SEGMENT_ROWS SEGMENT_COLUMNS "NULL AS ids FROM order_segments s "
/*
 * The join reads the ids of one segment only, because the ids of all segments would cost the server as much
 * as the rest of the query.
 */
#define SEGMENT_ROWS_AND_IDS                                                                                 \
    SEGMENT_COLUMNS "i.ids FROM order_segments s LEFT JOIN order_segments i ON i.account_id = s.account_id " \
                    "AND i.first_id = s.first_id AND ? BETWEEN s.first_id AND s.last_id "
#define OF_ACCOUNT "WHERE s.account_id = ? AND s.first_id BETWEEN ? AND ?"
#define WORD_ROWS                                                                                            \
    " UNION ALL SELECT first_id, 0, 0, 0, bucket, postings, NULL FROM order_words FORCE INDEX (PRIMARY) "    \
    "WHERE account_id = ? AND first_id BETWEEN ? AND ? AND bucket IN (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "  \
    "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"

/* The server sends the parts of UNION ALL in their order. */
enum iw_error segments_read(const struct db *db, const struct segments_range *range,
                            const struct search_query *query, const struct segments_reader *reader)
{
    /* By: there is an id; there are words. */
    static const char *const statements[2][2] = {
        {SEGMENT_ROWS OF_ACCOUNT, SEGMENT_ROWS OF_ACCOUNT WORD_ROWS},
        {SEGMENT_ROWS_AND_IDS OF_ACCOUNT, SEGMENT_ROWS_AND_IDS OF_ACCOUNT WORD_ROWS}};
    enum { of_range = 3, parameters_max = 2 + 2 * of_range + search_words_max };
    const struct db_value of[of_range] = {db_integer(range->account_id), db_integer(range->first_min),
                                          db_integer(range->first_max)};
    bool has_id = range->ids_of >= 0, has_words = query->words.count > 0;
    struct db_value values[parameters_max] = {db_integer(query->has_keyword || query->mask != 0 || has_words),
                                              db_integer(range->ids_of)};
    unsigned count = has_id ? 2 : 1;
    memcpy(values + count, of, sizeof of);
    count += of_range;
    if (has_words) {
        memcpy(values + count, of, sizeof of);
        count += of_range;
    }
    for (size_t i = 0; has_words && i < search_words_max; i++) {
        const struct search_bucket *bucket = &query->buckets[i < query->words.count ? i : 0];
        values[count++] = db_bytes(bucket->name, bucket->length);
    }
    return db_each(db, statements[has_id][has_words], values, count, index_row, (void *)(uintptr_t)reader);
}

/* ---- changes of orders ---- */

/*
 * Writes bits of an order's fact; the segment is due in a minute if the order's words change.  Does nothing
 * if the order is not in the index yet: usually because it is newer than the last segment, rarely because it
 * was committed late.  Ids in a segment are aligned.  The position stays valid, because a segment cannot be
 * built while the order is locked.
 */
static enum iw_error fact_write(const struct db *db, int64_t order_id, uint8_t bits, uint8_t value,
                                bool has_new_words)
{
    struct db_rows rows;
    const struct db_value id = db_integer(order_id), wanted[] = {id, id, id, id};
    enum iw_error error = db_run(
        db,
        "SELECT account_id, first_id, IF(last_id >= ?, LOCATE(UNHEX(LPAD(HEX(?), 16, '0')), ids), 0) FROM "
        "order_segments WHERE account_id = (SELECT account_id FROM orders WHERE id = ?) AND first_id <= ? "
        "ORDER BY first_id DESC LIMIT 1",
        wanted, 4, &rows);
    if (error != IW_OK || rows.count == 0)
        return error;
    struct db_row columns = db_row(&rows, 0);
    const struct db_value account_id = db_integer(db_next_integer(&columns)),
                          first_id = db_integer(db_next_integer(&columns));
    int64_t at = db_next_integer(&columns);
    if (at % id_bytes != 1)
        return IW_OK;
    const struct db_value position = db_integer(at / id_bytes + 1),
                          is_gone = db_integer(value == search_gone);
    const struct db_value values[] = {is_gone,          db_integer(has_new_words), position,   position,
                                      db_integer(bits), db_integer(value),         account_id, first_id};
    return db_run(db,
                  "UPDATE order_segments SET order_count = order_count - ?, due_at = IF(?, LEAST(due_at, "
                  "UTC_TIMESTAMP(3) + INTERVAL 1 MINUTE), due_at), facts = INSERT(facts, ?, 1, "
                  "CHAR((ASCII(SUBSTRING(facts, ?, 1)) & ~?) | ?)) WHERE account_id = ? AND first_id = ?",
                  values, 8, NULL);
}

enum iw_error segments_status_write(const struct db *db, int64_t order_id, enum order_status status)
{
    return fact_write(db, order_id, fact_status_bits, (uint8_t)status, status == ORDER_DETECTED);
}

enum iw_error segments_order_forget(const struct db *db, int64_t order_id)
{
    return fact_write(db, order_id, search_gone, search_gone, true);
}

/* ---- building ---- */

enum iw_error segments_grown(const struct db *db, int64_t horizon_id, unsigned new_min, int64_t *after_id,
                             struct query_ids *account_ids)
{
    enum { accounts = 100 };
    struct db_rows rows;
    const struct db_value values[] = {db_integer(horizon_id), db_integer(new_min - 1), db_integer(*after_id),
                                      db_integer(accounts)};
    enum iw_error error = db_run(
        db,
        "SELECT a.id, COALESCE((SELECT o.id FROM orders o WHERE o.account_id = a.id AND o.id <= ? ORDER BY "
        "o.id DESC LIMIT 1 OFFSET ?), 0) > COALESCE((SELECT s.last_id FROM order_segments s WHERE "
        "s.account_id = a.id ORDER BY s.first_id DESC LIMIT 1), 0) FROM accounts a WHERE a.id > ? ORDER BY "
        "a.id LIMIT ?",
        values, 4, &rows);
    if (error != IW_OK)
        return error;
    account_ids->count = 0;
    account_ids->items = arena_array(db->context->arena, rows.count + 1, sizeof *account_ids->items);
    *after_id = 0;
    for (size_t i = 0; i < rows.count; i++) {
        struct db_row columns = db_row(&rows, i);
        int64_t id = db_next_integer(&columns);
        if (db_next_bool(&columns))
            account_ids->items[account_ids->count++] = id;
        if (i + 1 == accounts)
            *after_id = id;
    }
    return IW_OK;
}

enum iw_error segments_has_new(const struct db *db, int64_t account_id, int64_t after_id, int64_t horizon_id,
                               int64_t least, bool *has_new)
{
    int64_t found = 0;
    const struct db_value values[] = {db_integer(account_id), db_integer(after_id), db_integer(horizon_id),
                                      db_integer(least - 1)};
    enum iw_error error = query_number(
        db,
        "SELECT 1 FROM orders FORCE INDEX (orders_list) WHERE account_id = ? AND id > ? AND id <= ? "
        "ORDER BY id LIMIT 1 OFFSET ?",
        values, 4, &found);
    *has_new = found != 0;
    return error;
}

enum iw_error segments_due(const struct db *db, int64_t *account_id, int64_t *first_id, bool *is_found)
{
    struct db_rows rows;
    const struct db_value version = db_integer(version_now);
    enum iw_error error =
        db_run(db,
               "(SELECT account_id, first_id FROM order_segments WHERE due_at <= UTC_TIMESTAMP(3) ORDER BY "
               "due_at LIMIT 1) UNION ALL (SELECT account_id, first_id FROM order_segments WHERE version < ? "
               "LIMIT 1) LIMIT 1",
               &version, 1, &rows);
    *is_found = error == IW_OK && rows.count > 0;
    if (!*is_found)
        return error;
    struct db_row columns = db_row(&rows, 0);
    *account_id = db_next_integer(&columns);
    *first_id = db_next_integer(&columns);
    return IW_OK;
}

enum iw_error segments_lock(const struct db *db, int64_t account_id, int64_t first_id,
                            struct segment *segment, bool *is_found)
{
    struct db_rows rows;
    const struct db_value values[] = {db_integer(account_id), db_integer(first_id)};
    enum iw_error error = db_run(db,
                                 "SELECT first_id, last_id, order_count, is_open FROM order_segments WHERE "
                                 "account_id = ? AND first_id <= ? ORDER BY first_id DESC LIMIT 1 FOR UPDATE "
                                 "SKIP LOCKED",
                                 values, 2, &rows);
    *is_found = error == IW_OK && rows.count > 0;
    if (!*is_found)
        return error;
    struct db_row columns = db_row(&rows, 0);
    *segment = segment_read(&columns);
    return IW_OK;
}

/* Orders, their texts and names of files while they are read. */
struct gathering {
    struct search_build *build;
    int64_t names;
    int64_t last_id; /* of the last order that was added */
    bool is_growing;
    bool is_cut; /* the next order has too many names */
};

static bool order_row(void *user, struct db_row *columns)
{
    struct gathering *gathering = user;
    enum order_type type;
    enum order_channel channel;
    enum order_status status;
    int64_t id = db_next_integer(columns);
    const char *type_word = db_next_text(columns), *channel_word = db_next_text(columns),
               *status_word = db_next_text(columns), *name = db_next_text(columns),
               *metadata = db_next_text(columns);
    if (!order_type_read(type_word, &type) || !order_channel_read(channel_word, &channel) ||
        !order_status_read(status_word, &status))
        abort(); /* Fails if the schema has other words than the program, because their versions differ. */
    gathering->names += db_next_integer(columns) + (int64_t)strlen(name) / name_bytes +
                        (type == ORDER_WATERMARK_EXTRACT ? texts_of_extraction : 0);
    gathering->is_cut |= gathering->is_growing && gathering->names > names_max && gathering->last_id > 0;
    if (gathering->is_cut)
        return true;
    gathering->last_id = id;
    search_build_entry(gathering->build, gathering->last_id, fact_of((int)type, (int)channel, (int)status),
                       name);
    for (size_t length; metadata != NULL && *metadata != '\0'; metadata += length + 1) {
        uint8_t digest[sha256_bytes];
        length = strcspn(metadata, "\n");
        line_digest(metadata, length, digest);
        search_build_tag(gathering->build, digest);
    }
    return true;
}

static bool name_row(void *user, struct db_row *columns)
{
    struct gathering *gathering = user;
    int64_t order_id = db_next_integer(columns);
    search_build_name(gathering->build, order_id, db_next_text(columns));
    return true;
}

/*
 * The texts of an order, each once, or NULL.  A line break ends a word.  A reading of several marks is cut at
 * the length of one text, so that the index has a bound.  STRAIGHT_JOIN: with the statistics of a small table
 * the server would read all texts.
 */
#define TEXTS_COLUMN                                                                                         \
    "CASE o.type WHEN 'watermarkEmbed' THEN (SELECT GROUP_CONCAT(DISTINCT t.text SEPARATOR '\n') FROM "      \
    "order_watermarks w STRAIGHT_JOIN watermark_texts t ON t.id = w.text_id WHERE w.order_id = o.id) WHEN "  \
    "'watermarkExtract' THEN LEFT(o.watermark_text, 1000) END"

/* Locks and adds at most most orders from first_id on. */
static enum iw_error orders_gather(const struct db *db, int64_t account_id, int64_t first_id,
                                   int64_t up_to_id, size_t most, struct gathering *gathering)
{
    enum iw_error error = IW_OK;
    const size_t *count = &gathering->build->facts.length;
    bool is_end = false;
    for (size_t step = step_min; error == IW_OK && !is_end; step *= 2) {
        size_t before = *count, wanted = step < most - before ? step : most - before;
        const struct db_value values[] = {db_integer(account_id), db_integer(first_id), db_integer(up_to_id),
                                          db_integer((int64_t)wanted)};
        error = db_each(
            db,
            "SELECT id, type, channel, status, CONCAT_WS('\n', name, " TEXTS_COLUMN
            "), metadata, file_count + include_original FROM orders o FORCE INDEX (orders_list) WHERE "
            "account_id = ? AND id >= ? AND id <= ? ORDER BY id LIMIT ? LOCK IN SHARE MODE SKIP LOCKED",
            values, 4, order_row, gathering);
        is_end = gathering->is_cut || *count - before < wanted || *count == most;
        first_id = gathering->last_id + 1;
    }
    return error;
}

enum iw_error segments_gather(const struct db *db, int64_t account_id, struct segment *segment,
                              int64_t up_to_id, struct search_build *build, bool *is_whole)
{
    bool is_growing = up_to_id > segment->last_id;
    int64_t count = 0;
    struct gathering gathering = {.build = build, .is_growing = is_growing};
    enum iw_error error = orders_gather(db, account_id, segment->first_id, up_to_id,
                                        is_growing ? orders_max : late_max, &gathering);
    *is_whole = false;
    /* An open segment that was cut without new orders is full. */
    bool has_new = !is_growing || gathering.is_cut || gathering.last_id > segment->last_id;
    if (error != IW_OK || !has_new)
        return error;
    segment->order_count = (int64_t)build->facts.length;
    if (is_growing) {
        segment->last_id = gathering.last_id;
        segment->is_open = !gathering.is_cut && segment->order_count < orders_max;
    }
    const struct db_value values[] = {db_integer(account_id), db_integer(segment->first_id),
                                      db_integer(segment->last_id)};
    error = query_number(db,
                         "SELECT COUNT(*) FROM orders FORCE INDEX (orders_list) WHERE account_id = ? AND id "
                         ">= ? AND id <= ?",
                         values, 3, &count);
    *is_whole = error == IW_OK && count == segment->order_count;
    if (!*is_whole)
        return error;
    return db_each(db,
                   "SELECT o.id, f.name FROM orders o FORCE INDEX (orders_list) STRAIGHT_JOIN files f ON "
                   "f.order_id = o.id WHERE o.account_id = ? AND o.id >= ? AND o.id <= ? ORDER BY o.id",
                   values, 3, name_row, &gathering);
}

enum iw_error segments_write(const struct db *db, int64_t account_id, const struct segment *segment,
                             struct search_build *build, unsigned due_s)
{
    struct search_row *rows;
    const struct db_value values[] = {db_integer(account_id),
                                      db_integer(segment->first_id),
                                      db_integer(segment->last_id),
                                      db_integer(segment->order_count),
                                      db_integer(segment->is_open),
                                      db_integer(due_s),
                                      db_bytes(build->facts.data, build->facts.length),
                                      db_bytes(build->ids.data, build->ids.length),
                                      db_integer(version_now)};
    /* The foreign key deletes the rows of words. */
    enum iw_error error =
        db_run(db, "DELETE FROM order_segments WHERE account_id = ? AND first_id = ?", values, 2, NULL);
    if (error != IW_OK || segment->order_count == 0)
        return error;
    error =
        db_run(db,
               "INSERT INTO order_segments (account_id, first_id, last_id, order_count, is_open, due_at, "
               "facts, ids, version) VALUES (?, ?, ?, ?, ?, UTC_TIMESTAMP(3) + INTERVAL ? SECOND, ?, ?, ?)",
               values, 9, NULL);
    unsigned count = search_build_pack(build, &rows);
    for (unsigned i = 0; error == IW_OK && i < count; i++) {
        const struct db_value row[] = {values[0], db_bytes(rows[i].bucket.name, rows[i].bucket.length),
                                       values[1], db_bytes(rows[i].data, rows[i].length)};
        error =
            db_run(db, "INSERT INTO order_words (account_id, bucket, first_id, postings) VALUES (?, ?, ?, ?)",
                   row, 4, NULL);
    }
    return error;
}
