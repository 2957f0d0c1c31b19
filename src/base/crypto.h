/*
 * Randomness, hashes, signatures and the encodings that go with them.  The only
 * file pair that includes OpenSSL.  A machine whose random source or hash fails
 * cannot be served from: these functions end the process then.
 */
#ifndef BASE_CRYPTO_H
#define BASE_CRYPTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <imgward/arena.h>

enum { sha256_bytes = 32 };

void crypto_random(void *bytes, size_t size);

/* A random integer of 64 bits. */
uint64_t crypto_random_u64(void);

void crypto_sha256(const void *data, size_t size, uint8_t digest[sha256_bytes]);

/* SHA-256 in pieces: begin, add, end; end frees the state. */
struct crypto_hash;
struct crypto_hash *crypto_hash_begin(void);
void crypto_hash_add(struct crypto_hash *hash, const void *data, size_t size);
void crypto_hash_end(struct crypto_hash *hash, uint8_t digest[sha256_bytes]);

/* HMAC-SHA256 with a key prepared once: signing copies the prepared state. */
struct crypto_mac;
struct crypto_mac *crypto_mac_new(const void *key, size_t size);
void crypto_mac_free(struct crypto_mac *mac);
void crypto_mac_sign(struct crypto_mac *mac, const void *data, size_t size, uint8_t digest[sha256_bytes]);

/* True when both are equal; takes the same time wherever they differ. */
bool crypto_equal(const void *a, const void *b, size_t size);

/*
 * AES-256-GCM (NIST SP 800-38D) with a random nonce: nonce, ciphertext, tag.
 * about is bound to the seal and not hidden: what was sealed about one thing
 * does not open about another.  One key must not seal more than 2^32 times.
 */
enum { crypto_key_bytes = 32, crypto_nonce_bytes = 12, crypto_tag_bytes = 16, crypto_seal_bytes = 28 };

/* Writes size + crypto_seal_bytes bytes to sealed. */
void crypto_seal(const uint8_t key[crypto_key_bytes], const char *about, const void *data, size_t size,
                 uint8_t *sealed);

/*
 * Writes size - crypto_seal_bytes bytes to data.  False, with data wiped, when
 * key, about or a single bit differ from what was sealed.
 */
bool crypto_open(const uint8_t key[crypto_key_bytes], const char *about, const uint8_t *sealed, size_t size,
                 void *data) __attribute__((warn_unused_result));

/* Lower-case hexadecimal, 2 * size characters and a zero, in the arena. */
char *crypto_hex(struct arena *arena, const void *bytes, size_t size);

/* Reads exactly 2 * size hexadecimal digits; false for anything else. */
bool crypto_hex_read(const char *text, void *bytes, size_t size);

/* base64 with padding (standard alphabet), or url-safe without. */
char *crypto_base64(struct arena *arena, const void *bytes, size_t size);
char *crypto_base64url(struct arena *arena, const void *bytes, size_t size);

/* Reads standard base64 with padding into at most room bytes; the size, or -1. */
long crypto_base64_read(const char *text, void *bytes, size_t room);

/* Overwrites secrets so that the compiler cannot leave it out. */
void crypto_wipe(void *bytes, size_t size);

/* MD5 of a body for Content-MD5 (RFC 1864) alone; never for anything that must be safe. */
struct crypto_md5;
struct crypto_md5 *crypto_md5_begin(void);
void crypto_md5_add(struct crypto_md5 *md5, const void *data, size_t size);
void crypto_md5_end(struct crypto_md5 *md5, uint8_t digest[16]);

/* What is to be said of a server's certificate. */
enum crypto_certificate {
    CRYPTO_CERTIFICATE_UNREADABLE,
    CRYPTO_CERTIFICATE_OTHER_NAME,
    CRYPTO_CERTIFICATE_OK
};

/* Reads the first certificate of a PEM file: is it for this host (RFC 6125), how many days does it last? */
enum crypto_certificate crypto_certificate_check(const char *path, const char *host, int64_t *days);

#endif
