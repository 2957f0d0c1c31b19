/* Starts children that seal themselves. */
#ifndef UNIT_SEAL_CHILD_H
#define UNIT_SEAL_CHILD_H

#include <stdbool.h>

#include "image/seal.h"

extern const struct seal_limits test_limits;

/* Returns the wait status of a child that seals itself and runs the action. */
int sealed_status(void (*action)(void), const struct seal_limits *limits);

/* True if this machine refuses the seal, as an old kernel or a container does. */
bool is_refused(int status);

#endif
