/*
 * Random bytes, hashes, signatures and their text encodings. The only module that includes OpenSSL. Only
 * crypto_open and the functions that read text can fail; if OpenSSL reports an error, the others abort the
 * process.
 */
#ifndef BASE_CRYPTO_H
#define BASE_CRYPTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

enum { sha256_bytes = 32 };

void crypto_random(void *bytes, size_t size);

uint64_t crypto_random_u64(void);

void crypto_sha256(const void *data, size_t size, uint8_t digest[sha256_bytes]);

/* Incremental SHA-256. crypto_hash_end frees the state. */
struct crypto_hash;
struct crypto_hash *crypto_hash_begin(void);
void crypto_hash_add(struct crypto_hash *hash, const void *data, size_t size);
void crypto_hash_end(struct crypto_hash *hash, uint8_t digest[sha256_bytes]);

/* HMAC-SHA256. The key is prepared once, and each signature copies the prepared state. */
struct crypto_mac;
struct crypto_mac *crypto_mac_new(const void *key, size_t size);
void crypto_mac_free(struct crypto_mac *mac);
void crypto_mac_sign(struct crypto_mac *mac, const void *data, size_t size, uint8_t digest[sha256_bytes]);

/*
 * The id of a secret key, for comparison and display: HMAC-SHA256 of a fixed text under the key,
 * cut to 8 bytes, in hexadecimal. It reveals nothing about a random key.
 */
enum { crypto_key_id_size = 17 };
void crypto_key_id(const void *key, size_t size, char id[crypto_key_id_size]);

/*
 * Derives the key of an id: HKDF-Expand with SHA-256 (RFC 5869, 2.3), one block. The parameter info consists
 * of the purpose and the id in eight bytes, big-endian. The key is uniformly random, so HKDF-Extract is not
 * needed (RFC 5869, 3.3).
 */
void crypto_key_derive(const uint8_t key[sha256_bytes], const char *purpose, uint64_t id,
                       uint8_t derived[sha256_bytes]);

/* Compares in constant time. */
bool crypto_equal(const void *a, const void *b, size_t size);

/*
 * AES-256-GCM (NIST SP 800-38D) with a random nonce. The output consists of nonce, ciphertext and tag. The
 * text about is additional authenticated data: it is not encrypted, and crypto_open needs the same text. One
 * key must not seal more than 2^32 texts.
 */
enum { crypto_key_bytes = 32, crypto_nonce_bytes = 12, crypto_tag_bytes = 16, crypto_seal_bytes = 28 };

/* Writes size + crypto_seal_bytes bytes to sealed. */
void crypto_seal(const uint8_t key[crypto_key_bytes], const char *about, const void *data, size_t size,
                 uint8_t *sealed);

/*
 * Writes size - crypto_seal_bytes bytes to data. Returns false and wipes data if the key, the text about or
 * any bit of sealed differs.
 */
bool crypto_open(const uint8_t key[crypto_key_bytes], const char *about, const uint8_t *sealed, size_t size,
                 void *data) __attribute__((warn_unused_result));

/* Lower-case hexadecimal, 2 * size characters and a zero, allocated in the arena. */
char *crypto_hex(struct arena *arena, const void *bytes, size_t size);

/* Reads exactly 2 * size hexadecimal digits; false for any other text. */
bool crypto_hex_read(const char *text, void *bytes, size_t size);

/* Base64 with padding (standard alphabet), and the URL-safe alphabet without padding (RFC 4648). */
char *crypto_base64(struct arena *arena, const void *bytes, size_t size);
char *crypto_base64url(struct arena *arena, const void *bytes, size_t size);

/*
 * Reads standard base64 with padding. Returns the size, or -1 if the text is invalid or
 * needs more than room bytes.
 */
long crypto_base64_read(const char *text, void *bytes, size_t room);

/* Overwrites secrets in a way that the compiler cannot optimise away. */
void crypto_wipe(void *bytes, size_t size);

/* Incremental MD5, only for Content-MD5 (RFC 1864). Do not use it for security. */
struct crypto_md5;
struct crypto_md5 *crypto_md5_begin(void);
void crypto_md5_add(struct crypto_md5 *md5, const void *data, size_t size);
void crypto_md5_end(struct crypto_md5 *md5, uint8_t digest[16]);

enum crypto_certificate {
    CRYPTO_CERTIFICATE_UNREADABLE,
    CRYPTO_CERTIFICATE_OTHER_NAME,
    CRYPTO_CERTIFICATE_OK
};

/*
 * Reads the first certificate of a PEM file. Checks whether it is valid for host (RFC 6125);
 * *days is the number of days until it expires.
 */
enum crypto_certificate crypto_certificate_check(const char *path, const char *host, int64_t *days);

#endif
