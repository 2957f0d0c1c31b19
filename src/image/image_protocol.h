/*
 * What the supervisor and the sealed image process say to each other.
 *
 * One unix SOCK_SEQPACKET socket; a message is one struct below, in the
 * machine's own byte order, for both ends are of one build on one machine.  A
 * request carries its files as descriptors (SCM_RIGHTS) in the order of enum
 * image_file, those that its kind and flags call for and no others.  The
 * process first sends an answer of kind IMAGE_READY, then one answer for each
 * request, in order.  After an answer with is_last it exits with 0; when the
 * supervisor closes the socket it exits with 0 as well.
 *
 * The process answers nothing that it was not asked; a socket that ends without
 * an answer means that it died, and its wait status says of what.
 */
#ifndef IMAGE_IMAGE_PROTOCOL_H
#define IMAGE_IMAGE_PROTOCOL_H

#include <stdint.h>

enum { image_protocol_version = 3, image_socket = 3 };

enum image_kind {
    IMAGE_READY = 0, /* in answers only */
    IMAGE_PROBE,     /* the header and whether the limits allow it; no pixels */
    IMAGE_ANTI_AI,
    IMAGE_WATERMARK_EMBED,
    IMAGE_WATERMARK_EXTRACT,
    image_kind_count
};

/* Descriptors of a request, in this order; kinds and flags say which are there. */
enum image_file {
    IMAGE_INPUT = 0, /* read only, a regular file; always */
    IMAGE_ORIGINAL,  /* read only, a regular file; with IMAGE_HAS_ORIGINAL (extract alone) */
    IMAGE_OUTPUT,    /* to write; for the anti-AI and embed kinds */
    IMAGE_THUMBNAIL, /* to write; with IMAGE_WANTS_THUMBNAIL */
    image_file_count
};

enum image_flag { IMAGE_HAS_ORIGINAL = 1, IMAGE_WANTS_THUMBNAIL = 2 };

/* Stages that CPU time is told for.  Anti-AI and embed work encode within their engine stage, as often as
 * they need to.
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
    uint32_t strength;         /* enum protect_strength; anti-AI alone */
    uint64_t ticket;           /* the supervisor's, comes back in the answer */
    uint64_t seed;             /* anti-AI alone */
    uint64_t watermark_number; /* embed alone */
};

struct image_answer {
    uint32_t version;
    uint32_t kind;
    uint64_t ticket;
    /* enum iw_error.  Unless it is IW_OK results are zero; WATERMARK_NOT_FOUND keeps shape and thumbnail. */
    uint32_t error;
    uint32_t is_last; /* 1: the process has served its share and exits */
    uint32_t
        seal_missing; /* READY alone: of enum seal_layer; SEAL_SECCOMP only where the operator allows that */
    uint32_t format;  /* enum codec_format */
    uint32_t width_px;
    uint32_t height_px;
    uint64_t output_bytes;
    uint64_t thumbnail_bytes;
    uint64_t watermark_number;            /* extract: the number read */
    uint32_t psnr_hundredths;             /* dB * 100 of the result against the input; 0: not measured */
    uint32_t stage_ms[image_stage_count]; /* CPU time; also told for failures */
    char reason[32];                      /* short constant word, may be empty */
    char sentence[384];                   /* for the client */
    char cause[256];                      /* for the log alone, may be empty */
    char note_code[40];                   /* of the first note on the result; empty when there is none */
    char note[512];                       /* the sentences of all notes, for the client */
};

#endif
