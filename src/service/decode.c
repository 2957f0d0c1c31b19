#include "service/decode.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <brotli/decode.h>
#include <zlib.h>

#include "service/sniff.h"

enum coding { CODING_PLAIN, CODING_GZIP, CODING_DEFLATE, CODING_BROTLI };

static const struct {
    const char *name;
    enum coding coding;
} names[] = {
    {"gzip", CODING_GZIP},      {"x-gzip", CODING_GZIP}, {"deflate", CODING_DEFLATE}, {"br", CODING_BROTLI},
    {"identity", CODING_PLAIN}, {"none", CODING_PLAIN},  {"binary", CODING_PLAIN},
};

enum {
    output_bytes = 16384,
    zlib_window_bits = 15, /* zlib.h, inflateInit2: add 16 for gzip, negate for raw deflate */
    zlib_gzip_bits = 16,
    between_factor =
        2 /* An encoded file is hardly larger than the file; twice its limit is enough between two layers. */
};

struct layer {
    enum coding coding;
    bool is_begun; /* the first bytes have selected the decoder */
    bool is_over;  /* end of the stream */
    unsigned char first[sniff_bytes];
    size_t first_count;
    z_stream zlib;
    BrotliDecoderState *brotli;
    unsigned char *output; /* NULL until decoding starts */
};

struct decode {
    struct layer layers[decode_layers_max]; /* the last applied coding comes first */
    unsigned count;
    bool is_unknown;
    int64_t most_bytes;
    int64_t passed[decode_layers_max + 1]; /* bytes into each layer, and out of the last one */
    decode_sink sink;
    void *user;
};

/* ---- creation ---- */

/* False when there are too many layers. */
static bool coding_add(struct decode *decode, const char *name, size_t length)
{
    enum coding coding = CODING_PLAIN;
    bool is_known = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i].name) == length && strncasecmp(names[i].name, name, length) == 0) {
            coding = names[i].coding;
            is_known = true;
        }
    decode->is_unknown = decode->is_unknown || !is_known;
    if (coding == CODING_PLAIN)
        return true;
    for (unsigned i = 0; i < decode->count; i++)
        if (coding == CODING_BROTLI && decode->layers[i].coding == CODING_BROTLI)
            return false;
    if (decode->count == decode_layers_max)
        return false;
    memmove(decode->layers + 1, decode->layers, decode->count * sizeof decode->layers[0]);
    decode->layers[0] = (struct layer){.coding = coding};
    decode->count++;
    return true;
}

struct decode *decode_new(const char *codings, int64_t most_bytes, decode_sink sink, void *user)
{
    struct decode *decode = calloc(1, sizeof *decode);
    if (decode == NULL)
        abort();
    decode->most_bytes = most_bytes;
    decode->sink = sink;
    decode->user = user;
    for (const char *at = codings; *at != '\0';) {
        at += strspn(at, " \t,");
        size_t length = strcspn(at, " \t,");
        if (length > 0 && !coding_add(decode, at, length)) {
            decode_free(decode);
            return NULL;
        }
        at += length;
    }
    return decode;
}

void decode_free(struct decode *decode)
{
    if (decode == NULL)
        return;
    for (unsigned i = 0; i < decode->count; i++) {
        struct layer *layer = &decode->layers[i];
        if (layer->output != NULL && layer->coding != CODING_BROTLI)
            inflateEnd(&layer->zlib);
        if (layer->brotli != NULL)
            BrotliDecoderDestroyInstance(layer->brotli);
        free(layer->output);
    }
    free(decode);
}

bool decode_is_unknown(const struct decode *decode)
{
    return decode->is_unknown;
}

/* ---- one layer ---- */

/*
 * Selects the decoder by the first bytes: those of gzip (RFC 1952, 2.3.1) or zlib (RFC 1950, 2.2).
 * Some servers send deflate without the frame of zlib.
 */
static void layer_begin(struct layer *layer)
{
    const unsigned char *first = layer->first;
    bool is_picture = sniff_format(first, layer->first_count) != FORMAT_NONE;
    bool is_gzip = layer->first_count >= 2 && first[0] == 0x1F && first[1] == 0x8B;
    bool is_zlib =
        layer->first_count >= 2 && (first[0] & 0x0F) == Z_DEFLATED && (first[0] * 256 + first[1]) % 31 == 0;
    layer->is_begun = true;
    if (is_picture || (layer->coding == CODING_GZIP && !is_gzip))
        layer->coding = CODING_PLAIN;
    if (layer->coding == CODING_PLAIN)
        return;
    layer->output = malloc(output_bytes);
    if (layer->output == NULL)
        abort();
    if (layer->coding == CODING_BROTLI) {
        layer->brotli = BrotliDecoderCreateInstance(NULL, NULL, NULL);
        if (layer->brotli == NULL)
            abort();
        return;
    }
    int bits = layer->coding == CODING_GZIP ? zlib_window_bits + zlib_gzip_bits
               : is_zlib                    ? zlib_window_bits
                                            : -zlib_window_bits;
    if (inflateInit2(&layer->zlib, bits) != Z_OK)
        abort();
}

static enum decode_end layer_take(struct decode *decode, unsigned at, const unsigned char *bytes,
                                  size_t size);

/* A gzip file may have several members (RFC 1952, 2.2). Any other bytes after the end are dropped. */
static bool zlib_goes_on(struct layer *layer, const unsigned char *bytes)
{
    if (!layer->is_over)
        return true;
    if (layer->coding != CODING_GZIP || bytes[0] != 0x1F)
        return false;
    layer->is_over = false;
    return inflateReset(&layer->zlib) == Z_OK;
}

static enum decode_end zlib_run(struct decode *decode, unsigned at, const unsigned char *bytes, size_t size)
{
    struct layer *layer = &decode->layers[at];
    z_stream *zlib = &layer->zlib;
    enum decode_end end = DECODE_GOES_ON;
    zlib->next_in = (unsigned char *)(uintptr_t)bytes;
    zlib->avail_in = (unsigned)size;
    do {
        if (zlib->avail_in > 0 && !zlib_goes_on(layer, zlib->next_in))
            return DECODE_GOES_ON;
        zlib->next_out = layer->output;
        zlib->avail_out = output_bytes;
        int code = inflate(zlib, Z_NO_FLUSH);
        if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
            return DECODE_BROKEN;
        layer->is_over = code == Z_STREAM_END;
        end = layer_take(decode, at + 1, layer->output, output_bytes - zlib->avail_out);
    } while (end == DECODE_GOES_ON && (zlib->avail_in > 0 || (zlib->avail_out == 0 && !layer->is_over)));
    return end;
}

static enum decode_end brotli_run(struct decode *decode, unsigned at, const unsigned char *bytes, size_t size)
{
    struct layer *layer = &decode->layers[at];
    BrotliDecoderResult result = BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT;
    enum decode_end end = DECODE_GOES_ON;
    while (end == DECODE_GOES_ON && !layer->is_over &&
           (size > 0 || result == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT)) {
        unsigned char *output = layer->output;
        size_t room = output_bytes;
        result = BrotliDecoderDecompressStream(layer->brotli, &size, &bytes, &room, &output, NULL);
        if (result == BROTLI_DECODER_RESULT_ERROR)
            return DECODE_BROKEN;
        layer->is_over = result == BROTLI_DECODER_RESULT_SUCCESS;
        end = layer_take(decode, at + 1, layer->output, output_bytes - room);
    }
    return end;
}

static enum decode_end layer_run(struct decode *decode, unsigned at, const unsigned char *bytes, size_t size)
{
    static enum decode_end (*const runs[])(struct decode *, unsigned, const unsigned char *, size_t) = {
        [CODING_GZIP] = zlib_run, [CODING_DEFLATE] = zlib_run, [CODING_BROTLI] = brotli_run};
    struct layer *layer = &decode->layers[at];
    if (layer->coding == CODING_PLAIN)
        return layer_take(decode, at + 1, bytes, size);
    return runs[layer->coding](decode, at, bytes, size);
}

/* Buffers the first bytes of a layer until the decoder can be selected. */
static enum decode_end layer_look(struct decode *decode, unsigned at, const unsigned char *bytes, size_t size)
{
    struct layer *layer = &decode->layers[at];
    size_t wanted = sizeof layer->first - layer->first_count;
    size_t count = size < wanted ? size : wanted;
    memcpy(layer->first + layer->first_count, bytes, count);
    layer->first_count += count;
    if (layer->first_count < sizeof layer->first)
        return DECODE_GOES_ON;
    layer_begin(layer);
    enum decode_end end = layer_run(decode, at, layer->first, layer->first_count);
    if (end == DECODE_GOES_ON && size > count)
        end = layer_run(decode, at, bytes + count, size - count);
    return end;
}

/* Passes bytes to a layer; after the last layer, to the sink. */
static enum decode_end layer_take(struct decode *decode, unsigned at, const unsigned char *bytes, size_t size)
{
    bool is_sink = at == decode->count;
    int64_t most = decode->most_bytes * (is_sink ? 1 : between_factor);
    if (size == 0)
        return DECODE_GOES_ON;
    if ((int64_t)size > most - decode->passed[at])
        return DECODE_TOO_LARGE;
    decode->passed[at] += (int64_t)size;
    if (is_sink)
        return decode->sink(decode->user, bytes, size) ? DECODE_GOES_ON : DECODE_STOPPED;
    return decode->layers[at].is_begun ? layer_run(decode, at, bytes, size)
                                       : layer_look(decode, at, bytes, size);
}

enum decode_end decode_add(struct decode *decode, const void *bytes, size_t size)
{
    return layer_take(decode, 0, bytes, size);
}

enum decode_end decode_finish(struct decode *decode)
{
    enum decode_end end = DECODE_GOES_ON;
    for (unsigned at = 0; at < decode->count && end == DECODE_GOES_ON; at++) {
        struct layer *layer = &decode->layers[at];
        if (!layer->is_begun && layer->first_count > 0) {
            layer_begin(layer);
            end = layer_run(decode, at, layer->first, layer->first_count);
        }
        bool is_cut = layer->is_begun && layer->coding != CODING_PLAIN && !layer->is_over;
        if (end == DECODE_GOES_ON && is_cut)
            end = DECODE_BROKEN;
    }
    return end;
}
