/* The key that encrypts secrets. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture.h"
#include "service/secret/secret_box.h"

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

int main(void)
{
    static CU_TestInfo tests[] = {
        {"the sealing key is a file for its owner", the_sealing_key_is_a_file_for_its_owner},
        CU_TEST_INFO_NULL,
    };
    return fixture_run("secret box", tests);
}
