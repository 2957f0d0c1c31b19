/* Settings of a webhook. */
#include <string.h>

#include "base/config.h"
#include "domain/webhooks/webhook.h"
#include "fixture.h"

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
        {"fields are checked and all faults named", fields_are_checked_and_all_faults_named},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("webhook", tests);
}
