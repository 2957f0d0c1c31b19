/* The opt-out in all forms of XMP packets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <expat.h>
#include <malloc.h>

#include "codec/codec.h"
#include "codec/metadata/keep.h"
#include "codec/metadata/xmp.h"
#include "runner.h"

#define RDF          "xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\""
#define PLUS         "http://ns.useplus.org/ldf/xmp/1.0/"
#define VALUE        "http://ns.useplus.org/ldf/vocab/DMI-PROHIBITED-AIMLTRAINING"
#define OTHER        "http://ns.useplus.org/ldf/vocab/DMI-ALLOWED"
#define OUR_ELEMENT  "<plus:DataMining xmlns:plus=\"" PLUS "\">" VALUE "</plus:DataMining>"
#define SAME_ELEMENT "<p:DataMining xmlns:p=\"" PLUS "\">" VALUE "</p:DataMining>"
#define OUR_DESCRIPTION(about)                                                                               \
    "<rdf:Description " RDF " rdf:about=\"" about "\">" OUR_ELEMENT "</rdf:Description>"

static struct arena *arena;

/* Packets and their expected results; NULL if the result is a new packet. */
static const struct {
    const char *name;
    const char *packet;
    const char *expected;
} packets[] = {
    {"added behind the others",
     "<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"><rdf:RDF " RDF
     "><rdf:Description rdf:about=\"\" a:b=\"c\" xmlns:a=\"u:a\"/>\n"
     "</rdf:RDF></x:xmpmeta>",
     "<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"><rdf:RDF " RDF
     "><rdf:Description rdf:about=\"\" a:b=\"c\" xmlns:a=\"u:a\"/>\n" OUR_DESCRIPTION(
         "") "</rdf:RDF></x:xmpmeta>"},
    {"about the same thing",
     "<rdf:RDF " RDF "><rdf:Description rdf:about=\"uuid:1&amp;2\"></rdf:Description></rdf:RDF>",
     "<rdf:RDF " RDF "><rdf:Description rdf:about=\"uuid:1&amp;2\"></rdf:Description>" OUR_DESCRIPTION(
         "uuid:1&amp;2") "</rdf:RDF>"},
    {"an other prefix for RDF", "<r:RDF xmlns:r=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"></r:RDF>",
     "<r:RDF xmlns:r=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">" OUR_DESCRIPTION("") "</r:RDF>"},
    {"an empty RDF element", "<rdf:RDF " RDF " />", "<rdf:RDF " RDF " >" OUR_DESCRIPTION("") "</rdf:RDF>"},
    {"an attribute that says otherwise",
     "<rdf:RDF " RDF "><rdf:Description xmlns:p=\"" PLUS "\" rdf:about='' p:DataMining = '" OTHER
     "' p:x=\"1\"/></rdf:RDF>",
     "<rdf:RDF " RDF "><rdf:Description xmlns:p=\"" PLUS "\" rdf:about='' p:DataMining = '" VALUE
     "' p:x=\"1\"/></rdf:RDF>"},
    {"an element that says otherwise",
     "<rdf:RDF " RDF "><rdf:Description xmlns:p=\"" PLUS "\"><p:DataMining>" OTHER
     "</p:DataMining><p:y>2</p:y>"
     "</rdf:Description></rdf:RDF>",
     "<rdf:RDF " RDF "><rdf:Description xmlns:p=\"" PLUS "\">" SAME_ELEMENT
     "<p:y>2</p:y></rdf:Description></rdf:RDF>"},
    {"an element with a resource",
     "<rdf:RDF " RDF "><rdf:Description xmlns:p=\"" PLUS "\"><p:DataMining rdf:resource=\"" OTHER "\"/>"
     "</rdf:Description></rdf:RDF>",
     "<rdf:RDF " RDF "><rdf:Description xmlns:p=\"" PLUS "\">" SAME_ELEMENT "</rdf:Description></rdf:RDF>"},
    {"the same name of an other vocabulary",
     "<rdf:RDF " RDF "><rdf:Description xmlns:p=\"u:p\" p:DataMining=\"1\"></rdf:Description></rdf:RDF>",
     "<rdf:RDF " RDF
     "><rdf:Description xmlns:p=\"u:p\" p:DataMining=\"1\"></rdf:Description>" OUR_DESCRIPTION(
         "") "</rdf:RDF>"},
    {"said already",
     "<rdf:RDF " RDF "><rdf:Description xmlns:p=\"" PLUS "\" p:DataMining=\"" VALUE "\"/></rdf:RDF>",
     "<rdf:RDF " RDF "><rdf:Description xmlns:p=\"" PLUS "\" p:DataMining=\"" VALUE "\"/></rdf:RDF>"},
    {"not well-formed", "<rdf:RDF " RDF "><rdf:Description></rdf:RDF>", NULL},
    {"no RDF", "<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"/>", NULL},
    {"a document type", "<!DOCTYPE x [<!ENTITY e \"f\">]><rdf:RDF " RDF ">&e;</rdf:RDF>", NULL},
    {"its end inside another instruction",
     "<rdf:RDF " RDF "></rdf:RDF>\n<?note  \n<?xpacket end=\"w\"?>\n<?xpacket end=\"w\"?>",
     "<rdf:RDF " RDF
     ">" OUR_DESCRIPTION("") "</rdf:RDF>\n<?note  \n<?xpacket end=\"w\"?><?xpacket end=\"w\"?>"},
    {"its end before its beginning", "<?xpacket end=\"w\"?>  <rdf:RDF " RDF "></rdf:RDF>",
     "<?xpacket end=\"w\"?>  <rdf:RDF " RDF ">" OUR_DESCRIPTION("") "</rdf:RDF>"},
    {"nothing", "", NULL},
    {"an unknown prefix", "<rdf:RDF " RDF "><p:x/></rdf:RDF>", NULL},
    {"a bare ampersand", "<rdf:RDF " RDF ">R&D</rdf:RDF>", NULL},
    {"Latin-1",
     "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><rdf:RDF " RDF ">M\xFCller \x93x\x94</rdf:RDF>",
     "<rdf:RDF " RDF ">M\xC3\xBCller \xE2\x80\x9Cx\xE2\x80\x9D" OUR_DESCRIPTION("") "</rdf:RDF>"},
};

static bool is_well_formed(const char *packet, size_t size)
{
    XML_Parser parser = XML_ParserCreateNS(NULL, '|');
    enum XML_Status status = XML_Parse(parser, packet, (int)size, 1);
    XML_ParserFree(parser);
    return status == XML_STATUS_OK;
}

/* Edits a packet as the codecs do. */
static const char *packet_opt_out(const char *packet, size_t size, size_t *size_out)
{
    const struct xmp_request look = {.mining = NULL};
    struct xmp_request request = {.is_added = true};
    struct xmp_result result;
    xmp_edit(arena, packet, size, &look, &result);
    request.mining = xmp_mining_stronger(xmp_mining_least, result.is_readable ? result.mining : NULL);
    xmp_edit(arena, packet, size, &request, &result);
    if (!result.is_readable)
        return xmp_fresh(arena, request.mining, size_out);
    *size_out = result.size;
    return result.packet;
}

/* Edits an exact copy, so that a sanitizer sees reads past the end. */
static const char *opt_out(const char *text, size_t size, size_t *size_out)
{
    char *exact = malloc(size + 1);
    memcpy(exact, text, size);
    exact = realloc(exact, size == 0 ? 1 : size);
    const char *result = packet_opt_out(exact, size, size_out);
    const char *kept = arena_text_n(arena, result, *size_out);
    free(exact);
    return kept;
}

static void test_packets(void)
{
    size_t fresh_size = 0;
    const char *fresh = xmp_fresh(arena, xmp_mining_least, &fresh_size);
    CU_ASSERT(is_well_formed(fresh, fresh_size));
    for (size_t i = 0; i < sizeof packets / sizeof packets[0]; i++) {
        const char *expected = packets[i].expected == NULL ? fresh : packets[i].expected;
        size_t size = 0;
        const char *result = opt_out(packets[i].packet, strlen(packets[i].packet), &size);
        bool is_same = size == strlen(expected) && memcmp(result, expected, size) == 0;
        CU_ASSERT(is_same);
        CU_ASSERT(is_well_formed(result, size));
        if (!is_same)
            printf("%s:\n%.*s\n", packets[i].name, (int)size, result);
    }
}

static void test_twice_changes_nothing(void)
{
    for (size_t i = 0; i < sizeof packets / sizeof packets[0]; i++) {
        size_t once_size = 0;
        size_t twice_size = 0;
        const char *once = opt_out(packets[i].packet, strlen(packets[i].packet), &once_size);
        const char *twice = opt_out(once, once_size, &twice_size);
        CU_ASSERT_EQUAL(once_size, twice_size);
        CU_ASSERT(memcmp(once, twice, once_size) == 0);
    }
}

static void test_padding_is_used_up(void)
{
    static const char head[] =
        "<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"><rdf:RDF " RDF "></rdf:RDF></x:xmpmeta>";
    static const char tail[] = "<?xpacket end=\"w\"?>";
    char packet[4096];
    int size = snprintf(packet, sizeof packet, "%s%2000s%s", head, "\n", tail);
    size_t size_out = 0;
    const char *result = opt_out(packet, (size_t)size, &size_out);
    CU_ASSERT_EQUAL(size_out, (size_t)size);
    CU_ASSERT(is_well_formed(result, size_out));
    CU_ASSERT_PTR_NOT_NULL(strstr(result, VALUE));
    CU_ASSERT_PTR_NOT_NULL(strstr(result, tail));
}

static void test_zeros_at_the_end(void)
{
    static const char packet[] = "<rdf:RDF " RDF "><rdf:Description rdf:about=\"kept\"/></rdf:RDF>\0\0";
    size_t size = 0;
    const char *result = opt_out(packet, sizeof packet, &size);
    CU_ASSERT_PTR_NOT_NULL(strstr(result, "<rdf:Description rdf:about=\"kept\"/>"));
    CU_ASSERT_PTR_NOT_NULL(strstr(result, VALUE));
}

#define DESCRIPTION(attributes, inner)                                                                       \
    "<rdf:RDF " RDF "><rdf:Description " attributes ">" inner "</rdf:Description></rdf:RDF>"
#define GCAMERA   "xmlns:G=\"http://ns.google.com/photos/1.0/camera/\""
#define CONTAINER "xmlns:C=\"http://ns.google.com/photos/1.0/container/\""
#define HDRGM     "xmlns:h=\"http://ns.adobe.com/hdr-gain-map/1.0/\""
#define DCTERMS   "xmlns:t=\"http://purl.org/dc/terms/\""
#define GIMG      "xmlns:i=\"http://ns.adobe.com/xap/1.0/g/img/\""
#define NOTE      "xmlns:n=\"http://ns.adobe.com/xmp/note/\""

/* These entries are removed with their data; the rest of the packet stays. */
static const struct {
    const char *packet;
    const char *expected;
    unsigned left_out;
} removals[] = {
    {DESCRIPTION(GCAMERA " G:MotionPhoto=\"1\" G:BurstID='2'", ""), DESCRIPTION(GCAMERA " G:BurstID='2'", ""),
     KEEP_LEFT_FILM},
    {DESCRIPTION(GCAMERA, "<G:MicroVideoOffset>1</G:MicroVideoOffset><G:BurstID>2</G:BurstID>"),
     DESCRIPTION(GCAMERA, "<G:BurstID>2</G:BurstID>"), KEEP_LEFT_FILM},
    {DESCRIPTION(HDRGM " h:Version = \"1.0\"",
                 "<h:GainMapMax><rdf:Seq><rdf:li>1</rdf:li></rdf:Seq></h:GainMapMax>"),
     DESCRIPTION(HDRGM, ""), KEEP_LEFT_GAIN_MAP},
    {DESCRIPTION(CONTAINER,
                 "<C:Directory><rdf:Seq><rdf:li C:Semantic=\"MotionPhoto\"/></rdf:Seq></C:Directory>"),
     DESCRIPTION(CONTAINER, ""), KEEP_LEFT_FURTHER | KEEP_LEFT_FILM},
    {DESCRIPTION("xmlns:x=\"http://ns.adobe.com/xap/1.0/t/pg/\" " GIMG,
                 "<x:Pages><rdf:Seq><rdf:li "
                 "i:image=\"/9j/\"/></rdf:Seq></x:Pages><x:N>1</x:N>"),
     DESCRIPTION("xmlns:x=\"http://ns.adobe.com/xap/1.0/t/pg/\" " GIMG, "<x:N>1</x:N>"), KEEP_LEFT_PREVIEW},
    {DESCRIPTION(DCTERMS " t:provenance=\"self#jumbf=c2pa\"", ""), DESCRIPTION(DCTERMS, ""), 0},
    {DESCRIPTION(DCTERMS, "<t:provenance rdf:resource=\"https://a.example/m\"/>"), DESCRIPTION(DCTERMS, ""),
     0},
    {DESCRIPTION(DCTERMS " t:provenance=\"bought in 1911\"", ""),
     DESCRIPTION(DCTERMS " t:provenance=\"bought in 1911\"", ""), 0},
    {DESCRIPTION(NOTE " n:HasExtendedXMP=\"0123456789abcdef0123456789abcdef\"", ""),
     DESCRIPTION(NOTE " n:HasExtendedXMP=\"FEDCBA98765432100123456789ABCDEF\"", ""), 0},
};

static void test_removals(void)
{
    static const struct xmp_request request = {.extension_old = "0123456789ABCDEF0123456789ABCDEF",
                                               .extension_new = "FEDCBA98765432100123456789ABCDEF"};
    for (size_t i = 0; i < sizeof removals / sizeof removals[0]; i++) {
        struct xmp_result result;
        xmp_edit(arena, removals[i].packet, strlen(removals[i].packet), &request, &result);
        CU_ASSERT(result.is_readable);
        CU_ASSERT_EQUAL(result.left_out, removals[i].left_out);
        CU_ASSERT_EQUAL(result.is_changed, strcmp(removals[i].packet, removals[i].expected) != 0);
        bool is_same = result.size == strlen(removals[i].expected) &&
                       memcmp(result.packet, removals[i].expected, result.size) == 0;
        CU_ASSERT(is_same);
        if (!is_same)
            printf("removal %zu:\n%.*s\n", i, (int)result.size, result.packet);
    }
}

/* Settings for data mining by clients, and the setting in the result. */
static void test_minings(void)
{
    static const struct {
        const char *text;
        const char *expected;
        bool is_exact;
    } minings[] = {
        {"http://ns.useplus.org/ldf/vocab/DMI-PROHIBITED", "DMI-PROHIBITED", true},
        {"https://ns.useplus.org/ldf/vocab/dmi-prohibited", "DMI-PROHIBITED", false},
        {"DMI-PROHIBITED-SEECONSTRAINT", "DMI-PROHIBITED-SEECONSTRAINT", false},
        {OTHER, "DMI-PROHIBITED-AIMLTRAINING", false},
        {"", "DMI-PROHIBITED-AIMLTRAINING", false},
        {"yes, please", "DMI-PROHIBITED-AIMLTRAINING", false},
        {"plus:DMI-PROHIBITED-WHATCOMES", "DMI-PROHIBITED", false},
        {OTHER " DMI-PROHIBITED-EXCEPTSEARCHENGINEINDEXING", "DMI-PROHIBITED-EXCEPTSEARCHENGINEINDEXING",
         false},
    };
    for (size_t i = 0; i < sizeof minings / sizeof minings[0]; i++) {
        bool is_exact = false;
        const char *uri = xmp_mining_uri(xmp_mining_read(minings[i].text, &is_exact));
        CU_ASSERT_STRING_EQUAL(strrchr(uri, '/') + 1, minings[i].expected);
        CU_ASSERT_EQUAL(is_exact, minings[i].is_exact);
    }
}

static void test_utf16(void)
{
    static const char packet[] = "<rdf:RDF " RDF "><rdf:Description rdf:about=\"kept\"/></rdf:RDF>";
    static const unsigned char marks[2][2] = {{0xFF, 0xFE}, {0xFE, 0xFF}};
    for (unsigned is_marked = 0; is_marked < 2; is_marked++)
        for (unsigned is_big = 0; is_big < 2; is_big++) {
            char wide[2 * sizeof packet] = "";
            size_t size = 2 * (sizeof packet - 1 + is_marked);
            if (is_marked)
                memcpy(wide, marks[is_big], 2);
            for (size_t i = 0; i < sizeof packet - 1; i++)
                wide[2 * (i + is_marked) + is_big] = packet[i];
            const char *result = opt_out(wide, size, &size);
            CU_ASSERT(is_well_formed(result, size));
            CU_ASSERT_PTR_NOT_NULL(strstr(result, "rdf:about=\"kept\""));
            CU_ASSERT_PTR_NOT_NULL(strstr(result, VALUE));
        }
}

/* U+1F600 as a pair of surrogates; a single surrogate is unreadable. */
static void test_utf16_beyond_16_bits(void)
{
    static const char head[] = "<rdf:RDF " RDF ">", pair[] = "\xD8\x3D\xDE\0";
    for (size_t units = 1; units <= 2; units++) {
        static const char tail[] = "</rdf:RDF>";
        char wide[2 * (sizeof head + sizeof pair + sizeof tail)] = "";
        size_t at = 0;
        for (const char *text = head; *text != '\0'; text++, at += 2)
            wide[at + 1] = *text;
        memcpy(wide + at, pair, 2 * units);
        at += 2 * units;
        for (const char *text = tail; *text != '\0'; text++, at += 2)
            wide[at + 1] = *text;
        const struct xmp_request request = {.mining = xmp_mining_least, .is_added = true};
        struct xmp_result result;
        xmp_edit(arena, wide, at, &request, &result);
        CU_ASSERT_EQUAL(result.is_readable, units == 2);
        CU_ASSERT(units == 1 || memmem(result.packet, result.size, "\xF0\x9F\x98\x80", 4) != NULL);
    }
}

/* Unreadable packets; each may stay in a result, or not, without and with the opt-out. */
static void test_names_of_unreadable_packets(void)
{
    static const struct {
        const char *packet;
        bool is_named;
        bool is_named_with_opt_out;
        const char *mining;
    } cases[] = {
        {"<a>R&D", false, false, "DMI-PROHIBITED-AIMLTRAINING"},
        {"<a plus:DataMining='http://ns.useplus.org/ldf/vocab/DMI-PROHIBITED'>&", false, true,
         "DMI-PROHIBITED"},
        {"<a plus:DataMining='DMI-ALLOWED'>&DMI", false, true, "DMI-PROHIBITED-AIMLTRAINING"},
        {"<xmp:Thumbnails>&", true, true, "DMI-PROHIBITED-AIMLTRAINING"},
        {"<a xmlns:g='http://ns.adobe.com/xap/1.0/g/img/'>&", true, true, "DMI-PROHIBITED-AIMLTRAINING"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *packet = cases[i].packet;
        CU_ASSERT_EQUAL(xmp_names_entry(packet, strlen(packet), false), cases[i].is_named);
        CU_ASSERT_EQUAL(xmp_names_entry(packet, strlen(packet), true), cases[i].is_named_with_opt_out);
        const char *uri = xmp_mining_uri(xmp_mining_find(packet));
        CU_ASSERT_STRING_EQUAL(strrchr(uri, '/') + 1, cases[i].mining);
    }
}

/* ---- limits ---- */

/* Makes a packet that repeats the text count times between head and tail. */
static char *packet_repeat(const char *head, const char *text, size_t count, const char *tail, size_t *size)
{
    size_t step = strlen(text);
    char *packet = malloc(strlen(head) + step * count + strlen(tail) + 1);
    size_t used = (size_t)sprintf(packet, "%s", head);
    for (size_t i = 0; i < count; i++, used += step)
        memcpy(packet + used, text, step);
    *size = used + (size_t)sprintf(packet + used, "%s", tail);
    return packet;
}

/* Returns the bytes that the program holds from the C library. */
static size_t held_bytes(void)
{
    struct mallinfo2 facts = mallinfo2();
    return facts.uordblks + facts.hblkhd;
}

static bool is_readable(const char *packet, size_t size)
{
    struct xmp_request request = {.mining = xmp_mining_least, .is_added = true};
    struct xmp_result result;
    struct arena *own = arena_new((size_t)8 * keep_bytes_max);
    xmp_edit(own, packet, size, &request, &result);
    bool answer = result.is_readable;
    arena_free(own);
    return answer;
}

static void test_limits_of_a_packet(void)
{
    static const struct {
        const char *text;
        size_t count;
        const char *tail;
        bool is_readable;
    } cases[] = {
        {"<a>", 5000000, "", false},                                         /* open elements */
        {"<a/>", 3000000, "</rdf:RDF>", false},                              /* elements */
        {"<rdf:li>xmp.did:0123456789</rdf:li>", 200000, "</rdf:RDF>", true}, /* document ancestors */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t size, before = held_bytes();
        char *packet =
            packet_repeat("<rdf:RDF " RDF ">", cases[i].text, cases[i].count, cases[i].tail, &size);
        CU_ASSERT_EQUAL(is_readable(packet, size), cases[i].is_readable);
        free(packet);
        CU_ASSERT(held_bytes() <= before + (1 << 20));
    }
}

/* Expat keeps each distinct name until the end: 16 MiB of them would be some 300 MiB. */
static void test_distinct_names_are_bounded(void)
{
    enum { names = 480000 };
    char *packet = malloc((size_t)names * 40);
    size_t size = (size_t)sprintf(packet, "<rdf:RDF " RDF "><rdf:Description rdf:about=\"\">");
    for (int i = 0; i < names; i++)
        size += (size_t)sprintf(packet + size, "<a%d b%d=\"\" c%d=\"\"/>", i, i, i);
    size += (size_t)sprintf(packet + size, "</rdf:Description></rdf:RDF>");
    CU_ASSERT_FALSE(is_readable(packet, size));
    free(packet);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"packets of all shapes", test_packets},
        {"twice changes nothing", test_twice_changes_nothing},
        {"padding is used up", test_padding_is_used_up},
        {"zeros at the end", test_zeros_at_the_end},
        {"entries go with their data", test_removals},
        {"values become no weaker", test_minings},
        {"UTF-16", test_utf16},
        {"UTF-16 beyond 16 bits", test_utf16_beyond_16_bits},
        {"names of unreadable packets", test_names_of_unreadable_packets},
        {"limits of a packet", test_limits_of_a_packet},
        {"distinct names are bounded", test_distinct_names_are_bounded},
        CU_TEST_INFO_NULL,
    };
    arena = arena_new(0);
    int code = runner_run("xmp", tests);
    arena_free(arena);
    return code;
}
