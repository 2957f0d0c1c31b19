/*
 * ENGINE_CLONES compiles a function for plain x86-64, AVX2 and AVX-512; the loader selects one at program
 * start. No clone contracts or reorders floating-point operations, so all clones give the same result. The
 * sanitizers do not support clones.  ENGINE_INLINE is for small functions that clones call: without it they
 * would not be part of the clone.
 */
#ifndef ENGINE_CLONES_H
#define ENGINE_CLONES_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define ENGINE_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define ENGINE_CLONES
#endif

#define ENGINE_INLINE static inline __attribute__((always_inline))

#endif
