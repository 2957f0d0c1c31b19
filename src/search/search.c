#include "search/search.h"

#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

/*
 * A word of the index ends after word_bytes_max.  No keyword is longer: its 255 characters fold to at most 12
 * bytes each.  A tag is a word that begins with a control character, which no other word has.
 */
enum { id_bytes = 8, word_bytes_max = 4096, tag_mark = 1 };

static bool bit_get(const uint8_t *bits, size_t at)
{
    return (bits[at / 8] & 1 << at % 8) != 0;
}

static void bit_set(uint8_t *bits, size_t at)
{
    bits[at / 8] = (uint8_t)(bits[at / 8] | 1 << at % 8);
}

static int64_t id_at(const uint8_t *ids, size_t position)
{
    uint64_t id = 0;
    for (int i = 0; i < id_bytes; i++)
        id = id << 8 | ids[position * id_bytes + (size_t)i];
    return (int64_t)id;
}

/* ---- words ---- */

/* The kind of a character; a word is a run of characters of one kind. KIND_NONE separates words. */
enum kind { KIND_NONE, KIND_LETTER, KIND_DIGIT, KIND_SYMBOL };

static void words_add(struct search_words *words, struct search_word word)
{
    words->items = arena_more(words->arena, words->items, words->count, sizeof word);
    words->items[words->count++] = word;
}

static void tag_add(struct search_words *words, const uint8_t tag[search_tag_bytes], uint16_t position)
{
    char *text = arena_alloc(words->arena, search_tag_bytes + 1);
    text[0] = tag_mark;
    memcpy(text + 1, tag, search_tag_bytes);
    words_add(words,
              (struct search_word){.text = text, .length = search_tag_bytes + 1, .position = position});
}

static enum kind kind_of_ascii(unsigned char byte)
{
    if ((byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z'))
        return KIND_LETTER;
    if (byte >= '0' && byte <= '9')
        return KIND_DIGIT;
    return byte > ' ' && byte < 0x7F ? KIND_SYMBOL : KIND_NONE;
}

/* Returns the kind of a character. A mark continues the run before it. */
static enum kind kind_of(utf8proc_int32_t point, enum kind before)
{
    utf8proc_category_t category = utf8proc_category(point);
    if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO)
        return KIND_LETTER;
    if (category >= UTF8PROC_CATEGORY_MN && category <= UTF8PROC_CATEGORY_ME)
        return before == KIND_NONE ? KIND_SYMBOL : before;
    if (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO)
        return KIND_DIGIT;
    return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_SO ? KIND_SYMBOL : KIND_NONE;
}

/* Returns the kind of the character at text, and sets its length in bytes. */
static enum kind kind_at(const char *text, size_t length, enum kind before, size_t *bytes)
{
    utf8proc_int32_t point;
    *bytes = 1;
    if ((unsigned char)*text < 0x80)
        return kind_of_ascii((unsigned char)*text);
    *bytes = (size_t)utf8proc_iterate((const uint8_t *)text, (utf8proc_ssize_t)length, &point);
    return kind_of(point, before);
}

/* Returns the canonical caseless form in NFC; NULL if the text is not UTF-8. */
static const char *fold(struct arena *arena, const char *text, size_t *length)
{
    uint8_t *mapped = NULL;
    *length = strlen(text);
    if (text_is_ascii(text, *length)) {
        char *lower = arena_text_n(arena, text, *length);
        for (char *at = lower; *at != '\0'; at++)
            *at = *at >= 'A' && *at <= 'Z' ? (char)(*at | 0x20) : *at;
        return lower;
    }
    utf8proc_ssize_t size = utf8proc_map((const uint8_t *)text, (utf8proc_ssize_t)*length, &mapped,
                                         UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_CASEFOLD);
    if (size < 0)
        return NULL;
    *length = (size_t)size;
    const char *copy = arena_text_n(arena, (const char *)mapped, *length);
    free(mapped);
    return copy;
}

/* Adds the words of a text with this position. Text that is not UTF-8 has no words. */
static void words_read(struct search_words *words, const char *text, uint16_t position)
{
    size_t length, begin = 0, bytes;
    enum kind run = KIND_NONE;
    const char *folded = fold(words->arena, text, &length);
    if (folded == NULL)
        return;
    for (size_t at = 0; at <= length; at += bytes) {
        bytes = 1;
        enum kind next = at < length ? kind_at(folded + at, length - at, run, &bytes) : KIND_NONE;
        if (next == run)
            continue;
        size_t run_bytes = at - begin < word_bytes_max ? at - begin : word_bytes_max;
        if (run != KIND_NONE)
            words_add(words, (struct search_word){.text = folded + begin,
                                                  .length = (uint32_t)run_bytes,
                                                  .position = position,
                                                  .is_symbol = run == KIND_SYMBOL});
        begin = at;
        run = next;
    }
}

static int word_compare(const void *a, const void *b)
{
    const struct search_word *one = a, *other = b;
    size_t common = one->length < other->length ? one->length : other->length;
    int order = memcmp(one->text, other->text, common);
    if (order == 0)
        order = (one->length > other->length) - (one->length < other->length);
    return order != 0 ? order : (int)one->position - (int)other->position;
}

/* Sorts by bytes, then by position, and removes duplicates. */
static void words_sort(struct search_words *words)
{
    size_t kept = 0;
    if (words->count == 0)
        return;
    qsort(words->items, words->count, sizeof *words->items, word_compare);
    for (size_t i = 1; i < words->count; i++)
        if (word_compare(&words->items[kept], &words->items[i]) != 0)
            words->items[++kept] = words->items[i];
    words->count = kept + 1;
}

/* Returns true if the word begins with the other word. */
static bool word_begins(const struct search_word *word, const struct search_word *other)
{
    return word->length >= other->length && memcmp(word->text, other->text, other->length) == 0;
}

static struct search_bucket bucket_of(const struct search_word *word)
{
    struct search_bucket bucket = {.length = word->length == 1 ? 1 : 2};
    memcpy(bucket.name, word->text, bucket.length);
    return bucket;
}

static bool is_in_bucket(const struct search_word *word, const struct search_bucket *bucket)
{
    const struct search_bucket own = bucket_of(word);
    return memcmp(&own, bucket, sizeof own) == 0;
}

/* ---- building a segment ---- */

void search_build_entry(struct search_build *build, int64_t id, uint8_t fact, const char *name)
{
    uint16_t position = (uint16_t)build->facts.length;
    if (position == 0) {
        text_init(&build->facts, build->arena);
        text_init(&build->ids, build->arena);
        build->words.arena = build->arena;
    }
    text_add(&build->facts, (const char *)&fact, 1);
    for (int shift = 56; shift >= 0; shift -= 8)
        text_add(&build->ids, &(char){(char)((uint64_t)id >> shift)}, 1);
    words_read(&build->words, name, position);
}

void search_build_name(struct search_build *build, int64_t id, const char *name)
{
    const uint8_t *ids = (const uint8_t *)build->ids.data;
    while (build->next < build->facts.length && id_at(ids, build->next) < id)
        build->next++;
    if (build->next < build->facts.length && id_at(ids, build->next) == id)
        words_read(&build->words, name, (uint16_t)build->next);
}

void search_build_tag(struct search_build *build, const uint8_t tag[search_tag_bytes])
{
    tag_add(&build->words, tag, (uint16_t)(build->facts.length - 1));
}

static void number_add(struct text *out, size_t number)
{
    for (; number >= 0x80; number >>= 7)
        text_add(out, &(char){(char)(number | 0x80)}, 1);
    text_add(out, &(char){(char)number}, 1);
}

/* Writes the positions of count equal words as gaps, or as a bitmap of the entries if that is shorter. */
static void positions_add(struct text *out, const struct search_word *words, size_t count, size_t entries)
{
    struct text gaps;
    unsigned next = 0;
    size_t map_bytes = (entries + 7) / 8;
    text_init(&gaps, out->arena);
    for (size_t i = 0; i < count && gaps.length < map_bytes; i++) {
        number_add(&gaps, words[i].position - next);
        next = words[i].position + 1u;
    }
    if (gaps.length < map_bytes) {
        number_add(out, gaps.length * 2);
        text_add(out, gaps.data, gaps.length);
        return;
    }
    uint8_t *map = arena_alloc(out->arena, map_bytes);
    for (size_t i = 0; i < count; i++)
        bit_set(map, words[i].position);
    number_add(out, map_bytes * 2 + 1);
    text_add(out, (const char *)map, map_bytes);
}

/* Packs words that have the same bucket. */
static struct search_row row_pack(struct arena *arena, const struct search_word *words, size_t count,
                                  size_t entries)
{
    struct text out;
    const struct search_word *before = NULL;
    text_init(&out, arena);
    for (size_t i = 0, same; i < count; i += same) {
        size_t shared = 0;
        for (same = 1; i + same < count && words[i + same].length == words[i].length &&
                       word_begins(&words[i + same], &words[i]);)
            same++;
        while (before != NULL && shared < before->length && shared < words[i].length &&
               before->text[shared] == words[i].text[shared])
            shared++;
        number_add(&out, shared);
        number_add(&out, words[i].length - shared);
        text_add(&out, words[i].text + shared, words[i].length - shared);
        positions_add(&out, &words[i], same, entries);
        before = &words[i];
    }
    return (struct search_row){.bucket = bucket_of(words), .data = out.data, .length = out.length};
}

/*
 * Adds each ASCII character that words begin with as a word that stands for all of them, so that a query of
 * one letter needs one row.
 */
static void letters_add(struct search_words *words)
{
    for (size_t i = 0, count = words->count; i < count; i++) {
        struct search_word letter = words->items[i];
        letter.length = 1;
        if ((unsigned char)*letter.text < 0x80 && *letter.text != tag_mark && words->items[i].length > 1)
            words_add(words, letter);
    }
}

unsigned search_build_pack(struct search_build *build, struct search_row **rows)
{
    unsigned count = 0;
    struct search_words *words = &build->words;
    letters_add(words);
    words_sort(words);
    *rows = arena_array(build->arena, words->count + 1, sizeof **rows);
    for (size_t begin = 0, end; begin < words->count; begin = end) {
        const struct search_bucket bucket = bucket_of(&words->items[begin]);
        for (end = begin + 1; end < words->count && is_in_bucket(&words->items[end], &bucket);)
            end++;
        (*rows)[count++] = row_pack(build->arena, &words->items[begin], end - begin, build->facts.length);
    }
    return count;
}

/* ---- a query ---- */

void search_query_init(struct search_query *query, struct arena *arena, const char *keyword)
{
    size_t kept = 0;
    bool has_word = false;
    struct search_words *words = &query->words;
    *query = (struct search_query){.has_keyword = keyword != NULL, .words.arena = arena};
    if (keyword != NULL)
        words_read(words, keyword, 0);
    words_sort(words);
    for (size_t i = 0; i < words->count; i++)
        has_word = has_word || !words->items[i].is_symbol;
    /* In the sorted list, the words that begin with a word follow it, and imply it. */
    for (size_t i = 0; i < words->count; i++) {
        bool is_implied = i + 1 < words->count && word_begins(&words->items[i + 1], &words->items[i]);
        if (words->items[i].is_symbol != has_word && !is_implied)
            words->items[kept++] = words->items[i];
    }
    words->count = kept;
    for (size_t i = 0; i < kept && i < search_words_max; i++)
        query->buckets[i] = bucket_of(&words->items[i]);
}

void search_query_tag(struct search_query *query, const uint8_t tag[search_tag_bytes])
{
    struct search_words *words = &query->words;
    tag_add(words, tag, 0);
    query->tag_count++;
    if (words->count <= search_words_max)
        query->buckets[words->count - 1] = bucket_of(&words->items[words->count - 1]);
}

bool search_query_look(struct search_query *query, struct arena *scratch, const char *name, bool is_first)
{
    struct search_words words = {.arena = scratch};
    size_t found = 0, count = query->words.count - query->tag_count;
    arena_reset(scratch);
    if (is_first)
        memset(query->is_found, 0, sizeof query->is_found);
    words_read(&words, name, 0);
    for (size_t i = 0; i < count; i++) {
        for (size_t at = 0; at < words.count && !query->is_found[i]; at++)
            query->is_found[i] = word_begins(&words.items[at], &query->words.items[i]);
        found += query->is_found[i];
    }
    return found == count && (found > 0 || !query->has_keyword);
}

/* ---- a segment and a query ---- */

void search_part_init(struct search_part *part, struct arena *arena, const uint8_t *facts, const uint8_t *ids,
                      size_t count)
{
    *part = (struct search_part){.arena = arena, .count = count};
    part->found = arena_array(arena, search_words_max, sizeof *part->found);
    part->facts = (const uint8_t *)arena_text_n(arena, (const char *)facts, count);
    if (ids != NULL)
        part->ids = (const uint8_t *)arena_text_n(arena, (const char *)ids, count * id_bytes);
}

struct search_reader {
    const uint8_t *at, *end;
    bool is_damaged;
};

static size_t number_read(struct search_reader *reader)
{
    size_t number = 0;
    for (unsigned shift = 0; reader->at < reader->end && shift < 35; shift += 7) {
        uint8_t byte = *reader->at++;
        number |= (size_t)(byte & 0x7F) << shift;
        if (byte < 0x80)
            return number;
    }
    reader->is_damaged = true;
    return 0;
}

/* Returns the next bytes; marks the row as damaged if fewer are left. */
static const uint8_t *bytes_read(struct search_reader *reader, size_t length)
{
    const uint8_t *bytes = reader->at;
    reader->is_damaged |= length > (size_t)(reader->end - reader->at);
    reader->at += reader->is_damaged ? 0 : length;
    return bytes;
}

/* Sets the bits of one word's positions. */
static bool positions_mark(const uint8_t *bytes, size_t length, bool is_map, uint8_t *bits, size_t entries)
{
    struct search_reader reader = {.at = bytes, .end = bytes + length};
    if (is_map && length != (entries + 7) / 8)
        return false;
    for (size_t i = 0; is_map && i < length; i++)
        bits[i] |= bytes[i];
    for (size_t next = 0; !is_map && reader.at < reader.end; next++) {
        next += number_read(&reader);
        if (reader.is_damaged || next >= entries)
            return false;
        bit_set(bits, next);
    }
    return true;
}

/* Sets the bit of each entry with a word in this row that begins with wanted. */
static bool row_mark(const struct search_row *row, const struct search_word *wanted, uint8_t *bits,
                     size_t entries)
{
    const uint8_t *data = (const uint8_t *)row->data;
    struct search_reader reader = {.at = data, .end = data + row->length};
    char text[word_bytes_max];
    struct search_word word = {.text = text};
    while (reader.at < reader.end) {
        size_t shared = number_read(&reader), more = number_read(&reader);
        const uint8_t *bytes = bytes_read(&reader, more);
        if (reader.is_damaged || shared > word.length || shared + more > sizeof text)
            return false;
        memcpy(text + shared, bytes, more);
        word.length = (uint32_t)(shared + more);
        size_t head = number_read(&reader);
        bytes = bytes_read(&reader, head / 2);
        if (reader.is_damaged)
            return false;
        if (word_begins(&word, wanted) && !positions_mark(bytes, head / 2, head % 2 != 0, bits, entries))
            return false;
    }
    return true;
}

bool search_part_row(struct search_part *part, const struct search_query *query, const struct search_row *row)
{
    bool is_whole = true;
    for (size_t i = 0; i < query->words.count; i++) {
        if (!is_in_bucket(&query->words.items[i], &row->bucket))
            continue;
        if (part->found[i] == NULL)
            part->found[i] = arena_alloc(part->arena, part->count / 8 + 1);
        is_whole = is_whole && row_mark(row, &query->words.items[i], part->found[i], part->count);
    }
    return is_whole;
}

/* Returns true if an entry has the words and tags of the query from begin to end. */
static bool has_all(const struct search_part *part, size_t begin, size_t end, size_t position)
{
    for (size_t i = begin; i < end; i++)
        if (part->found[i] == NULL || !bit_get(part->found[i], position))
            return false;
    return true;
}

size_t search_part_match(const struct search_part *part, const struct search_query *query, int64_t *ids)
{
    size_t count = 0, all = query->words.count, words = all - query->tag_count;
    bool is_empty = words == 0 && query->has_keyword;
    for (size_t at = part->count; at-- > 0;) {
        int64_t id = part->ids != NULL ? id_at(part->ids, at) : 0;
        if (part->facts[at] == search_gone || (part->facts[at] & query->mask) != query->value)
            continue;
        bool is_found = (!is_empty && has_all(part, 0, words, at)) || (id != 0 && id == query->id);
        if (!is_found || !has_all(part, words, all, at))
            continue;
        if (ids != NULL)
            ids[count] = id;
        count++;
    }
    return count;
}
