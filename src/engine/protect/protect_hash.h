/*
 * Hashes of places; the noise and the grain of a picture are derived from them.  The hash is the finaliser of
 * SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
 */
#ifndef ENGINE_PROTECT_PROTECT_HASH_H
#define ENGINE_PROTECT_PROTECT_HASH_H

#include <stdint.h>

static const uint64_t hash_golden = 0x9E3779B97F4A7C15u;

static inline uint64_t hash_mixed(uint64_t value)
{
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9u;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBu;
    return value ^ (value >> 31);
}

/* The hash of a number under a key. */
static inline uint64_t hash_of(uint64_t number, uint64_t key)
{
    return hash_mixed(number * hash_golden + key);
}

/* Derives one of several keys from a seed, one for each purpose. */
static inline uint64_t hash_key(uint64_t seed, unsigned which)
{
    return hash_mixed(seed + which * hash_golden);
}

#endif
