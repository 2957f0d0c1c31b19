/*
 * XMP packets: the opt-out, and removal of entries that are no longer true. Independent of
 * files and formats.
 */
#ifndef CODEC_METADATA_XMP_H
#define CODEC_METADATA_XMP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "codec/metadata/xmp_mining.h"

enum { xmp_guid_bytes = 32 };

/* Requested edits. Entries that refer to dropped data are always removed. */
struct xmp_request {
    const struct xmp_mining *mining; /* replaces weaker values; NULL: values stay */
    bool is_added;                   /* add it to a packet without plus:DataMining; needs mining */
    const char *extension_old;       /* this value of xmpNote:HasExtendedXMP is replaced; NULL: stays */
    const char *extension_new;
};

struct xmp_result {
    bool is_readable; /* well-formed; otherwise nothing below is valid */
    bool is_changed;  /* packet differs from the input */
    const char *packet;
    size_t size;
    const struct xmp_mining *mining;    /* the strongest, at least xmp_mining_least; NULL if there is none */
    unsigned left_out;                  /* enum keep_left_out: subjects of the removed entries */
    const char *provenance;             /* a removed dcterms:provenance; NULL if there is none */
    char extension[xmp_guid_bytes + 1]; /* xmpNote:HasExtendedXMP; "" if there is none */
};

/*
 * Makes the edits; the result is in the arena. The packet may be UTF-8, UTF-16 with a byte order mark, or
 * Latin-1; an edited one is UTF-8. A well-formed packet of UTF-8 keeps every byte that is not edited.
 */
void xmp_edit(struct arena *arena, const char *packet, size_t size, const struct xmp_request *request,
              struct xmp_result *result);

/* True if an unreadable packet names an entry that an edit would remove, or with is_opt_out replace. */
bool xmp_names_entry(const char *packet, size_t size, bool is_opt_out);

/* Makes a packet with only this value. */
const char *xmp_fresh(struct arena *arena, const struct xmp_mining *mining, size_t *size);

#endif
