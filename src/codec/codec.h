/*
 * JPEG, PNG and WebP in and out, keeping all of a picture that is not pixels.
 *
 * A picture decoded here can be changed in place and encoded again in its own
 * format, size, depth, with its ICC profile, EXIF, XMP, IPTC, comments,
 * orientation, density and alpha, and, for JPEG, its quantisation tables,
 * subsampling, entropy coder and progressive scans.  Works on bytes in memory
 * only: no file, no thread, so that it can run in the sealed image process.
 * Needs no database and no network.
 *
 * Every limit is checked from the header, before any pixel is decoded.
 *
 * Refused with IMAGE_FORMAT_UNSUPPORTED and a sentence: animated WebP and APNG
 * (read-only work takes their first frame), 12-bit and lossless JPEG, Xcode's
 * iPhone PNG.  Refused as IMAGE_CORRUPT: any picture whose pixels are not all
 * there; half a picture is never delivered.  Damage anywhere else costs the
 * piece that it is in and no more.
 *
 * A CMYK or YCCK JPEG is decoded to sRGB by its profile.  Its inks are kept, and
 * the encoder carries the change of the sRGB pixels back into them.
 *
 * A PNG palette survives where the result has no more colours than a palette
 * holds; else the picture becomes 8-bit RGB or RGBA.  Grey of 1, 2 and 4 bits
 * survives where the result still fits.  A note on the context says when they
 * do not.  Not kept: bKGD, sBIT and hIST of a palette; PNG chunks that this
 * code does not know and whose name says that they depend on the pixels; in
 * JPEG all that follows the end of the picture (embedded second pictures) and the
 * APP2 MPF index into it, and the progressive scans of pictures whose
 * coefficients take more than 400 MiB.
 */
#ifndef CODEC_CODEC_H
#define CODEC_CODEC_H

#include <stdbool.h>

#include <imgward/context.h>
#include <imgward/image.h>

enum codec_format { CODEC_JPEG = 1, CODEC_PNG, CODEC_WEBP };

/* Metadata of one picture, all together; more is IMAGE_TOO_LARGE. */
enum { codec_metadata_max_bytes = 16 * 1024 * 1024 };

/* JPEG scans; each costs a pass over the whole picture, so a file of scans is a bomb. */
enum { codec_scans_max = 100 };

struct codec_limits {
    uint64_t pixels_max;       /* 0: no limit */
    uint32_t side_max_px;      /* 0: no limit */
    uint32_t side_min_px;      /* the shorter side; below is IMAGE_TOO_SMALL */
    uint64_t memory_max_bytes; /* what decoding or encoding may hold at once, pixels included; 0: no limit */
    uint32_t engine_bytes_px;  /* what the caller holds beside the picture for each pixel, */
    uint32_t engine_bytes_row; /* and for each row, of at most four times the width; both count as memory */
    bool is_read_only;         /* the picture will not be encoded: an encoder's memory does not count, and */
                               /* of an animation the first frame is decoded */
};

/* What the header says. */
struct codec_header {
    enum codec_format format;
    uint32_t width_px;
    uint32_t height_px;
    uint32_t channels;    /* as decoded, see imgward/image.h */
    uint32_t depth_bits;  /* 8 or 16 */
    bool is_lossy;        /* JPEG and lossy WebP */
    bool is_cmyk;         /* JPEG: the file stays CMYK, the image is its sRGB rendition */
    bool is_animated;     /* refused with IMAGE_FORMAT_UNSUPPORTED unless the limits say is_read_only */
    uint32_t frame_count; /* of an animation */
    uint64_t decode_memory_bytes; /* estimates of the most that is held, pixels included */
    uint64_t encode_memory_bytes;
};

struct codec_keep; /* what is kept of the file besides pixels; private to the codecs */

struct codec_picture {
    struct codec_header header;
    struct image image; /* may be changed in place; its shape may not */
    struct codec_keep *keep;
};

/* Encoded bytes; freed by codec_bytes_free. */
struct codec_bytes {
    unsigned char *data;
    size_t size;
};

/* Takes rows first_row_px.. as a picture of strip->height_px rows; anything but IW_OK ends the decoding with
 * it. */
typedef enum iw_error codec_rows_taker(void *user, uint32_t first_row_px, const struct image *strip);

/* Reads and checks the header.  IMAGE_FORMAT_UNSUPPORTED, IMAGE_CORRUPT, IMAGE_TOO_LARGE, IMAGE_TOO_SMALL. */
enum iw_error codec_probe(struct context *context, const void *data, size_t size,
                          const struct codec_limits *limits, struct codec_header *header) IW_MUST_USE;

/* Probes, then decodes.  On success the caller owns the picture and frees it with codec_picture_free. */
enum iw_error codec_decode(struct context *context, const void *data, size_t size,
                           const struct codec_limits *limits, struct codec_picture *picture) IW_MUST_USE;

/*
 * Decodes and hands the rows to taker, top to bottom, each once.  JPEG holds a
 * few rows at a time (progressive ones their coefficients too); PNG and WebP
 * are decoded whole first.  For measuring what was encoded beside what it came from.
 */
enum iw_error codec_decode_rows(struct context *context, const void *data, size_t size,
                                const struct codec_limits *limits, codec_rows_taker *taker,
                                void *user) IW_MUST_USE;

/*
 * Encodes the picture in its own format.  On success the caller owns the bytes.
 * Notes PALETTE_EXPANDED when a picture of few colours came to have many.  An
 * error of an encoder is SERVER_INTERNAL_ERROR or NO_MEMORY, never the file's.
 * Notes METADATA_LEFT_OUT and CONTENT_CREDENTIALS_REMOVED for what decoding and the
 * opt-out took out of the file's metadata.
 */
enum iw_error codec_encode(struct context *context, const struct codec_picture *picture,
                           struct codec_bytes *bytes) IW_MUST_USE;

/*
 * Makes codec_encode write a picture as decoded at a higher quality than its
 * file's: level 1, 2, ... in turn, JPEG without chroma subsampling, WebP lossless
 * at last.  False when the format has no such level or its encoder would need
 * more memory than the limits allow; the picture is then only good to be freed.
 */
bool codec_finer(struct codec_picture *picture, unsigned level, const struct codec_limits *limits);

/*
 * Marks every XMP packet of the picture with plus:DataMining: prohibited for AI/ML
 * training (PLUS vocabulary), or the stronger value that the file has.  The rest of
 * a packet stays as it was; a broken packet is repaired.
 * IMAGE_TOO_LARGE when a JPEG's XMP has no room left for it.
 */
enum iw_error codec_opt_out(struct context *context, struct codec_picture *picture) IW_MUST_USE;

/* A WebP of at most side_px on its longer side, upright (orientation applied), sRGB. */
enum iw_error codec_thumbnail(struct context *context, const struct codec_picture *picture, uint32_t side_px,
                              struct codec_bytes *bytes) IW_MUST_USE;

void codec_picture_free(struct codec_picture *picture);
void codec_bytes_free(struct codec_bytes *bytes);

#endif
