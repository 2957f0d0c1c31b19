/*
 * Runs every fuzz target on its corpus in tests/fuzz/corpus: seeds, inputs that reach new
 * code, and inputs that found bugs.
 * make check unpacks the archives into fuzz-corpus/ of the build folder.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "targets.h"
#include "runner.h"

enum { input_bytes_max = 1 << 20 };

/* Copies the input to a buffer of its exact size, so that a sanitizer detects reads past the end. */
static void input_run(fuzz_target *target, const char *path)
{
    struct stat facts;
    FILE *file = fopen(path, "rb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL_FATAL(fstat(fileno(file), &facts), 0);
    CU_ASSERT_FATAL(facts.st_size < input_bytes_max);
    size_t size = (size_t)facts.st_size;
    unsigned char *data = malloc(size + (size == 0));
    CU_ASSERT_EQUAL(fread(data, 1, size, file), size);
    fclose(file);
    CU_ASSERT_EQUAL(target(data, size), 0);
    free(data);
}

static void corpus_run(fuzz_target *target, const char *folder)
{
    char path[512];
    unsigned count = 0;
    DIR *inputs = opendir(folder);
    CU_ASSERT_PTR_NOT_NULL_FATAL(inputs);
    for (const struct dirent *entry; (entry = readdir(inputs)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        input_run(target, path);
        count++;
    }
    closedir(inputs);
    CU_ASSERT(count > 0);
}

#define CORPUS(name)                                                                                         \
    static void test_##name(void)                                                                            \
    {                                                                                                        \
        corpus_run(fuzz_##name, "fuzz-corpus/fuzz_" #name);                                                  \
    }

CORPUS(body)
CORPUS(config)
CORPUS(exif)
CORPUS(fastcgi)
CORPUS(filekey)
CORPUS(jpeg)
CORPUS(json)
CORPUS(name)
CORPUS(path)
CORPUS(png)
CORPUS(presign)
CORPUS(query)
CORPUS(reading)
CORPUS(watermark)
CORPUS(webp)
CORPUS(xmp)

int main(void)
{
    static CU_TestInfo tests[] = {
        {"bodies of every endpoint", test_body},
        {"configuration files", test_config},
        {"EXIF and Photoshop blocks", test_exif},
        {"FastCGI parameters", test_fastcgi},
        {"file keys", test_filekey},
        {"JPEG", test_jpeg},
        {"JSON", test_json},
        {"names of results", test_name},
        {"paths", test_path},
        {"PNG", test_png},
        {"presigned URLs", test_presign},
        {"query strings", test_query},
        {"formats that are only read", test_reading},
        {"the watermark extractor", test_watermark},
        {"WebP", test_webp},
        {"XMP", test_xmp},
        CU_TEST_INFO_NULL,
    };
    return runner_run("fuzz corpora", tests);
}
