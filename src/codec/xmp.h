/*
 * XMP packets: the opt-out, and the removal of entries that are no longer true.
 * Text in, text out: knows nothing of files and formats.
 */
#ifndef CODEC_XMP_H
#define CODEC_XMP_H

#include <stdbool.h>
#include <stddef.h>

#include <imgward/arena.h>

/* One value of plus:DataMining; the table is in xmp_mining.c. */
struct xmp_mining;

/* The value that the service asks for: no AI/ML training. */
extern const struct xmp_mining *const xmp_mining_least;

/* The stronger of two; NULL is weaker than any. */
const struct xmp_mining *xmp_mining_stronger(const struct xmp_mining *a, const struct xmp_mining *b);

/*
 * The least value of the vocabulary that forbids all that the text forbids and AI/ML
 * training as well.  is_exact: the text is that value, spelled as the vocabulary has it.
 */
const struct xmp_mining *xmp_mining_read(const char *text, bool *is_exact);

/* True when strength is that of least or more. */
bool xmp_mining_suffices(const struct xmp_mining *mining, const struct xmp_mining *least);

const char *xmp_mining_uri(const struct xmp_mining *mining);

enum { xmp_guid_bytes = 32 };

/* The edits wanted.  Entries that point at dropped data are removed in any case. */
struct xmp_request {
    const struct xmp_mining *mining; /* weaker values become this one; NULL: values stay */
    bool is_added;                   /* a packet without plus:DataMining gets one; needs mining */
    const char *extension_old;       /* xmpNote:HasExtendedXMP of this value gets the new one; NULL: stays */
    const char *extension_new;
};

struct xmp_result {
    bool is_readable; /* well-formed with an rdf:RDF, or repaired to be; else nothing below is valid */
    bool is_changed;  /* packet differs from the one given */
    const char *packet;
    size_t size;
    const struct xmp_mining *mining;    /* the strongest found, at least xmp_mining_least; NULL: none */
    unsigned left_out;                  /* enum keep_left_out: subjects of the removed entries */
    const char *provenance;             /* a removed dcterms:provenance, NULL: none */
    char extension[xmp_guid_bytes + 1]; /* xmpNote:HasExtendedXMP, "" when there is none */
};

/*
 * Looks for the edits and makes them; the result stands in the arena.  A packet
 * that is well-formed keeps every byte that is not edited.  A broken one is
 * repaired first, and only where there is something to edit.
 */
void xmp_edit(struct arena *arena, const char *packet, size_t size, const struct xmp_request *request,
              struct xmp_result *result);

/* A packet that holds nothing but the value. */
const char *xmp_fresh(struct arena *arena, const struct xmp_mining *mining, size_t *size);

/*
 * Makes well-formed UTF-8 with one rdf:RDF of a broken packet (xmp_repair.c): other
 * encodings, control characters, bare & and <, tags that are not closed or do not match,
 * prefixes without a declaration, document types, a missing rdf:RDF.
 * NULL when there is no element in it.  is_lossy: a part could not be kept.
 */
const char *xmp_repair(struct arena *arena, const char *packet, size_t size, size_t *size_out,
                       bool *is_lossy);

#endif
