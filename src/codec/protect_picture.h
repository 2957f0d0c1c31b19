/*
 * A decoded picture through the anti-AI engine to encoded bytes: the order of
 * steps is protect, mark the metadata, encode, and for lossy formats measure
 * what came out and correct the strength.  Used by the image process and by
 * imgwardctl.  Opens no file but the weights; knows no orders and no jobs.
 */
#ifndef CODEC_PROTECT_PICTURE_H
#define CODEC_PROTECT_PICTURE_H

#include <imgward/protect.h>

#include "codec/codec.h"

/*
 * Reads the weights file, checks its SHA-256 and makes the engine ready.  To be
 * called before the process is sealed.  IO_FAILED, WEIGHTS_INVALID, NO_MEMORY.
 * On success the caller owns *protect and frees it with protect_free.
 */
enum iw_error protect_open(struct context *context, const char *path, struct protect **protect) IW_MUST_USE;

/*
 * Protects the picture at the strength and encodes it, with the metadata
 * opt-out.  The PSNR of the report is that of the decoded result against the
 * picture as given.  On success the picture is as given but for its metadata,
 * and the caller owns the bytes.  Needs, beside the picture, its size again
 * and, for lossy formats, once more for a moment.
 */
enum iw_error protect_picture(struct context *context, const struct protect *protect,
                              struct codec_picture *picture, enum protect_strength strength, uint64_t seed,
                              struct codec_bytes *bytes, struct protect_report *report) IW_MUST_USE;

#endif
