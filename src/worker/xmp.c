/*
 * The opt-out in an XMP packet, by inserting or replacing text at positions that
 * expat finds, so that all else of the packet stays byte for byte (XMP
 * specification part 1, ISO 16684-1; PLUS LDF 2.0.1 for plus:DataMining).
 */
#include <expat.h>

#include <string.h>

#include "worker/codec_keep.h"

#define RDF_NAMESPACE  "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
#define PLUS_NAMESPACE "http://ns.useplus.org/ldf/xmp/1.0/"
#define PROHIBITED     "http://ns.useplus.org/ldf/vocab/DMI-PROHIBITED-AIMLTRAINING"

/* Between namespace and name in what expat reports; no URI holds it. */
#define SEPARATOR '\n'
static const char name_rdf[] = RDF_NAMESPACE "\nRDF";
static const char name_description[] = RDF_NAMESPACE "\nDescription";
static const char name_about[] = RDF_NAMESPACE "\nabout";
static const char name_mining[] = PLUS_NAMESPACE "\nDataMining";

static const char mining_element[] =
    "<plus:DataMining xmlns:plus=\"" PLUS_NAMESPACE "\">" PROHIBITED "</plus:DataMining>";

static const char fresh_packet[] = "<?xpacket begin=\"\xEF\xBB\xBF\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?>\n"
                                   "<x:xmpmeta xmlns:x=\"adobe:ns:meta/\">\n"
                                   " <rdf:RDF xmlns:rdf=\"" RDF_NAMESPACE "\">\n"
                                   "  <rdf:Description rdf:about=\"\" xmlns:plus=\"" PLUS_NAMESPACE "\">\n"
                                   "   <plus:DataMining>" PROHIBITED "</plus:DataMining>\n"
                                   "  </rdf:Description>\n"
                                   " </rdf:RDF>\n"
                                   "</x:xmpmeta>\n"
                                   "<?xpacket end=\"w\"?>";

/* Replace the bytes begin..end by text. */
struct xmp_edit {
    size_t begin;
    size_t end;
    const char *text;
};

enum { edits_max = 16, text_kept_bytes = 128 };

struct xmp_scan {
    XML_Parser parser;
    struct arena *arena;
    const char *packet;
    size_t size;
    bool is_refused; /* a document type, or more than we edit */
    unsigned depth;
    unsigned description_depth; /* of the top-level descriptions: that of rdf:RDF + 1; 0 outside */
    bool has_rdf;
    size_t rdf_begin;      /* of the start tag */
    size_t rdf_end;        /* of the end tag; behind the element when it is written <rdf:RDF/> */
    size_t end_tag_bytes;  /* 0 then */
    const char *about;     /* rdf:about of the first description */
    unsigned mining_depth; /* of the plus:DataMining that is open, 0: none */
    size_t mining_begin;
    char mining_text[text_kept_bytes];
    size_t mining_text_bytes;
    size_t trailer;     /* where the processing instruction begins that ends the packet; 0: there is none */
    bool is_prohibited; /* some plus:DataMining is there and all say so */
    struct xmp_edit edits[edits_max];
    size_t edit_count;
};

static void xmp_edit_add(struct xmp_scan *scan, size_t begin, size_t end, const char *text)
{
    if (scan->edit_count == edits_max) {
        scan->is_refused = true;
        return;
    }
    scan->edits[scan->edit_count++] = (struct xmp_edit){begin, end, text};
}

static size_t xmp_here(const struct xmp_scan *scan)
{
    return (size_t)XML_GetCurrentByteIndex(scan->parser);
}

static size_t xmp_here_bytes(const struct xmp_scan *scan)
{
    return (size_t)XML_GetCurrentByteCount(scan->parser);
}

/* Where the value of the n-th attribute stands that is no namespace declaration; the tag is well-formed. */
static struct xmp_edit attribute_value(const char *tag, const char *end, int n)
{
    const char *at = tag + strcspn(tag, " \t\r\n");
    while (at < end) {
        at += strspn(at, " \t\r\n");
        const char *name = at;
        at += strcspn(at, "\"'");
        char quote = *at;
        const char *value = at + 1;
        const char *close = memchr(value, quote, (size_t)(end - value));
        if (close == NULL)
            break;
        bool is_declaration = strncmp(name, "xmlns", 5) == 0 && strchr(":= \t\r\n", name[5]) != NULL;
        if (!is_declaration && n-- == 0)
            return (struct xmp_edit){(size_t)(value - tag), (size_t)(close - tag), PROHIBITED};
        at = close + 1;
    }
    return (struct xmp_edit){0, 0, NULL};
}

static void xmp_description(struct xmp_scan *scan, const XML_Char **attributes)
{
    size_t here = xmp_here(scan);
    for (int i = 0; attributes[i] != NULL; i += 2) {
        if (strcmp(attributes[i], name_about) == 0 && scan->about == NULL)
            scan->about = arena_text(scan->arena, attributes[i + 1]);
        if (strcmp(attributes[i], name_mining) != 0)
            continue;
        scan->is_prohibited = true;
        struct xmp_edit edit =
            attribute_value(scan->packet + here, scan->packet + here + xmp_here_bytes(scan), i / 2);
        if (edit.text == NULL)
            scan->is_refused = true;
        else if (strcmp(attributes[i + 1], PROHIBITED) != 0)
            xmp_edit_add(scan, here + edit.begin, here + edit.end, edit.text);
    }
}

static void XMLCALL xmp_start(void *user, const XML_Char *name, const XML_Char **attributes)
{
    struct xmp_scan *scan = user;
    scan->depth++;
    if (!scan->has_rdf && strcmp(name, name_rdf) == 0) {
        scan->has_rdf = true;
        scan->rdf_begin = xmp_here(scan);
        scan->description_depth = scan->depth + 1;
    } else if (scan->depth == scan->description_depth && strcmp(name, name_description) == 0) {
        xmp_description(scan, attributes);
    } else if (scan->depth == scan->description_depth + 1 && strcmp(name, name_mining) == 0) {
        scan->mining_depth = scan->depth;
        scan->mining_begin = xmp_here(scan);
        scan->mining_text_bytes = 0;
    }
}

static void XMLCALL xmp_text(void *user, const XML_Char *text, int size)
{
    struct xmp_scan *scan = user;
    for (int i = 0; i < size && scan->mining_depth != 0; i++)
        if (scan->mining_text_bytes < text_kept_bytes)
            scan->mining_text[scan->mining_text_bytes++] = text[i];
}

static void xmp_mining_end(struct xmp_scan *scan)
{
    scan->mining_depth = 0;
    scan->is_prohibited = true;
    bool is_same = scan->mining_text_bytes == strlen(PROHIBITED) &&
                   memcmp(scan->mining_text, PROHIBITED, scan->mining_text_bytes) == 0;
    if (!is_same)
        xmp_edit_add(scan, scan->mining_begin, xmp_here(scan) + xmp_here_bytes(scan), mining_element);
}

static void XMLCALL xmp_end(void *user, const XML_Char *name)
{
    struct xmp_scan *scan = user;
    (void)name;
    if (scan->mining_depth == scan->depth)
        xmp_mining_end(scan);
    if (scan->depth + 1 == scan->description_depth) {
        scan->description_depth = 0;
        scan->rdf_end = xmp_here(scan);
        scan->end_tag_bytes = xmp_here_bytes(scan);
    }
    scan->depth--;
}

/* The packet's end is one that the parser sees: its text may stand in a comment, too. */
static void XMLCALL xmp_instruction(void *user, const XML_Char *target, const XML_Char *data)
{
    struct xmp_scan *scan = user;
    if (scan->depth == 0 && scan->has_rdf && strcmp(target, "xpacket") == 0 && strncmp(data, "end=", 4) == 0)
        scan->trailer = xmp_here(scan);
}

/* XMP has no document type; one would bring entities. */
static void XMLCALL xmp_document_type(void *user, const XML_Char *name, const XML_Char *system_id,
                                      const XML_Char *public_id, int has_subset)
{
    struct xmp_scan *scan = user;
    (void)name;
    (void)system_id;
    (void)public_id;
    (void)has_subset;
    scan->is_refused = true;
    XML_StopParser(scan->parser, XML_FALSE);
}

/* True when the packet is well-formed with an rdf:RDF that can be edited. */
static bool xmp_parse(struct xmp_scan *scan)
{
    scan->parser = XML_ParserCreateNS("UTF-8", SEPARATOR);
    if (scan->parser == NULL)
        return false;
    XML_SetUserData(scan->parser, scan);
    XML_SetElementHandler(scan->parser, xmp_start, xmp_end);
    XML_SetCharacterDataHandler(scan->parser, xmp_text);
    XML_SetProcessingInstructionHandler(scan->parser, xmp_instruction);
    XML_SetStartDoctypeDeclHandler(scan->parser, xmp_document_type);
    enum XML_Status status = XML_Parse(scan->parser, scan->packet, (int)scan->size, XML_TRUE);
    XML_ParserFree(scan->parser);
    return status == XML_STATUS_OK && scan->has_rdf && !scan->is_refused;
}

/* The text with the characters escaped that an attribute must not hold. */
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

/* A description of its own right before </rdf:RDF>, about the same thing as the first one. */
static void xmp_add_description(struct xmp_scan *scan)
{
    const char *about = attribute_escape(scan->arena, scan->about == NULL ? "" : scan->about);
    const char *description = arena_printf(
        scan->arena, "<rdf:Description xmlns:rdf=\"" RDF_NAMESPACE "\" rdf:about=\"%s\">%s</rdf:Description>",
        about, mining_element);
    if (scan->end_tag_bytes != 0) {
        xmp_edit_add(scan, scan->rdf_end, scan->rdf_end, description);
        return;
    }
    /* <rdf:RDF ... /> becomes <rdf:RDF ... >description</rdf:RDF>. */
    const char *tag = scan->packet + scan->rdf_begin + 1;
    size_t after = scan->rdf_end;
    xmp_edit_add(scan, after - 2, after,
                 arena_printf(scan->arena, ">%s</%.*s>", description, (int)strcspn(tag, " \t\r\n/>"), tag));
}

/* White space right before the packet's end is there to be used up. */
static size_t padding_bytes(const char *packet, size_t end, size_t wanted)
{
    size_t found = 0;
    while (found + 1 < end && found < wanted && packet[end - found - 1] != '\0' &&
           strchr(" \t\r\n", packet[end - found - 1]) != NULL)
        found++;
    return found;
}

static const char *xmp_apply(const struct xmp_scan *scan, size_t *size_out)
{
    size_t grown = scan->size;
    for (size_t i = 0; i < scan->edit_count; i++)
        grown += strlen(scan->edits[i].text);
    char *out = arena_alloc(scan->arena, grown + 1);
    size_t from = 0;
    size_t used = 0;
    for (size_t i = 0; i < scan->edit_count; i++) {
        const struct xmp_edit *edit = &scan->edits[i];
        memcpy(out + used, scan->packet + from, edit->begin - from);
        used += edit->begin - from;
        memcpy(out + used, edit->text, strlen(edit->text));
        used += strlen(edit->text);
        from = edit->end;
    }
    memcpy(out + used, scan->packet + from, scan->size - from);
    used += scan->size - from;
    /* All edits lie in the element before the packet's end. */
    size_t end = scan->trailer == 0 ? used : scan->trailer + used - scan->size;
    size_t padding = end < used && used > scan->size ? padding_bytes(out, end, used - scan->size) : 0;
    memmove(out + end - padding, out + end, used - end);
    *size_out = used - padding;
    return out;
}

const char *xmp_opt_out(struct arena *arena, const char *packet, size_t size, size_t *size_out)
{
    *size_out = sizeof fresh_packet - 1;
    if (packet == NULL)
        return fresh_packet;
    struct xmp_scan scan;
    memset(&scan, 0, sizeof scan);
    scan.arena = arena;
    /* A closing zero, so that text functions stop at the packet's end. */
    scan.packet = arena_text_n(arena, packet, size);
    scan.size = strnlen(scan.packet, size); /* some writers close it with a zero */
    if (!xmp_parse(&scan))
        return fresh_packet;
    if (!scan.is_prohibited)
        xmp_add_description(&scan);
    if (scan.is_refused)
        return fresh_packet;
    *size_out = size;
    return scan.edit_count == 0 ? packet : xmp_apply(&scan, size_out);
}
