/* Parts of a URL. */
#include <string.h>

#include "base/url.h"
#include "runner.h"

static void test_a_url_is_what_it_looks_like(void)
{
    static const struct {
        const char *text, *scheme, *host, *port, *rest;
    } rows[] = {{"https://a.example", "https", "a.example", "", ""},
                {"HTTPS://A.example./x:y@z?q", "HTTPS", "A.example.", "", "/x:y@z?q"},
                {"http://a_b-c:8080?x", "http", "a_b-c", "8080", "?x"},
                {"https://a.example:", "https", "a.example", "", ""},
                {"https://127.0.0.1:1#f", "https", "127.0.0.1", "1", "#f"},
                {"https://[2001:db8::1]:9/", "https", "[2001:db8::1]", "9", "/"},
                {"smtp://me:word@a/", "smtp", "a", "", "/"}};
    static const char *const invalid[] = {
        "",          "a.example",      "https:a.example", "https:/a.example",        "https:///a.example",
        "https://",  "https://?x",     "https://:443/",   "https://a..example",      "https://.a.example",
        "//a/",      "https://-a",     "https://a-.b",    "https://%68ooks",         "https://a%2Eb",
        "https://.", "https://[::1",   "https://[]",      "https://[::1%25lo]",      "https://[::1]x",
        "1:2",       "https://a:1:2/", "https://a:x/",    "https://a:443333/",       "https://a,b",
        "://a",      "https://a*b",    "https://me@",     "https://\xC3\xA4.example"};
    struct url url;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CU_ASSERT_TRUE_FATAL(url_read(rows[i].text, &url));
        CU_ASSERT(url_part_is(url.scheme, rows[i].scheme) && url_part_is(url.host, rows[i].host));
        CU_ASSERT(url_part_is(url.port, rows[i].port) && strcmp(url.rest, rows[i].rest) == 0);
    }
    CU_ASSERT(url_part_is(url.user, "me:word"));
    for (size_t i = 0; i < sizeof invalid / sizeof invalid[0]; i++)
        CU_ASSERT_FALSE(url_read(invalid[i], &url));
    char label[80] = "https://";
    memset(label + 8, 'a', 63);
    CU_ASSERT_TRUE(url_read(label, &url));
    label[71] = 'a';
    CU_ASSERT_FALSE(url_read(label, &url));
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"a URL is what it looks like", test_a_url_is_what_it_looks_like},
        CU_TEST_INFO_NULL,
    };
    return runner_run("url", tests);
}
