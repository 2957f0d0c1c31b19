/* Meaning of each status, and headers for output targets. */
#include <string.h>

#include "domain/webhooks/outgoing.h"
#include "model/peer.h"
#include "runner.h"

/* ---- statuses ---- */

/*
 * T accepted, R retried, F final failure, G gone; for source, target, webhook. See the table
 * in doc/api.md.
 */
static const struct {
    long first, last;
    const char *fates;
} wanted[] = {
    {0, 199, "RRR"},   {200, 201, "TTT"}, {202, 202, "RTT"}, {203, 203, "TTT"}, {204, 205, "FTT"},
    {206, 299, "TTT"}, {300, 399, "FFR"}, {400, 407, "FFR"}, {408, 408, "RRR"}, {409, 409, "FFR"},
    {410, 410, "FFG"}, {411, 420, "FFR"}, {421, 421, "RRR"}, {422, 424, "FFR"}, {425, 425, "RRR"},
    {426, 428, "FFR"}, {429, 429, "RRR"}, {430, 499, "FFR"}, {500, 999, "RRR"},
};

static void test_every_status_has_its_meaning(void)
{
    static const char letters[] = {
        [PEER_TAKEN] = 'T', [PEER_RETRIED] = 'R', [PEER_FINAL] = 'F', [PEER_GONE] = 'G'};
    long seen = 0;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        for (long status = wanted[i].first; status <= wanted[i].last; status++, seen++)
            for (int peer = 0; peer < PEER_COUNT; peer++)
                CU_ASSERT_EQUAL(letters[peer_status(status)->fates[peer]], wanted[i].fates[peer]);
    CU_ASSERT_EQUAL(seen, 1000);
}

/* ---- headers ---- */

static const char *fault(const char *name, const char *value)
{
    return outgoing_header_fault(name, value, strlen(value));
}

static void test_headers_that_targets_ask_for_are_sent(void)
{
    static const char *const names[] = {"Content-Type",
                                        "content-type",
                                        "CACHE-CONTROL",
                                        "Content-Disposition",
                                        "x-amz-acl",
                                        "X-Amz-Meta-Owner",
                                        "x-ms-blob-type",
                                        "x-goog-content-length-range",
                                        "x-amz-server-side-encryption-aws-kms-key-id"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        CU_ASSERT_PTR_NULL(fault(names[i], "a value; with=\"all\" that is printable: ~"));
}

static void test_other_headers_are_refused(void)
{
    static const char *const names[] = {"",
                                        "Authorization",
                                        "Cookie",
                                        "Host",
                                        "Content-Length",
                                        "Transfer-Encoding",
                                        "Connection",
                                        "Expect",
                                        "Content-Encoding",
                                        "x-amz-",
                                        "x-ms",
                                        "x-amzn-trace-id",
                                        "Metadata",
                                        "Metadata-Flavor",
                                        "X-aws-ec2-metadata-token",
                                        "Content-Type ",
                                        "x-amz-a:b",
                                        "x-ms-a\r\nHost",
                                        "x-ms-\xC3\xA4",
                                        " x-ms-a",
                                        "x-ms-a b"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        CU_ASSERT_PTR_NOT_NULL(fault(names[i], "v"));
    CU_ASSERT_FALSE(outgoing_header_name_is_token("x-ms-a\r\nHost"));
    CU_ASSERT_FALSE(outgoing_header_name_is_token(""));
}

static void test_values_that_break_a_request_are_refused(void)
{
    static const char *const values[] = {"", "a\r\nHost: b", "a\n", "a\tb", "\x7F", "\xC3\xBC", " a", "a "};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        CU_ASSERT_PTR_NOT_NULL(fault("x-amz-meta-a", values[i]));
    CU_ASSERT_PTR_NOT_NULL(outgoing_header_fault("x-amz-meta-a", "a\0b", 3));
}

int main(void)
{
    static CU_TestInfo tests[] = {
        {"every status has its meaning", test_every_status_has_its_meaning},
        {"headers that targets ask for are sent", test_headers_that_targets_ask_for_are_sent},
        {"other headers are refused", test_other_headers_are_refused},
        {"values that break a request are refused", test_values_that_break_a_request_are_refused},
        CU_TEST_INFO_NULL,
    };
    return runner_run("outgoing", tests);
}
