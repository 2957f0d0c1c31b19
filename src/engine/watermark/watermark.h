/*
 * The blind watermark: a 64-bit number in the pixels of a picture.
 *
 * A secret key of 32 bytes seeds every pattern. Without the key the mark can neither be read nor forged. The
 * same picture, key and number give the same result. The engine works on decoded pixels only; it uses no
 * file format, file, clock or randomness. Pixels with alpha zero are neither changed nor read.
 *
 * Method and robustness: doc/watermark.md.
 */
#ifndef ENGINE_WATERMARK_WATERMARK_H
#define ENGINE_WATERMARK_WATERMARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "engine/image.h"

enum { WATERMARK_KEY_BYTES = 32, WATERMARK_SIDE_MIN_PX = 256 };

/*
 * Each account has a separate key, derived from the master key by crypto_key_derive with this purpose and
 * the account's id. So a pattern that a customer learns does not help against other customers. The digit is
 * the version of the mark's format.
 */
#define WATERMARK_KEY_PURPOSE "imgward watermark 1"

/*
 * A small grey picture in the pose of the mark. It serves to recognise the picture that a mark was added to,
 * or that an extraction read. Only the first WATERMARK_VIEW_BYTES(view) bytes are stored.
 */
enum { WATERMARK_VIEW_PX_MOST = 4096 };
struct watermark_view {
    uint8_t width; /* pixels; 0 means no view */
    uint8_t height;
    uint8_t pitch_chips;                    /* side of a pixel: 8, 16, 32, 64 or 128 chips of the mark */
    uint8_t origin_chips[2];                /* corner of the view, within a period of the mark */
    uint8_t pixels[WATERMARK_VIEW_PX_MOST]; /* rows of luma from 1; 0: outside of the picture */
};
#define WATERMARK_VIEW_BYTES(view)                                                                           \
    (offsetof(struct watermark_view, pixels) + (size_t)(view)->width * (view)->height)

/* Strength of the mark; zero selects the default. */
struct watermark_embed_options {
    double psnr_db;       /* target distortion over all color samples */
    double psnr_least_db; /* lower bound, used if the mark does not read back */
    /*
     * Bits a pixel of the file of a lossless drawing, or 0 for the usual mark. The mark of a drawing has few
     * levels, so that the file grows little. The other options are then ignored, and the caller reads the
     * mark back.
     */
    double file_bits_px;
};

/* Results for logs and tests. */
struct watermark_report {
    double psnr_db;         /* embed: measured after rounding */
    double correlation;     /* of the decoded word with the picture, standard deviations */
    double rotation_degree; /* extract: rotation relative to the marked picture */
    double scale;           /* extract: size relative to the marked picture (at most 1 MP) */
    double aspect;          /* extract: stretch, horizontal to vertical */
    bool is_mirrored;
    bool is_untouched;          /* read without a search */
    unsigned attempts;          /* number of words decoded */
    double correlation_most;    /* extract: highest of all attempts, over decoded and candidates' words */
    struct watermark_view view; /* embed: of the picture before it was marked */
};

/*
 * Marks the picture in place. options and report may be NULL.
 *
 * Returns IMAGE_TOO_SMALL if the shorter side is under 256 px, WATERMARK_NOT_EMBEDDABLE if the mark does not
 * read back (a picture of a single colour, or a transparent picture), or NO_MEMORY. After any error the
 * picture is unchanged. The mark of a drawing in colours may still be unreadable, so the caller reads the
 * mark back.
 */
enum iw_error watermark_embed(struct image *image, const uint8_t key[WATERMARK_KEY_BYTES], uint64_t number,
                              const struct watermark_embed_options *options,
                              struct watermark_report *report) IW_MUST_USE;

/*
 * Returns IW_OK if the first step of watermark_extract reads this number from an aligned picture, without a
 * search.
 *
 * image may be the first rows of a picture of height_px rows. Returns WATERMARK_NOT_FOUND if the number does
 * not read or the word correlates less than correlation_least (0 selects the reader's threshold), or
 * NO_MEMORY.
 */
enum iw_error watermark_verify(const struct image *image, uint32_t height_px,
                               const uint8_t key[WATERMARK_KEY_BYTES], uint64_t number,
                               double correlation_least, struct watermark_report *report) IW_MUST_USE;

/* The numbers of a picture; a collage may have several. */
enum { WATERMARK_NUMBERS_MOST = 16 };
struct watermark_numbers {
    unsigned count;
    uint64_t numbers[WATERMARK_NUMBERS_MOST];
    /*
     * At most one of this many pictures without a mark gives the answer; at most 10^15. An answer can be one
     * of the candidates; without candidates it can be any number. Derivation: doc/watermark.md.
     */
    int64_t certainties[WATERMARK_NUMBERS_MOST];
    struct watermark_view views[WATERMARK_NUMBERS_MOST]; /* the picture in the pose of each mark */
};

/* Numbers that a picture may carry, for example the numbers of an account. */
enum { WATERMARK_CANDIDATES_MOST = 100000 };
struct watermark_candidates {
    size_t count; /* at most WATERMARK_CANDIDATES_MOST */
    const uint64_t *list;
};

/*
 * Reads all numbers in any pose, each once. After a mark is read, the part of the picture that holds the
 * mark is excluded. The rest is read again if it is large enough for another mark.
 *
 * original is the unmarked picture of a mark, or NULL. Both pictures are registered, the original is
 * subtracted, and the residual is read. The report is that of the first number.
 *
 * If the blind decoding of an attempt fails, the received bits are compared with the candidates (may be
 * NULL), so that a weaker mark of a candidate is read. At most one of 10^9 pictures without a mark gives an
 * answer.
 *
 * Returns WATERMARK_NOT_FOUND if no number reads with certainty, or NO_MEMORY.
 */
enum iw_error watermark_extract(const struct image *image, const struct image *original,
                                const uint8_t key[WATERMARK_KEY_BYTES],
                                const struct watermark_candidates *candidates,
                                struct watermark_numbers *numbers,
                                struct watermark_report *report) IW_MUST_USE;

#endif
