/*
 * The fuzz targets: each takes bytes of an attacker's choosing and ends the
 * program when what it promises does not hold.  entry.c makes a libFuzzer
 * program of one; tests/unit/test_fuzz.c runs them all over the inputs in
 * the archives of tests/fuzz/corpus.
 */
#ifndef FUZZ_TARGETS_H
#define FUZZ_TARGETS_H

#include <stddef.h>

/* Always 0, as libFuzzer wants it. */
typedef int fuzz_target(const unsigned char *data, size_t size);

fuzz_target fuzz_body, fuzz_config, fuzz_exif, fuzz_fastcgi, fuzz_filekey, fuzz_jpeg, fuzz_json, fuzz_name, fuzz_path, fuzz_png,
    fuzz_presign, fuzz_query, fuzz_watermark, fuzz_webp, fuzz_xmp;

#endif
