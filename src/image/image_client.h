/*
 * The supervisor's end of an image process: start it, hand it work, take its
 * answers.  Never blocks but in image_client_spawn's fork; image_client_socket
 * is for the supervisor's poll().  Knows nothing of jobs and pictures.
 *
 * The supervisor keeps the time: it kills (image_client_kill) a process that
 * says nothing within its limit, and reaps it by waitpid on the pid.
 */
#ifndef IMAGE_IMAGE_CLIENT_H
#define IMAGE_IMAGE_CLIENT_H

#include <stdbool.h>
#include <sys/types.h>

#include <imgward/context.h>

#include "base/config.h"
#include "image/image_protocol.h"

/* How to start one.  Paths are borrowed during the call alone. */
struct image_client_options {
    const char *program;            /* NULL: imgward-image where it is installed */
    const char *weights_path;       /* NULL: no anti-AI work */
    const char *watermark_key_path; /* NULL: no watermark work */
    uint64_t memory_bytes;          /* zeroes take the process's defaults */
    unsigned cpu_seconds;           /* per image */
    uint64_t pixels_max;
    uint32_t side_max_px;
    unsigned images_max;
    bool is_unsealed_allowed;
};

/* As the configuration has it; without a watermark key where there is none to be read.  Its paths are
 * borrowed. */
struct image_client_options image_client_options_of(const struct config *config);

struct image_client {
    pid_t pid;  /* 0: none */
    int socket; /* -1: none; close-on-exec, non-blocking */
};

/* What image_client_receive found. */
enum image_client_event {
    IMAGE_CLIENT_NOTHING, /* poll again */
    IMAGE_CLIENT_ANSWER,  /* one answer is there; there may be more */
    IMAGE_CLIENT_ENDED    /* the process has ended or broke the protocol: kill, reap, forget */
};

/*
 * Starts a process: its READY answer comes through image_client_receive.  It
 * inherits standard error, an environment of our making, and nothing else; it
 * dies when the thread that called this does.  IO_FAILED.
 */
enum iw_error image_client_spawn(struct context *context, const struct image_client_options *options,
                                 struct image_client *client) IW_MUST_USE;

/*
 * Sends a request with its descriptors, by enum image_file, -1 where there is
 * none; the caller may close them afterwards.  PROCESSING_CRASHED when the
 * process is gone; SERVICE_UNAVAILABLE when its socket is full, which happens
 * only to callers that do not wait for answers.
 */
enum iw_error image_client_send(struct context *context, const struct image_client *client,
                                const struct image_request *request,
                                const int files[image_file_count]) IW_MUST_USE;

/* Takes one answer if one is there. */
enum image_client_event image_client_receive(const struct image_client *client, struct image_answer *answer);

/* Kills the process if there is one; the caller still reaps it. */
void image_client_kill(const struct image_client *client);

/* Closes the socket, on which a living process ends by itself; pid is left to be reaped. */
void image_client_close(struct image_client *client);

#endif
