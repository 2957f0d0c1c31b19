/*
 * A keyed stream of numbers: ChaCha20 (RFC 8439) as a generator. It expands the secret key into
 * the watermark's patterns and is deterministic.
 */
#ifndef ENGINE_WATERMARK_KEYSTREAM_H
#define ENGINE_WATERMARK_KEYSTREAM_H

#include <stdint.h>

struct keystream {
    uint32_t state[16];
    uint32_t block[16];
    unsigned used; /* words of the block that were returned */
};

/* Different purposes give independent streams of one key. */
void keystream_init(struct keystream *stream, const uint8_t key[32], uint32_t purpose);

uint32_t keystream_word(struct keystream *stream);

/* Fills order with a uniform permutation of 0 .. count - 1. */
void keystream_permutation(struct keystream *stream, uint16_t *order, uint32_t count);

#endif
