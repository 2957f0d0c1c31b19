/*
 * Repairs a broken XMP packet to well-formed XML. Readers such as exiftool read most of a
 * broken packet; an XML parser reads nothing. The output is well-formed by construction: every
 * name, attribute and character is checked.
 */
#include <stdint.h>
#include <string.h>

#include "codec/xmp.h"

#define RDF_NAMESPACE "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
#define XML_NAMESPACE "http://www.w3.org/XML/1998/namespace"

/* Packets beyond these limits are hostile and are not repaired. */
enum { depth_max = 200, attributes_max = 1000, scopes_max = 500 };

struct span {
    const char *at;
    size_t size;
};

struct attribute {
    struct span name;
    struct span value;
    const char *uri; /* of the name's prefix; NULL: none */
};

struct element {
    struct span name;
    const char *uri;
    bool is_added;      /* an added rdf:RDF */
    bool has_text;      /* more than white space */
    bool has_container; /* contained a complete rdf:Alt, rdf:Bag or rdf:Seq */
    size_t scope_count; /* before its declarations */
};

/* A prefix ("" for the default namespace) and its namespace. */
struct scope {
    struct span prefix;
    const char *uri;
};

struct repair {
    struct arena *arena;
    const char *at;
    const char *end;
    char *out;
    size_t out_size;
    size_t out_max;
    bool is_full; /* a limit was exceeded: no repair */
    bool is_lossy;
    bool has_rdf;        /* an rdf:RDF has been opened */
    bool has_no_comment; /* no comment ends after this place */
    bool has_no_cdata;
    unsigned root_count;
    struct element open[depth_max];
    size_t open_count;
    struct scope scopes[scopes_max];
    size_t scope_count;
    struct attribute attributes[attributes_max];
    size_t attribute_count;
};

/* Common prefixes that packets use without a declaration, and their namespaces. */
static const struct {
    const char *prefix;
    const char *uri;
} known[] = {
    {"rdf", RDF_NAMESPACE},
    {"x", "adobe:ns:meta/"},
    {"dc", "http://purl.org/dc/elements/1.1/"},
    {"dcterms", "http://purl.org/dc/terms/"},
    {"xmp", "http://ns.adobe.com/xap/1.0/"},
    {"xap", "http://ns.adobe.com/xap/1.0/"},
    {"xmpRights", "http://ns.adobe.com/xap/1.0/rights/"},
    {"xapRights", "http://ns.adobe.com/xap/1.0/rights/"},
    {"xmpMM", "http://ns.adobe.com/xap/1.0/mm/"},
    {"xmpNote", "http://ns.adobe.com/xmp/note/"},
    {"xmpGImg", "http://ns.adobe.com/xap/1.0/g/img/"},
    {"photoshop", "http://ns.adobe.com/photoshop/1.0/"},
    {"tiff", "http://ns.adobe.com/tiff/1.0/"},
    {"exif", "http://ns.adobe.com/exif/1.0/"},
    {"aux", "http://ns.adobe.com/exif/1.0/aux/"},
    {"crs", "http://ns.adobe.com/camera-raw-settings/1.0/"},
    {"hdrgm", "http://ns.adobe.com/hdr-gain-map/1.0/"},
    {"cc", "http://creativecommons.org/ns#"},
    {"plus", "http://ns.useplus.org/ldf/xmp/1.0/"},
    {"Iptc4xmpCore", "http://iptc.org/std/Iptc4xmpCore/1.0/xmlns/"},
    {"Iptc4xmpExt", "http://iptc.org/std/Iptc4xmpExt/2008-02-29/"},
    {"GCamera", "http://ns.google.com/photos/1.0/camera/"},
    {"Container", "http://ns.google.com/photos/1.0/container/"},
    {"Item", "http://ns.google.com/photos/1.0/container/item/"},
};

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool span_is(struct span span, const char *text)
{
    return span.size == strlen(text) && memcmp(span.at, text, span.size) == 0;
}

static bool span_same(struct span a, struct span b)
{
    return a.size == b.size && memcmp(a.at, b.at, a.size) == 0;
}

static struct span span_prefix(struct span name)
{
    const char *colon = memchr(name.at, ':', name.size);
    return (struct span){name.at, colon == NULL ? 0 : (size_t)(colon - name.at)};
}

static struct span span_local(struct span name)
{
    size_t skipped = span_prefix(name).size;
    skipped += skipped != 0;
    return (struct span){name.at + skipped, name.size - skipped};
}

/* ---- characters ---- */

static void put(struct repair *repair, const void *text, size_t size)
{
    if (size > repair->out_max - repair->out_size) {
        repair->is_full = true;
        return;
    }
    memcpy(repair->out + repair->out_size, text, size);
    repair->out_size += size;
}

static void put_text(struct repair *repair, const char *text)
{
    put(repair, text, strlen(text));
}

static size_t utf8_put(char *out, uint32_t code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t rest = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned char heads[] = {0, 0xC0, 0xE0, 0xF0};
    out[0] = (char)(heads[rest] | code >> (6 * rest));
    for (size_t i = 1; i <= rest; i++)
        out[i] = (char)(0x80 | (code >> (6 * (rest - i)) & 0x3F));
    return rest + 1;
}

/* The production Char of XML 1.0. */
static bool is_character(uint32_t code)
{
    return code == '\t' || code == '\n' || code == '\r' || (code >= 0x20 && code <= 0xD7FF) ||
           (code >= 0xE000 && code <= 0xFFFD) || (code >= 0x10000 && code <= 0x10FFFF);
}

/* Decode a UTF-8 character. Returns its length, or 0: invalid. */
static size_t utf8_take(const unsigned char *at, const unsigned char *end, uint32_t *code)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    size_t rest = at[0] < 0x80 ? 0 : at[0] >= 0xF0 && at[0] < 0xF8 ? 3 : at[0] >= 0xE0 ? 2 : 1;
    if (at[0] < 0x80) {
        *code = at[0];
        return 1;
    }
    if (at[0] < 0xC2 || at[0] >= 0xF8 || (size_t)(end - at) <= rest)
        return 0;
    *code = at[0] & (0x3FU >> rest);
    for (size_t i = 1; i <= rest; i++) {
        if ((at[i] & 0xC0) != 0x80)
            return 0;
        *code = *code << 6 | (at[i] & 0x3F);
    }
    return *code < least[rest] || (*code >= 0xD800 && *code < 0xE000) || *code > 0x10FFFF ? 0 : rest + 1;
}

/* Windows-1252, 0x80 to 0x9F (Encoding Standard); undefined bytes are U+FFFD. */
static uint32_t latin(unsigned char byte)
{
    static const uint16_t codes[32] = {0x20AC, 0xFFFD, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021,
                                       0x02C6, 0x2030, 0x0160, 0x2039, 0x0152, 0xFFFD, 0x017D, 0xFFFD,
                                       0xFFFD, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014,
                                       0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0xFFFD, 0x017E, 0x0178};
    return byte >= 0x80 && byte < 0xA0 ? codes[byte - 0x80] : byte;
}

/* Detect the size of a unit and its byte order from the first '<' or the byte order mark. */
static size_t unit_find(const unsigned char *data, size_t size, bool *is_big)
{
    static const struct {
        const char *mark;
        size_t mark_bytes;
        size_t unit;
        bool is_big;
    } marks[] = {{"\xFF\xFE\0\0", 4, 4, false},
                 {"\0\0\xFE\xFF", 4, 4, true},
                 {"\xFF\xFE", 2, 2, false},
                 {"\xFE\xFF", 2, 2, true}};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (size >= marks[i].mark_bytes && memcmp(data, marks[i].mark, marks[i].mark_bytes) == 0) {
            *is_big = marks[i].is_big;
            return marks[i].unit;
        }
    const unsigned char *less = memchr(data, '<', size);
    size_t at = less == NULL ? size : (size_t)(less - data);
    size_t zeros = 0;
    while (at + 1 + zeros < size && zeros < 4 && less[1 + zeros] == 0)
        zeros++;
    size_t unit = zeros + 1;
    if (unit != 2 && unit != 4)
        return 1;
    *is_big = at % unit == unit - 1;
    return unit;
}

static uint32_t unit_take(const unsigned char *at, size_t unit, bool is_big)
{
    uint32_t code = 0;
    for (size_t i = 0; i < unit; i++)
        code = code << 8 | at[is_big ? i : unit - 1 - i];
    return code;
}

/* Convert to UTF-8 with XML's characters only, without byte order marks in front. */
static struct span utf8_all(struct arena *arena, const unsigned char *data, size_t size)
{
    bool is_big = false;
    size_t unit = unit_find(data, size, &is_big);
    /* A byte of windows-1252 becomes at most three bytes, and so does a unit of UTF-16 or UTF-32. */
    char *out = arena_alloc(arena, 3 * (size / (unit == 4 ? 2 : unit)) + 4);
    size_t used = 0;
    const unsigned char *end = data + size;
    while ((size_t)(end - data) >= unit) {
        uint32_t code = 0;
        size_t taken = unit;
        if (unit > 1) {
            code = unit_take(data, unit, is_big);
            uint32_t low =
                unit == 2 && (size_t)(end - data) >= 2 * unit ? unit_take(data + 2, unit, is_big) : 0;
            if (code >= 0xD800 && code < 0xDC00 && low >= 0xDC00 && low < 0xE000) {
                code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
                taken = 2 * unit;
            }
        } else {
            taken = utf8_take(data, end, &code);
            if (taken == 0) {
                code = latin(*data);
                taken = 1;
            }
        }
        data += taken;
        if (is_character(code) && !(code == 0xFEFF && used == 0))
            used += utf8_put(out + used, code);
    }
    return (struct span){out, used};
}

/* Length of the reference at '&'; 0: not a predefined one. */
static size_t reference_bytes(const char *at, const char *end)
{
    static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if ((size_t)(end - at) >= strlen(names[i]) && memcmp(at, names[i], strlen(names[i])) == 0)
            return strlen(names[i]);
    if (end - at < 4 || at[1] != '#')
        return 0;
    unsigned base = at[2] == 'x' ? 16 : 10;
    const char *digit = at + (base == 16 ? 3 : 2);
    const char *first = digit;
    uint32_t code = 0;
    for (; digit < end && *digit != ';' && code <= 0x10FFFF; digit++) {
        char lower = (char)(*digit | 0x20);
        if (*digit >= '0' && *digit <= '9')
            code = code * base + (uint32_t)(*digit - '0');
        else if (base == 16 && lower >= 'a' && lower <= 'f')
            code = code * base + 10 + (uint32_t)(lower - 'a');
        else
            return 0;
    }
    return digit < end && *digit == ';' && digit > first && is_character(code) ? (size_t)(digit + 1 - at) : 0;
}

/* Write text or an attribute's value: escape markup, keep references. */
static void put_escaped(struct repair *repair, struct span text)
{
    const char *end = text.at + text.size;
    for (const char *at = text.at; at < end; at++)
        switch (*at) {
        case '&':
            put_text(repair, reference_bytes(at, end) == 0 ? "&amp;" : "&");
            break;
        case '<':
            put_text(repair, "&lt;");
            break;
        case '>':
            put_text(repair, "&gt;");
            break;
        case '"':
            put_text(repair, "&quot;");
            break;
        default:
            put(repair, at, 1);
        }
}

/* ---- namespaces ---- */

/* A namespace without white space, for comparing and writing. */
static const char *uri_text(struct arena *arena, struct span value)
{
    char *text = arena_text_n(arena, value.at, value.size);
    for (char *at = text; *at != '\0'; at++)
        if (is_space(*at))
            *at = '_';
    return text;
}

static bool scope_add(struct repair *repair, struct span prefix, const char *uri)
{
    if (repair->scope_count == scopes_max) {
        repair->is_full = true;
        return false;
    }
    repair->scopes[repair->scope_count++] = (struct scope){prefix, uri};
    return true;
}

static const char *scope_find(const struct repair *repair, struct span prefix)
{
    for (size_t i = repair->scope_count; i > 0; i--)
        if (span_same(repair->scopes[i - 1].prefix, prefix))
            return repair->scopes[i - 1].uri;
    return NULL;
}

/* Resolve a prefix. If it is not declared, declare it in the current tag. */
static const char *prefix_resolve(struct repair *repair, struct span prefix)
{
    if (span_is(prefix, "xml"))
        return XML_NAMESPACE;
    const char *uri = scope_find(repair, prefix);
    if (uri != NULL || prefix.size == 0)
        return uri;
    for (size_t i = 0; i < sizeof known / sizeof known[0] && uri == NULL; i++)
        if (span_is(prefix, known[i].prefix))
            uri = known[i].uri;
    if (uri == NULL)
        uri = arena_printf(repair->arena, "unknown:%.*s", (int)prefix.size, prefix.at);
    if (scope_add(repair, prefix, uri)) {
        put_text(repair, " xmlns:");
        put(repair, prefix.at, prefix.size);
        put_text(repair, "=\"");
        put_text(repair, uri);
        put_text(repair, "\"");
    }
    return uri;
}

static bool is_rdf(const struct element *element, const char *local)
{
    return element->uri != NULL && strcmp(element->uri, RDF_NAMESPACE) == 0 &&
           span_is(span_local(element->name), local);
}

static bool is_container(const struct element *element)
{
    return is_rdf(element, "Alt") || is_rdf(element, "Bag") || is_rdf(element, "Seq");
}

/* ---- tags ---- */

static void element_close(struct repair *repair)
{
    struct element *element = &repair->open[--repair->open_count];
    put_text(repair, "</");
    put(repair, element->name.at, element->name.size);
    put_text(repair, ">");
    repair->scope_count = element->scope_count;
    if (repair->open_count > 0 && is_container(element))
        repair->open[repair->open_count - 1].has_container = true;
}

/* Read a qualified name of ASCII letters at `at`; size 0: none. */
static struct span name_take(const char *at, const char *end)
{
    const char *from = at;
    bool has_colon = false;
    if (at == end || !is_name_start(*at))
        return (struct span){from, 0};
    for (at++; at < end; at++) {
        bool is_colon = *at == ':' && !has_colon && at + 1 < end && is_name_start(at[1]);
        bool is_digit = *at >= '0' && *at <= '9';
        if (!is_colon && !is_digit && !is_name_start(*at) && *at != '-' && *at != '.')
            break;
        has_colon |= is_colon;
    }
    return (struct span){from, (size_t)(at - from)};
}

/* Read the value after the sign. An unclosed quote ends with its tag, an unquoted value at a space. */
static struct span value_take(const char *sign, const char *end, const char **after)
{
    bool is_quoted = sign < end && (*sign == '"' || *sign == '\'');
    const char *value = sign + is_quoted;
    const char *close = is_quoted ? memchr(value, *sign, (size_t)(end - value)) : NULL;
    *after = close == NULL ? value : close + 1;
    if (close != NULL)
        return (struct span){value, (size_t)(close - value)};
    while (*after < end && (is_quoted || !is_space(**after)) && **after != '>' && **after != '<')
        (*after)++;
    return (struct span){value, (size_t)(*after - value)};
}

/* Read the attributes to the tag's end. False: the tag does not end. */
static bool attributes_take(struct repair *repair, const char **at, bool *is_empty)
{
    const char *end = repair->end;
    repair->attribute_count = 0;
    *is_empty = false;
    while (*at < end && **at != '>' && **at != '<') {
        struct span name = name_take(*at, end);
        if (name.size == 0) {
            if (!is_space(**at)) {
                *is_empty = **at == '/';
                repair->is_lossy |= **at != '/';
            }
            (*at)++;
            continue;
        }
        *is_empty = false;
        *at += name.size;
        const char *sign = *at;
        while (sign < end && is_space(*sign))
            sign++;
        if (sign == end || *sign != '=') {
            repair->is_lossy = true;
            continue;
        }
        for (sign++; sign < end && is_space(*sign);)
            sign++;
        if (repair->attribute_count == attributes_max) {
            repair->is_full = true;
            return false;
        }
        struct span value = value_take(sign, end, at);
        repair->attributes[repair->attribute_count++] = (struct attribute){name, value, NULL};
    }
    return *at < end && **at == '>';
}

/* Write xmlns and xmlns:prefix. Invalid ones are dropped; their prefixes are then undeclared. */
static void declarations_write(struct repair *repair)
{
    size_t scope_first = repair->scope_count;
    for (size_t i = 0; i < repair->attribute_count; i++) {
        const struct attribute *attribute = &repair->attributes[i];
        bool is_default = span_is(attribute->name, "xmlns");
        if (!is_default && !span_is(span_prefix(attribute->name), "xmlns"))
            continue;
        struct span prefix = is_default ? (struct span){"", 0} : span_local(attribute->name);
        const char *uri = uri_text(repair->arena, attribute->value);
        bool is_known = false;
        for (size_t k = scope_first; k < repair->scope_count; k++)
            is_known |= span_same(repair->scopes[k].prefix, prefix);
        if (is_known || uri[0] == '\0' || strncmp(uri, "http://www.w3.org/XML/", 22) == 0 ||
            strncmp(uri, "http://www.w3.org/2000/xmlns", 28) == 0 || span_is(prefix, "xml") ||
            span_is(prefix, "xmlns") || strpbrk(uri, "&<>\"") != NULL || !scope_add(repair, prefix, uri))
            continue;
        put_text(repair, " ");
        put(repair, attribute->name.at, attribute->name.size);
        put_text(repair, "=\"");
        put_text(repair, uri);
        put_text(repair, "\"");
    }
}

static bool attribute_same(const struct attribute *a, const struct attribute *b)
{
    return a->uri == NULL || b->uri == NULL
               ? span_same(a->name, b->name)
               : strcmp(a->uri, b->uri) == 0 && span_same(span_local(a->name), span_local(b->name));
}

static void attributes_write(struct repair *repair)
{
    size_t kept = 0;
    for (size_t i = 0; i < repair->attribute_count; i++) {
        struct attribute attribute = repair->attributes[i];
        struct span prefix = span_prefix(attribute.name);
        if (span_is(attribute.name, "xmlns") || span_is(prefix, "xmlns"))
            continue;
        attribute.uri = prefix.size == 0 ? NULL : prefix_resolve(repair, prefix);
        bool is_twin = false;
        for (size_t k = 0; k < kept; k++)
            is_twin |= attribute_same(&repair->attributes[k], &attribute);
        repair->is_lossy |= is_twin;
        if (is_twin)
            continue;
        repair->attributes[kept++] = attribute;
        put_text(repair, " ");
        put(repair, attribute.name.at, attribute.name.size);
        put_text(repair, "=\"");
        put_escaped(repair, attribute.value);
        put_text(repair, "\"");
    }
}

static struct element *element_open(struct repair *repair, struct span name)
{
    if (repair->open_count == depth_max) {
        repair->is_full = true;
        return NULL;
    }
    repair->root_count += repair->open_count == 0;
    struct element *element = &repair->open[repair->open_count++];
    *element = (struct element){.name = name, .scope_count = repair->scope_count};
    put_text(repair, "<");
    put(repair, name.at, name.size);
    return element;
}

/*
 * Close elements that RDF's grammar shows to be unclosed (RDF/XML, section 7.2). A container
 * holds only rdf:li, a description holds no description, and a property holds either text or
 * one node.
 */
static void missing_ends_write(struct repair *repair, struct span name)
{
    while (repair->open_count > 1) {
        const struct element *inner = &repair->open[repair->open_count - 1];
        const struct element *outer = inner - 1;
        bool is_property = is_rdf(outer, "Description") || is_container(outer);
        bool is_ended = is_property && (inner->has_container || inner->has_text);
        if (is_container(inner))
            is_ended = !span_is(span_local(name), "li");
        if (is_rdf(inner, "Description"))
            is_ended = span_same(inner->name, name);
        if (!is_ended)
            return;
        element_close(repair);
    }
}

/* A description needs an rdf:RDF around it. */
static void missing_rdf_write(struct repair *repair, struct span name)
{
    static const char rdf[] = "rdf:RDF";
    const char *uri = scope_find(repair, span_prefix(name));
    bool is_in_rdf = uri != NULL && strcmp(uri, RDF_NAMESPACE) == 0;
    is_in_rdf |= uri == NULL && span_is(span_prefix(name), "rdf");
    for (size_t i = 0; i < repair->open_count; i++)
        if (is_rdf(&repair->open[i], "RDF"))
            return;
    if (!is_in_rdf || !span_is(span_local(name), "Description"))
        return;
    struct element *element = element_open(repair, (struct span){rdf, sizeof rdf - 1});
    if (element == NULL)
        return;
    put_text(repair, " xmlns:rdf=\"" RDF_NAMESPACE "\">");
    scope_add(repair, (struct span){"rdf", 3}, RDF_NAMESPACE);
    element->uri = RDF_NAMESPACE;
    element->is_added = true;
    repair->has_rdf = true;
}

/* Read a start tag at '<'. False: the '<' is text. */
static bool start_tag(struct repair *repair)
{
    struct span name = name_take(repair->at + 1, repair->end);
    const char *at = name.at + name.size;
    bool is_empty = false;
    if (name.size == 0 || span_is(span_prefix(name), "xmlns") ||
        (at < repair->end && !is_space(*at) && *at != '/' && *at != '>'))
        return false;
    if (!attributes_take(repair, &at, &is_empty)) {
        /* The packet ends in the tag, or another tag begins: drop its attributes. */
        repair->is_lossy = true;
        repair->at = at < repair->end && *at == '<' ? at : repair->end;
        return true;
    }
    repair->at = at + 1;
    missing_ends_write(repair, name);
    missing_rdf_write(repair, name);
    struct element *element = element_open(repair, name);
    if (element == NULL)
        return true;
    declarations_write(repair);
    element->uri = prefix_resolve(repair, span_prefix(name));
    attributes_write(repair);
    put_text(repair, ">");
    repair->has_rdf |= is_rdf(element, "RDF");
    if (is_empty)
        element_close(repair);
    return true;
}

/* An end tag at "</" closes the elements left open inside; one without a start tag is dropped. */
static bool end_tag(struct repair *repair)
{
    struct span name = name_take(repair->at + 2, repair->end);
    const char *at = name.at + name.size;
    while (at < repair->end && is_space(*at))
        at++;
    if (name.size == 0 || (at < repair->end && *at != '>' && *at != '<'))
        return false;
    repair->at = at < repair->end && *at == '>' ? at + 1 : at;
    size_t wanted = repair->open_count;
    while (wanted > 0 &&
           (repair->open[wanted - 1].is_added || !span_same(repair->open[wanted - 1].name, name)))
        wanted--;
    while (wanted > 0 && repair->open_count >= wanted)
        element_close(repair);
    return true;
}

/* ---- everything except elements ---- */

static const char *text_find(const char *at, const char *end, const char *text)
{
    return memmem(at, (size_t)(end - at), text, strlen(text));
}

static void characters(struct repair *repair, struct span text)
{
    bool has_text = false;
    for (size_t i = 0; i < text.size; i++)
        has_text |= !is_space(text.at[i]);
    if (repair->open_count > 0) {
        put_escaped(repair, text);
        repair->open[repair->open_count - 1].has_text |= has_text;
    } else {
        repair->is_lossy |= has_text;
        put_text(repair, "\n");
    }
}

/* <? ... ?>: keep only the packet's wrapper. */
static bool instruction(struct repair *repair)
{
    static const char begin[] = "<?xpacket";
    const char *next = memchr(repair->at + 1, '<', (size_t)(repair->end - repair->at - 1));
    next = next == NULL ? repair->end : next;
    const char *close = text_find(repair->at, next, "?>");
    size_t size = close == NULL ? 0 : (size_t)(close + 2 - repair->at);
    bool is_wrapper = size > sizeof begin && memcmp(repair->at, begin, sizeof begin - 1) == 0 &&
                      is_space(repair->at[sizeof begin - 1]);
    if (is_wrapper)
        put(repair, repair->at, size);
    repair->at = close == NULL ? next : close + 2;
    return true;
}

/* Find the end of a comment or CDATA. A failed search is not repeated. */
static const char *close_find(struct repair *repair, const char *at, const char *text, bool *is_missing)
{
    const char *close = *is_missing ? NULL : text_find(at, repair->end, text);
    *is_missing = close == NULL;
    return close;
}

/* CDATA contains no references. */
static bool cdata(struct repair *repair, const char *text)
{
    const char *close = close_find(repair, text, "]]>", &repair->has_no_cdata);
    if (close == NULL)
        return false;
    for (; text < close; text++)
        if (*text == '&' && repair->open_count > 0)
            put_text(repair, "&amp;");
        else
            characters(repair, (struct span){text, 1});
    repair->at = close + 3;
    return true;
}

static bool document_type(struct repair *repair)
{
    const char *at = repair->at;
    const char *close = memchr(at, '>', (size_t)(repair->end - at));
    const char *subset = close == NULL ? NULL : memchr(at, '[', (size_t)(close - at));
    const char *subset_end = subset == NULL ? NULL : text_find(subset, repair->end, "]>");
    if (subset != NULL)
        close = subset_end == NULL ? NULL : subset_end + 1;
    repair->is_lossy = true;
    repair->at = close == NULL ? repair->end : close + 1;
    return true;
}

static bool begins_with(const struct repair *repair, const char *text)
{
    return (size_t)(repair->end - repair->at) >= strlen(text) && memcmp(repair->at, text, strlen(text)) == 0;
}

static bool declaration(struct repair *repair)
{
    static const char begin[] = "<![CDATA[";
    if (begins_with(repair, begin))
        return cdata(repair, repair->at + sizeof begin - 1);
    if (begins_with(repair, "<!DOCTYPE"))
        return document_type(repair);
    if (!begins_with(repair, "<!--"))
        return false;
    const char *close = close_find(repair, repair->at + 4, "-->", &repair->has_no_comment);
    repair->at = close == NULL ? repair->at : close + 3;
    return close != NULL;
}

static bool markup(struct repair *repair)
{
    if (repair->end - repair->at < 2)
        return false;
    switch (repair->at[1]) {
    case '?':
        return instruction(repair);
    case '!':
        return declaration(repair);
    case '/':
        return end_tag(repair);
    default:
        return start_tag(repair);
    }
}

/* Read text up to the next '<'. is_markup_text: the one here is text, too. */
static void text_run(struct repair *repair, bool is_markup_text)
{
    const char *from = repair->at;
    const char *next = memchr(from + is_markup_text, '<', (size_t)(repair->end - from - is_markup_text));
    repair->at = next == NULL ? repair->end : next;
    characters(repair, (struct span){from, (size_t)(repair->at - from)});
}

const char *xmp_repair(struct arena *arena, const char *packet, size_t size, size_t *size_out, bool *is_lossy)
{
    static const char wrapper[] = "<x:xmpmeta xmlns:x=\"adobe:ns:meta/\">";
    static const char wrapper_end[] = "</x:xmpmeta>";
    enum { spare_bytes = 64 * 1024, repaired_bytes_max = 4 * 1024 * 1024 };
    if (size > repaired_bytes_max)
        return NULL;
    struct repair *repair = arena_alloc(arena, sizeof *repair);
    struct span text = utf8_all(arena, (const unsigned char *)packet, size);
    repair->arena = arena;
    repair->at = text.at;
    repair->end = text.at + text.size;
    repair->out_max = 2 * text.size + spare_bytes;
    repair->out = arena_alloc(arena, repair->out_max + sizeof wrapper_end);
    put_text(repair, wrapper);
    while (repair->at < repair->end && !repair->is_full) {
        bool is_markup = *repair->at == '<';
        if (!is_markup || !markup(repair))
            text_run(repair, is_markup);
    }
    while (repair->open_count > 0)
        element_close(repair);
    if (repair->is_full || !repair->has_rdf)
        return NULL;
    *is_lossy = repair->is_lossy;
    /* Two roots need a common parent. */
    bool is_wrapped = repair->root_count > 1;
    if (is_wrapped)
        put_text(repair, wrapper_end);
    repair->out[repair->out_size] = '\0';
    const char *out = repair->out + (is_wrapped ? 0 : sizeof wrapper - 1);
    *size_out = (size_t)(repair->out + repair->out_size - out);
    return repair->is_full ? NULL : out;
}
