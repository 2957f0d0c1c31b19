/*
 * Decodes and encodes JPEG, PNG and WebP and keeps everything besides the pixels.
 *
 * A decoded picture can be changed in place. It is encoded in its own format, size and depth
 * with its ICC profile, EXIF, XMP, IPTC, comments, orientation, density and alpha. A JPEG also
 * keeps its quantisation tables, subsampling, entropy coder and progressive scans.
 *
 * The codecs work on bytes in memory, without files, threads, database or network, so they run
 * in the sealed image process. All limits are checked from the header, before any pixel is
 * decoded.
 *
 * IMAGE_FORMAT_UNSUPPORTED with a sentence: animated WebP and APNG (read-only work takes their
 * first frame), 12-bit and lossless JPEG, Xcode's iPhone PNG. IMAGE_CORRUPT: any picture with
 * missing pixels. Damage elsewhere costs only the damaged piece. Work with is_partial_allowed
 * takes the rows that a cut or damaged file has, with the note IMAGE_INCOMPLETE.
 *
 * A CMYK or YCCK JPEG is decoded to sRGB by its profile. Its inks are kept, and the encoder
 * applies the change of the sRGB pixels to them.
 *
 * A PNG palette survives if the result has no more colours than a palette holds; otherwise the
 * picture becomes 8-bit RGB or RGBA. Grey of 1, 2 and 4 bits survives if the result fits. A
 * note on the context reports a change.
 *
 * Not kept: bKGD, sBIT and hIST of a palette. Unknown PNG chunks whose name marks them as
 * dependent on the pixels. In JPEG: data after the end of the picture (embedded second
 * pictures) and its APP2 MPF index. Progressive scans of pictures with more than 400 MiB of
 * coefficients.
 */
#ifndef CODEC_CODEC_H
#define CODEC_CODEC_H

#include <stdbool.h>

#include "base/context.h"
#include "engine/image.h"
#include "model/format.h"
#include "model/picture.h"

/* All metadata of one picture; more is IMAGE_TOO_LARGE. */
enum { codec_metadata_max_bytes = 16 * 1024 * 1024 };

/* JPEG scans. Each is a pass over the whole picture, so the number limits CPU time. */
enum { codec_scans_max = 100 };

/* Readable rows of a partial picture; fewer is IMAGE_CORRUPT. The watermark reader needs as many. */
enum { codec_partial_rows_least = 48 };

struct codec_limits {
    uint64_t pixels_max;       /* 0: no limit */
    uint32_t side_max_px;      /* 0: no limit */
    uint32_t side_min_px;      /* of the shorter side; less is IMAGE_TOO_SMALL */
    uint64_t memory_max_bytes; /* peak of decoding or encoding, with pixels; 0: no limit */
    struct picture_engine
        engine;              /* of the caller, in addition to the picture; is_read_only: no encoding, and */
                             /* an animation's first frame is decoded */
    unsigned formats_more;   /* with is_read_only: formats beside JPEG, PNG and WebP, as bits */
    bool is_partial_allowed; /* with is_read_only: missing pixels are no error; the picture */
                             /* ends after its last readable row */
};

/* Properties that the header gives. */
struct codec_header {
    enum format format;
    uint32_t width_px;
    uint32_t height_px;
    uint32_t channels;            /* as decoded, see engine/image.h */
    uint32_t depth_bits;          /* 8 or 16 */
    bool is_lossy;                /* JPEG and lossy WebP */
    bool is_cmyk;                 /* JPEG: the file stays CMYK; the image is sRGB */
    bool is_animated;             /* IMAGE_FORMAT_UNSUPPORTED unless is_read_only */
    uint32_t frame_count;         /* of an animation */
    uint64_t decode_memory_bytes; /* peak estimates, with pixels */
    uint64_t encode_memory_bytes;
};

struct codec_keep; /* private to the codecs: everything besides the pixels */

struct codec_picture {
    struct codec_header header;
    struct image image; /* may be changed in place, but not its dimensions */
    struct codec_keep *keep;
};

/* Encoded bytes; freed by codec_bytes_free. */
struct codec_bytes {
    unsigned char *data;
    size_t size;
};

/*
 * Receives rows from first_row_px on as a picture of strip->height_px rows. Any result but
 * IW_OK ends the decoding with it.
 */
typedef enum iw_error codec_rows_taker(void *user, uint32_t first_row_px, const struct image *strip);

/*
 * Load the decoders of HEIC and AVIF, which are plugins of libheif. A process calls it before it is sealed;
 * otherwise the first such picture does it.
 */
void codec_heif_open(void);

/* Read and check the header. IMAGE_FORMAT_UNSUPPORTED, IMAGE_CORRUPT, IMAGE_TOO_LARGE, IMAGE_TOO_SMALL. */
enum iw_error codec_probe(struct context *context, const void *data, size_t size,
                          const struct codec_limits *limits, struct codec_header *header) IW_MUST_USE;

/*
 * Probe, then decode. On success the caller owns the picture and frees it with codec_picture_free.
 *
 * With is_partial_allowed the picture may have fewer rows than codec_probe reports.
 */
enum iw_error codec_decode(struct context *context, const void *data, size_t size,
                           const struct codec_limits *limits, struct codec_picture *picture) IW_MUST_USE;

/*
 * Decode and pass the rows to taker, top to bottom, each once. Used to compare an encoded
 * result with its source.
 *
 * JPEG holds a few rows at a time, progressive JPEG also its coefficients. PNG and WebP are
 * decoded completely first.
 */
enum iw_error codec_decode_rows(struct context *context, const void *data, size_t size,
                                const struct codec_limits *limits, codec_rows_taker *taker,
                                void *user) IW_MUST_USE;

/*
 * Encode the picture in its own format. On success the caller owns the bytes. Errors are
 * SERVER_INTERNAL_ERROR or NO_MEMORY; they are never the file's fault.
 *
 * Notes: PALETTE_EXPANDED when a picture of few colours now has many. METADATA_LEFT_OUT and
 * CONTENT_CREDENTIALS_REMOVED for metadata that decoding or the opt-out removed.
 */
enum iw_error codec_encode(struct context *context, const struct codec_picture *picture,
                           struct codec_bytes *bytes) IW_MUST_USE;

/*
 * Make codec_encode use a higher quality than the file's, for a picture as decoded. Levels 1,
 * 2, ... are used in turn: JPEG without chroma subsampling, WebP finally lossless.
 *
 * False: the format has no such level, or its encoder needs more memory than the limits allow.
 * The picture can then only be freed.
 */
bool codec_finer(struct codec_picture *picture, unsigned level, const struct codec_limits *limits);

/*
 * Make a grey picture, as decoded, one of three equal colours. Samples with a grey profile are converted
 * to sRGB, and the profile is dropped.
 *
 * False: it needs more memory than the limits allow. The picture is then unchanged.
 */
bool codec_color(struct codec_picture *picture, const struct codec_limits *limits);

/*
 * Set plus:DataMining in every XMP packet: prohibited for AI/ML training (PLUS vocabulary), or
 * the file's value if that is stronger. The rest of a packet stays; a broken packet is
 * replaced. IMAGE_TOO_LARGE: a JPEG's XMP has no room for it.
 */
enum iw_error codec_opt_out(struct context *context, struct codec_picture *picture) IW_MUST_USE;

/* Make a WebP of at most side_px on its longer side, upright (orientation applied), in sRGB. */
enum iw_error codec_thumbnail(struct context *context, const struct codec_picture *picture, uint32_t side_px,
                              struct codec_bytes *bytes) IW_MUST_USE;

void codec_picture_free(struct codec_picture *picture);
void codec_bytes_free(struct codec_bytes *bytes);

#endif
