#include "base/crypto.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

static void crypto_require(bool worked, const char *what)
{
    if (worked)
        return;
    fprintf(stderr, "{\"level\":\"error\",\"event\":\"crypto_failed\",\"reason\":\"%s\"}\n", what);
    abort();
}

void crypto_random(void *bytes, size_t size)
{
    crypto_require(RAND_bytes(bytes, (int)size) == 1, "random");
}

uint64_t crypto_random_u64(void)
{
    uint64_t value;
    crypto_random(&value, sizeof value);
    return value;
}

/* Cached: a lookup by name takes longer than hashing a short text. */
static const EVP_MD *digest_fetch(const char *name)
{
    static EVP_MD *sha256, *md5;
    EVP_MD **slot = strcmp(name, "MD5") == 0 ? &md5 : &sha256;
    if (*slot == NULL)
        *slot = EVP_MD_fetch(NULL, name, NULL);
    crypto_require(*slot != NULL, name);
    return *slot;
}

void crypto_sha256(const void *data, size_t size, uint8_t digest[sha256_bytes])
{
    crypto_require(EVP_Digest(data, size, digest, NULL, digest_fetch("SHA256"), NULL) == 1, "sha256");
}

static EVP_MD_CTX *digest_begin(const char *name)
{
    EVP_MD_CTX *state = EVP_MD_CTX_new();
    crypto_require(state != NULL && EVP_DigestInit_ex(state, digest_fetch(name), NULL) == 1, name);
    return state;
}

static void digest_end(EVP_MD_CTX *state, uint8_t *digest)
{
    crypto_require(EVP_DigestFinal_ex(state, digest, NULL) == 1, "digest end");
    EVP_MD_CTX_free(state);
}

/* Both crypto_hash and crypto_md5 are an EVP_MD_CTX under another name. */
static EVP_MD_CTX *state_of(void *hash)
{
    return hash;
}

struct crypto_hash *crypto_hash_begin(void)
{
    return (struct crypto_hash *)(void *)digest_begin("SHA256");
}

void crypto_hash_add(struct crypto_hash *hash, const void *data, size_t size)
{
    crypto_require(EVP_DigestUpdate(state_of(hash), data, size) == 1, "digest add");
}

void crypto_hash_end(struct crypto_hash *hash, uint8_t digest[sha256_bytes])
{
    digest_end(state_of(hash), digest);
}

struct crypto_md5 *crypto_md5_begin(void)
{
    return (struct crypto_md5 *)(void *)digest_begin("MD5");
}

void crypto_md5_add(struct crypto_md5 *md5, const void *data, size_t size)
{
    crypto_require(EVP_DigestUpdate(state_of(md5), data, size) == 1, "digest add");
}

void crypto_md5_end(struct crypto_md5 *md5, uint8_t digest[16])
{
    digest_end(state_of(md5), digest);
}

struct crypto_mac {
    EVP_MAC_CTX *keyed;
};

struct crypto_mac *crypto_mac_new(const void *key, size_t size)
{
    static EVP_MAC *hmac;
    if (hmac == NULL)
        hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    struct crypto_mac *mac = malloc(sizeof *mac);
    crypto_require(hmac != NULL && mac != NULL, "hmac");
    mac->keyed = EVP_MAC_CTX_new(hmac);
    char name[] = "SHA256";
    OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name, 0),
                               OSSL_PARAM_construct_end()};
    crypto_require(mac->keyed != NULL && EVP_MAC_init(mac->keyed, key, size, parameters) == 1, "hmac key");
    return mac;
}

void crypto_mac_free(struct crypto_mac *mac)
{
    if (mac == NULL)
        return;
    EVP_MAC_CTX_free(mac->keyed);
    free(mac);
}

void crypto_mac_sign(struct crypto_mac *mac, const void *data, size_t size, uint8_t digest[sha256_bytes])
{
    size_t length;
    EVP_MAC_CTX *copy = EVP_MAC_CTX_dup(mac->keyed);
    crypto_require(copy != NULL && EVP_MAC_update(copy, data, size) == 1 &&
                       EVP_MAC_final(copy, digest, &length, sha256_bytes) == 1,
                   "hmac sign");
    EVP_MAC_CTX_free(copy);
}

void crypto_key_id(const void *key, size_t size, char id[crypto_key_id_size])
{
    static const char label[] = "imgward key id 1";
    uint8_t digest[sha256_bytes];
    struct crypto_mac *mac = crypto_mac_new(key, size);
    crypto_mac_sign(mac, label, sizeof label - 1, digest);
    crypto_mac_free(mac);
    for (int i = 0; i < crypto_key_id_size / 2; i++)
        snprintf(id + 2 * i, 3, "%02x", digest[i]);
}

/* Starts AES-256-GCM in either direction, with the nonce and the additional authenticated data. */
static EVP_CIPHER_CTX *cipher_begin(const uint8_t *key, const uint8_t *nonce, const char *about,
                                    int is_sealing)
{
    int unused;
    EVP_CIPHER_CTX *state = EVP_CIPHER_CTX_new();
    crypto_require(
        state != NULL && EVP_CipherInit_ex(state, EVP_aes_256_gcm(), NULL, key, nonce, is_sealing) == 1 &&
            EVP_CipherUpdate(state, NULL, &unused, (const uint8_t *)about, (int)strlen(about)) == 1,
        "aes-256-gcm");
    return state;
}

void crypto_seal(const uint8_t key[crypto_key_bytes], const char *about, const void *data, size_t size,
                 uint8_t *sealed)
{
    int length, rest;
    crypto_random(sealed, crypto_nonce_bytes);
    uint8_t *hidden = sealed + crypto_nonce_bytes;
    EVP_CIPHER_CTX *state = cipher_begin(key, sealed, about, 1);
    crypto_require(EVP_CipherUpdate(state, hidden, &length, data, (int)size) == 1 &&
                       EVP_CipherFinal_ex(state, hidden + length, &rest) == 1 &&
                       EVP_CIPHER_CTX_ctrl(state, EVP_CTRL_AEAD_GET_TAG, crypto_tag_bytes, hidden + size) ==
                           1,
                   "seal");
    EVP_CIPHER_CTX_free(state);
}

bool crypto_open(const uint8_t key[crypto_key_bytes], const char *about, const uint8_t *sealed, size_t size,
                 void *data)
{
    int length, rest;
    uint8_t tag[crypto_tag_bytes];
    if (size < crypto_seal_bytes)
        return false;
    size -= crypto_seal_bytes;
    const uint8_t *hidden = sealed + crypto_nonce_bytes;
    memcpy(tag, hidden + size, sizeof tag);
    EVP_CIPHER_CTX *state = cipher_begin(key, sealed, about, 0);
    bool is_whole = EVP_CipherUpdate(state, data, &length, hidden, (int)size) == 1 &&
                    EVP_CIPHER_CTX_ctrl(state, EVP_CTRL_AEAD_SET_TAG, sizeof tag, tag) == 1 &&
                    EVP_CipherFinal_ex(state, (uint8_t *)data + length, &rest) == 1;
    EVP_CIPHER_CTX_free(state);
    if (!is_whole)
        crypto_wipe(data, size);
    return is_whole;
}

void crypto_key_derive(const uint8_t key[sha256_bytes], const char *purpose, uint64_t id,
                       uint8_t derived[sha256_bytes])
{
    uint8_t info[64];
    size_t length = strlen(purpose);
    crypto_require(length + 9 <= sizeof info, "derivation");
    memcpy(info, purpose, length);
    for (unsigned i = 0; i < 8; i++)
        info[length + i] = (uint8_t)(id >> (56 - 8 * i));
    info[length + 8] = 1;
    struct crypto_mac *mac = crypto_mac_new(key, sha256_bytes);
    crypto_mac_sign(mac, info, length + 9, derived);
    crypto_mac_free(mac);
}

bool crypto_equal(const void *a, const void *b, size_t size)
{
    return CRYPTO_memcmp(a, b, size) == 0;
}

char *crypto_hex(struct arena *arena, const void *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    char *text = arena_alloc(arena, 2 * size + 1);
    for (size_t i = 0; i < size; i++) {
        text[2 * i] = digits[((const uint8_t *)bytes)[i] >> 4];
        text[2 * i + 1] = digits[((const uint8_t *)bytes)[i] & 15];
    }
    return text;
}

static int digit_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}

bool crypto_hex_read(const char *text, void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        int high = digit_value(text[2 * i]);
        int low = high < 0 ? -1 : digit_value(text[2 * i + 1]);
        if (low < 0)
            return false;
        ((uint8_t *)bytes)[i] = (uint8_t)(high << 4 | low);
    }
    return text[2 * size] == '\0';
}

char *crypto_base64(struct arena *arena, const void *bytes, size_t size)
{
    char *text = arena_alloc(arena, (size + 2) / 3 * 4 + 1);
    EVP_EncodeBlock((unsigned char *)text, bytes, (int)size);
    return text;
}

char *crypto_base64url(struct arena *arena, const void *bytes, size_t size)
{
    char *text = crypto_base64(arena, bytes, size);
    for (char *at = text; *at != '\0'; at++)
        *at = *at == '+' ? '-' : *at == '/' ? '_' : *at == '=' ? '\0' : *at;
    return text;
}

long crypto_base64_read(const char *text, void *bytes, size_t room)
{
    unsigned char block[1024 * 3];
    size_t length = strlen(text);
    if (length % 4 != 0 || length / 4 * 3 > sizeof block ||
        strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghij"
                     "klmnopqrstuvwxyz0123456789+/=") != length)
        return -1;
    long size = EVP_DecodeBlock(block, (const unsigned char *)text, (int)length);
    for (size_t i = length; size > 0 && i > 0 && i + 2 > length && text[i - 1] == '='; i--)
        size--;
    if (size < 0 || (size_t)size > room)
        return -1;
    memcpy(bytes, block, (size_t)size);
    return size;
}

void crypto_wipe(void *bytes, size_t size)
{
    OPENSSL_cleanse(bytes, size);
}

enum crypto_certificate crypto_certificate_check(const char *path, const char *host, int64_t *days)
{
    int day_count = 0, second_count = 0;
    *days = 0;
    BIO *file = BIO_new_file(path, "r");
    X509 *certificate = file == NULL ? NULL : PEM_read_bio_X509(file, NULL, NULL, NULL);
    BIO_free(file);
    if (certificate == NULL)
        return CRYPTO_CERTIFICATE_UNREADABLE;
    if (ASN1_TIME_diff(&day_count, &second_count, NULL, X509_get0_notAfter(certificate)) == 1)
        *days = day_count;
    bool is_for_host =
        X509_check_host(certificate, host, 0, 0, NULL) == 1 || X509_check_ip_asc(certificate, host, 0) == 1;
    X509_free(certificate);
    return is_for_host ? CRYPTO_CERTIFICATE_OK : CRYPTO_CERTIFICATE_OTHER_NAME;
}
