/*
 * The records of a ZIP archive whose entries are stored, not compressed
 * (PKWARE, APPNOTE.TXT 6.3.10; numbers in comments are its sections).
 *
 * An archive is: for each entry its local header and its bytes, then the central
 * headers of all entries, then the end.  Sizes and CRC-32 stand in the local
 * header and no data descriptor follows, so that readers of a stream can read
 * it.  All is written from the first byte to the last.  Pure functions.
 */
#ifndef SERVICE_ZIPFORMAT_H
#define SERVICE_ZIPFORMAT_H

#include <stdint.h>

#include "base/text.h"

struct zipformat_entry {
    const char *name; /* UTF-8, at most 65,535 bytes */
    int64_t size_bytes;
    uint32_t crc;         /* CRC-32 of the bytes */
    int64_t time_ms;      /* since 1970 UTC */
    int64_t offset_bytes; /* of the local header in the archive */
};

/* Append a record of an entry.  ZIP64 fields stand only where a size or the offset needs them. */
void zipformat_local(struct text *record, const struct zipformat_entry *entry);
void zipformat_central(struct text *record, const struct zipformat_entry *entry);

/* Appends the end of an archive of count entries: the central headers' offset and size are given. */
void zipformat_end(struct text *record, uint64_t count, int64_t offset_bytes, int64_t size_bytes);

#endif
