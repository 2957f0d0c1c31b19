/*
 * Decodes and encodes JPEG, PNG and WebP and keeps everything besides the pixels.
 *
 * A decoded picture can be changed in place. It is encoded in the format, size and depth of the file
 * with its ICC profile, EXIF, XMP, IPTC, comments, orientation, density and alpha. A JPEG also
 * keeps its quantisation tables, subsampling, entropy coder and progressive scans; finer encoding changes the
 * first two.
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

#include "codec/bytes.h"
#include "codec/limits.h"
#include "codec/picture.h"

/*
 * Loads what the decoders of these formats need: plugins of libheif. A process calls it before it is sealed;
 * otherwise the first such picture does it.
 */
void codec_open(unsigned formats);

/* True if codec_decode_rows decodes only the rows that it passes, so that ending it saves time. */
bool codec_reads_rows(const struct codec_picture *picture);

/* Reads and checks the header. IMAGE_FORMAT_UNSUPPORTED, IMAGE_CORRUPT, IMAGE_TOO_LARGE, IMAGE_TOO_SMALL. */
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
 * Decodes and passes the rows to taker, top to bottom, each once. Used to compare an encoded
 * result with its source.
 *
 * JPEG holds a few rows at a time, progressive JPEG also its coefficients. PNG and WebP are
 * decoded completely first.
 */
enum iw_error codec_decode_rows(struct context *context, const void *data, size_t size,
                                const struct codec_limits *limits, codec_rows_taker *taker,
                                void *user) IW_MUST_USE;

/*
 * Encodes the picture in the format of its file. On success the caller owns the bytes. Errors are
 * SERVER_INTERNAL_ERROR or NO_MEMORY; they are never the file's fault.
 *
 * Notes: PALETTE_EXPANDED if a picture of few colours has many now. METADATA_LEFT_OUT and
 * CONTENT_CREDENTIALS_REMOVED for metadata that decoding or the opt-out removed.
 */
enum iw_error codec_encode(struct context *context, const struct codec_picture *picture,
                           struct codec_bytes *bytes) IW_MUST_USE;

enum { codec_finest = 2 };

/* A change of a picture that the encoder puts into the coefficients of the file that the picture was decoded
 * from. */
struct codec_change {
    const void *data; /* the file */
    size_t size;
    /* Returns the change of a row of the picture in levels of 255, a value a sample. Rows are asked for from
     * the top. */
    const float *(*row)(void *user, uint32_t y_px);
    void *user;
    double scale;     /* of the change */
    unsigned finer;   /* level 1..codec_finest: steps and colour resolution are finer; 0: the file's */
    size_t bytes_max; /* 0 means no limit */
    double dead;      /* the least change of a coefficient of 0, in its steps; set for bytes_max */
};

/*
 * True if codec_encode_change is possible for the picture, its memory is within the limits, and a level above
 * 0 is finer than the file. It is for JPEG with grey or YCbCr.
 */
bool codec_carries(const struct codec_picture *picture, unsigned finer, const struct codec_limits *limits);

/*
 * Encodes the picture as decoded with a change. Coefficients that the change does not move keep their values
 * at level 0; at others they get the nearest of the finer steps. The bytes are empty if bytes_max is not
 * kept; change->dead is then an estimate that keeps it. Otherwise as codec_encode; the picture's preview is
 * that of codec_preview.
 */
enum iw_error codec_encode_change(struct context *context, const struct codec_picture *picture,
                                  struct codec_change *change, struct codec_bytes *bytes) IW_MUST_USE;

/*
 * Encodes stripes of the file of a change as a file without metadata, for a picture that codec_carries.
 * Trials on it cost less. *part receives the stripes' part of the coefficients that are not 0. It estimates
 * their part of the bytes without metadata.  The bytes are empty if the units of the file do not fit stripes.
 */
enum iw_error codec_stripes(struct context *context, const struct codec_picture *picture,
                            const struct image_stripes *stripes, const struct codec_change *change,
                            struct codec_bytes *bytes, double *part) IW_MUST_USE;

/* Size of all metadata of a picture that are kept. */
size_t codec_metadata_bytes(const struct codec_picture *picture);

/* Size of the JPEG, PNG or WebP that the picture was decoded from, without data behind its end. */
size_t codec_file_bytes(const struct codec_picture *picture);

/* Renders the preview in the metadata from the pixels. codec_encode does it too. */
void codec_preview(const struct codec_picture *picture);

/*
 * Makes codec_encode use a higher quality than the file's, for a picture as decoded. Levels 1,
 * 2, ... are used in turn: JPEG without chroma subsampling, WebP finally lossless.
 *
 * False if the format has no such level, or if the encoder needs more memory than the limits allow.
 * The picture can then only be freed.
 */
bool codec_finer(struct codec_picture *picture, unsigned level, const struct codec_limits *limits);

/*
 * Returns the quality of codec_encode, below 100, which the caller may raise; the picture's. NULL: the format
 * has none (only lossy WebP has), or a higher one is of no use.
 */
float *codec_quality(struct codec_picture *picture);

/*
 * Sets plus:DataMining in every XMP packet: prohibited for AI/ML training (PLUS vocabulary), or
 * the file's value if that is stronger. The rest of a packet stays; a broken packet is
 * replaced. IMAGE_TOO_LARGE if a JPEG has no room for the longer XMP.
 */
enum iw_error codec_opt_out(struct context *context, struct codec_picture *picture) IW_MUST_USE;

/* Frees the pixels and the keep, and zeroes the picture. */
void codec_picture_free(struct codec_picture *picture);

#endif
