/*
 * Content codings of a response body (RFC 9110, 8.4.1): gzip, deflate and br, also in several
 * layers. The only module that includes brotli. It knows no HTTP except the value of
 * Content-Encoding.
 *
 * Servers often send wrong labels. So bytes that begin an image (sniff.h) are never decoded,
 * and "gzip" only when the signature of gzip is present. An unknown coding such as aws-chunked
 * or utf-8 is treated as identity.
 *
 * The input is untrusted. Limits apply to the number of layers, to the decoded bytes and to
 * the bytes between two layers: a small body can decode to many bytes between layers and none
 * at the end.
 */
#ifndef SERVICE_DECODE_H
#define SERVICE_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The limit of libcurl's decoders. */
enum { decode_layers_max = 5 };

enum decode_end {
    DECODE_GOES_ON,
    DECODE_STOPPED,   /* the sink returned false */
    DECODE_TOO_LARGE, /* more than most_bytes decoded bytes */
    DECODE_BROKEN     /* invalid data, cut off, or too many layers */
};

/* Receives decoded bytes; returns false to stop. */
typedef bool (*decode_sink)(void *user, const void *bytes, size_t size);

struct decode;

/*
 * codings is the value of Content-Encoding, with several fields joined by commas: "gzip", "br,
 * gzip"; "" for none. It is copied. Returns NULL for more than decode_layers_max codings, or
 * for br twice (a br window takes 16 MiB). The caller owns the result.
 */
struct decode *decode_new(const char *codings, int64_t most_bytes, decode_sink sink, void *user);
void decode_free(struct decode *decode);

/*
 * Decodes the next bytes of the body and passes them to the sink. Do not call it again after
 * it returned an end.
 */
enum decode_end decode_add(struct decode *decode, const void *bytes, size_t size);

/* Ends the body and passes on buffered bytes. DECODE_BROKEN when a layer was cut off. */
enum decode_end decode_finish(struct decode *decode);

/* True when Content-Encoding named an unknown coding. */
bool decode_is_unknown(const struct decode *decode);

#endif
