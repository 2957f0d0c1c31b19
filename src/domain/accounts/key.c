#include "domain/accounts/key.h"

#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/text.h"
#include "db/keys.h"

static const char word[] = "iw_live_";
static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

enum { word_length = sizeof word - 1, digit_count = 43, base = 62 };

/* Divides the big-endian integer by 62 in place and returns the remainder. */
static unsigned integer_divide(uint8_t bytes[32])
{
    unsigned rest = 0;
    for (int i = 0; i < 32; i++) {
        unsigned value = rest << 8 | bytes[i];
        bytes[i] = (uint8_t)(value / base);
        rest = value % base;
    }
    return rest;
}

void key_from_bytes(const uint8_t bytes[32], char key[key_size])
{
    uint8_t integer[32];
    memcpy(integer, bytes, sizeof integer);
    memcpy(key, word, word_length);
    for (int i = digit_count - 1; i >= 0; i--)
        key[word_length + i] = digits[integer_divide(integer)];
    key[key_length] = '\0';
    crypto_wipe(integer, sizeof integer);
}

void key_make(char key[key_size])
{
    uint8_t bytes[32];
    crypto_random(bytes, sizeof bytes);
    key_from_bytes(bytes, key);
    crypto_wipe(bytes, sizeof bytes);
}

bool key_is_well_formed(const char *text, size_t length)
{
    if (length != key_length || memcmp(text, word, word_length) != 0)
        return false;
    for (size_t i = word_length; i < length; i++)
        if (text[i] == '\0' || strchr(digits, text[i]) == NULL)
            return false;
    return true;
}

/* True if a text begins with a quotation mark, plain or typographic, or a bracket. */
static bool is_enclosed(const char *text)
{
    static const char *const marks[] = {"\"", "'", "`", "<", "{", "[", "\u2018", "\u201c", "\u00ab"};
    for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
        if (strncmp(text, marks[i], strlen(marks[i])) == 0)
            return true;
    return false;
}

const char *key_form_fault(struct arena *arena, const char *text)
{
    size_t length = strlen(text);
    const char *first = strstr(text, word);
    if (key_is_well_formed(text, length))
        return NULL;
    if (is_enclosed(text))
        return "the key is in quotation marks or brackets";
    if (first != NULL && strstr(first + word_length, word) != NULL)
        return "there are two keys; one is needed";
    if (strpbrk(text, " \t") != NULL || text_has_control(text, length))
        return "the key has spaces or control characters";
    if (text_code_points(text, length) != key_length)
        return arena_printf(arena, "the key has %zu characters", text_code_points(text, length));
    if (first != text)
        return "the key does not begin with iw_live_";
    return "the key has a character that is neither a letter nor a digit";
}

void key_digest(const char *key, uint8_t digest[32])
{
    crypto_sha256(key, key_length, digest);
}

void key_prefix(const char *key, char prefix[key_prefix_size])
{
    memcpy(prefix, key, key_prefix_length);
    prefix[key_prefix_length] = '\0';
}

/* ---- authentication ---- */

enum { touch_every_ms = 60000 };

enum iw_error key_refused(struct context *context, int64_t revoked_ms)
{
    if (revoked_ms == 0)
        return context_fail(context, IW_AUTH_TOKEN_INVALID, NULL);
    return context_fail(context, IW_AUTH_TOKEN_INVALID,
                        "The API key was revoked at %s; use another key or ask the operator for one.",
                        clock_iso_text(context->arena, revoked_ms));
}

enum iw_error key_authenticate(struct domain *domain, const uint8_t digest[32], struct account *account)
{
    bool is_found = false;
    int64_t now_ms = clock_now_ms();
    enum iw_error error = keys_find(&domain->db, digest, account, &is_found);
    if (error == IW_OK && (!is_found || account->key_revoked_ms != 0))
        return key_refused(domain->context, is_found ? account->key_revoked_ms : 0);
    if (error != IW_OK || now_ms - account->key_last_used_ms < touch_every_ms)
        return error;
    return keys_touch(&domain->db, account->key_id, now_ms);
}
