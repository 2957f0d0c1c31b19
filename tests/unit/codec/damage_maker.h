/* Makes good files of each format, changes parts of them, and checks the changed files. */
#ifndef UNIT_DAMAGE_MAKER_H
#define UNIT_DAMAGE_MAKER_H

#include "codec/codec.h"
#include "codec/limits.h"
#include "fixture.h"
#include "picture_maker.h"

extern const struct codec_limits no_limits, read_only;
extern const struct made_spec jpeg, png, colored, webp;

/* Replaces bytes. */
void replace(struct codec_bytes *file, size_t at, size_t gone, const void *data, size_t size);

/* Returns the offset of the bytes; a file that does not contain them fails the test. */
size_t find(const struct codec_bytes *file, const void *text, size_t size);

bool holds(const struct codec_bytes *file, const char *text);

/* Returns the offset of a PNG chunk, which begins with the length. */
size_t png_at(const struct codec_bytes *file, const char *name);

/* Returns the size of the whole chunk at an offset. */
size_t png_bytes(const struct codec_bytes *file, size_t at);

void png_insert(struct codec_bytes *file, size_t at, const char *name, const void *data, size_t size);

/* Corrects the checksum of the chunk at an offset. */
void png_seal(struct codec_bytes *file, size_t at);

enum iw_error decode(const struct codec_bytes *file, const struct codec_limits *limits,
                     struct codec_picture *picture);

/* Checks that the file decodes to the pixels of the good file, and that the encoded result decodes again. */
void check_same(const struct made_spec *spec, const struct codec_bytes *file);

/* Checks that the file is refused with the error, and that the sentence contains the word. */
void check_refused(const struct codec_bytes *file, enum iw_error wanted, const char *word);

/* Decodes and encodes the file. */
struct codec_bytes recode(const struct codec_bytes *file);

#endif
