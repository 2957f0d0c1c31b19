#include "engine/watermark/keystream.h"

#include <string.h>

static uint32_t rotated(uint32_t word, unsigned bits)
{
    return (word << bits) | (word >> (32 - bits));
}

static void quarter_round(uint32_t *x, unsigned a, unsigned b, unsigned c, unsigned d)
{
    x[a] += x[b];
    x[d] = rotated(x[d] ^ x[a], 16);
    x[c] += x[d];
    x[b] = rotated(x[b] ^ x[c], 12);
    x[a] += x[b];
    x[d] = rotated(x[d] ^ x[a], 8);
    x[c] += x[d];
    x[b] = rotated(x[b] ^ x[c], 7);
}

static void chacha_block(struct keystream *stream)
{
    memcpy(stream->block, stream->state, sizeof stream->block);
    for (unsigned round = 0; round < 10; round++) {
        for (unsigned i = 0; i < 4; i++)
            quarter_round(stream->block, i, 4 + i, 8 + i, 12 + i);
        for (unsigned i = 0; i < 4; i++)
            quarter_round(stream->block, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4);
    }
    for (unsigned i = 0; i < 16; i++)
        stream->block[i] += stream->state[i];
    stream->state[12]++;
    stream->used = 0;
}

void keystream_init(struct keystream *stream, const uint8_t key[32], uint32_t purpose)
{
    static const uint32_t constants[4] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};

    memset(stream, 0, sizeof *stream);
    memcpy(stream->state, constants, sizeof constants);
    for (unsigned i = 0; i < 8; i++)
        stream->state[4 + i] = (uint32_t)key[4 * i] | (uint32_t)key[4 * i + 1] << 8 |
                               (uint32_t)key[4 * i + 2] << 16 | (uint32_t)key[4 * i + 3] << 24;
    stream->state[13] = purpose;
    chacha_block(stream);
}

uint32_t keystream_word(struct keystream *stream)
{
    if (stream->used == 16)
        chacha_block(stream);
    return stream->block[stream->used++];
}

/* Returns a uniform number in 0 .. bound - 1; bound is not 0. */
static uint32_t keystream_below(struct keystream *stream, uint32_t bound)
{
    uint32_t least = (uint32_t)(-bound) % bound;
    uint32_t word;

    do
        word = keystream_word(stream);
    while (word < least);
    return word % bound;
}

void keystream_permutation(struct keystream *stream, uint16_t *order, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t j = keystream_below(stream, i + 1);

        order[i] = order[j];
        order[j] = (uint16_t)i;
    }
}
