/*
 * Content codings of an answer's body (RFC 9110, 8.4.1): gzip, deflate and br, one laid over the other.
 * The only file pair that includes brotli.  Knows no HTTP beyond the value of Content-Encoding.
 *
 * Labels are often wrong.  Bytes that begin a picture (sniff.h) are never decoded, nor is "gzip" without the
 * first bytes of gzip; a coding that is not known here, such as aws-chunked or utf-8, is taken for no coding.
 *
 * Untrusted bytes drive it, so all is bounded: the layers, the bytes that come out, and the bytes between two
 * layers, of which a small body can make very many that come to nothing.
 */
#ifndef SERVICE_DECODE_H
#define SERVICE_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* libcurl's limit for its own decoders. */
enum { decode_layers_max = 5 };

enum decode_end {
    DECODE_GOES_ON,
    DECODE_STOPPED,   /* the sink wanted no more */
    DECODE_TOO_LARGE, /* more than most_bytes came out */
    DECODE_BROKEN     /* not of its coding, cut off, or more layers than are taken */
};

/* Takes decoded bytes; false: no more. */
typedef bool (*decode_sink)(void *user, const void *bytes, size_t size);

struct decode;

/*
 * codings is the value of Content-Encoding, all fields of that name joined by commas: "gzip", "br, gzip"; ""
 * for none.  Copied.  NULL when it has more than decode_layers_max codings, or br twice (a window of br takes
 * 16 MiB).  The caller owns it.
 */
struct decode *decode_new(const char *codings, int64_t most_bytes, decode_sink sink, void *user);
void decode_free(struct decode *decode);

/* Decodes the next bytes of the body and hands them to the sink.  After an end nothing more may be added. */
enum decode_end decode_add(struct decode *decode, const void *bytes, size_t size);

/* The body is over: hands on the first bytes that were held back.  DECODE_BROKEN when a layer was cut off. */
enum decode_end decode_finish(struct decode *decode);

/* True when a coding was named that is not known here. */
bool decode_is_unknown(const struct decode *decode);

#endif
