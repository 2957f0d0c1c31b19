/*
 * Records of a ZIP archive with stored (uncompressed) entries, after PKWARE's APPNOTE.TXT
 * 6.3.10; numbers in comments are its sections.
 *
 * An archive has a local header and the bytes of each entry, then all central headers, then the end record.
 * Size and CRC-32 are in the local header, without a data descriptor, so that streaming readers work. Writing
 * never seeks back. All functions are pure.
 */
#ifndef SERVICE_FILES_ZIPFORMAT_H
#define SERVICE_FILES_ZIPFORMAT_H

#include <stdint.h>

#include "base/text.h"

struct zipformat_entry {
    const char *name; /* UTF-8, at most 65,535 bytes */
    int64_t size_bytes;
    uint32_t crc;         /* CRC-32 of the bytes */
    int64_t time_ms;      /* since 1970 UTC */
    int64_t offset_bytes; /* offset of the local header in the archive */
};

/* Append a header of an entry. ZIP64 fields are added only if a size or the offset needs them. */
void zipformat_local(struct text *record, const struct zipformat_entry *entry);
void zipformat_central(struct text *record, const struct zipformat_entry *entry);

/* Appends the end records of an archive of count entries, with offset and size of the central headers. */
void zipformat_end(struct text *record, uint64_t count, int64_t offset_bytes, int64_t size_bytes);

#endif
