/* Webhooks: encrypted secrets, signatures, settings, and delivery states. */
#include "domain/webhooks/webhook.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crypto.h"
#include "model/delivery.h"
#include "domain/webhooks/webhook_secret.h"
#include "service/secret/secret_box.h"
#include "runner.h"

static struct arena *arena;
static struct context context;
static uint64_t random_state = 0x9E3779B97F4A7C15u;

static void fresh(void)
{
    arena_reset(arena);
    context_init(&context, arena, NULL);
}

/* A fixed sequence, so that failures can be reproduced. */
static unsigned random_below(unsigned bound)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (unsigned)(random_state % bound);
}

/* ---- encryption ---- */

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

static void the_sealing_key_is_a_file_for_its_owner(void)
{
    char path[] = "/tmp/imgward-secret_box.XXXXXX";
    struct secret_box one, two;
    struct stat facts;
    fresh();
    CU_ASSERT_TRUE_FATAL(mkdtemp(path) != NULL);
    const char *file = arena_printf(arena, "%s/secret_box.key", path);
    CU_ASSERT_EQUAL(secret_box_generate(&context, file), IW_OK);
    CU_ASSERT_TRUE(stat(file, &facts) == 0 && (facts.st_mode & 0777) == 0600);
    CU_ASSERT_EQUAL(secret_box_read(&context, file, &one), IW_OK);
    CU_ASSERT_EQUAL(secret_box_generate(&context, file), IW_TWIN_EXISTS);
    fresh();
    file = arena_printf(arena, "%s/secret_box.key", path);
    CU_ASSERT_EQUAL(secret_box_read(&context, file, &two), IW_OK);
    CU_ASSERT_EQUAL(memcmp(&one, &two, sizeof one), 0);
    chmod(file, 0644);
    CU_ASSERT_EQUAL(secret_box_read(&context, file, &two), IW_CONFIG_INVALID);
    unlink(file);
    rmdir(path);
}

/* ---- signatures ---- */

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

/* ---- delivery states ---- */

static const enum delivery_state all_states[] = {DELIVERY_NONE, DELIVERY_PENDING, DELIVERY_SENDING,
                                                 DELIVERY_DELIVERED, DELIVERY_FAILED};

static void an_ended_delivery_only_moves_when_it_is_repeated(void)
{
    for (int event = 0; event < DELIVERY_EVENT_COUNT; event++) {
        enum delivery_state wanted = event == DELIVERY_EVENT_REPEAT ? DELIVERY_PENDING : DELIVERY_NONE;
        CU_ASSERT_EQUAL(delivery_next(DELIVERY_DELIVERED, (enum delivery_event)event), wanted);
        CU_ASSERT_EQUAL(delivery_next(DELIVERY_FAILED, (enum delivery_event)event), wanted);
        CU_ASSERT_EQUAL(delivery_next(DELIVERY_NONE, (enum delivery_event)event), DELIVERY_NONE);
    }
}

static void only_a_delivery_being_sent_can_succeed_or_fail(void)
{
    for (size_t i = 0; i < sizeof all_states / sizeof all_states[0]; i++) {
        bool is_sending = all_states[i] == DELIVERY_SENDING;
        CU_ASSERT_EQUAL(delivery_next(all_states[i], DELIVERY_EVENT_SUCCEED),
                        is_sending ? DELIVERY_DELIVERED : DELIVERY_NONE);
        CU_ASSERT_EQUAL(delivery_next(all_states[i], DELIVERY_EVENT_FAIL),
                        is_sending ? DELIVERY_FAILED : DELIVERY_NONE);
        CU_ASSERT_EQUAL(delivery_next(all_states[i], DELIVERY_EVENT_RETRY),
                        is_sending ? DELIVERY_PENDING : DELIVERY_NONE);
    }
}

static void a_delivery_being_sent_is_not_repeated(void)
{
    CU_ASSERT_EQUAL(delivery_next(DELIVERY_SENDING, DELIVERY_EVENT_REPEAT), DELIVERY_NONE);
    CU_ASSERT_EQUAL(delivery_next(DELIVERY_SENDING, DELIVERY_EVENT_LEASE), DELIVERY_NONE);
    CU_ASSERT_EQUAL(delivery_next((enum delivery_state)DELIVERY_STATE_COUNT, DELIVERY_EVENT_LEASE),
                    DELIVERY_NONE);
    CU_ASSERT_EQUAL(delivery_next(DELIVERY_PENDING, (enum delivery_event)DELIVERY_EVENT_COUNT),
                    DELIVERY_NONE);
}

static void state_names_go_both_ways(void)
{
    for (int state = DELIVERY_NONE + 1; state < DELIVERY_STATE_COUNT; state++)
        CU_ASSERT_EQUAL(delivery_state_by_name(delivery_state_name((enum delivery_state)state)), state);
    CU_ASSERT_EQUAL(delivery_state_by_name("NOTHING"), DELIVERY_NONE);
    CU_ASSERT_PTR_NULL(delivery_state_name(DELIVERY_NONE));
}

/*
 * The contract: "Retries after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h, 20 h, 24 h
 * (jittered), then FAILED".
 */
static void the_schedule_is_the_contracts(void)
{
    static const int64_t schedule_s[] = {5,         5 * 60,    30 * 60,   2 * 3600, 5 * 3600,
                                         10 * 3600, 14 * 3600, 20 * 3600, 24 * 3600};
    const struct delivery_answer answer = {.is_answered = true, .status = 500};
    int64_t failures = 0;
    for (size_t i = 0; i < sizeof schedule_s / sizeof schedule_s[0]; i++) {
        int64_t least = INT64_MAX, most = 0;
        struct delivery_verdict verdict = {.failures = 0};
        for (unsigned turn = 0; turn < 2000; turn++) {
            verdict = delivery_judge(&answer, failures, (uint64_t)random_below(1u << 30) * 7919);
            CU_ASSERT_EQUAL_FATAL(verdict.event, DELIVERY_EVENT_RETRY);
            least = verdict.wait_ms < least ? verdict.wait_ms : least;
            most = verdict.wait_ms > most ? verdict.wait_ms : most;
        }
        CU_ASSERT(least >= schedule_s[i] * 1000 && least < schedule_s[i] * 1020);
        CU_ASSERT(most <= schedule_s[i] * 1200 && most > schedule_s[i] * 1180);
        CU_ASSERT_EQUAL(verdict.failures, failures + 1);
        failures = verdict.failures;
    }
    struct delivery_verdict last = delivery_judge(&answer, failures, 1);
    CU_ASSERT_EQUAL(last.event, DELIVERY_EVENT_FAIL);
    CU_ASSERT_EQUAL(last.failures, delivery_tries);
    CU_ASSERT_FALSE(last.is_gone);
}

static void every_2xx_and_nothing_else_is_a_success(void)
{
    for (long status = 100; status < 600; status++) {
        const struct delivery_answer answer = {.is_answered = true, .status = status};
        struct delivery_verdict verdict = delivery_judge(&answer, 3, 0);
        bool is_success = status >= 200 && status < 300;
        CU_ASSERT_EQUAL(verdict.event == DELIVERY_EVENT_SUCCEED, is_success);
        CU_ASSERT_EQUAL(verdict.is_gone, status == 410);
        CU_ASSERT_EQUAL(verdict.event == DELIVERY_EVENT_FAIL, status == 410);
        CU_ASSERT_EQUAL(verdict.failures, is_success ? 3 : 4);
    }
    const struct delivery_answer silent = {.is_answered = false, .status = 200};
    CU_ASSERT_EQUAL(delivery_judge(&silent, 0, 0).event, DELIVERY_EVENT_RETRY);
}

static void retry_after_is_honoured_up_to_a_day(void)
{
    struct delivery_answer answer = {.is_answered = true, .status = 503, .retry_after_s = 3600};
    CU_ASSERT_EQUAL(delivery_judge(&answer, 0, 0).wait_ms, 3600 * 1000);
    answer.retry_after_s = 1; /* earlier than the schedule, which wins */
    CU_ASSERT_EQUAL(delivery_judge(&answer, 0, 0).wait_ms, 5000);
    answer.retry_after_s = 100 * 86400;
    CU_ASSERT_EQUAL(delivery_judge(&answer, 0, 0).wait_ms, 86400 * 1000);
    answer.retry_after_s = INT64_MAX;
    CU_ASSERT_EQUAL(delivery_judge(&answer, 0, 0).wait_ms, 86400 * 1000);
}

static void five_days_without_a_success_are_too_many(void)
{
    const int64_t day_ms = 86400 * 1000, now_ms = 1700000000000;
    CU_ASSERT_FALSE(delivery_is_hopeless(0, now_ms));
    CU_ASSERT_FALSE(delivery_is_hopeless(now_ms - 5 * day_ms + 1, now_ms));
    CU_ASSERT_TRUE(delivery_is_hopeless(now_ms - 5 * day_ms, now_ms));
}

/* Ten thousand random histories: each ends after at most ten counted attempts. */
static void every_delivery_ends(void)
{
    for (int life = 0; life < 10000; life++) {
        enum delivery_state state = DELIVERY_PENDING;
        int64_t failures = 0;
        int tries = 0, lost = 0;
        while (state != DELIVERY_DELIVERED && state != DELIVERY_FAILED) {
            state = delivery_next(state, DELIVERY_EVENT_LEASE);
            CU_ASSERT_EQUAL_FATAL(state, DELIVERY_SENDING);
            if (lost < 5 && random_below(10) == 0) {
                lost++;
                state = delivery_next(state, DELIVERY_EVENT_LOSE);
                continue;
            }
            const struct delivery_answer answer = {.is_answered = random_below(4) > 0,
                                                   .status = 100 + (long)random_below(500)};
            struct delivery_verdict verdict = delivery_judge(&answer, failures, random_below(1000));
            failures = verdict.failures;
            state = delivery_next(state, verdict.event);
            tries++;
        }
        CU_ASSERT_FATAL(tries <= delivery_tries);
    }
}

/* ---- rules ---- */

static void every_end_of_an_order_has_its_event(void)
{
    static const struct {
        enum order_type type;
        enum order_status status;
        const char *name;
    } ends[] = {
        {ORDER_ANTI_AI, ORDER_COMPLETE, "order.antiAi.completed"},
        {ORDER_ANTI_AI, ORDER_FAILED, "order.antiAi.failed"},
        {ORDER_WATERMARK_EMBED, ORDER_COMPLETE, "order.watermarkEmbed.completed"},
        {ORDER_WATERMARK_EMBED, ORDER_FAILED, "order.watermarkEmbed.failed"},
        {ORDER_WATERMARK_EXTRACT, ORDER_DETECTED, "order.watermarkExtract.completed"},
        {ORDER_WATERMARK_EXTRACT, ORDER_UNDETECTED, "order.watermarkExtract.completed"},
        {ORDER_WATERMARK_EXTRACT, ORDER_FAILED, "order.watermarkExtract.failed"},
    };
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        enum webhook_event_type event;
        enum order_status status;
        CU_ASSERT_TRUE_FATAL(webhook_event_type_of(ends[i].type, ends[i].status, &event));
        CU_ASSERT_STRING_EQUAL(webhook_event_type_name(event), ends[i].name);
        CU_ASSERT_TRUE(webhook_event_status(ends[i].name, ends[i].status == ORDER_DETECTED, &status));
        CU_ASSERT_EQUAL(status, ends[i].status);
    }
}

static void other_statuses_have_no_event(void)
{
    static const enum order_status others[] = {ORDER_PENDING, ORDER_IN_PROGRESS, ORDER_EXPIRED};
    enum webhook_event_type event;
    enum order_status status;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        for (int type = 0; type < ORDER_TYPE_COUNT; type++)
            CU_ASSERT_FALSE(webhook_event_type_of((enum order_type)type, others[i], &event));
    CU_ASSERT_FALSE(webhook_event_status("webhook.test", false, &status));
    CU_ASSERT_FALSE(webhook_event_status("order.nothing", false, &status));
}

static unsigned faults_of(const char *name, const char *url, bool is_new)
{
    struct config config;
    config_init(&config);
    fresh();
    const struct webhook_fields fields = {.name = name,
                                          .name_length = name != NULL ? strlen(name) : 0,
                                          .url = url,
                                          .url_length = url != NULL ? strlen(url) : 0,
                                          .is_active = -1};
    webhook_fields_check(&context, &config, &fields, is_new);
    return context.detail_count;
}

static void fields_are_checked_and_all_faults_named(void)
{
    char long_name[202] = "";
    CU_ASSERT_EQUAL(faults_of(NULL, "https://a.example/hook", true), 0);
    CU_ASSERT_EQUAL(faults_of("name", "https://a.example:443/hook?x=1", true), 0);
    CU_ASSERT_EQUAL(faults_of(NULL, NULL, true), 1);
    CU_ASSERT_EQUAL(faults_of(NULL, NULL, false), 0);
    CU_ASSERT_EQUAL(faults_of(NULL, "http://a.example/hook", true), 1);
    CU_ASSERT_EQUAL(faults_of(NULL, "https://me:pw@a.example/", true), 1);
    CU_ASSERT_EQUAL(faults_of(NULL, "ftp://a.example/", true), 1);
    CU_ASSERT_EQUAL(faults_of(NULL, "/hook", true), 1);
    CU_ASSERT_EQUAL(faults_of("a\nb", "nothing", true), 2);
    for (int i = 0; i < 100; i++)
        strcat(long_name, "\xC3\xA9");
    CU_ASSERT_EQUAL(faults_of(long_name, NULL, false), 0);
    CU_ASSERT_EQUAL(faults_of(strcat(long_name, "x"), NULL, false), 1);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"a published ciphertext is decrypted", a_published_ciphertext_is_decrypted},
        {"a changed ciphertext is refused", a_changed_ciphertext_is_refused},
        {"two ciphertexts of one secret differ", two_ciphertexts_of_one_secret_differ},
        {"the sealing key is a file for its owner", the_sealing_key_is_a_file_for_its_owner},
        {"the published message has the published signature",
         the_published_message_has_the_published_signature},
        {"a secret is whsec_ and base64 of 24 to 64 bytes", a_secret_is_whsec_and_base64_of_24_to_64_bytes},
        {"an encrypted secret belongs to one account", an_encrypted_secret_belongs_to_one_account},
        {"an ended delivery only moves when it is repeated",
         an_ended_delivery_only_moves_when_it_is_repeated},
        {"only a delivery being sent can succeed or fail", only_a_delivery_being_sent_can_succeed_or_fail},
        {"a delivery being sent is not repeated", a_delivery_being_sent_is_not_repeated},
        {"state names go both ways", state_names_go_both_ways},
        {"the schedule is the contract's", the_schedule_is_the_contracts},
        {"every 2xx and nothing else is a success", every_2xx_and_nothing_else_is_a_success},
        {"Retry-After is honoured up to a day", retry_after_is_honoured_up_to_a_day},
        {"five days without a success are too many", five_days_without_a_success_are_too_many},
        {"every delivery ends", every_delivery_ends},
        {"every end of an order has its event", every_end_of_an_order_has_its_event},
        {"other statuses have no event", other_statuses_have_no_event},
        {"fields are checked and all faults named", fields_are_checked_and_all_faults_named},
        CU_TEST_INFO_NULL,
    };
    arena = arena_new(0);
    int code = runner_run("webhook", tests);
    arena_free(arena);
    return code;
}
