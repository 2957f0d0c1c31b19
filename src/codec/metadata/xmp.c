/*
 * Edits an XMP packet at positions that Expat reports. All other bytes stay. Sources: XMP
 * specification part 1 (ISO 16684-1), PLUS LDF 2.0.1 for plus:DataMining.
 */
#include "codec/metadata/xmp.h"

#include <expat.h>

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"
#include "codec/metadata/keep.h"

#define RDF_NAMESPACE  "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
#define PLUS_NAMESPACE "http://ns.useplus.org/ldf/xmp/1.0/"

/* Expat's separator between namespace and name; no URI contains it. */
#define SEPARATOR '\n'
static const char name_rdf[] = RDF_NAMESPACE "\nRDF";
static const char name_description[] = RDF_NAMESPACE "\nDescription";
static const char name_about[] = RDF_NAMESPACE "\nabout";
static const char name_resource[] = RDF_NAMESPACE "\nresource";
static const char name_preview[] = "http://ns.adobe.com/xap/1.0/g/img/\nimage"; /* base64 of a JPEG */

/* ---- which properties are edited ---- */

enum property_action { PROPERTY_MINING = 1, PROPERTY_EXTENSION, PROPERTY_REMOVED, PROPERTY_PROVENANCE };

/* The first match applies. is_family: match a prefix. */
static const struct property_rule {
    const char *name;
    bool is_family;
    enum property_action action;
    unsigned left_out;
} rules[] = {
    {PLUS_NAMESPACE "\nDataMining", false, PROPERTY_MINING, 0},
    {"http://ns.adobe.com/xmp/note/\nHasExtendedXMP", false, PROPERTY_EXTENSION, 0},
    /* Ultra HDR 1.1 and Apple: parameters of a gain map, which is a second picture in the file. */
    {"http://ns.adobe.com/hdr-gain-map/1.0/\n", true, PROPERTY_REMOVED, KEEP_LEFT_GAIN_MAP},
    {"http://ns.apple.com/HDRGainMap/1.0/\n", true, PROPERTY_REMOVED, KEEP_LEFT_GAIN_MAP},
    {"http://ns.apple.com/pixeldatainfo/1.0/\n", true, PROPERTY_REMOVED, KEEP_LEFT_FURTHER},
    {"http://ns.apple.com/depthData/1.0/\n", true, PROPERTY_REMOVED, KEEP_LEFT_DEPTH},
    /* Android: list of the files after the main picture, and the offset of its film. */
    {"http://ns.google.com/photos/1.0/container/\n", true, PROPERTY_REMOVED, KEEP_LEFT_FURTHER},
    {"http://ns.google.com/photos/1.0/camera/\nMotionPhoto", true, PROPERTY_REMOVED, KEEP_LEFT_FILM},
    {"http://ns.google.com/photos/1.0/camera/\nMicroVideo", true, PROPERTY_REMOVED, KEEP_LEFT_FILM},
    {"http://ns.oplus.com/photos/1.0/camera/\nMotionPhoto", true, PROPERTY_REMOVED, KEEP_LEFT_FILM},
    {"http://ns.oplus.com/photos/1.0/camera/\nVideoLength", false, PROPERTY_REMOVED, KEEP_LEFT_FILM},
    {"http://ns.google.com/photos/dd/1.0/device/\n", true, PROPERTY_REMOVED, KEEP_LEFT_DEPTH},
    /* Previews of the unchanged picture inside the packet. */
    {"http://ns.google.com/photos/1.0/image/\n", true, PROPERTY_REMOVED, KEEP_LEFT_PREVIEW},
    {"http://ns.adobe.com/xap/1.0/\nThumbnails", false, PROPERTY_REMOVED, KEEP_LEFT_PREVIEW},
    /* C2PA 2.1, section 11.5: location of the manifest. */
    {"http://purl.org/dc/terms/\nprovenance", false, PROPERTY_PROVENANCE, 0},
};

/* Item:Semantic of a Container item, and the kind of file. */
static const struct {
    const char *semantic;
    unsigned left_out;
} semantics[] = {
    {"GainMap", KEEP_LEFT_GAIN_MAP}, {"MotionPhoto", KEEP_LEFT_FILM}, {"Depth", KEEP_LEFT_DEPTH}};

static const struct property_rule *rule_of(const char *name)
{
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (rules[i].is_family ? strncmp(rules[i].name, name, strlen(rules[i].name)) == 0
                               : strcmp(rules[i].name, name) == 0)
            return &rules[i];
    return NULL;
}

/*
 * Limits of one packet. Expat keeps memory for each open element and each distinct name until the
 * end: five million nested elements took 730 MiB. Real packets have a depth below 20, and up to
 * 200,000 elements (document ancestors of Photoshop).
 */
enum { depth_max = 200, elements_max = 500000, edits_max = 10000, parser_bytes_max = 4 * keep_bytes_max };

/* Replaces the bytes begin..end by text. */
struct xmp_insertion {
    size_t begin;
    size_t end;
    const char *text;
    struct xmp_insertion *next;
};

enum { text_kept_bytes = 1024 };

/* The open property: a child of a description. */
struct xmp_property {
    const struct property_rule *rule;
    size_t begin;
    unsigned depth; /* 0 if there is none */
    bool has_children;
    bool has_preview;
    size_t text_bytes;
    char text[text_kept_bytes];
};

struct xmp_scan {
    XML_Parser parser;
    struct arena *arena;
    const struct xmp_request *request;
    struct xmp_result *result;
    const char *packet;
    size_t size;
    bool is_refused; /* a document type, or a limit */
    unsigned depth;
    unsigned elements;
    unsigned edits;
    unsigned description_depth; /* of the top-level descriptions: that of rdf:RDF + 1; 0 outside */
    bool has_rdf;
    size_t rdf_begin;     /* of the first rdf:RDF: its start tag */
    size_t rdf_end;       /* of the end tag; after the element if it is <rdf:RDF/> */
    size_t end_tag_bytes; /* 0 in that case */
    bool is_rdf_ended;
    const char *about; /* rdf:about of the first description */
    struct xmp_property property;
    size_t trailer; /* of the instruction that ends the packet; 0 if there is none */
    struct xmp_insertion *first;
    struct xmp_insertion **last;
};

static void scan_refuse(struct xmp_scan *scan)
{
    scan->is_refused = true;
    XML_StopParser(scan->parser, XML_FALSE);
}

static void scan_replace(struct xmp_scan *scan, size_t begin, size_t end, const char *text)
{
    if (scan->edits++ == edits_max) {
        scan_refuse(scan);
        return;
    }
    struct xmp_insertion *edit = arena_alloc(scan->arena, sizeof *edit);
    *edit = (struct xmp_insertion){begin, end, text, NULL};
    *scan->last = edit;
    scan->last = &edit->next;
}

/* Newer versions of Expat deprecate the functions without a number. */
#ifdef HAVE_XML_BYTE_INDEX64
#define XML_GetCurrentByteIndex XML_GetCurrentByteIndex64
#define XML_GetCurrentByteCount XML_GetCurrentByteCount64
#endif

static size_t scan_here(const struct xmp_scan *scan)
{
    return (size_t)XML_GetCurrentByteIndex(scan->parser);
}

static size_t scan_here_bytes(const struct xmp_scan *scan)
{
    return (size_t)XML_GetCurrentByteCount(scan->parser);
}

/* ---- the edit of one property ---- */

/* True for a manifest's location. Text about a work's origin is no location and stays. */
static bool is_manifest_place(const char *text)
{
    static const char *const schemes[] = {"self#", "http://", "https://"};
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++)
        if (strncasecmp(text, schemes[i], strlen(schemes[i])) == 0)
            return true;
    return false;
}

/* New value of plus:DataMining; NULL means unchanged. */
static const char *mining_new(struct xmp_scan *scan, const char *text, bool is_simple)
{
    const struct xmp_mining *least = scan->request->mining;
    bool is_exact = false;
    const struct xmp_mining *mining = xmp_mining_read(text, &is_exact);
    scan->result->mining = xmp_mining_stronger(scan->result->mining, mining);
    if (least == NULL || (is_simple && is_exact && xmp_mining_suffices(mining, least)))
        return NULL;
    return xmp_mining_uri(xmp_mining_suffices(mining, least) ? mining : least);
}

/* NULL means unchanged; "": removed; else the new value, which needs no escape. */
static const char *value_new(struct xmp_scan *scan, const struct property_rule *rule, const char *text,
                             bool is_simple)
{
    const struct xmp_request *request = scan->request;
    struct xmp_result *result = scan->result;
    const char *trimmed = text + strspn(text, " \t\r\n");
    size_t length = strlen(trimmed);
    while (length > 0 && strchr(" \t\r\n", trimmed[length - 1]) != NULL)
        length--;
    trimmed = arena_text_n(scan->arena, trimmed, length);
    switch (rule->action) {
    case PROPERTY_REMOVED:
        result->left_out |= rule->left_out;
        return "";
    case PROPERTY_PROVENANCE:
        if (!is_manifest_place(trimmed))
            return NULL;
        result->provenance = trimmed;
        return "";
    case PROPERTY_EXTENSION:
        if (strlen(trimmed) == xmp_guid_bytes)
            memcpy(result->extension, trimmed, xmp_guid_bytes);
        return request->extension_old != NULL && strcasecmp(trimmed, request->extension_old) == 0
                   ? request->extension_new
                   : NULL;
    default:
        return mining_new(scan, text, is_simple);
    }
}

/* Place of the n-th attribute, namespace declarations excluded, in a well-formed tag. */
struct attribute_place {
    size_t begin; /* of the space before it */
    size_t value_begin;
    size_t value_end;
    bool is_found;
};

static struct attribute_place attribute_find(const char *tag, size_t size, int n)
{
    const char *end = tag + size;
    const char *at = tag + strcspn(tag, " \t\r\n");
    while (at < end) {
        const char *begin = at;
        at += strspn(at, " \t\r\n");
        const char *name = at;
        at += strcspn(at, "\"'");
        if (at >= end)
            break;
        const char *value = at + 1;
        const char *close = memchr(value, *at, (size_t)(end - value));
        if (close == NULL)
            break;
        bool is_declaration = strncmp(name, "xmlns", 5) == 0 && strchr(":= \t\r\n", name[5]) != NULL;
        if (!is_declaration && n-- == 0)
            return (struct attribute_place){(size_t)(begin - tag), (size_t)(value - tag),
                                            (size_t)(close - tag), true};
        at = close + 1;
    }
    return (struct attribute_place){0, 0, 0, false};
}

/* Properties in attributes of their description. */
static void description_begin(struct xmp_scan *scan, const XML_Char **attributes)
{
    size_t here = scan_here(scan);
    for (int i = 0; attributes[i] != NULL; i += 2) {
        if (strcmp(attributes[i], name_about) == 0 && scan->about == NULL)
            scan->about = arena_text(scan->arena, attributes[i + 1]);
        const struct property_rule *rule = rule_of(attributes[i]);
        const char *value = rule == NULL ? NULL : value_new(scan, rule, attributes[i + 1], true);
        if (value == NULL)
            continue;
        struct attribute_place place = attribute_find(scan->packet + here, scan_here_bytes(scan), i / 2);
        if (!place.is_found)
            scan->is_refused = true;
        else if (value[0] == '\0')
            scan_replace(scan, here + place.begin, here + place.value_end + 1, "");
        else
            scan_replace(scan, here + place.value_begin, here + place.value_end, value);
    }
}

static void property_text(struct xmp_property *property, const char *text, size_t size)
{
    for (size_t i = 0; i < size && property->text_bytes + 1 < text_kept_bytes; i++)
        property->text[property->text_bytes++] = text[i];
}

static void property_begin(struct xmp_scan *scan, const XML_Char *name, const XML_Char **attributes)
{
    struct xmp_property *property = &scan->property;
    property->rule = rule_of(name);
    property->begin = scan_here(scan);
    property->depth = scan->depth;
    property->has_children = property->has_preview = false;
    property->text_bytes = 0;
    for (int i = 0; attributes[i] != NULL; i += 2)
        if (strcmp(attributes[i], name_resource) == 0)
            property_text(property, attributes[i + 1], strlen(attributes[i + 1]));
}

/* Element for a changed value, with the packet's prefix. */
static const char *property_element(struct xmp_scan *scan, const struct property_rule *rule,
                                    const char *value)
{
    const char *tag = scan->packet + scan->property.begin + 1;
    int length = (int)strcspn(tag, " \t\r\n/>");
    const char *colon = memchr(tag, ':', (size_t)length);
    const char *space = strchr(rule->name, SEPARATOR);
    return arena_printf(scan->arena, "<%.*s xmlns%s%.*s=\"%.*s\">%s</%.*s>", length, tag,
                        colon == NULL ? "" : ":", colon == NULL ? 0 : (int)(colon - tag), tag,
                        (int)(space - rule->name), rule->name, value, length, tag);
}

static void property_end(struct xmp_scan *scan)
{
    static const struct property_rule preview = {"", false, PROPERTY_REMOVED, KEEP_LEFT_PREVIEW};
    struct xmp_property *property = &scan->property;
    const struct property_rule *rule =
        property->rule == NULL && property->has_preview ? &preview : property->rule;
    size_t end = scan_here(scan) + scan_here_bytes(scan);
    property->depth = 0;
    if (rule == NULL)
        return;
    property->text[property->text_bytes] = '\0';
    bool is_simple = !property->has_children;
    const char *value = value_new(scan, rule, property->text, is_simple);
    if (value == NULL)
        return;
    for (size_t i = 0; rule->left_out == KEEP_LEFT_FURTHER && i < sizeof semantics / sizeof semantics[0]; i++)
        if (memmem(scan->packet + property->begin, end - property->begin, semantics[i].semantic,
                   strlen(semantics[i].semantic)) != NULL)
            scan->result->left_out |= semantics[i].left_out;
    scan_replace(scan, property->begin, end, value[0] == '\0' ? "" : property_element(scan, rule, value));
}

/* ---- Expat's calls ---- */

static void XMLCALL xmp_start(void *user, const XML_Char *name, const XML_Char **attributes)
{
    struct xmp_scan *scan = user;
    scan->depth++;
    if (scan->depth > depth_max || scan->elements++ == elements_max) {
        scan_refuse(scan);
        return;
    }
    if (scan->description_depth == 0 && strcmp(name, name_rdf) == 0) {
        if (!scan->has_rdf)
            scan->rdf_begin = scan_here(scan);
        scan->has_rdf = true;
        scan->description_depth = scan->depth + 1;
    } else if (scan->depth == scan->description_depth && strcmp(name, name_description) == 0) {
        description_begin(scan, attributes);
    } else if (scan->description_depth != 0 && scan->depth == scan->description_depth + 1) {
        property_begin(scan, name, attributes);
    } else if (scan->property.depth != 0) {
        struct xmp_property *property = &scan->property;
        property->has_children = true;
        property->has_preview |= strcmp(name, name_preview) == 0;
        for (int i = 0; attributes[i] != NULL; i += 2)
            property->has_preview |= strcmp(attributes[i], name_preview) == 0;
        property_text(property, " ", 1);
    }
}

static void XMLCALL xmp_text(void *user, const XML_Char *text, int size)
{
    struct xmp_scan *scan = user;
    if (scan->property.depth != 0)
        property_text(&scan->property, text, (size_t)size);
}

static void XMLCALL xmp_end(void *user, const XML_Char *name)
{
    struct xmp_scan *scan = user;
    (void)name;
    if (scan->property.depth == scan->depth)
        property_end(scan);
    if (scan->depth + 1 == scan->description_depth) {
        scan->description_depth = 0;
        if (!scan->is_rdf_ended) {
            scan->rdf_end = scan_here(scan);
            scan->end_tag_bytes = scan_here_bytes(scan);
        }
        scan->is_rdf_ended = true;
    }
    scan->depth--;
}

/* The parser finds the packet's end, because the same text may occur in a comment. */
static void XMLCALL xmp_instruction(void *user, const XML_Char *target, const XML_Char *data)
{
    struct xmp_scan *scan = user;
    if (scan->depth == 0 && scan->has_rdf && strcmp(target, "xpacket") == 0 && strncmp(data, "end=", 4) == 0)
        scan->trailer = scan_here(scan);
}

/* XMP has no document type, which could define entities. */
static void XMLCALL xmp_document_type(void *user, const XML_Char *name, const XML_Char *system_id,
                                      const XML_Char *public_id, int has_subset)
{
    struct xmp_scan *scan = user;
    (void)name;
    (void)system_id;
    (void)public_id;
    (void)has_subset;
    scan_refuse(scan);
}

/* The packet is UTF-8 here; another declaration would make Expat convert it. */
static void XMLCALL xmp_declaration(void *user, const XML_Char *version, const XML_Char *encoding,
                                    int standalone)
{
    struct xmp_scan *scan = user;
    (void)version;
    (void)standalone;
    if (encoding != NULL && strcasecmp(encoding, "UTF-8") != 0 && scan->request->mining != NULL)
        scan_replace(scan, scan_here(scan), scan_here(scan) + scan_here_bytes(scan), "");
}

/* ---- Expat's memory ---- */

/* The size of a block is in front of it, in a whole unit of alignment. */
enum { block_head_bytes = 16 };

/* Bytes of the parser at work. Expat passes its allocator no pointer of the caller. */
static _Thread_local size_t parser_bytes;

static void *parser_realloc(void *block, size_t size)
{
    char *old = block == NULL ? NULL : (char *)block - block_head_bytes;
    size_t old_size = 0;
    if (old != NULL)
        memcpy(&old_size, old, sizeof old_size);
    if (size > parser_bytes_max || parser_bytes - old_size + size > parser_bytes_max)
        return NULL;
    char *made = realloc(old, block_head_bytes + size);
    if (made == NULL)
        return NULL;
    memcpy(made, &size, sizeof size);
    parser_bytes += size - old_size;
    return made + block_head_bytes;
}

static void *parser_malloc(size_t size)
{
    return parser_realloc(NULL, size);
}

static void parser_free(void *block)
{
    size_t size = 0;
    if (block == NULL)
        return;
    memcpy(&size, (char *)block - block_head_bytes, sizeof size);
    parser_bytes -= size;
    free((char *)block - block_head_bytes);
}

/* True if the packet is well-formed with an rdf:RDF that can be edited. */
static bool scan_parse(struct xmp_scan *scan)
{
    static const XML_Memory_Handling_Suite memory = {parser_malloc, parser_realloc, parser_free};
    static const XML_Char separator[] = {SEPARATOR, '\0'};
    parser_bytes = 0;
    scan->parser = XML_ParserCreate_MM("UTF-8", &memory, separator);
    if (scan->parser == NULL)
        return false;
    XML_SetUserData(scan->parser, scan);
    XML_SetXmlDeclHandler(scan->parser, xmp_declaration);
    XML_SetElementHandler(scan->parser, xmp_start, xmp_end);
    XML_SetCharacterDataHandler(scan->parser, xmp_text);
    XML_SetProcessingInstructionHandler(scan->parser, xmp_instruction);
    XML_SetStartDoctypeDeclHandler(scan->parser, xmp_document_type);
    enum XML_Status status = XML_Parse(scan->parser, scan->packet, (int)scan->size, XML_TRUE);
    XML_ParserFree(scan->parser);
    return status == XML_STATUS_OK && scan->has_rdf && !scan->is_refused;
}

/* ---- adding and applying ---- */

/* Escape characters for an attribute. */
static const char *attribute_escape(struct arena *arena, const char *text)
{
    static const struct {
        char character;
        const char *entity;
    } entities[] = {{'&', "&amp;"},  {'<', "&lt;"},  {'"', "&quot;"},
                    {'\n', "&#10;"}, {'\t', "&#9;"}, {'\r', "&#13;"}};
    char *out = arena_alloc(arena, strlen(text) * 6 + 1);
    char *at = out;
    for (; *text != '\0'; text++) {
        const char *entity = NULL;
        for (size_t i = 0; i < sizeof entities / sizeof entities[0]; i++)
            if (entities[i].character == *text)
                entity = entities[i].entity;
        if (entity == NULL)
            *at++ = *text;
        else
            at = (char *)memcpy(at, entity, strlen(entity)) + strlen(entity);
    }
    return out;
}

/* Adds a description before </rdf:RDF>, with the rdf:about of the first description. */
static void scan_add_description(struct xmp_scan *scan)
{
    const char *about = attribute_escape(scan->arena, scan->about == NULL ? "" : scan->about);
    const char *description = arena_printf(
        scan->arena,
        "<rdf:Description xmlns:rdf=\"" RDF_NAMESPACE "\" rdf:about=\"%s\">"
        "<plus:DataMining xmlns:plus=\"" PLUS_NAMESPACE "\">%s</plus:DataMining></rdf:Description>",
        about, xmp_mining_uri(scan->request->mining));
    struct xmp_insertion **rest = &scan->first;
    while (*rest != NULL && (*rest)->begin < scan->rdf_end)
        rest = &(*rest)->next;
    struct xmp_insertion *edit = arena_alloc(scan->arena, sizeof *edit);
    *edit = (struct xmp_insertion){scan->rdf_end, scan->rdf_end, description, *rest};
    if (scan->end_tag_bytes == 0) {
        /* <rdf:RDF ... /> becomes <rdf:RDF ... >description</rdf:RDF>. */
        const char *tag = scan->packet + scan->rdf_begin + 1;
        edit->begin -= 2;
        edit->text =
            arena_printf(scan->arena, ">%s</%.*s>", description, (int)strcspn(tag, " \t\r\n/>"), tag);
    }
    *rest = edit;
}

static void scan_apply(const struct xmp_scan *scan, struct xmp_result *result)
{
    size_t grown = scan->size;
    for (const struct xmp_insertion *edit = scan->first; edit != NULL; edit = edit->next)
        grown += strlen(edit->text);
    char *out = arena_alloc(scan->arena, grown + 1);
    size_t from = 0;
    size_t used = 0;
    for (const struct xmp_insertion *edit = scan->first; edit != NULL; edit = edit->next) {
        memcpy(out + used, scan->packet + from, edit->begin - from);
        used += edit->begin - from;
        memcpy(out + used, edit->text, strlen(edit->text));
        used += strlen(edit->text);
        from = edit->end;
    }
    memcpy(out + used, scan->packet + from, scan->size - from);
    used += scan->size - from;
    /* All edits are before the packet's end. */
    size_t end = scan->trailer == 0 ? used : scan->trailer + used - scan->size;
    /* White space before it is padding that edits may use. */
    size_t padding = 0;
    while (end < used && used > scan->size + padding && end > padding + 1 && out[end - padding - 1] != '\0' &&
           strchr(" \t\r\n", out[end - padding - 1]) != NULL)
        padding++;
    memmove(out + end - padding, out + end, used - end);
    result->packet = out;
    result->size = used - padding;
    result->is_changed = true;
}

/* Scans text of size bytes with a closing zero. True if it can be edited. */
static bool xmp_scan_edit(struct arena *arena, const char *text, size_t size,
                          const struct xmp_request *request, struct xmp_result *result)
{
    struct xmp_scan scan;
    memset(&scan, 0, sizeof scan);
    memset(result, 0, sizeof *result);
    scan.arena = arena;
    scan.request = request;
    scan.result = result;
    scan.packet = text;
    scan.size = size;
    scan.last = &scan.first;
    /* Strict readers reject a byte order mark here. */
    if (request->mining != NULL && size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0)
        scan_replace(&scan, 0, 3, "");
    if (!scan_parse(&scan))
        return false;
    if (request->is_added && result->mining == NULL)
        scan_add_description(&scan);
    result->packet = text;
    result->size = size;
    result->is_readable = true;
    if (scan.first != NULL)
        scan_apply(&scan, result);
    return true;
}

/* ---- encodings ---- */

static size_t utf8_put(char *out, uint32_t code)
{
    static const unsigned char heads[] = {0, 0xC0, 0xE0, 0xF0};
    size_t rest = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    out[0] = (char)(heads[rest] | code >> (6 * rest));
    for (size_t i = 1; i <= rest; i++)
        out[i] = (char)(0x80 | (code >> (6 * (rest - i)) & 0x3F));
    return rest + 1;
}

static size_t utf16_convert(char *out, const unsigned char *data, size_t size, bool is_big)
{
    size_t used = 0;
    uint32_t high = 0;
    for (size_t i = 0; i + 1 < size; i += 2) {
        uint32_t code = (uint32_t)data[i + !is_big] << 8 | data[i + is_big];
        if (high != 0 && (code & 0xFC00) == 0xDC00) {
            used -= 3;
            code = 0x10000 + ((high & 0x3FF) << 10) + (code & 0x3FF);
        }
        high = (code & 0xFFFFFC00) == 0xD800 ? code : 0;
        used += utf8_put(out + used, code);
    }
    return used;
}

/* A byte that is not UTF-8 is windows-1252 (Encoding Standard); U+FFFD: undefined. */
static size_t latin_convert(char *out, const char *text, size_t size)
{
    static const uint16_t codes[32] = {0x20AC, 0xFFFD, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
                                       0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0xFFFD, 0x017D, 0xFFFD,
                                       0xFFFD, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
                                       0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0xFFFD, 0x017E, 0x0178};
    size_t used = 0;
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)text[i];
        size_t length = text_sequence(text + i, size - i);
        if (length == 0)
            used += utf8_put(out + used, byte < 0xA0 ? codes[byte - 0x80] : byte);
        for (; length > 0; length--, i += length > 0)
            out[used++] = text[i];
    }
    return used;
}

/*
 * Converts UTF-16, known by the byte order mark or the first '<', and Latin-1 to UTF-8 without a declaration
 * of the encoding. A closing zero is added, and the closing zeros of some writers are removed.
 */
static const char *packet_utf8(struct arena *arena, const char *packet, size_t *size)
{
    static const char marks[4][2] = {{'\xFF', '\xFE'}, {'<', '\0'}, {'\xFE', '\xFF'}, {'\0', '<'}};
    enum { converted_bytes_max = 4 * 1024 * 1024 };
    unsigned mark = 0;
    while (mark < 4 && (*size < 2 || memcmp(packet, marks[mark], 2) != 0))
        mark++;
    bool is_converted = *size <= converted_bytes_max && (mark < 4 || !text_is_utf8(packet, *size));
    char *text = is_converted ? arena_alloc(arena, 3 * *size + 1) : arena_text_n(arena, packet, *size);
    if (is_converted)
        *size = mark < 4 ? utf16_convert(text, (const unsigned char *)packet, *size, mark >= 2)
                         : latin_convert(text, packet, *size);
    while (*size > 0 && text[*size - 1] == '\0')
        --*size;
    const char *end = is_converted && strncmp(text, "<?xml ", 6) == 0 ? strstr(text, "?>") : NULL;
    size_t skipped = end == NULL ? 0 : (size_t)(end + 2 - text);
    *size -= skipped;
    return text + skipped;
}

void xmp_edit(struct arena *arena, const char *packet, size_t size, const struct xmp_request *request,
              struct xmp_result *result)
{
    size_t text_size = size;
    const char *text = packet_utf8(arena, packet, &text_size);
    /* Expat would detect other UTF-16, but edits are UTF-8. */
    bool is_wide = memchr(text, '\0', text_size) != NULL;
    if (is_wide || !xmp_scan_edit(arena, text, text_size, request, result)) {
        memset(result, 0, sizeof *result);
    } else if (!result->is_changed) {
        result->packet = packet;
        result->size = size;
    }
}

bool xmp_names_entry(const char *packet, size_t size, bool is_opt_out)
{
    static const char preview[] = "http://ns.adobe.com/xap/1.0/g/img/";
    bool is_named = memmem(packet, size, preview, sizeof preview - 1) != NULL;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0] && !is_named; i++) {
        const char *local = strchr(rules[i].name, SEPARATOR) + 1;
        const char *word = local[0] == '\0' ? rules[i].name : local;
        bool is_edited =
            rules[i].action == PROPERTY_REMOVED || (rules[i].action == PROPERTY_MINING && is_opt_out);
        is_named = is_edited && memmem(packet, size, word, strcspn(word, "\n")) != NULL;
    }
    return is_named;
}

const char *xmp_fresh(struct arena *arena, const struct xmp_mining *mining, size_t *size)
{
    const char *packet = arena_printf(arena,
                                      "<?xpacket begin=\"\xEF\xBB\xBF\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?>\n"
                                      "<x:xmpmeta xmlns:x=\"adobe:ns:meta/\">\n"
                                      " <rdf:RDF xmlns:rdf=\"" RDF_NAMESPACE "\">\n"
                                      "  <rdf:Description rdf:about=\"\" xmlns:plus=\"" PLUS_NAMESPACE "\">\n"
                                      "   <plus:DataMining>%s</plus:DataMining>\n"
                                      "  </rdf:Description>\n"
                                      " </rdf:RDF>\n"
                                      "</x:xmpmeta>\n"
                                      "<?xpacket end=\"w\"?>",
                                      xmp_mining_uri(mining));
    *size = strlen(packet);
    return packet;
}
