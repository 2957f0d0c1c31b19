/*
 * The blind watermark: a 64-bit number in the pixels of a picture.
 *
 * A secret key of 32 bytes seeds every pattern; without it the mark can be
 * neither read nor forged.  The same picture, key and number give the same
 * result.  Works on decoded pixels alone: knows no file format, no file, no
 * clock and no randomness of its own.  Pixels whose alpha is zero are neither
 * changed nor read.  How it works and what it survives: doc/watermark.md.
 */
#ifndef IMGWARD_WATERMARK_H
#define IMGWARD_WATERMARK_H

#include <stdbool.h>
#include <stdint.h>

#include <imgward/error.h>
#include <imgward/image.h>

#define WATERMARK_KEY_BYTES   32
#define WATERMARK_SIDE_MIN_PX 256

/* How strongly to mark; a zero takes the default. */
struct watermark_embed_options {
    double psnr_db;       /* the distortion aimed at, over all color samples */
    double psnr_least_db; /* how far the strength may rise when the mark does not read */
};

/* What the engine did, for logs and for tests. */
struct watermark_report {
    double psnr_db;         /* embed: as measured after rounding */
    double correlation;     /* of the word read with the picture, in standard deviations */
    double rotation_degree; /* extract: how the picture lies to the one marked */
    double scale;           /* extract: its size to the one marked, or to 1 MP for larger ones */
    double aspect;          /* extract: horizontal to vertical stretch */
    bool is_mirrored;
    bool is_untouched; /* read without a search */
    unsigned attempts; /* how many words were decoded */
};

/*
 * Marks the picture in place.  options and report may be NULL.
 *
 * IMAGE_TOO_SMALL under 256 px on the shorter side; WATERMARK_NOT_EMBEDDABLE when
 * the mark cannot be read back from the result (a picture of one color, or one
 * that is transparent); NO_MEMORY.  After any error the picture is unchanged.
 */
enum iw_error watermark_embed(struct image *image, const uint8_t key[WATERMARK_KEY_BYTES], uint64_t number,
                              const struct watermark_embed_options *options,
                              struct watermark_report *report) IW_MUST_USE;

/*
 * Whether watermark_extract reads this number from a picture that lies as it was
 * marked, at its first step: without any search, so that it costs little.  image
 * may be the first rows of a picture of height_px rows.  WATERMARK_NOT_FOUND when
 * it does not read, and when the word correlates less than correlation_least
 * (0: what reading asks for); NO_MEMORY.
 */
enum iw_error watermark_verify(const struct image *image, uint32_t height_px,
                               const uint8_t key[WATERMARK_KEY_BYTES], uint64_t number,
                               double correlation_least, struct watermark_report *report) IW_MUST_USE;

/*
 * Reads the number, whatever was done to the picture.  WATERMARK_NOT_FOUND when
 * there is none to be read with certainty; NO_MEMORY.
 */
enum iw_error watermark_extract(const struct image *image, const uint8_t key[WATERMARK_KEY_BYTES],
                                uint64_t *number, struct watermark_report *report) IW_MUST_USE;

/*
 * The same with the unmarked original at hand: lays the suspect over the
 * original, subtracts it and reads what remains.  Errors as above.
 */
enum iw_error watermark_extract_informed(const struct image *suspect, const struct image *original,
                                         const uint8_t key[WATERMARK_KEY_BYTES], uint64_t *number,
                                         struct watermark_report *report) IW_MUST_USE;

#endif
