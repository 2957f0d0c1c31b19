/*
 * Fault points: named places where a test makes the program die, fail or wait.
 *
 * Only ./configure --enable-faults compiles them in; otherwise the macros are empty. The tests
 * read the table below from this file, arm every row, and fail when one was never reached.
 *
 * The environment variable IMGWARD_FAULTS names a file with one struct fault_slot per row,
 * which all programs of a stack map. A slot counts the times its point is reached and tells
 * which of them triggers the action.
 */
#ifndef IMGWARD_FAULT_H
#define IMGWARD_FAULT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * FAULT(NAME, "name", capability, "place")
 *
 * DIES: the process may be killed or delayed there; FAILS: the step may also return an error.
 * The rows follow the path of a request, then of a job.
 */
#define FAULT_TABLE(FAULT)                                                                                   \
    FAULT(POOL_FORKED, "pool.forked", DIES, "supervisor of the pool: a process was forked")                  \
    FAULT(POOL_BURIED, "pool.buried", DIES, "supervisor of the pool: a dead process was taken note of")      \
    FAULT(POOL_RELOADED, "pool.reloaded", DIES, "supervisor of the pool: a new configuration is in force")   \
    FAULT(CHILD_STARTED, "child.started", DIES, "process of the pool: before its first request")             \
    FAULT(REQUEST_READ, "request.read", DIES, "a request was taken, nothing was done")                       \
    FAULT(REQUEST_ADMITTED, "request.admitted", DIES, "key and limit are checked, the work not begun")       \
    FAULT(REQUEST_WORKED, "request.worked", DIES, "the work is done, the answer not sent")                   \
    FAULT(REQUEST_ANSWERED, "request.answered", DIES, "the answer is sent, the request not ended")           \
    FAULT(LIMIT_ASKED, "limit.asked", DIES, "Redis was asked for limit and lock, its answer not read")       \
    FAULT(REDIS_SEND, "redis.send", FAILS, "before a command goes to Redis")                                 \
    FAULT(REDIS_RECEIVE, "redis.receive", FAILS, "before an answer of Redis is read")                        \
    FAULT(DB_STATEMENT, "db.statement", FAILS, "before a statement goes to the database")                    \
    FAULT(DB_STATEMENT_HEARD, "db.statement_heard", FAILS, "a statement ran; failing: its word is lost")     \
    FAULT(DB_BEGUN, "db.begun", FAILS, "a transaction is open and empty")                                    \
    FAULT(DB_COMMIT, "db.commit", FAILS, "the work of a transaction is done, it is not committed")           \
    FAULT(DB_COMMITTED, "db.committed", FAILS, "a transaction is committed; failing: its word is lost")      \
    FAULT(ORDER_TOLD, "order.told", FAILS, "an order is in the database; failing: nobody told its files")    \
    FAULT(ORDER_CREATED, "order.created", DIES, "the order's rows are committed, nobody was told")           \
    FAULT(ORDER_CONFIRMED, "order.confirmed", DIES, "an order was started, the bell not rung")               \
    FAULT(UPLOAD_TAKEN, "upload.taken", DIES, "the body was read, nothing has a name yet")                   \
    FAULT(UPLOAD_STORED, "upload.stored", DIES, "the bytes have their name, no row names them")              \
    FAULT(UPLOAD_RECORDED, "upload.recorded", DIES, "the row names the bytes; bell and old bytes wait")      \
    FAULT(STORE_BEGIN, "store.begin", FAILS, "before a file of the store is made")                           \
    FAULT(STORE_ADD, "store.add", FAILS, "before bytes are written; failing: the disk is full")              \
    FAULT(STORE_SYNCED, "store.synced", FAILS, "the bytes are on the disk, without a name")                  \
    FAULT(STORE_PLACED, "store.placed", FAILS, "the file has its name, its folder is not synced")            \
    FAULT(STORE_DELETE, "store.delete", FAILS, "before a file of the store is deleted")                      \
    FAULT(BELL, "bell", DIES, "before the bell in Redis is rung")                                            \
    FAULT(WORKER_STARTED, "worker.started", DIES, "supervisor: before its first turn")                       \
    FAULT(WORKER_HEARTBEAT, "worker.heartbeat", DIES, "supervisor: before a sign of life")                   \
    FAULT(WORKER_SWEPT, "worker.swept", DIES, "supervisor: leases of the dead were taken back")              \
    FAULT(WORKER_LEASED, "worker.leased", DIES, "supervisor: jobs are leased, none begun")                   \
    FAULT(HELPER_SPAWNING, "helper.spawning", FAILS, "before an image process is started")                   \
    FAULT(IMAGE_SENT, "image.sent", FAILS, "a picture was handed to its process; failing: could not be")     \
    FAULT(IMAGE_STARTED, "image.started", DIES, "image process: before its first word")                      \
    FAULT(IMAGE_TAKEN, "image.taken", DIES, "image process: a request was taken")                            \
    FAULT(IMAGE_DECODED, "image.decoded", DIES, "image process: the picture is decoded")                     \
    FAULT(IMAGE_CHANGED, "image.changed", DIES, "image process: the engine is done")                         \
    FAULT(IMAGE_WRITTEN, "image.written", DIES, "image process: all is written, nothing said")               \
    FAULT(IMAGE_SAID, "image.said", DIES, "image process: the answer is sent")                               \
    FAULT(IMAGE_HEARD, "image.heard", DIES, "supervisor: the answer is read, nothing stored")                \
    FAULT(RESULT_STORED, "result.stored", FAILS, "the result has its name in the store, no row names it")    \
    FAULT(THUMBNAIL_STORED, "thumbnail.stored", FAILS, "and so has the thumbnail")                           \
    FAULT(OUTCOME_KNOWN, "outcome.known", DIES, "an outcome is to be recorded")                              \
    FAULT(OUTCOME_RECORDED, "outcome.recorded", DIES, "an outcome is committed, nothing follows yet")        \
    FAULT(ORDER_ENDED, "order.ended", DIES, "an order has ended, its inputs are still there")                \
    FAULT(CLEAR_DELETED, "clear.deleted", DIES, "the inputs are deleted, the rows still name them")          \
    FAULT(CLEAR_FORGOTTEN, "clear.forgotten", DIES, "an ended order is cleared")                             \
    FAULT(ARCHIVE_FORKED, "archive.forked", FAILS, "supervisor: the archive's child runs")                   \
    FAULT(ARCHIVE_BEGUN, "archive.begun", DIES, "child: before the archive is written")                      \
    FAULT(ARCHIVE_BUILT, "archive.built", DIES, "child: the archive is in the store, nobody knows")          \
    FAULT(ARCHIVE_HEARD, "archive.heard", DIES, "supervisor: the child told, nothing recorded")              \
    FAULT(SOURCE_ASKED, "source.asked", FAILS, "a source was asked for its file")                            \
    FAULT(SOURCE_STORED, "source.stored", FAILS, "the fetched file is in the store, no row names it")        \
    FAULT(TARGET_ASKED, "target.asked", FAILS, "a result is on its way to its target")                       \
    FAULT(TARGET_TOOK, "target.took", DIES, "a target took a result, nothing recorded")                      \
    FAULT(DELIVERY_LEASED, "delivery.leased", DIES, "deliveries are leased, none sent")                      \
    FAULT(DELIVERY_SENT, "delivery.sent", FAILS, "a delivery is on its way")                                 \
    FAULT(DELIVERY_ANSWERED, "delivery.answered", DIES, "the receiver answered, nothing recorded")           \
    FAULT(DELIVERY_RECORDED, "delivery.recorded", DIES, "and now it is")                                     \
    FAULT(AGE_FILES_DELETED, "age.files_deleted", DIES, "an order expires: its files are gone")              \
    FAULT(AGE_RECORDED, "age.recorded", DIES, "an order has expired or was abandoned")                       \
    FAULT(RECLAIM_BEGUN, "reclaim.begun", DIES, "before what the dead left behind is looked for")

enum fault {
#define FAULT_ENUMERATOR(name, text, can, sentence) FAULT_##name,
    FAULT_TABLE(FAULT_ENUMERATOR)
#undef FAULT_ENUMERATOR
        FAULT_COUNT
};

enum fault_action { FAULT_NOTHING, FAULT_KILL, FAULT_FAIL, FAULT_DELAY };

/* One row of the file, in native byte order. */
struct fault_slot {
    int32_t action;    /* enum fault_action */
    int32_t program;   /* 0: any program; 'a', 'w', 'i': only pool, worker or image process */
    int32_t countdown; /* decremented each time the point is reached; the action is taken at 1 */
    int32_t width;     /* number of consecutive times the action is taken */
    int32_t delay_ms;
    uint32_t passed; /* times the point was reached by any process, armed or not */
    uint32_t taken;  /* times the action was taken */
    int32_t spare;
};

#ifdef IW_FAULTS

/*
 * Maps the file of IMGWARD_FAULTS early, for a process that cannot open files later. Without a
 * file there are no faults.
 */
void fault_open(void);

/* "IMGWARD_FAULTS=PATH" for a child with a constructed environment; NULL when the variable is not set. */
char *fault_environment(void);

/* Counts, and takes the armed action: dies, waits, or returns true for a failure. */
bool fault_pass(enum fault fault);

#define fault_point(fault) ((void)fault_pass(fault))
#define fault_fails(fault) fault_pass(fault)

#else

#define fault_open()        ((void)0)
#define fault_environment() NULL
#define fault_point(fault)  ((void)0)
#define fault_fails(fault)  false

#endif

#endif
