/*
 * Fault points: named places where a test makes the program die, fail or wait.
 *
 * Only ./configure --enable-faults compiles them in; otherwise the macros are empty. They are in
 * the drivers: database, Redis, file store, HTTP client, processes, sockets. Each time a point is
 * reached it has a key, the text that the driver works on: a statement, the statements of a
 * transaction, a command, a folder of the store, the kind of a process or message. A test names a
 * point and a part of the key, so one point serves many tests.
 *
 * The environment variable IMGWARD_FAULTS names a file of struct fault_slot, which all programs
 * of a stack map. A slot counts the times its point is reached with its key and tells which of
 * them triggers the action. tests/fault/points.py writes the file.
 */
#ifndef BASE_FAULT_H
#define BASE_FAULT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * FAULT(NAME, "name", capability, "place; key")
 *
 * DIES: the process may be killed or delayed there; FAILS: the step may also return an error.
 */
#define FAULT_TABLE(FAULT)                                                                                   \
    FAULT(PROCESS_SPAWN, "process.spawn", FAILS, "before a fork; the kind of process")                       \
    FAULT(PROCESS_FORKED, "process.forked", DIES, "after a fork, in the parent; the kind of process")        \
    FAULT(PROCESS_STARTED, "process.started", DIES, "before the first work; the kind of process")            \
    FAULT(PROCESS_REAPED, "process.reaped", DIES, "an exit status was collected; the kind of process")       \
    FAULT(MESSAGE_TAKEN, "message.taken", DIES, "a message was read from a socket; its kind")                \
    FAULT(MESSAGE_SENDING, "message.sending", DIES, "before a message is written; its kind")                 \
    FAULT(MESSAGE_SENT, "message.sent", FAILS, "a message was written; its kind")                            \
    FAULT(DB_STATEMENT, "db.statement", FAILS, "before a statement is sent; its SQL")                        \
    FAULT(DB_STATEMENT_RUN, "db.statement_run", FAILS, "a statement ran; failing: its reply is lost")        \
    FAULT(DB_ROW, "db.row", FAILS, "before a row is read; failing: the rest of the answer is lost; no key")  \
    FAULT(DB_BEGUN, "db.begun", FAILS, "a transaction is open and empty; no key")                            \
    FAULT(DB_ROLLED_BACK, "db.rolled_back", FAILS,                                                           \
          "a statement of a transaction ran; failing: the server silently rolled back; its SQL")             \
    FAULT(DB_COMMIT, "db.commit", FAILS, "before a commit; the SQL of the transaction")                      \
    FAULT(DB_COMMITTED, "db.committed", FAILS, "after a commit; failing: its reply is lost")                 \
    FAULT(DB_INSERT_ID, "db.insert_id", FAILS, "failing: the server did not report the id; no key")          \
    FAULT(REDIS_SEND, "redis.send", FAILS, "before a command is sent; its words")                            \
    FAULT(REDIS_RECEIVE, "redis.receive", FAILS, "before a reply is read; the words of its command")         \
    FAULT(STORE_BEGIN, "store.begin", FAILS, "before a file of the store is created; no key")                \
    FAULT(STORE_ADD, "store.add", FAILS, "before bytes are written; failing: the disk is full; no key")      \
    FAULT(STORE_SYNCED, "store.synced", FAILS, "the bytes are on the disk, without a name; the folder")      \
    FAULT(STORE_PLACED, "store.placed", FAILS,                                                               \
          "the file has its name, its folder is not synced; the folder")                                     \
    FAULT(STORE_DELETE, "store.delete", FAILS, "before a file of the store is deleted; the folder")          \
    FAULT(OBJECT_ASKED, "object.asked", FAILS, "before a request to an object store; method, key and query") \
    FAULT(OBJECT_ANSWERED, "object.answered", FAILS,                                                         \
          "an object store answered; failing: its answer is lost; the same key")                             \
    FAULT(PEER_ASKED, "peer.asked", FAILS, "before an outgoing request; its method")                         \
    FAULT(PEER_ANSWERED, "peer.answered", DIES, "an outgoing request ended; its method")                     \
    /* Points outside the drivers: no driver is called between their two steps, or the same one is. */       \
    FAULT(POOL_RELOADED, "pool.reloaded", DIES, "the supervisor has a new configuration, its children not")  \
    FAULT(REQUEST_ADMITTED, "request.admitted", DIES, "key and limit are checked, the handler not called")   \
    FAULT(USER_VERIFIED, "user.verified", DIES,                                                              \
          "password or code is verified, the change not begun; the change")                                  \
    FAULT(IMAGE_DECODED, "image.decoded", DIES, "image process: the picture is decoded")                     \
    FAULT(IMAGE_CHANGED, "image.changed", DIES, "image process: the engine is done")                         \
    FAULT(LEASES_LOST, "leases.lost", DIES, "a sweep took leases back; most sweeps find none")               \
    FAULT(RESULT_STORED, "result.stored", FAILS, "the result is stored and its key is set, no row names it")

enum fault {
#define FAULT_ENUMERATOR(name, text, can, sentence) FAULT_##name,
    FAULT_TABLE(FAULT_ENUMERATOR)
#undef FAULT_ENUMERATOR
        FAULT_COUNT
};

enum fault_action { FAULT_NOTHING, FAULT_KILL, FAULT_FAIL, FAULT_DELAY };

enum { fault_key_size = 96 };

/* One row of the file, in native byte order. */
struct fault_slot {
    int32_t point;     /* enum fault */
    int32_t action;    /* enum fault_action */
    int32_t program;   /* 0: any program; 'a', 'w', 'i': only pool, worker or image process */
    int32_t countdown; /* decremented each time the slot matches; the action is taken at 1 */
    int32_t width;     /* number of consecutive times the action is taken */
    int32_t delay_ms;
    uint32_t passed;          /* times the slot matched, armed or not */
    uint32_t taken;           /* times the action was taken */
    char key[fault_key_size]; /* the slot matches when the key contains this; "": any key */
};

#ifdef IW_FAULTS

/*
 * Maps the file of IMGWARD_FAULTS early, for a process that cannot open files later. Without a
 * file there are no faults.
 */
void fault_open(void);

/* "IMGWARD_FAULTS=PATH" for a child with a constructed environment; NULL if the variable is not set. */
char *fault_environment(void);

/*
 * Counts in each slot that matches point, program and key, and takes the armed actions: dies,
 * waits, or returns true for a failure.
 */
bool fault_pass(enum fault fault, const char *key);

/* Keys that are built from several texts: the statements of a transaction, the words of a Redis command. */
enum fault_key { FAULT_TRANSACTION, FAULT_COMMAND, FAULT_KEY_COUNT };

void fault_key_clear(enum fault_key which);

/* Appends the text and a space; a key longer than 16 KiB is cut. */
void fault_key_add(enum fault_key which, const char *text);
const char *fault_key(enum fault_key which);

#define fault_point(fault, key) ((void)fault_pass(fault, key))
#define fault_fails(fault, key) fault_pass(fault, key)

#else

#define fault_open()               ((void)0)
#define fault_environment()        NULL
#define fault_point(fault, key)    ((void)0)
#define fault_fails(fault, key)    false
#define fault_key_clear(which)     ((void)0)
#define fault_key_add(which, text) ((void)0)
#define fault_key(which)           ""

#endif

#endif
