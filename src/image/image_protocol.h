/*
 * Protocol between the worker and a sealed image process.
 *
 * One unix SOCK_SEQPACKET socket. A message is one struct below in native byte order, because
 * both ends come from one build. A process that is started with an image_build of another build
 * exits with image_exit_other_build and sends nothing. A request carries its files as descriptors
 * (SCM_RIGHTS) in the order of enum image_file. Only the files that its kind and flags require are sent.
 *
 * The process sends an answer of kind IMAGE_READY first, then one answer per request, in order.
 * If it cannot start, READY has the error, and the process exits.
 * It exits with 0 after an answer with is_last, and when the supervisor closes the socket. It
 * exits with image_exit_no_memory if a picture needs more memory than it has.
 *
 * The process sends nothing else. A socket that closes without an answer means that the process
 * died; its wait status gives the cause.
 */
#ifndef IMAGE_IMAGE_PROTOCOL_H
#define IMAGE_IMAGE_PROTOCOL_H

#include <stdint.h>

#include "engine/watermark/watermark.h"

enum {
    image_protocol_version = 10,
    image_socket = 3,
    image_weights = 4, /* descriptor of the weights, if the worker holds them open */
    image_exit_no_memory = 3,
    image_exit_other_build = 4,
    image_exit_not_run = 127 /* the program cannot be executed */
};

/* Increase the number with image_protocol_version. */
#define IMAGE_BUILD PACKAGE_VERSION "/9"

enum image_kind {
    IMAGE_READY = 0, /* in answers only */
    IMAGE_PROBE,     /* header and limits only; no pixels */
    IMAGE_ANTI_AI,
    IMAGE_WATERMARK_EMBED,
    IMAGE_WATERMARK_EXTRACT,
    image_kind_count
};

/* Descriptors of a request, in this order; kind and flags select them. */
enum image_file {
    IMAGE_INPUT = 0,  /* read only, a regular file; required */
    IMAGE_ORIGINAL,   /* read only, a regular file; with IMAGE_HAS_ORIGINAL (extract only) */
    IMAGE_CANDIDATES, /* read only: numbers of 64 bits in native order; with IMAGE_HAS_CANDIDATES (extract
                         only) */
    IMAGE_OUTPUT,     /* writable; for the anti-AI and embed kinds */
    IMAGE_THUMBNAIL,  /* writable; with IMAGE_WANTS_THUMBNAIL */
    image_file_count
};

enum image_flag { IMAGE_HAS_ORIGINAL = 1, IMAGE_WANTS_THUMBNAIL = 2, IMAGE_HAS_CANDIDATES = 4 };

/*
 * Stages with a separate CPU time. Anti-AI and embed work may encode several times within their
 * engine stage.
 */
enum image_stage {
    IMAGE_STAGE_DECODE = 0,
    IMAGE_STAGE_ENGINE,
    IMAGE_STAGE_ENCODE,
    IMAGE_STAGE_THUMBNAIL,
    image_stage_count
};

struct image_request {
    uint32_t version;
    uint32_t kind;             /* enum image_kind */
    uint32_t flags;            /* of enum image_flag */
    uint32_t strength;         /* enum protect_strength; anti-AI only */
    uint64_t ticket;           /* set by the supervisor; copied to the answer */
    uint64_t seed;             /* anti-AI only */
    uint64_t account_id;       /* embed and extract: selects the watermark key */
    uint64_t watermark_number; /* embed only */
};

struct image_answer {
    uint32_t version;
    uint32_t kind;
    uint64_t ticket;
    /*
     * enum iw_error. Unless it is IW_OK, results are zero; WATERMARK_NOT_FOUND keeps header,
     * thumbnail and notes.
     */
    uint32_t error;
    uint32_t is_last;      /* 1: the process reached images_max or grew, and exits */
    uint32_t seal_missing; /* READY only: of enum seal_layer */
    uint32_t format;       /* enum format */
    uint32_t width_px;
    uint32_t height_px;
    uint64_t output_bytes;
    uint64_t thumbnail_bytes;
    struct watermark_numbers watermarks;  /* extract; those of a collage are several */
    struct watermark_view view;           /* embed: of the picture before it was marked */
    uint32_t protection_percent;          /* anti-AI: protect_percent, 0..100 */
    uint32_t psnr_hundredths;             /* 100 * dB, result against input; 0 if not measured */
    uint32_t stage_ms[image_stage_count]; /* CPU time, also of failures */
    char reason[32];                      /* short constant word or empty */
    char sentence[384];                   /* for the client */
    char cause[256];                      /* for the log only; may be empty */
    char note_code[40];                   /* of the first note on the result, or empty */
    char note[512];                       /* sentences of all notes, for the client */
    char watermark_key_id[24];            /* READY only: crypto_key_id, or empty without a key */
};

#endif
