/*
 * The fuzz targets. Each reads untrusted bytes and aborts if an invariant is violated. entry.c makes a
 * libFuzzer program of one target; test_fuzz.c runs all targets on the archives of tests/fuzz/corpus.
 */
#ifndef FUZZ_TARGETS_H
#define FUZZ_TARGETS_H

#include <stddef.h>

/* Always returns 0, as libFuzzer requires. */
typedef int fuzz_target(const unsigned char *data, size_t size);

fuzz_target fuzz_body, fuzz_config, fuzz_exif, fuzz_fastcgi, fuzz_filekey, fuzz_jpeg, fuzz_json, fuzz_name,
    fuzz_path, fuzz_png, fuzz_presign, fuzz_query, fuzz_reading, fuzz_watermark, fuzz_webp, fuzz_xmp;

#endif
