#include "domain/people/second_factor.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/crypto.h"
#include "base/message.h"
#include "base/text.h"
#include "db/tokens.h"
#include "db/transaction.h"
#include "db/users.h"
#include "domain/people/mail.h"
#include "domain/people/user.h"
#include "service/secret/secret_box.h"
#include "service/secret/totp.h"
#include "service/secret/typed.h"

enum { code_bytes = 10, group_letters = 4, code_letters = 16 };

/* The associated data of the seal, so that a secret in another user's row cannot be opened. */
static const char *about_of(struct arena *arena, int64_t user_id)
{
    return arena_printf(arena, "imgward-totp-1:%" PRId64, user_id);
}

/* Percent-encodes a label of the URL. */
static const char *label_of(struct arena *arena, const char *text)
{
    struct text label;
    text_init(&label, arena);
    for (; *text != '\0'; text++)
        if (isalnum((unsigned char)*text) || strchr("-._~", *text) != NULL)
            text_add(&label, text, 1);
        else
            text_printf(&label, "%%%02X", (unsigned char)*text);
    return label.data;
}

enum iw_error second_factor_make(struct domain *domain, const struct user *user,
                                 const struct audit_client *client, struct second_factor *factor)
{
    struct arena *arena = domain->context->arena;
    /* Otherwise a stranger's second factor would lock out the owner of the address. */
    if (user->email_verified_ms == 0 && mail_is_on(domain->config))
        return context_fail(domain->context, IW_EMAIL_UNVERIFIED, NULL);
    uint8_t secret[totp_secret_bytes], sealed[totp_secret_bytes + crypto_seal_bytes];
    crypto_random(secret, sizeof secret);
    crypto_seal(domain->secret_box->key, about_of(arena, user->id), secret, sizeof secret, sealed);
    factor->secret = totp_secret_text(arena, secret);
    factor->url = arena_printf(arena, "otpauth://totp/imgward:%s?secret=%s&issuer=imgward",
                               label_of(arena, user->email), factor->secret);
    crypto_wipe(secret, sizeof secret);
    enum iw_error error;
    const struct audit_actor actor = audit_actor_of(user, client);
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        error = user_verified_lock(domain, user, "totp_make");
        if (error == IW_OK)
            error = users_totp_set(&domain->db, user->id, sealed, sizeof sealed);
        if (error == IW_OK)
            error = audit_add(domain, &actor, "secondFactorMade", NULL);
    }
    return error;
}

/* A code as it was typed, without the blanks and dashes between its groups. */
static const char *code_joined(struct arena *arena, const char *code)
{
    struct text joined;
    text_init(&joined, arena);
    for (code = typed_word(arena, code); *code != '\0'; code++)
        if (*code != '-' && *code != ' ')
            text_add(&joined, code, 1);
    return joined.length > 0 ? joined.data : "";
}

/*
 * A recovery code in the form of its digest, with Crockford's readings of I, L and O; NULL if it has
 * another form.
 */
static const char *code_clean(struct arena *arena, const char *code)
{
    char *clean = arena_text(arena, code_joined(arena, code));
    if (strlen(clean) != code_letters)
        return NULL;
    for (char *at = clean; *at != '\0'; at++) {
        int letter = toupper((unsigned char)*at);
        *at = letter == 'O' ? '0' : letter == 'I' || letter == 'L' ? '1' : (char)letter;
    }
    return clean;
}

/* True for the code that the user's authenticator shows now. */
static bool code_is_shown(const struct domain *domain, const struct user *user, const char *code,
                          int64_t *step)
{
    uint8_t secret[totp_secret_bytes];
    struct arena *arena = domain->context->arena;
    bool is_shown = user->totp_sealed != NULL &&
                    user->totp_sealed_size == totp_secret_bytes + crypto_seal_bytes &&
                    crypto_open(domain->secret_box->key, about_of(arena, user->id), user->totp_sealed,
                                user->totp_sealed_size, secret) &&
                    totp_verify(secret, code_joined(arena, code), clock_now_ms(), step);
    crypto_wipe(secret, sizeof secret);
    return is_shown;
}

/* Four groups of four letters of Crockford's base 32: without I, L, O and U. */
static const char *code_new(struct arena *arena, uint8_t digest[32])
{
    static const char letters[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    uint8_t random[code_bytes];
    struct text code;
    text_init(&code, arena);
    crypto_random(random, sizeof random);
    for (unsigned bit = 0, count = 0; count < code_letters; bit += 5, count++) {
        unsigned pair = (unsigned)random[bit / 8] << 8 | (bit / 8 + 1 < code_bytes ? random[bit / 8 + 1] : 0);
        text_printf(&code, "%s%c", count > 0 && count % group_letters == 0 ? "-" : "",
                    letters[pair >> (11 - bit % 8) & 31]);
    }
    const char *clean = code_clean(arena, code.data);
    crypto_sha256(clean, code_letters, digest);
    return code.data;
}

/* Writes new recovery codes and an event about them. */
static enum iw_error codes_write(struct domain *domain, const struct user *user,
                                 const struct audit_client *client, const char *event,
                                 const char *codes[second_factor_codes])
{
    uint8_t digests[second_factor_codes][32];
    const struct audit_actor actor = audit_actor_of(user, client);
    for (int i = 0; i < second_factor_codes; i++)
        codes[i] = code_new(domain->context->arena, digests[i]);
    enum iw_error error =
        tokens_codes_set(&domain->db, user->id, (const uint8_t(*)[32])digests, second_factor_codes);
    return error == IW_OK ? audit_add(domain, &actor, event, NULL) : error;
}

enum iw_error second_factor_enable(struct domain *domain, const struct user *user, const char *code,
                                   const struct audit_client *client, const char *codes[second_factor_codes],
                                   struct session_new *fresh)
{
    int64_t step = 0;
    enum iw_error error;
    if (!code_is_shown(domain, user, code, &step) || user->totp_enabled_ms != 0) {
        context_detail(domain->context, "code", message_code_wrong);
        return context_validated(domain->context);
    }
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        bool is_taken; /* false if the code was used before */
        error = user_verified_lock(domain, user, "totp_enable");
        /* The code of this step can no longer sign in. */
        if (error == IW_OK)
            error = users_totp_step(&domain->db, user->id, step, &is_taken);
        if (error == IW_OK)
            error = users_totp_enable(&domain->db, user->id, clock_now_ms());
        if (error == IW_OK)
            error = session_renew(domain, user, client, fresh);
        if (error == IW_OK)
            error = codes_write(domain, user, client, "secondFactorEnabled", codes);
    }
    return error;
}

enum iw_error second_factor_codes_new(struct domain *domain, const struct user *user,
                                      const struct audit_client *client,
                                      const char *codes[second_factor_codes])
{
    enum iw_error error;
    if (user->totp_enabled_ms == 0)
        return context_fail(domain->context, IW_VALIDATION_FAILED, message_factor_off);
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        error = user_verified_lock(domain, user, "recovery_codes");
        if (error == IW_OK)
            error = codes_write(domain, user, client, "recoveryCodesMade", codes);
    }
    return error;
}

enum iw_error second_factor_disable(struct domain *domain, const struct user *user,
                                    const struct audit_actor *actor)
{
    enum iw_error error;
    for (struct transaction t = transaction_begin(&domain->db); transaction_goes_on(&t, &error);) {
        error = user_verified_lock(domain, user, "totp_disable");
        if (error == IW_OK)
            error = users_totp_set(&domain->db, user->id, NULL, 0);
        if (error == IW_OK)
            error = tokens_codes_set(&domain->db, user->id, NULL, 0);
        if (error == IW_OK)
            error = audit_add(domain, actor, "secondFactorDisabled", "email", user->email, NULL);
    }
    return error;
}

static enum iw_error recovery_take(const struct domain *domain, const struct user *user, const char *code,
                                   const struct audit_client *client, bool *is_taken)
{
    uint8_t digest[32];
    const struct audit_actor actor = audit_actor_of(user, client);
    const char *clean = code_clean(domain->context->arena, code);
    *is_taken = false;
    if (clean == NULL)
        return IW_OK;
    crypto_sha256(clean, code_letters, digest);
    enum iw_error error = tokens_code_take(&domain->db, user->id, digest, is_taken);
    return error == IW_OK && *is_taken ? audit_add(domain, &actor, "recoveryCodeUsed", NULL) : error;
}

enum iw_error second_factor_take(const struct domain *domain, const struct user *user, const char *code,
                                 const struct audit_client *client)
{
    int64_t step = 0;
    /* Uses up the step by compare-and-set, so that only one of two requests with the same code succeeds. */
    bool is_taken = false;
    enum iw_error error = code_is_shown(domain, user, code, &step)
                              ? users_totp_step(&domain->db, user->id, step, &is_taken)
                              : recovery_take(domain, user, code, client, &is_taken);
    return error == IW_OK && !is_taken ? context_fail(domain->context, IW_SIGN_IN_FAILED, NULL) : error;
}
