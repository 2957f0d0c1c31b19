/* Good files of the formats, changes of their pieces, and checks of the changed files. */
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

/* The offset of bytes that the file has. */
size_t find(const struct codec_bytes *file, const void *text, size_t size);

bool holds(const struct codec_bytes *file, const char *text);

/* Offset of a PNG chunk, at its length. */
size_t png_at(const struct codec_bytes *file, const char *name);

/* All bytes of the chunk at an offset. */
size_t png_bytes(const struct codec_bytes *file, size_t at);

void png_insert(struct codec_bytes *file, size_t at, const char *name, const void *data, size_t size);

/* Corrects the checksum of the chunk at an offset. */
void png_seal(struct codec_bytes *file, size_t at);

enum iw_error decode(const struct codec_bytes *file, const struct codec_limits *limits,
                     struct codec_picture *picture);

/* The file decodes to the good one's pixels, and the encoded result decodes again. */
void check_same(const struct made_spec *spec, const struct codec_bytes *file);

/* The file is refused with an error, and its sentence has the word. */
void check_refused(const struct codec_bytes *file, enum iw_error wanted, const char *word);

/* The file decoded and encoded. */
struct codec_bytes recode(const struct codec_bytes *file);

#endif
