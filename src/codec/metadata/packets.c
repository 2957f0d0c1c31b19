/*
 * Finds every XMP packet of a picture: in the place of the format (XMP specification part 3), and
 * in the places of known writers. xmp.c edits the packets, and they are written back. All packets are
 * edited, because contradicting values would be no opt-out.
 */
#include "codec/metadata/packets.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/crypto.h"
#include "codec/metadata/exif.h"
#include "codec/metadata/png_text.h"
#include "codec/metadata/xmp.h"

enum {
    extension_head_bytes = 35 + xmp_guid_bytes + 8, /* name, digest, whole length, offset */
    extension_part_bytes = 65400,                   /* limit per segment, by the specification */
    extensions_max = 16,
    unpacked_count_max = 32,
    unpacked_bytes_max = 8 * 1024 * 1024,
    tag_packet = 0x02BC, /* of IFD0 */
    digest_bytes = 16
};

#define TAG_ITXT KEEP_TAG('i', 'T', 'X', 't')
#define TAG_XMP  KEEP_TAG('X', 'M', 'P', ' ')

/* Name before the packet in a segment, with the closing zero. */
static const char segment_name[] = "http://ns.adobe.com/xap/1.0/";
static const char extension_name[] = "http://ns.adobe.com/xmp/extension/";
static const char png_keyword[] = "XML:com.adobe.xmp";

/* Keyword, no compression, no language, no translated keyword. */
static const char png_head[] = "XML:com.adobe.xmp\0\0\0\0";

enum packet_kind {
    PACKET_MAIN,      /* where readers look first; text can be replaced */
    PACKET_EXTENSION, /* JPEG: the parts of one extended packet */
    PACKET_FIELD      /* a field of the EXIF block */
};

struct packet {
    enum packet_kind kind;
    struct keep_chunk *chunk; /* the first one */
    const char *text;
    size_t size;
    char guid[xmp_guid_bytes + 1];     /* of an extension */
    char guid_new[xmp_guid_bytes + 1]; /* "": removed */
    bool is_guid_changed;
    bool is_broken;                            /* text unavailable: missing parts, or too large */
    char extension_wanted[xmp_guid_bytes + 1]; /* of a main packet */
    struct packet *next;
};

struct packets {
    struct arena *arena; /* the packets and unpacked texts */
    struct codec_keep *keep;
    const struct packets_place *place;
    struct packet *first;
    struct packet **last;
    bool has_main; /* with a text */
    unsigned unpacked_count;
    unsigned extension_count;
};

static struct packet *packet_add(struct packets *packets, enum packet_kind kind, struct keep_chunk *chunk,
                                 const void *text, size_t size)
{
    struct packet *packet = arena_alloc(packets->arena, sizeof *packet);
    packet->kind = kind;
    packet->chunk = chunk;
    packet->text = text;
    packet->size = text == NULL ? 0 : size;
    packet->is_broken = text == NULL;
    packets->has_main |= kind == PACKET_MAIN && text != NULL;
    *packets->last = packet;
    packets->last = &packet->next;
    return packet;
}

/* ---- JPEG ---- */

static bool is_exif(const struct keep_chunk *chunk)
{
    return chunk->tag == keep_app0 + 1 && keep_starts_with(chunk, exif_prefix, exif_prefix_bytes);
}

static bool is_extension(const struct keep_chunk *chunk, const char *guid)
{
    return chunk->tag == keep_app0 + 1 && keep_starts_with(chunk, extension_name, sizeof extension_name) &&
           chunk->size > extension_head_bytes &&
           (guid == NULL || memcmp(chunk->data + sizeof extension_name, guid, xmp_guid_bytes) == 0);
}

/* Joins the parts of an extension. NULL if parts are missing. */
static char *extension_join(struct packets *packets, const struct keep_chunk *first, const char *guid,
                            size_t *size)
{
    size_t length = keep_number(first->data + sizeof extension_name + xmp_guid_bytes);
    size_t sum = 0;
    for (const struct keep_chunk *part = first; part != NULL; part = part->next)
        sum += is_extension(part, guid) ? part->size - extension_head_bytes : 0;
    if (sum != length)
        return NULL;
    char *text = arena_alloc(packets->arena, length + 1);
    for (const struct keep_chunk *part = first; part != NULL; part = part->next) {
        if (!is_extension(part, guid))
            continue;
        size_t offset = keep_number(part->data + extension_head_bytes - 4);
        size_t bytes = part->size - extension_head_bytes;
        if (offset > length || bytes > length - offset)
            return NULL;
        memcpy(text + offset, part->data + extension_head_bytes, bytes);
    }
    *size = length;
    return text;
}

static void extension_found(struct packets *packets, struct keep_chunk *chunk)
{
    const char *guid = (const char *)chunk->data + sizeof extension_name;
    for (const struct packet *other = packets->first; other != NULL; other = other->next)
        if (other->kind == PACKET_EXTENSION && memcmp(other->guid, guid, xmp_guid_bytes) == 0)
            return;
    if (packets->extension_count++ == extensions_max) {
        chunk->tag = 0;
        packets->extension_count--;
        packets->keep->left_out |= KEEP_LEFT_XMP;
        return;
    }
    size_t size = 0;
    const char *text = extension_join(packets, chunk, guid, &size);
    struct packet *packet = packet_add(packets, PACKET_EXTENSION, chunk, text, size);
    memcpy(packet->guid, guid, xmp_guid_bytes);
}

static void field_found(struct packets *packets, struct keep_chunk *chunk)
{
    struct exif exif;
    size_t size = 0;
    const unsigned char *text =
        exif_open(&exif, chunk->data, chunk->size) ? exif_field(&exif, tag_packet, &size) : NULL;
    if (text != NULL)
        packet_add(packets, PACKET_FIELD, chunk, text, size);
}

static void jpeg_packet_found(struct packets *packets, struct keep_chunk *chunk)
{
    if (chunk->tag != keep_app0 + 1)
        return;
    if (keep_starts_with(chunk, segment_name, sizeof segment_name))
        packet_add(packets, PACKET_MAIN, chunk, chunk->data + sizeof segment_name,
                   chunk->size - sizeof segment_name);
    else if (is_extension(chunk, NULL))
        extension_found(packets, chunk);
    else if (is_exif(chunk))
        field_found(packets, chunk);
}

/* ---- PNG ---- */

static void png_packet_found(struct packets *packets, struct keep_chunk *chunk)
{
    static const char raw_xmp[] = "Raw profile type xmp";
    static const char raw_segment[] = "Raw profile type APP1";
    if (chunk->tag == KEEP_TAG('e', 'X', 'I', 'f'))
        field_found(packets, chunk);
    bool is_main = png_text_is(chunk) && keep_starts_with(chunk, png_keyword, sizeof png_keyword);
    bool is_raw = png_text_is(chunk) && (keep_starts_with(chunk, raw_xmp, sizeof raw_xmp) ||
                                         keep_starts_with(chunk, raw_segment, sizeof raw_segment));
    if (!is_main && !is_raw)
        return;
    size_t size = 0;
    const char *text = NULL;
    /* Limits the unpacking, because a small chunk may unpack to a large text. */
    if (packets->unpacked_count++ < unpacked_count_max &&
        arena_used_bytes(packets->arena) < unpacked_bytes_max)
        text = (const char *)(is_raw ? png_text_profile(packets->arena, chunk, &size)
                                     : png_text_read(packets->arena, chunk, keep_bytes_max, &size));
    /* A raw profile may begin with JPEG's name. */
    size_t name = sizeof segment_name;
    if (is_raw && text != NULL && size >= name && memcmp(text, segment_name, name) == 0) {
        text += name;
        size -= name;
    }
    if (is_main || (text != NULL && memmem(text, size, "RDF", 3) != NULL))
        packet_add(packets, PACKET_MAIN, chunk, text, size);
}

/* ---- WebP ---- */

static void webp_packet_found(struct packets *packets, struct keep_chunk *chunk)
{
    if (chunk->tag == TAG_XMP)
        packet_add(packets, PACKET_MAIN, chunk, chunk->data, chunk->size);
    else if (chunk->tag == KEEP_TAG('E', 'X', 'I', 'F'))
        field_found(packets, chunk);
}

/* ---- by format ---- */

struct packets_place {
    void (*found)(struct packets *packets, struct keep_chunk *chunk);
    uint32_t tag;
    const char *head; /* written before a packet */
    size_t head_bytes;
    size_t packet_max_bytes;
};

const struct packets_place packets_jpeg = {jpeg_packet_found, keep_app0 + 1, segment_name,
                                           sizeof segment_name, keep_segment_bytes - sizeof segment_name};
const struct packets_place packets_png = {png_packet_found, TAG_ITXT, png_head, sizeof png_head,
                                          keep_bytes_max};
const struct packets_place packets_webp = {webp_packet_found, TAG_XMP, "", 0, keep_bytes_max};

static void packets_find(struct packets *packets, struct codec_keep *keep, const struct packets_place *place)
{
    memset(packets, 0, sizeof *packets);
    packets->arena = arena_new((size_t)8 * keep_bytes_max);
    packets->keep = keep;
    packets->place = place;
    packets->last = &packets->first;
    for (struct keep_chunk *chunk = keep->first; chunk != NULL; chunk = chunk->next)
        place->found(packets, chunk);
}

/* ---- writing back ---- */

/* A new JPEG segment goes after JFIF and EXIF, which readers expect first; others go to the front. */
static struct keep_chunk *insertion_point(const struct codec_keep *keep)
{
    struct keep_chunk *point = NULL;
    for (struct keep_chunk *chunk = keep->first; chunk != NULL && (chunk->tag == keep_app0 || is_exif(chunk));
         chunk = chunk->next)
        point = chunk;
    return point;
}

/* Stores the packet in the chunk, or in a new chunk if that is NULL. */
static void main_put(struct packets *packets, struct keep_chunk *chunk, const char *packet, size_t size)
{
    struct codec_keep *keep = packets->keep;
    const struct packets_place *place = packets->place;
    size_t whole = place->head_bytes + size;
    unsigned char *data = arena_alloc(keep->arena, whole + 1);
    memcpy(data, place->head, place->head_bytes);
    memcpy(data + place->head_bytes, packet, size);
    if (chunk == NULL) {
        keep_insert(keep, insertion_point(keep), place->tag, data, whole);
        return;
    }
    chunk->tag = place->tag;
    chunk->data = data;
    chunk->size = whole;
}

/* Removes white space between tags, to save room. */
static size_t packet_squeeze(char *packet, size_t size)
{
    /* Comments and CDATA contain no tags. */
    if (memmem(packet, size, "<!", 2) != NULL)
        return size;
    size_t used = 0;
    for (size_t i = 0; i < size; i++) {
        size_t space = i;
        while (space < size && strchr(" \t\r\n", packet[space]) != NULL && packet[space] != '\0')
            space++;
        bool is_between = used > 0 && packet[used - 1] == '>' && space < size && packet[space] == '<';
        if (space > i && is_between)
            i = space;
        packet[used++] = packet[i];
    }
    return used;
}

static enum iw_error main_replace(struct context *context, struct packets *packets, struct keep_chunk *chunk,
                                  const struct xmp_result *result)
{
    size_t max = packets->place->packet_max_bytes;
    size_t size = result->size;
    const char *packet = result->packet;
    if (size > max) {
        char *squeezed = arena_text_n(packets->keep->arena, packet, size);
        size = packet_squeeze(squeezed, size);
        packet = squeezed;
    }
    if (size > max)
        return context_fail(
            context, IW_IMAGE_TOO_LARGE,
            "The XMP of the picture would take %zu bytes with the opt-out; at most %zu are allowed.", size,
            max);
    main_put(packets, chunk, packet, size);
    return IW_OK;
}

/* An extension is named by a digest, so parts and name are written again. */
static void extension_put(struct packets *packets, struct packet *packet, const char *text, size_t size)
{
    struct codec_keep *keep = packets->keep;
    uint8_t digest[digest_bytes];
    struct crypto_md5 *md5 = crypto_md5_begin();
    crypto_md5_add(md5, text, size);
    crypto_md5_end(md5, digest);
    for (size_t i = 0; i < digest_bytes; i++)
        for (int half = 0; half < 2; half++)
            packet->guid_new[2 * i + (size_t)half] =
                "0123456789ABCDEF"[half == 0 ? digest[i] >> 4 : digest[i] & 15];
    packet->is_guid_changed = true;
    struct keep_chunk *behind = packet->chunk;
    for (struct keep_chunk *chunk = packet->chunk; chunk != NULL; chunk = chunk->next)
        if (is_extension(chunk, packet->guid))
            chunk->tag = 0;
    for (size_t offset = 0; offset < size; offset += extension_part_bytes) {
        size_t bytes = size - offset < extension_part_bytes ? size - offset : extension_part_bytes;
        unsigned char *data = arena_alloc(keep->arena, extension_head_bytes + bytes);
        memcpy(data, extension_name, sizeof extension_name);
        memcpy(data + sizeof extension_name, packet->guid_new, xmp_guid_bytes);
        unsigned char *numbers = data + sizeof extension_name + xmp_guid_bytes;
        for (int i = 0; i < 4; i++) {
            numbers[i] = (unsigned char)(size >> (24 - 8 * i));
            numbers[4 + i] = (unsigned char)(offset >> (24 - 8 * i));
        }
        memcpy(data + extension_head_bytes, text + offset, bytes);
        keep_insert(keep, behind, keep_app0 + 1, data, extension_head_bytes + bytes);
        behind = behind->next;
    }
}

/* A packet in the EXIF block that changes moves to the standard place, unless there is a packet already. */
static void field_take_out(struct packets *packets, struct packet *packet, const struct xmp_result *result)
{
    struct exif exif;
    if (!exif_open(&exif, packet->chunk->data, packet->chunk->size))
        return;
    if (packets->has_main) {
        packets->keep->left_out |= KEEP_LEFT_XMP_PART;
    } else {
        packets->has_main = true;
        packet->kind = PACKET_MAIN;
        packet->text = arena_text_n(packets->arena, result->packet, result->size);
        packet->size = result->size;
        packet->chunk = NULL;
    }
    exif_field_remove(&exif, tag_packet);
}

/* ---- the edits of all packets ---- */

/* Reads all packets before any edit: the strongest value, and the extension that each names. */
static const struct xmp_mining *packets_look(struct packets *packets, struct arena *scratch)
{
    static const struct xmp_request look = {NULL, false, NULL, NULL};
    const struct xmp_mining *strongest = xmp_mining_least;
    for (struct packet *packet = packets->first; packet != NULL; packet = packet->next) {
        struct xmp_result result;
        if (packet->is_broken)
            continue;
        xmp_edit(scratch, packet->text, packet->size, &look, &result);
        if (result.is_readable) {
            strongest = xmp_mining_stronger(strongest, result.mining);
            memcpy(packet->extension_wanted, result.extension, sizeof result.extension);
        } else {
            const char *text = arena_text_n(scratch, packet->text, packet->size);
            strongest = xmp_mining_stronger(strongest, xmp_mining_find(text));
        }
        arena_reset(scratch);
    }
    return strongest;
}

static void result_account(struct codec_keep *keep, const struct xmp_result *result)
{
    if (!result->is_readable)
        return;
    keep->left_out |= result->left_out;
    if (result->provenance == NULL)
        return;
    keep->left_out |= KEEP_LEFT_CREDENTIALS;
    keep->provenance = arena_text(keep->arena, result->provenance);
}

/* An unreadable packet may contradict the opt-out, or hold a preview. */
static bool is_named(const struct packet *packet, bool is_opt_out)
{
    bool is_found = packet->text != NULL && xmp_names_entry(packet->text, packet->size, is_opt_out);
    if (packet->kind == PACKET_EXTENSION)
        for (const struct keep_chunk *chunk = packet->chunk; chunk != NULL; chunk = chunk->next)
            is_found |= is_extension(chunk, packet->guid) &&
                        xmp_names_entry((const char *)chunk->data, chunk->size, is_opt_out);
    return is_found;
}

static void packet_remove(struct packets *packets, struct packet *packet)
{
    struct exif exif;
    bool is_extended = packet->kind == PACKET_EXTENSION;
    packets->keep->left_out |= is_extended ? KEEP_LEFT_XMP_PART : KEEP_LEFT_XMP;
    packet->is_guid_changed = is_extended;
    for (struct keep_chunk *chunk = packet->chunk; chunk != NULL && is_extended; chunk = chunk->next)
        if (is_extension(chunk, packet->guid))
            chunk->tag = 0;
    if (packet->kind == PACKET_MAIN)
        packet->chunk->tag = 0;
    else if (packet->kind == PACKET_FIELD && exif_open(&exif, packet->chunk->data, packet->chunk->size))
        exif_field_remove(&exif, tag_packet);
}

/* Extensions and fields: strengthen values, add nothing. */
static void packet_edit_beside(struct packets *packets, struct packet *packet,
                               const struct xmp_mining *mining, struct arena *scratch)
{
    const struct xmp_request request = {.mining = mining};
    struct xmp_result result = {.is_readable = false};
    if (!packet->is_broken)
        xmp_edit(scratch, packet->text, packet->size, &request, &result);
    result_account(packets->keep, &result);
    if (result.is_changed && packet->kind == PACKET_EXTENSION)
        extension_put(packets, packet, result.packet, result.size);
    else if (result.is_changed)
        field_take_out(packets, packet, &result);
    else if (!result.is_readable && is_named(packet, mining != NULL))
        packet_remove(packets, packet);
}

static const struct packet *extension_changed(const struct packets *packets, const char *guid)
{
    for (const struct packet *packet = packets->first; packet != NULL; packet = packet->next)
        if (packet->is_guid_changed && strcasecmp(packet->guid, guid) == 0)
            return packet;
    return NULL;
}

static bool is_blank(const struct packet *packet)
{
    for (size_t i = 0; i < packet->size; i++)
        if (packet->text[i] != '\0' && strchr(" \t\r\n", packet->text[i]) == NULL)
            return false;
    return !packet->is_broken;
}

static enum iw_error packet_edit_main(struct context *context, struct packets *packets, struct packet *packet,
                                      const struct xmp_mining *mining, struct arena *scratch)
{
    const struct packet *extension = extension_changed(packets, packet->extension_wanted);
    const struct xmp_request request = {
        .mining = mining,
        .is_added = mining != NULL,
        .extension_old = extension == NULL ? NULL : extension->guid,
        .extension_new = extension == NULL ? NULL : extension->guid_new,
    };
    struct codec_keep *keep = packets->keep;
    struct xmp_result result = {.is_readable = false};
    if (!packet->is_broken)
        xmp_edit(scratch, packet->text, packet->size, &request, &result);
    result_account(keep, &result);
    if (!result.is_readable && mining != NULL) {
        keep->left_out |= is_blank(packet) ? 0 : KEEP_LEFT_XMP;
        result.packet = xmp_fresh(scratch, mining, &result.size);
        result.is_changed = true;
    } else if (!result.is_readable && is_named(packet, false)) {
        packet_remove(packets, packet);
    }
    return result.is_changed || packet->chunk == NULL ? main_replace(context, packets, packet->chunk, &result)
                                                      : IW_OK;
}

/* Without the opt-out, entries are only removed, so every packet becomes shorter. */
static enum iw_error packets_edit(struct context *context, struct codec_keep *keep,
                                  const struct packets_place *place, bool is_opt_out)
{
    struct packets packets;
    packets_find(&packets, keep, place);
    enum iw_error error = IW_OK;
    struct arena *scratch = arena_new((size_t)8 * keep_bytes_max);
    const struct xmp_mining *mining = packets_look(&packets, scratch);
    if (!is_opt_out)
        mining = NULL;
    for (struct packet *packet = packets.first; packet != NULL; packet = packet->next) {
        if (packet->kind != PACKET_MAIN)
            packet_edit_beside(&packets, packet, mining, scratch);
        arena_reset(scratch);
    }
    bool is_there = false;
    for (struct packet *packet = packets.first; packet != NULL && error == IW_OK; packet = packet->next) {
        if (packet->kind != PACKET_MAIN)
            continue;
        is_there = true;
        error = packet_edit_main(context, &packets, packet, mining, scratch);
        arena_reset(scratch);
    }
    if (is_opt_out && !is_there && error == IW_OK) {
        struct xmp_result fresh = {.is_readable = true};
        fresh.packet = xmp_fresh(scratch, mining, &fresh.size);
        error = main_replace(context, &packets, NULL, &fresh);
    }
    keep_sweep(keep);
    arena_free(scratch);
    arena_free(packets.arena);
    return error;
}

void packets_clean(struct codec_keep *keep, const struct packets_place *place)
{
    struct context context;
    struct arena *arena = arena_new(0);
    context_init(&context, arena, NULL);
    /*
     * Packets only become shorter, so the only failure is a change to UTF-8 that fills a segment. The packet
     * then stays unchanged.
     */
    if (packets_edit(&context, keep, place, false) != IW_OK)
        context_clear(&context);
    arena_free(arena);
}

enum iw_error packets_opt_out(struct context *context, struct codec_keep *keep,
                              const struct packets_place *place)
{
    return packets_edit(context, keep, place, true);
}
