/* Secrets and signatures of webhooks. */
#include <string.h>

#include "base/crypto.h"
#include "domain/webhooks/webhook_secret.h"
#include "fixture.h"
#include "service/secret/secret_box.h"

/* The example in the reference libraries of Standard Webhooks. */
static void the_published_message_has_the_published_signature(void)
{
    struct text body;
    uint8_t key[64];
    fresh();
    text_init(&body, arena);
    text_add_string(&body, "{\"test\": 2432232314}");
    long size = crypto_base64_read("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", key, sizeof key);
    CU_ASSERT_EQUAL_FATAL(size, 24);
    CU_ASSERT_STRING_EQUAL(
        webhook_secret_sign(arena, key, (size_t)size, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, &body),
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

static void a_secret_is_whsec_and_base64_of_24_to_64_bytes(void)
{
    struct webhook_secret secret;
    uint8_t bytes[64];
    fresh();
    webhook_secret_make(&secret);
    const char *text = webhook_secret_text(arena, &secret);
    CU_ASSERT_EQUAL_FATAL(strncmp(text, "whsec_", 6), 0);
    CU_ASSERT_EQUAL(crypto_base64_read(text + 6, bytes, sizeof bytes), webhook_secret_bytes);
    CU_ASSERT_EQUAL(memcmp(bytes, secret.bytes, sizeof secret.bytes), 0);
}

static void an_encrypted_secret_belongs_to_one_account(void)
{
    struct webhook_secret secret, opened;
    struct secret_box secret_box;
    uint8_t sealed[webhook_secret_sealed_bytes];
    crypto_random(&secret_box, sizeof secret_box);
    webhook_secret_make(&secret);
    webhook_secret_seal(&secret, &secret_box, 7, sealed);
    CU_ASSERT_TRUE(webhook_secret_open(&opened, &secret_box, 7, sealed, sizeof sealed));
    CU_ASSERT_EQUAL(memcmp(&secret, &opened, sizeof secret), 0);
    CU_ASSERT_FALSE(webhook_secret_open(&opened, &secret_box, 8, sealed, sizeof sealed));
    CU_ASSERT_FALSE(webhook_secret_open(&opened, &secret_box, 7, sealed, sizeof sealed - 1));
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"the published message has the published signature",
         the_published_message_has_the_published_signature},
        {"a secret is whsec_ and base64 of 24 to 64 bytes", a_secret_is_whsec_and_base64_of_24_to_64_bytes},
        {"an encrypted secret belongs to one account", an_encrypted_secret_belongs_to_one_account},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("webhook secret", tests);
}
