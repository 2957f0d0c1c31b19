/* A file store in a folder of one test, with injected failures. */
#ifndef UNIT_STORE_MAKER_H
#define UNIT_STORE_MAKER_H

#include "fixture.h"
#include "service/files/storage.h"

/* The linker redirects system calls of the store to this file (--wrap), where this failure happens. */
enum fault { FAULT_NONE, FAULT_NO_TMPFILE, FAULT_WRITE, FAULT_DATASYNC, FAULT_LINK, FAULT_FOLDER_SYNC };

extern enum fault fault;
extern char folder[64];

extern const struct storage_key key_a, key_b;

/* Each test begins and ends with these, which make and remove the folder. */
void test_begin(void);
void test_end(void);

/* Number of regular files in the test's folder and its subfolders. */
unsigned files_count(void);

/* Opens the store. The test closes it. */
struct storage *store_of(void);

/* Compares a file of the store. */
void bytes_expect(struct storage *storage, const struct storage_key *key, const char *expected);

#endif
