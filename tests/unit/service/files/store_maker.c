#include "store_maker.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "service/files/store_local.h"

enum fault fault;
char folder[64];

const struct storage_key key_a = {FILEKEY_RESULT, 7001, 12, 1, 0};
const struct storage_key key_b = {FILEKEY_RESULT, 7001, 12, 1, 2};

/* With large files enabled, the C library's openat is named openat64. */
int __real_openat(int parent, const char *path, int flags, ...);
int __wrap_openat64(int parent, const char *path, int flags, ...);
int __wrap_openat(int parent, const char *path, int flags, ...);
ssize_t __real_write(int descriptor, const void *bytes, size_t size);
ssize_t __wrap_write(int descriptor, const void *bytes, size_t size);
int __real_fdatasync(int descriptor);
int __wrap_fdatasync(int descriptor);
int __real_fsync(int descriptor);
int __wrap_fsync(int descriptor);
int __real_linkat(int from_parent, const char *from, int to_parent, const char *to, int flags);
int __wrap_linkat(int from_parent, const char *from, int to_parent, const char *to, int flags);

static int failed_with(int why)
{
    errno = why;
    return -1;
}

static int openat_tried(int parent, const char *path, int flags, va_list arguments)
{
    mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
    if (fault == FAULT_NO_TMPFILE && (flags & O_TMPFILE) == O_TMPFILE)
        return failed_with(EOPNOTSUPP);
    return __real_openat(parent, path, flags, mode);
}

int __wrap_openat(int parent, const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    int descriptor = openat_tried(parent, path, flags, arguments);
    va_end(arguments);
    return descriptor;
}

int __wrap_openat64(int parent, const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    int descriptor = openat_tried(parent, path, flags, arguments);
    va_end(arguments);
    return descriptor;
}

ssize_t __wrap_write(int descriptor, const void *bytes, size_t size)
{
    return fault == FAULT_WRITE ? failed_with(ENOSPC) : __real_write(descriptor, bytes, size);
}

int __wrap_fdatasync(int descriptor)
{
    return fault == FAULT_DATASYNC ? failed_with(EIO) : __real_fdatasync(descriptor);
}

int __wrap_fsync(int descriptor)
{
    return fault == FAULT_FOLDER_SYNC ? failed_with(EIO) : __real_fsync(descriptor);
}

int __wrap_linkat(int from_parent, const char *from, int to_parent, const char *to, int flags)
{
    return fault == FAULT_LINK ? failed_with(ENOSPC) : __real_linkat(from_parent, from, to_parent, to, flags);
}

void test_begin(void)
{
    fault = FAULT_NONE;
    fresh();
    snprintf(folder, sizeof folder, "%s/imgward-files.XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : ".");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
}

static int entry_remove(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)facts, (void)kind, (void)place;
    return remove(path);
}

void test_end(void)
{
    fault = FAULT_NONE;
    nftw(folder, entry_remove, 16, FTW_DEPTH | FTW_PHYS);
}

static unsigned file_count;

static int file_note(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)path, (void)facts, (void)place;
    file_count += kind == FTW_F;
    return 0;
}

unsigned files_count(void)
{
    file_count = 0;
    nftw(folder, file_note, 16, FTW_PHYS);
    return file_count;
}

struct storage *store_of(void)
{
    struct storage *storage = NULL;
    CU_ASSERT_EQUAL_FATAL(store_local_open(&context, folder, &storage), IW_OK);
    return storage;
}

void bytes_expect(struct storage *storage, const struct storage_key *key, const char *expected)
{
    char bytes[256];
    int descriptor;
    struct storage_facts facts;
    context_fresh();
    CU_ASSERT_EQUAL_FATAL(storage_get(storage, &context, key, &descriptor, &facts), IW_OK);
    ssize_t size = read(descriptor, bytes, sizeof bytes);
    close(descriptor);
    CU_ASSERT_EQUAL(size, (ssize_t)strlen(expected));
    CU_ASSERT_EQUAL(facts.size_bytes, (int64_t)strlen(expected));
    CU_ASSERT_EQUAL(memcmp(bytes, expected, strlen(expected)), 0);
}
