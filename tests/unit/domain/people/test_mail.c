/* Texts of mails. */
#include <string.h>

#include "domain/people/mail.h"
#include "fixture.h"

static void test_each_mail_has_a_text_in_each_language(void)
{
    for (int kind = 0; kind < MAIL_KIND_COUNT; kind++)
        for (int language = 0; language < USER_LANGUAGE_COUNT; language++) {
            const char *subject, *text;
            fresh();
            const struct mail mail = {.kind = (enum mail_kind)kind,
                                      .language = (enum user_language)language,
                                      .values = {"https://one.example", "{1} two"}};
            mail_text(arena, &mail, &subject, &text);
            CU_ASSERT(strlen(subject) > 5 && strstr(text, "https://one.example") != NULL);
            CU_ASSERT_PTR_NULL(strstr(subject, "{2}"));
            /* A value that looks like a placeholder is not replaced. */
            CU_ASSERT(strstr(text, "two") == NULL || strstr(text, "{1} two") != NULL);
        }
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"each mail has a text in each language", test_each_mail_has_a_text_in_each_language},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("mail", tests);
}
