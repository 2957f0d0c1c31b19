/*
 * The names that results are given: those of their files, made unique within
 * the order, so that they can lie side by side in one archive.
 *
 * The same files give the same names, whoever asks and whenever.  Two names
 * that differ only in ASCII case count as twins, because file systems that the
 * archive may be unpacked on take them for one.
 */
#ifndef DOMAIN_RESULT_NAME_H
#define DOMAIN_RESULT_NAME_H

#include <imgward/arena.h>

/*
 * Writes unique names for count names, in their order: the first of twins keeps
 * its name, the next becomes "name (2).jpg" and so on.  The array and its texts
 * are the arena's.  Takes time in the square of count.
 */
const char **result_names(struct arena *arena, const char *const *names, unsigned count);

#endif
