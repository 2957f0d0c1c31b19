/*
 * The blind watermark: a 64-bit number in the pixels of a picture.
 *
 * A secret key of 32 bytes seeds every pattern. Without it the mark can neither be read nor
 * forged. The same picture, key and number give the same result. The engine works on decoded
 * pixels only; it uses no file format, file, clock or randomness. Pixels with alpha zero are
 * neither changed nor read.
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
 * Each account has its own key, derived from the master key by crypto_key_derive with this purpose and the
 * account's id. So a pattern that one customer learns helps against no other. The number is the version of
 * the mark's format.
 */
#define WATERMARK_KEY_PURPOSE "imgward watermark 1"

/*
 * A small grey picture in the pose of the mark, by which a picture is recognised: what a mark was added to,
 * or what an extraction read. Stored as its first WATERMARK_VIEW_BYTES(view) bytes.
 */
enum { WATERMARK_VIEW_PX_MOST = 4096 };
struct watermark_view {
    uint8_t width; /* pixels; 0 means no view */
    uint8_t height;
    uint8_t pitch_chips;                    /* side of a pixel: 8, 16, 32, 64 or 128 chips of the mark */
    uint8_t origin_chips[2];                /* its corner, within a period of the mark */
    uint8_t pixels[WATERMARK_VIEW_PX_MOST]; /* rows of luma from 1; 0: outside of the picture */
};
#define WATERMARK_VIEW_BYTES(view)                                                                           \
    (offsetof(struct watermark_view, pixels) + (size_t)(view)->width * (view)->height)

/* Strength of the mark; zero selects the default. */
struct watermark_embed_options {
    double psnr_db;       /* target distortion over all color samples */
    double psnr_least_db; /* lower bound, used if the mark does not read back */
    /*
     * Bits a pixel of the file of a lossless drawing. The mark then has few levels, so that the file grows
     * little. The other options are ignored, and the caller reads the mark back. 0: the usual mark.
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
    double correlation_most;    /* extract: of all attempts, of decoded and of candidates' words */
    struct watermark_view view; /* embed: of the picture before it was marked */
};

/*
 * Marks the picture in place. options and report may be NULL.
 *
 * IMAGE_TOO_SMALL: the shorter side is under 256 px. WATERMARK_NOT_EMBEDDABLE: the mark does
 * not read back (a picture of one color, or a transparent one). NO_MEMORY. After any error the
 * picture is unchanged. The mark of a drawing in colors may still be unreadable; the caller reads it back.
 */
enum iw_error watermark_embed(struct image *image, const uint8_t key[WATERMARK_KEY_BYTES], uint64_t number,
                              const struct watermark_embed_options *options,
                              struct watermark_report *report) IW_MUST_USE;

/*
 * True (IW_OK) if the first step of watermark_extract reads this number from an aligned
 * picture, without a search.
 *
 * image may be the first rows of a picture of height_px rows. WATERMARK_NOT_FOUND: it does not
 * read, or the word correlates less than correlation_least (0: the reader's threshold).
 * NO_MEMORY.
 */
enum iw_error watermark_verify(const struct image *image, uint32_t height_px,
                               const uint8_t key[WATERMARK_KEY_BYTES], uint64_t number,
                               double correlation_least, struct watermark_report *report) IW_MUST_USE;

/* The numbers of a picture: several in a collage. */
enum { WATERMARK_NUMBERS_MOST = 16 };
struct watermark_numbers {
    unsigned count;
    uint64_t numbers[WATERMARK_NUMBERS_MOST];
    /*
     * At most one of this many pictures without a mark gives the answer, with a bound of 10^15. An answer can
     * be one of the candidates; without candidates it can be any number. Derivation: doc/watermark.md.
     */
    int64_t certainties[WATERMARK_NUMBERS_MOST];
    struct watermark_view views[WATERMARK_NUMBERS_MOST]; /* the picture in the pose of each mark */
};

/* Numbers that a picture may carry, those of an account for example. */
enum { WATERMARK_CANDIDATES_MOST = 100000 };
struct watermark_candidates {
    size_t count; /* at most WATERMARK_CANDIDATES_MOST */
    const uint64_t *list;
};

/*
 * Reads all numbers in any pose, each once. After a mark was read, its part of the picture is
 * excluded. What is left is read again if it is large enough for another mark.
 *
 * original (NULL if there is none) is the unmarked picture of one of the marks. Both are registered, the
 * original is subtracted, and the residual is read. The report is that of the first number.
 *
 * candidates (NULL if there is none) are compared with what an attempt received when its blind decoding
 * failed. So a weaker mark of one of them is read. At most one of 10^9 pictures without a mark gives an
 * answer.
 *
 * WATERMARK_NOT_FOUND: none reads with certainty. NO_MEMORY.
 */
enum iw_error watermark_extract(const struct image *image, const struct image *original,
                                const uint8_t key[WATERMARK_KEY_BYTES],
                                const struct watermark_candidates *candidates,
                                struct watermark_numbers *numbers,
                                struct watermark_report *report) IW_MUST_USE;

#endif
