/*
 * The worker's state: the handles that all files use, and the part of each file.
 *
 * The worker is one thread.  It does no work on pixels, and no step takes longer than
 * copying one file: heartbeats must be on time.
 */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include "base/config.h"
#include "base/context.h"
#include "base/metrics.h"
#include "domain/domain.h"
#include "domain/keyring.h"
#include "service/files/storage.h"
#include "worker/cleanup.h"
#include "worker/deliver.h"
#include "worker/flags.h"
#include "worker/heartbeat.h"
#include "worker/image_process.h"
#include "worker/lease.h"
#include "worker/mailer.h"
#include "worker/owner.h"
#include "worker/periodic.h"
#include "worker/record.h"
#include "worker/sender.h"
#include "worker/task.h"
#include "worker/work.h"

struct worker {
    const char *config_file;
    struct config start;        /* as at the start; drivers borrow it */
    struct config config;       /* in use */
    struct arena *config_arena; /* of config */
    struct arena *arena;        /* of one turn of the loop */
    struct context context;     /* on arena */
    struct domain domain;       /* over context */
    struct keyring keyring;     /* of the keys in use */
    struct storage *storage;
    struct metrics *metrics;
    char owner[owner_size];
    char machine[owner_size]; /* the part of owner that all workers of this machine share */

    struct flags flags;
    struct task_pool pools[JOB_CLASS_COUNT];
    unsigned class_last;     /* the class that work_step looked at last */
    struct sender transfers; /* of the pool of transfers */
    struct image_processes processes;
    struct lease_state lease;
    struct cleanup cleanup;
    struct heartbeat heartbeat;
    struct periodic periodic;
    struct deliver deliver;
    struct mailer mailer;
    unsigned timer_last; /* the timer of supervisor.c that ran last */
};

#endif
