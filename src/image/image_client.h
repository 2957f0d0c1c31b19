/*
 * The worker's end of an image process: start it, send requests, receive answers. Independent
 * of jobs and pictures.
 *
 * Only image_client_spawn blocks, in fork. The supervisor polls the socket, enforces the time
 * limit with image_client_kill, and reaps the pid with waitpid.
 */
#ifndef IMAGE_IMAGE_CLIENT_H
#define IMAGE_IMAGE_CLIENT_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/config.h"
#include "base/context.h"
#include "image/image_protocol.h"

/*
 * Program and weights of all processes of a worker, held open. An upgrade replaces the files on
 * disk; processes started later still are of the worker's build.
 */
struct image_client_files {
    int program; /* -1 if there is none */
    int weights;
};

/* Options of a process. Paths are borrowed during the call. */
struct image_client_options {
    const struct image_client_files *files; /* NULL: opens program and weights_path at each start */
    const char *program;                    /* NULL for the installed imgward-image */
    const char *weights_path;               /* NULL means no anti-AI work */
    const char *watermark_key_path;         /* NULL means no watermark work */
    uint64_t memory_bytes;                  /* zeroes select the process's defaults */
    unsigned cpu_seconds;                   /* per picture */
    uint64_t pixels_max;
    uint32_t side_max_px;
    unsigned images_max;
    unsigned formats_more;       /* that an extraction reads, as bits: formats_taken */
    unsigned growth_max_percent; /* of a protected JPEG */
    bool is_unsealed_allowed;
};

/* Options from the configuration, without a watermark key if its file is not readable. Paths are borrowed. */
struct image_client_options image_client_options_of(const struct config *config);

/* Opens the files. The caller closes them, after an error too. CONFIG_INVALID names the file. */
enum iw_error image_client_files_open(struct context *context, const struct image_client_options *options,
                                      struct image_client_files *files) IW_MUST_USE;
void image_client_files_close(struct image_client_files *files);

struct image_client {
    pid_t pid;  /* 0 if there is none */
    int socket; /* -1 if there is none; close-on-exec, non-blocking */
};

/* Result of image_client_receive. */
enum image_client_event {
    IMAGE_CLIENT_NOTHING, /* poll again */
    IMAGE_CLIENT_ANSWER,  /* one answer; there may be more */
    IMAGE_CLIENT_ENDED    /* the process ended or violated the protocol: kill and reap it */
};

/*
 * Starts a process. The READY answer arrives through image_client_receive. The process inherits
 * standard error and a fixed environment, and nothing else. It dies with the thread that called
 * this. IO_FAILED.
 */
enum iw_error image_client_spawn(struct context *context, const struct image_client_options *options,
                                 struct image_client *client) IW_MUST_USE;

/*
 * Sends a request with its descriptors, indexed by enum image_file, -1 for none. The caller may
 * close them afterwards.
 *
 * PROCESSING_CRASHED: the process is gone. SERVICE_UNAVAILABLE: its socket is full, which
 * happens only to callers that do not wait for answers.
 */
enum iw_error image_client_send(struct context *context, const struct image_client *client,
                                const struct image_request *request,
                                const int files[image_file_count]) IW_MUST_USE;

/* Receives one answer if there is one. */
enum image_client_event image_client_receive(const struct image_client *client, struct image_answer *answer);

/* Kill the process if there is one. The caller must reap it. */
void image_client_kill(const struct image_client *client);

/* Closes the socket; a living process then exits. The caller must reap the pid. */
void image_client_close(struct image_client *client);

#endif
