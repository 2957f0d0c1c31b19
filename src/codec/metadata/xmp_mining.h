/* The values of plus:DataMining (PLUS vocabulary) and their order. */
#ifndef CODEC_METADATA_XMP_MINING_H
#define CODEC_METADATA_XMP_MINING_H

#include <stdbool.h>

/* One value of plus:DataMining; the table is in xmp_mining.c. */
struct xmp_mining;

/* The service's value: no AI/ML training. */
extern const struct xmp_mining *const xmp_mining_least;

/* The stronger of two; NULL is the weakest. */
const struct xmp_mining *xmp_mining_stronger(const struct xmp_mining *a, const struct xmp_mining *b);

/*
 * The weakest value of the vocabulary that forbids everything that the text forbids, and AI/ML
 * training. is_exact: the text is that value in the vocabulary's spelling.
 */
const struct xmp_mining *xmp_mining_read(const char *text, bool *is_exact);

/* True if mining is at least as strong as least. */
bool xmp_mining_suffices(const struct xmp_mining *mining, const struct xmp_mining *least);

/* The strongest value named anywhere in the text of an unreadable packet. */
const struct xmp_mining *xmp_mining_find(const char *text);

const char *xmp_mining_uri(const struct xmp_mining *mining);

#endif
