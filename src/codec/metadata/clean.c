/*
 * Removes metadata that would be false for the result: previews of the unchanged picture, entries
 * that refer to dropped data, signatures of changed bytes. One table lists the pieces that are
 * checked; all others stay.
 */
#include "codec/metadata/clean.h"

#include <string.h>

#include "base/message.h"
#include "codec/metadata/exif.h"
#include "codec/metadata/photoshop.h"
#include "codec/metadata/png_text.h"

/* ---- one piece ---- */

/* JFIF 1.02: version, unit, densities, then the sides and the pixels of an RGB thumbnail. */
static void jfif_clean(struct codec_keep *keep, struct keep_chunk *chunk)
{
    enum { whole_bytes = 14, width_at = 12, height_at = 13 };
    if (chunk->size < whole_bytes || (chunk->data[width_at] == 0 && chunk->data[height_at] == 0))
        return;
    chunk->data[width_at] = chunk->data[height_at] = 0;
    chunk->size = whole_bytes;
    keep->left_out |= KEEP_LEFT_PREVIEW;
}

/*
 * Removes the previews of an EXIF block. If is_kept is set and the keep has no thumbnail yet, a thumbnail
 * that can be replaced stays and is recorded in the keep.
 */
static void previews_clean(struct codec_keep *keep, struct exif *exif, bool is_kept)
{
    struct exif_thumbnail place;
    bool stays = is_kept && keep->thumbnail == NULL && exif_thumbnail_find(exif, &place);
    if (stays) {
        keep->thumbnail = arena_alloc(keep->arena, sizeof *keep->thumbnail);
        *keep->thumbnail = (struct keep_thumbnail){.exif = *exif, .place = place};
    }
    bool is_cut = !stays && exif_chain_cut(exif);
    bool is_blanked = exif_previews_blank(exif, stays ? &place : NULL);
    if (is_cut || is_blanked)
        keep->left_out |= KEEP_LEFT_PREVIEW;
}

static void exif_clean(struct codec_keep *keep, struct keep_chunk *chunk)
{
    struct exif exif;
    if (exif_open(&exif, chunk->data, chunk->size))
        previews_clean(keep, &exif, true);
    else if (exif_jpegs_blank(chunk->data, chunk->size))
        keep->left_out |= KEEP_LEFT_PREVIEW;
}

static void streams_clean(struct codec_keep *keep, struct keep_chunk *chunk)
{
    if (exif_jpegs_blank(chunk->data, chunk->size))
        keep->left_out |= KEEP_LEFT_PREVIEW;
}

/* ImageMagick stores EXIF and Photoshop's blocks in a PNG like this. */
static void raw_clean(struct codec_keep *keep, struct keep_chunk *chunk)
{
    enum { profile_bytes_max = 1024 * 1024 };
    size_t size = 0;
    struct arena *arena = arena_new((size_t)4 * keep_bytes_max);
    unsigned char *data = png_text_profile(arena, chunk, &size);
    bool is_changed = false;
    struct exif exif;
    unsigned before = keep->left_out;
    if (data != NULL && exif_open(&exif, data, size)) {
        keep->left_out = 0;
        previews_clean(keep, &exif, false);
        is_changed = keep->left_out != 0;
        keep->left_out |= before;
    } else if (data != NULL) {
        size = photoshop_clean(data, size, &is_changed);
        keep->left_out |= is_changed ? KEEP_LEFT_PREVIEW : 0;
    }
    if (is_changed && size <= profile_bytes_max)
        png_text_profile_put(keep, chunk, data, size);
    else if (is_changed)
        chunk->tag = 0;
    arena_free(arena);
}

/* Pieces that are checked, by tag and first bytes. The end of a list has no tag. */
struct clean_rule {
    uint32_t tag;
    const char *head;
    size_t head_bytes;
    void (*clean)(struct codec_keep *keep, struct keep_chunk *chunk); /* NULL if the piece is dropped */
    unsigned left_out;
};

static const struct clean_rule jpeg_rules[] = {
    {keep_app0, "JFIF", 5, jfif_clean, 0},
    {keep_app0, "JFXX", 5, NULL, KEEP_LEFT_PREVIEW},
    {keep_app0 + 1, "Exif\0", 6, exif_clean, 0},
    /* CIPA DC-007: offsets of the pictures after the main picture. */
    {keep_app0 + 2, "MPF", 4, NULL, KEEP_LEFT_FURTHER},
    /* ISO 21496-1: presence or parameters of a gain map. */
    {keep_app0 + 2, "urn:iso:std:iso:ts:21496:-1", 28, NULL, KEEP_LEFT_GAIN_MAP},
    {keep_app0 + 2, "FPXR", 5, streams_clean, 0},
    {keep_app0 + 10, "AROT", 5, NULL, KEEP_LEFT_GAIN_MAP},
    /* JPEG-HDR: the ratio image that restores the unchanged picture. */
    {keep_app0 + 11, "HDR_RI", 6, NULL, KEEP_LEFT_GAIN_MAP},
    {0},
};

static const struct clean_rule png_rules[] = {
    {KEEP_TAG('e', 'X', 'I', 'f'), "", 0, exif_clean, 0},
    {KEEP_TAG('c', 'a', 'B', 'X'), "", 0, NULL, KEEP_LEFT_CREDENTIALS},
    {KEEP_TAG('t', 'E', 'X', 't'), "Raw profile type ", 17, raw_clean, 0},
    {KEEP_TAG('z', 'T', 'X', 't'), "Raw profile type ", 17, raw_clean, 0},
    {KEEP_TAG('i', 'T', 'X', 't'), "Raw profile type ", 17, raw_clean, 0},
    {0},
};

static const struct clean_rule webp_rules[] = {
    {KEEP_TAG('E', 'X', 'I', 'F'), "", 0, exif_clean, 0},
    {KEEP_TAG('C', '2', 'P', 'A'), "", 0, NULL, KEEP_LEFT_CREDENTIALS},
    {0},
};

static void piece_clean(struct codec_keep *keep, struct keep_chunk *chunk, const struct clean_rule *rule)
{
    while (rule->tag != 0 &&
           (rule->tag != chunk->tag || !keep_starts_with(chunk, rule->head, rule->head_bytes)))
        rule++;
    if (rule->clean != NULL) {
        rule->clean(keep, chunk);
    } else if (rule->tag != 0) {
        chunk->tag = 0;
        keep->left_out |= rule->left_out;
    }
}

static void pieces_clean(struct codec_keep *keep, const struct clean_rule *rules)
{
    for (struct keep_chunk *chunk = keep->first; chunk != NULL; chunk = chunk->next)
        piece_clean(keep, chunk, rules);
}

/* ---- boxes in APP11 (ISO/IEC 18477-3, annex B; ISO 19566-5) ---- */

enum { box_head_bytes = 16, box_name_at = 12, box_numbers = 65536 };

static unsigned box_number(const struct keep_chunk *chunk)
{
    return (unsigned)chunk->data[2] << 8 | chunk->data[3];
}

static bool is_box(const struct keep_chunk *chunk)
{
    return chunk->tag == keep_app0 + 11 && chunk->size >= box_head_bytes && memcmp(chunk->data, "JP", 2) == 0;
}

/*
 * Classifies a box by the first segment. C2PA's description begins with the type of the box; other JUMBF
 * stays. All other boxes belong to JPEG XT, and their residual would restore the unchanged
 * picture.
 */
static unsigned box_left_out(const struct keep_chunk *chunk)
{
    enum { type_at = box_head_bytes + 8 };
    if (memcmp(chunk->data + box_name_at, "jumb", 4) != 0)
        return KEEP_LEFT_GAIN_MAP;
    size_t at = type_at + (chunk->data[8] == 0 && chunk->data[11] == 1 ? 8 : 0); /* a length of 64 bits */
    return chunk->size >= at + 4 && memcmp(chunk->data + at, "c2pa", 4) == 0 ? KEEP_LEFT_CREDENTIALS : 0;
}

static void boxes_clean(struct codec_keep *keep)
{
    bool has_boxes = false;
    for (const struct keep_chunk *chunk = keep->first; chunk != NULL; chunk = chunk->next)
        has_boxes |= is_box(chunk);
    if (!has_boxes)
        return;
    struct arena *arena = arena_new(0);
    uint16_t *left_out = arena_array(arena, box_numbers, sizeof *left_out);
    for (const struct keep_chunk *chunk = keep->first; chunk != NULL; chunk = chunk->next)
        if (is_box(chunk))
            left_out[box_number(chunk)] |= (uint16_t)box_left_out(chunk);
    for (struct keep_chunk *chunk = keep->first; chunk != NULL; chunk = chunk->next) {
        if (!is_box(chunk) || left_out[box_number(chunk)] == 0)
            continue;
        keep->left_out |= left_out[box_number(chunk)];
        chunk->tag = 0;
    }
    arena_free(arena);
}

/* ---- previews that fill whole segments ---- */

/* Some cameras split a JPEG over several segments of the same or of consecutive markers, without a name. */
static void segments_clean(struct codec_keep *keep)
{
    uint32_t tag = 0;
    bool is_inside = false;
    for (struct keep_chunk *chunk = keep->first; chunk != NULL; chunk = chunk->next) {
        bool is_first = chunk->tag > keep_app0 + 1 && chunk->tag <= keep_app0 + 15 && chunk->size >= 3 &&
                        memcmp(chunk->data, "\xFF\xD8\xFF", 3) == 0;
        is_inside = is_first || (is_inside && (chunk->tag == tag || chunk->tag == tag + 1));
        if (!is_inside)
            continue;
        tag = chunk->tag;
        chunk->tag = 0;
        keep->left_out |= KEEP_LEFT_PREVIEW;
    }
}

/* ---- chunks that a file has once ---- */

/* A WebP has one chunk of each tag. Readers use the first chunk, and so does the encoder. */
static void twins_clean(struct codec_keep *keep)
{
    static const uint32_t tags[] = {KEEP_TAG('I', 'C', 'C', 'P'), KEEP_TAG('E', 'X', 'I', 'F'),
                                    KEEP_TAG('X', 'M', 'P', ' ')};
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        unsigned count = 0;
        for (struct keep_chunk *chunk = keep->first; chunk != NULL; chunk = chunk->next) {
            if (chunk->tag != tags[i] || count++ == 0)
                continue;
            chunk->tag = 0;
            keep->left_out |= KEEP_LEFT_TWIN;
        }
    }
}

/* ---- data behind the picture ---- */

static void trailer_look(struct codec_keep *keep, const unsigned char *data, size_t size)
{
    /* First box of a film (ISO 14496-12, 4.3), after Samsung's header. */
    static const char film[] = "ftyp";
    enum { film_within_bytes = 256 };
    /* Padding is no data. */
    while (size > 0 && (*data == 0 || (*data == 0xFF && (size < 2 || data[1] != 0xD8)))) {
        data++;
        size--;
    }
    if (size == 0)
        return;
    size_t begin = size < film_within_bytes ? size : film_within_bytes;
    if (size >= 3 && memcmp(data, "\xFF\xD8\xFF", 3) == 0)
        keep->left_out |= KEEP_LEFT_FURTHER;
    else
        keep->left_out |=
            memmem(data, begin, film, sizeof film - 1) != NULL ? KEEP_LEFT_FILM : KEEP_LEFT_TRAILER;
}

/* ---- by format ---- */

void clean_jpeg(struct codec_keep *keep, const unsigned char *data, size_t size)
{
    size_t end = exif_jpeg_bytes(data, size);
    /* A JPEG without an end marker has no data behind it. */
    if (end < 2 || memcmp(data + end - 2, "\xFF\xD9", 2) != 0)
        end = size;
    keep->end = end;
    trailer_look(keep, data + end, size - end);
    pieces_clean(keep, jpeg_rules);
    boxes_clean(keep);
    segments_clean(keep);
    photoshop_segments_clean(keep);
    keep_sweep(keep);
}

void clean_png(struct codec_keep *keep, const unsigned char *data, size_t size)
{
    trailer_look(keep, data + keep->end, size - keep->end);
    pieces_clean(keep, png_rules);
    keep_sweep(keep);
}

void clean_webp(struct codec_keep *keep, const unsigned char *data, size_t size)
{
    trailer_look(keep, data + keep->end, size - keep->end);
    /* An early encoder terminated the chunk name with a zero. */
    for (struct keep_chunk *chunk = keep->first; chunk != NULL; chunk = chunk->next)
        if (chunk->tag == KEEP_TAG('X', 'M', 'P', 0))
            chunk->tag = KEEP_TAG('X', 'M', 'P', ' ');
    twins_clean(keep);
    pieces_clean(keep, webp_rules);
    keep_sweep(keep);
}

/* ---- the notes ---- */

static const struct {
    unsigned left_out;
    const char *phrase;
} phrases[] = {
    {KEEP_LEFT_GAIN_MAP, "the HDR gain map"},
    {KEEP_LEFT_FILM, "the film of the motion photo"},
    {KEEP_LEFT_DEPTH, "the depth map"},
    {KEEP_LEFT_FURTHER, "further pictures after the main one"},
    {KEEP_LEFT_TRAILER, "data after the end of the picture"},
    {KEEP_LEFT_PREVIEW, "embedded previews of the unchanged picture"},
    {KEEP_LEFT_TWIN, "duplicate metadata chunks"},
    {KEEP_LEFT_XMP_PART, "a part of the XMP that could not be read"},
    {KEEP_LEFT_XMP, "an XMP packet that could not be read"},
};

/* Location of the removed manifest, printable characters only. */
static const char *provenance_text(struct context *context, const char *provenance)
{
    enum { shown_bytes = 200 };
    char *text = arena_text_n(context->arena, provenance, strnlen(provenance, shown_bytes));
    for (char *at = text; *at != '\0'; at++)
        if (*at <= ' ' || *at > '~')
            *at = '?';
    return arena_printf(context->arena, " %s", arena_printf(context->arena, message_credentials_place, text));
}

void clean_note(struct context *context, const struct codec_keep *keep)
{
    const char *list = NULL;
    for (size_t i = 0; i < sizeof phrases / sizeof phrases[0]; i++)
        if (keep->left_out & phrases[i].left_out)
            list = list == NULL ? phrases[i].phrase
                                : arena_printf(context->arena, "%s; %s", list, phrases[i].phrase);
    if (keep->left_out & KEEP_LEFT_CREDENTIALS)
        context_note(context, "CONTENT_CREDENTIALS_REMOVED", "%s%s", message_credentials_removed,
                     keep->provenance == NULL ? "" : provenance_text(context, keep->provenance));
    if (list != NULL)
        context_note(context, "METADATA_LEFT_OUT", message_metadata_left_out, list);
}
