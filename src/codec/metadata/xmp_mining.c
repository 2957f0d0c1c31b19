/*
 * The values of plus:DataMining and their order of strength. Source: PLUS License Data Format,
 * vocabulary DMI, as listed by the IPTC Photo Metadata Standard 2023.1.
 */
#include "codec/metadata/xmp_mining.h"

#include <string.h>
#include <strings.h>

#define VOCABULARY "http://ns.useplus.org/ldf/vocab/"

/*
 * Strength 0 permits AI/ML training in part or does not mention it. A stronger value forbids
 * everything that a weaker value forbids. The SEE values forbid data mining and refer to the
 * conditions.
 */
struct xmp_mining {
    const char *uri;
    int strength;
};

static const struct xmp_mining minings[] = {
    {VOCABULARY "DMI-PROHIBITED-AIMLTRAINING", 1},
    {VOCABULARY "DMI-PROHIBITED-EXCEPTSEARCHENGINEINDEXING", 2},
    {VOCABULARY "DMI-PROHIBITED-SEECONSTRAINT", 3},
    {VOCABULARY "DMI-PROHIBITED-SEEEMBEDDEDRIGHTSEXPR", 3},
    {VOCABULARY "DMI-PROHIBITED-SEELINKEDRIGHTSEXPR", 3},
    {VOCABULARY "DMI-PROHIBITED", 4},
    {VOCABULARY "DMI-PROHIBITED-GENAIMLTRAINING", 0},
    {VOCABULARY "DMI-ALLOWED", 0},
    {VOCABULARY "DMI-UNSPECIFIED", 0},
};
enum { mining_count = sizeof minings / sizeof minings[0], mining_widest = 5 };

const struct xmp_mining *const xmp_mining_least = &minings[0];

const struct xmp_mining *xmp_mining_stronger(const struct xmp_mining *a, const struct xmp_mining *b)
{
    if (a == NULL || b == NULL)
        return a == NULL ? b : a;
    return b->strength > a->strength ? b : a;
}

bool xmp_mining_suffices(const struct xmp_mining *mining, const struct xmp_mining *least)
{
    return mining->strength >= least->strength;
}

const char *xmp_mining_uri(const struct xmp_mining *mining)
{
    return mining->uri;
}

/* Matches one word: the value, with or without the vocabulary's prefix, in upper or lower case. */
static const struct xmp_mining *mining_word(const char *word, size_t length)
{
    static const char prohibited[] = "PROHIBITED";
    const char *name = word;
    for (size_t i = 0; i < length; i++)
        if (word[i] == '/' || word[i] == ':')
            name = word + i + 1;
    size_t name_length = length - (size_t)(name - word);
    for (size_t i = 0; i < mining_count; i++) {
        const char *known = minings[i].uri + sizeof VOCABULARY - 1;
        if (strlen(known) == name_length && strncasecmp(known, name, name_length) == 0)
            return minings[i].strength > 0 ? &minings[i] : xmp_mining_least;
    }
    /* A word of a later vocabulary: assume the widest prohibition. */
    for (size_t i = 0; i + sizeof prohibited - 1 <= name_length; i++)
        if (strncasecmp(name + i, prohibited, sizeof prohibited - 1) == 0)
            return &minings[mining_widest];
    return xmp_mining_least;
}

const struct xmp_mining *xmp_mining_read(const char *text, bool *is_exact)
{
    static const char space[] = " \t\r\n";
    const struct xmp_mining *strongest = xmp_mining_least;
    for (const char *at = text + strspn(text, space); *at != '\0'; at += strspn(at, space)) {
        size_t length = strcspn(at, space);
        strongest = xmp_mining_stronger(strongest, mining_word(at, length));
        at += length;
    }
    *is_exact = strcmp(text, xmp_mining_uri(strongest)) == 0;
    return strongest;
}

const struct xmp_mining *xmp_mining_find(const char *text)
{
    static const char begin[] = "DMI-";
    const struct xmp_mining *strongest = xmp_mining_least;
    for (const char *at = strstr(text, begin); at != NULL; at = strstr(at + 1, begin))
        strongest =
            xmp_mining_stronger(strongest, mining_word(at, strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-")));
    return strongest;
}
