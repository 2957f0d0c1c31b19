/*
 * The pictures of a command that takes several: files, and folders of which each picture is taken.  With
 * outputs the last argument is a file for one picture, or an existing folder, in which each result has the
 * name of its picture.
 *
 *   for (bool goes_on = batch_begin(&batch, ctl, true); goes_on && batch_next(&batch);)
 *       batch_done(&batch, work(ctl, batch.in, batch.out));
 *   return batch_end(&batch);
 */
#ifndef CTL_BATCH_H
#define CTL_BATCH_H

#include "ctl/ctl.h"

struct batch_pair {
    const char *in, *out;
    const char *key; /* with a folder for the results: of the name */
};

struct batch {
    const char *in, *out; /* the current picture; out is NULL without outputs */
    size_t count;         /* pictures */
    struct ctl *ctl;
    struct batch_pair *pairs;
    size_t at, room, failed, skipped;
    struct context *outer; /* of the command; each picture has a separate context */
    struct context context;
    struct arena *arena;
    int64_t told_ms;
    bool is_one; /* one file, no folder: messages need not name it */
    bool is_refused;
};

/* Lists the pictures.  After an error, prints a line on stderr and returns false; batch_end is still due. */
bool batch_begin(struct batch *batch, struct ctl *ctl, bool has_outputs);

/* Moves to the next picture; prints a line of progress on stderr every few seconds if there are several. */
bool batch_next(struct batch *batch);

/* Takes the result of the current picture, and prints its error with the name of the file. */
void batch_done(struct batch *batch, enum iw_error error);

/* Returns CTL_FAILED if a picture failed. */
enum ctl_exit batch_end(struct batch *batch);

#endif
