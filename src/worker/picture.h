/* Jobs on one picture: files into an image process, its answer into the store. */
#ifndef WORKER_PICTURE_H
#define WORKER_PICTURE_H

#include "worker/kind.h"

struct image_processes;
struct shared;

struct picture_jobs {
    const struct shared *shared;
    struct image_processes *processes;
};

extern const struct kind picture_kind; /* of struct picture_jobs */

#endif
