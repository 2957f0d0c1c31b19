/* The configuration file, its defaults, and secrets in files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/config.h"
#include "base/machine.h"
#include "fixture.h"

static const char *file_with(const char *content)
{
    static char path[] = "test_config.tmp";
    FILE *file = fopen(path, "we");
    fputs(content, file);
    fclose(file);
    return path;
}

static void test_configuration_errors_name_every_line_and_change_nothing(void)
{
    struct config config;
    fresh();
    config_init(&config);
    CU_ASSERT_EQUAL(config.api_body_max_bytes, 1048576);
    CU_ASSERT_EQUAL(config_read(&context,
                                file_with("[api]\nbody_max_bytes = 2048\nbacklog = 0\n\nnonsense = 1\n"
                                          "[redis]\ntimeout_ms = 5\ntimeout_ms = 50\n"),
                                &config),
                    IW_CONFIG_INVALID);
    CU_ASSERT_EQUAL(context.detail_count, 4);
    CU_ASSERT_PTR_NOT_NULL(strstr(context.details->field, ":3"));
    CU_ASSERT_PTR_NOT_NULL(strstr(context.details->next->field, ":5"));
    CU_ASSERT_EQUAL(config.api_body_max_bytes, 1048576);
    fresh();
    CU_ASSERT_EQUAL(config_read(&context,
                                file_with("[api]\nbody_max_bytes = 2048\n[worker]\nallow_unsealed = yes\n"),
                                &config),
                    IW_OK);
    CU_ASSERT_EQUAL(config.api_body_max_bytes, 2048);
    CU_ASSERT(config.worker_allow_unsealed);
    fresh();
    CU_ASSERT_EQUAL(config_read(&context, file_with("[api]\npublic_url = https://a.example//\n"), &config),
                    IW_OK);
    CU_ASSERT_STRING_EQUAL(config.api_public_url, "https://a.example");
    fresh();
    CU_ASSERT_EQUAL(config_read(&context,
                                file_with("[orders]\ncomplete_s = 86400\n[quotas_pro]\nwebhooks = 5\n"
                                          "[api]\nin_flight_max = 8\n[redis]\nwebhooks = 5\n"),
                                &config),
                    IW_CONFIG_INVALID);
    static const char *const remedies[] = {
        "section [orders] has no key \"complete_s\"; set orders.result_retention_s instead",
        "section [quotas_pro] has no key \"webhooks\"; set the same key in [plan_pro] instead",
        "section [api] has no key \"in_flight_max\"; set in_flight_max in [plan_free], [plan_pro] and "
        "[plan_enterprise] instead",
        "section [redis] has no key \"webhooks\""};
    const struct context_detail *detail = context.details;
    for (size_t i = 0; i < sizeof remedies / sizeof remedies[0]; i++, detail = detail->next)
        CU_ASSERT_STRING_EQUAL(detail->message, remedies[i]);
    fresh();
    CU_ASSERT_EQUAL(config_read(&context, file_with("[plan_pro]\nresult_retention_s = 1209600\n"), &config),
                    IW_OK);
    CU_ASSERT_EQUAL(config.plan_pro.result_retention_s, 1209600);
    CU_ASSERT_EQUAL(config.plan_pro.requests_per_minute, 300);
    CU_ASSERT_EQUAL(config.plan_enterprise.requests_per_minute, 1000);
    char line[400] = "[store]\ncors_origins = ";
    memset(line + strlen(line), 'x', 300);
    fresh();
    CU_ASSERT_EQUAL(config_read(&context, file_with(line), &config), IW_CONFIG_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(context.details->field, ":2"));
    CU_ASSERT_PTR_NOT_NULL(strstr(context.details->message, "longer than"));
    unlink("test_config.tmp");
}

static void test_the_sample_configuration_is_valid_and_equals_the_defaults(void)
{
    struct config config, expected;
    char *sample = NULL;
    size_t size = 0;
    fresh();
    config_init(&expected);
    FILE *file = open_memstream(&sample, &size);
    config_print_sample(file);
    fclose(file);
    /* Removing the comment sign from every key must change nothing. */
    for (char *at = sample; (at = strstr(at, "\n#")) != NULL; at++)
        if (at[2] != ' ')
            at[1] = '\n';
    CU_ASSERT_EQUAL(config_read(&context, file_with(sample), &config), IW_OK);
    size_t count;
    const struct config_key *keys = config_keys(&count);
    for (size_t i = 0; i < count; i++) {
        const char *a = (const char *)&config + keys[i].offset, *b = (const char *)&expected + keys[i].offset;
        if (config_is_text(keys[i].type))
            CU_ASSERT_STRING_EQUAL(*(const char *const *)(const void *)a,
                                   *(const char *const *)(const void *)b);
        if (keys[i].type == CONFIG_INTEGER || keys[i].type == CONFIG_FOLLOWING)
            CU_ASSERT_EQUAL(memcmp(a, b, sizeof(int64_t)), 0);
    }
    free(sample);
    unlink("test_config.tmp");
}

static void test_the_defaults_follow_the_machine(void)
{
    static const struct {
        int cores;
        int64_t memory_mib, unit_mib; /* unit_mib 0 if there is none */
        int64_t api, console, worker, image_mib;
    } rows[] = {
        {1, 512, 0, 8, 2, 1, 256},     {1, 964, 0, 8, 2, 1, 336},   {1, 1024, 0, 8, 2, 1, 368},
        {1, 1024, 819, 8, 2, 1, 368},  {1, 2048, 0, 8, 4, 1, 912},  {2, 2048, 0, 16, 4, 2, 448},
        {2, 4096, 0, 16, 8, 2, 992},   {4, 4096, 0, 32, 8, 4, 496}, {4, 4096, 1500, 32, 8, 2, 400},
        {8, 1024, 0, 32, 2, 1, 368},   {8, 8192, 0, 64, 8, 8, 512}, {8, 65536, 0, 64, 8, 8, 1024},
        {1, 65536, 400, 8, 8, 1, 256},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct config config = {.console_hash_memory_bytes = 64 << 20};
        const struct machine machine = {rows[i].cores, rows[i].memory_mib << 20,
                                        rows[i].unit_mib > 0 ? rows[i].unit_mib << 20 : INT64_MAX};
        config_follow(&config, &machine);
        CU_ASSERT_EQUAL(config.api_processes, rows[i].api);
        CU_ASSERT_EQUAL(config.console_processes, rows[i].console);
        CU_ASSERT_EQUAL(config.worker_processes, rows[i].worker);
        CU_ASSERT_EQUAL(config.image_memory_max_bytes, rows[i].image_mib << 20);
    }
    /* A value that is set stays, and the others follow it. */
    const struct machine machine = {4, INT64_C(4) << 30, INT64_MAX};
    struct config many = {.api_processes = 3, .worker_processes = 8, .console_hash_memory_bytes = 1 << 20};
    struct config large = {.image_memory_max_bytes = INT64_C(1) << 30, .console_hash_memory_bytes = 1 << 20};
    config_follow(&many, &machine);
    CU_ASSERT(many.api_processes == 3 && many.worker_processes == 8);
    CU_ASSERT_EQUAL(many.image_memory_max_bytes, 256 << 20);
    config_follow(&large, &machine);
    CU_ASSERT(large.worker_processes == 1 && large.image_memory_max_bytes == INT64_C(1) << 30);
}

static void test_a_value_that_follows_is_in_its_range_or_zero(void)
{
    struct config config;
    fresh();
    CU_ASSERT_EQUAL(config_read(&context, file_with("[image]\nmemory_max_bytes = 1000\n"), &config),
                    IW_CONFIG_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(context.sentence, "must be 0 or an integer from 268435456"));
    fresh();
    CU_ASSERT_EQUAL(config_read(&context, file_with("[worker]\nprocesses = 0\n"), &config), IW_OK);
    CU_ASSERT(config.worker_processes >= 1 && config.image_memory_max_bytes >= 256 << 20);
    unlink("test_config.tmp");
}

static void test_a_secret_that_everybody_can_read_is_refused(void)
{
    const char *secret = NULL;
    fresh();
    const char *path = file_with("swordfish\n");
    chmod(path, 0604);
    CU_ASSERT_EQUAL(config_secret(&context, path, &secret), IW_CONFIG_INVALID);
    chmod(path, 0600);
    fresh();
    CU_ASSERT_EQUAL(config_secret(&context, path, &secret), IW_OK);
    CU_ASSERT_STRING_EQUAL(secret, "swordfish");
    CU_ASSERT_EQUAL(config_secret(&context, "", &secret), IW_OK);
    CU_ASSERT_STRING_EQUAL(secret, "");
    unlink(path);
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"configuration errors name every line",
         test_configuration_errors_name_every_line_and_change_nothing},
        {"the sample configuration equals the defaults",
         test_the_sample_configuration_is_valid_and_equals_the_defaults},
        {"the defaults follow the machine", test_the_defaults_follow_the_machine},
        {"a value that follows is in its range or zero", test_a_value_that_follows_is_in_its_range_or_zero},
        {"a secret everybody can read is refused", test_a_secret_that_everybody_can_read_is_refused},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("config", tests);
}
