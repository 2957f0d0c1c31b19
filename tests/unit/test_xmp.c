/* The opt-out in XMP packets of all shapes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <expat.h>

#include "worker/codec_keep.h"
#include "runner.h"

#define RDF         "xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\""
#define PLUS        "http://ns.useplus.org/ldf/xmp/1.0/"
#define VALUE       "http://ns.useplus.org/ldf/vocab/DMI-PROHIBITED-AIMLTRAINING"
#define OTHER       "http://ns.useplus.org/ldf/vocab/DMI-ALLOWED"
#define OUR_ELEMENT "<plus:DataMining xmlns:plus=\"" PLUS "\">" VALUE "</plus:DataMining>"
#define OUR_DESCRIPTION(about)                                                                               \
    "<rdf:Description " RDF " rdf:about=\"" about "\">" OUR_ELEMENT "</rdf:Description>"

static struct arena *arena;

/* Packets and what must become of them; NULL: a fresh packet. */
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
     "<rdf:RDF " RDF "><rdf:Description xmlns:p=\"" PLUS "\">" OUR_ELEMENT
     "<p:y>2</p:y></rdf:Description></rdf:RDF>"},
    {"an element with a resource",
     "<rdf:RDF " RDF "><rdf:Description xmlns:p=\"" PLUS "\"><p:DataMining rdf:resource=\"" OTHER "\"/>"
     "</rdf:Description></rdf:RDF>",
     "<rdf:RDF " RDF "><rdf:Description xmlns:p=\"" PLUS "\">" OUR_ELEMENT "</rdf:Description></rdf:RDF>"},
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
    {"a document type", "<!DOCTYPE x [<!ENTITY e \"f\">]><rdf:RDF " RDF "></rdf:RDF>", NULL},
    {"its end inside another instruction",
     "<rdf:RDF " RDF "></rdf:RDF>\n<?note  \n<?xpacket end=\"w\"?>\n<?xpacket end=\"w\"?>",
     "<rdf:RDF " RDF
     ">" OUR_DESCRIPTION("") "</rdf:RDF>\n<?note  \n<?xpacket end=\"w\"?><?xpacket end=\"w\"?>"},
    {"its end before its beginning", "<?xpacket end=\"w\"?>  <rdf:RDF " RDF "></rdf:RDF>",
     "<?xpacket end=\"w\"?>  <rdf:RDF " RDF ">" OUR_DESCRIPTION("") "</rdf:RDF>"},
    {"nothing", "", NULL},
    {"an unknown prefix", "<rdf:RDF " RDF "><p:x/></rdf:RDF>", NULL},
};

static bool is_well_formed(const char *packet, size_t size)
{
    XML_Parser parser = XML_ParserCreateNS(NULL, '|');
    enum XML_Status status = XML_Parse(parser, packet, (int)size, 1);
    XML_ParserFree(parser);
    return status == XML_STATUS_OK;
}

/* In memory of its own size, so that a read past the end is seen. */
static const char *opt_out(const char *text, size_t size, size_t *size_out)
{
    char *exact = malloc(size + 1);
    memcpy(exact, text, size);
    exact = realloc(exact, size == 0 ? 1 : size);
    const char *result = xmp_opt_out(arena, exact, size, size_out);
    const char *kept = arena_text_n(arena, result, *size_out);
    free(exact);
    return kept;
}

static void test_packets(void)
{
    size_t fresh_size = 0;
    const char *fresh = xmp_opt_out(arena, NULL, 0, &fresh_size);
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

int main(void)
{
    static CU_TestInfo tests[] = {
        {"packets of all shapes", test_packets},
        {"twice changes nothing", test_twice_changes_nothing},
        {"padding is used up", test_padding_is_used_up},
        {"zeros at the end", test_zeros_at_the_end},
        CU_TEST_INFO_NULL,
    };
    arena = arena_new(0);
    int code = runner_run("xmp", tests);
    arena_free(arena);
    return code;
}
