/* Makes a file store in a folder for one test, and injects failures. */
#ifndef UNIT_STORE_MAKER_H
#define UNIT_STORE_MAKER_H

#include "fixture.h"
#include "service/files/storage.h"

/* The linker redirects the store's system calls to store_maker.c (--wrap), where the chosen call fails. */
enum fault { FAULT_NONE, FAULT_NO_TMPFILE, FAULT_WRITE, FAULT_DATASYNC, FAULT_LINK, FAULT_FOLDER_SYNC };

extern enum fault fault;
extern char folder[64];

extern const struct storage_key key_a, key_b;

/* Make and remove the folder; called at the begin and the end of each test. */
void test_begin(void);
void test_end(void);

/* Returns the number of regular files in the test's folder and in subfolders. */
unsigned files_count(void);

/* Opens the store; the test closes it. */
struct storage *store_of(void);

/* Compares a file of the store. */
void bytes_expect(struct storage *storage, const struct storage_key *key, const char *expected);

#endif
