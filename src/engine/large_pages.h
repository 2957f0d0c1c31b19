/*
 * Memory of a picture's size is touched from end to end, and each page of 4 KiB is a fault: of 4 megapixels a
 * twelfth of the time.
 */
#ifndef ENGINE_LARGE_PAGES_H
#define ENGINE_LARGE_PAGES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

/* Asks for large pages where memory that was just taken is whole ones of them; nothing is lost where there
 * are none. */
static inline void large_pages_ask(void *memory, size_t size)
{
#ifdef MADV_HUGEPAGE
    const uintptr_t page_bytes = 2 << 20, first = ((uintptr_t)memory + page_bytes - 1) & ~(page_bytes - 1);
    const uintptr_t end = ((uintptr_t)memory + size) & ~(page_bytes - 1);
    if (memory != NULL && end > first)
        madvise((unsigned char *)memory + (first - (uintptr_t)memory), end - first, MADV_HUGEPAGE);
#else
    (void)memory, (void)size;
#endif
}

#endif
