/* Hashes, encodings and encryption. */
#include <string.h>

#include "base/crypto.h"
#include "fixture.h"

static void test_hashes_match_published_vectors(void)
{
    uint8_t digest[sha256_bytes];
    fresh();
    /* FIPS 180-2 "abc"; the MAC is RFC 4231, case 2. */
    crypto_sha256("abc", 3, digest);
    CU_ASSERT_STRING_EQUAL(crypto_hex(arena, digest, sizeof digest),
                           "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    struct crypto_hash *hash = crypto_hash_begin();
    crypto_hash_add(hash, "a", 1);
    crypto_hash_add(hash, "bc", 2);
    uint8_t pieces[sha256_bytes];
    crypto_hash_end(hash, pieces);
    CU_ASSERT(crypto_equal(digest, pieces, sizeof digest));
    struct crypto_mac *mac = crypto_mac_new("Jefe", 4);
    for (int i = 0; i < 3; i++) {
        crypto_mac_sign(mac, "what do ya want for nothing?", 28, digest);
        CU_ASSERT_STRING_EQUAL(crypto_hex(arena, digest, sizeof digest),
                               "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }
    crypto_mac_free(mac);
    /* Databases store such ids, so the ids must never change. */
    char id[crypto_key_id_size];
    crypto_key_id("Jefe", 4, id);
    CU_ASSERT_STRING_EQUAL(id, "40be92ff306c5920");
}

/* Decodes unpadded base64url (RFC 4648, section 5) by way of base64. Returns -1 for any other character. */
static long base64url_read(const char *text, void *bytes, size_t room)
{
    size_t length = strlen(text);
    char *padded = arena_printf(arena, "%s%s", text, &"==="[length % 4 == 0 ? 3 : length % 4 - 1]);
    if (strpbrk(text, "+/=") != NULL)
        return -1;
    for (char *at = padded; *at != '\0'; at++)
        *at = *at == '-' ? '+' : *at == '_' ? '/' : *at;
    return crypto_base64_read(padded, bytes, room);
}

static void test_encodings_go_there_and_back(void)
{
    uint8_t bytes[64], back[64];
    for (size_t size = 0; size <= sizeof bytes; size++) {
        fresh();
        crypto_random(bytes, sizeof bytes);
        CU_ASSERT(crypto_hex_read(crypto_hex(arena, bytes, size), back, size) &&
                  memcmp(bytes, back, size) == 0);
        CU_ASSERT_EQUAL(crypto_base64_read(crypto_base64(arena, bytes, size), back, sizeof back), (long)size);
        CU_ASSERT_EQUAL(memcmp(bytes, back, size), 0);
        CU_ASSERT(base64url_read(crypto_base64url(arena, bytes, size), back, sizeof back) == (long)size);
        CU_ASSERT_EQUAL(memcmp(bytes, back, size), 0);
    }
    CU_ASSERT_FALSE(crypto_hex_read("0g", back, 1));
    CU_ASSERT_FALSE(crypto_hex_read("000", back, 1));
    CU_ASSERT_EQUAL(crypto_base64_read("a*==", back, sizeof back), -1);
}

/* Test case 14 of McGrew and Viega, "The Galois/Counter Mode of Operation (GCM)". */
static void a_published_ciphertext_is_decrypted(void)
{
    static const uint8_t key[crypto_key_bytes], nothing[16];
    uint8_t sealed[crypto_seal_bytes + 16] = {0}, opened[16];
    CU_ASSERT_TRUE_FATAL(crypto_hex_read("cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919",
                                         sealed + crypto_nonce_bytes, 32));
    CU_ASSERT_TRUE(crypto_open(key, "", sealed, sizeof sealed, opened));
    CU_ASSERT_EQUAL(memcmp(opened, nothing, sizeof opened), 0);
}

static void a_changed_ciphertext_is_refused(void)
{
    uint8_t key[crypto_key_bytes], other[crypto_key_bytes], sealed[crypto_seal_bytes + 5], opened[5];
    crypto_random(key, sizeof key);
    crypto_random(other, sizeof other);
    crypto_seal(key, "about", "hello", 5, sealed);
    CU_ASSERT_TRUE(crypto_open(key, "about", sealed, sizeof sealed, opened));
    CU_ASSERT_EQUAL(memcmp(opened, "hello", 5), 0);
    CU_ASSERT_FALSE(crypto_open(other, "about", sealed, sizeof sealed, opened));
    CU_ASSERT_FALSE(crypto_open(key, "abouT", sealed, sizeof sealed, opened));
    CU_ASSERT_FALSE(crypto_open(key, "about", sealed, sizeof sealed - 1, opened));
    CU_ASSERT_FALSE(crypto_open(key, "about", sealed, crypto_seal_bytes - 1, opened));
    for (size_t bit = 0; bit < 8 * sizeof sealed; bit++) {
        sealed[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CU_ASSERT_FALSE(crypto_open(key, "about", sealed, sizeof sealed, opened));
        CU_ASSERT_EQUAL(memcmp(opened, "\0\0\0\0\0", 5), 0);
        sealed[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

static void two_ciphertexts_of_one_secret_differ(void)
{
    uint8_t key[crypto_key_bytes], one[crypto_seal_bytes + 5], two[crypto_seal_bytes + 5];
    crypto_random(key, sizeof key);
    crypto_seal(key, "about", "hello", 5, one);
    crypto_seal(key, "about", "hello", 5, two);
    CU_ASSERT_NOT_EQUAL(memcmp(one, two, sizeof one), 0);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"hashes match published vectors", test_hashes_match_published_vectors},
        {"encodings go there and back", test_encodings_go_there_and_back},
        {"a published ciphertext is decrypted", a_published_ciphertext_is_decrypted},
        {"a changed ciphertext is refused", a_changed_ciphertext_is_refused},
        {"two ciphertexts of one secret differ", two_ciphertexts_of_one_secret_differ},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("crypto", tests);
}
