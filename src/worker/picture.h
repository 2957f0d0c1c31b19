/* Jobs on one picture: files into an image process, its answer into the store. */
#ifndef WORKER_PICTURE_H
#define WORKER_PICTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "image/image_protocol.h"
#include "worker/kind.h"

struct image_slot;

/* A picture that takes less is quick.  The longest wait of a prefetched job, too. */
enum { picture_quick_ms = 1000 };

/* The part of a task.  Descriptors are -1 when closed. */
struct picture_part {
    int input_file;    /* open until the job starts */
    int original_file; /* the same; only for an extraction with its original */
    int64_t input_bytes;
    int candidates_file; /* the same; the account's numbers, only for an extraction */
    uint64_t watermark_number;
    int result_file; /* anonymous; the image process writes to it */
    int thumbnail_file;
    struct image_slot *process; /* valid when TASK_RUNNING */
    bool is_process_fresh;      /* it served no picture before this one */

    /* TASK_ANSWERED */
    const struct image_answer *answer; /* NULL: the process died */
    int wait_status;                   /* valid when it died */
    bool is_stored;                    /* the result is stored, the thumbnail is not */
};

extern const struct kind picture_kind;

#endif
