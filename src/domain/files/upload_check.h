/*
 * Orders that start with their last upload, when uploads go straight to an object store: a
 * worker looks for them at growing intervals, and at once after a notification of the store.
 */
#ifndef DOMAIN_FILES_UPLOAD_CHECK_H
#define DOMAIN_FILES_UPLOAD_CHECK_H

#include <stdbool.h>

#include "domain/domain.h"

/* Looks at a few due orders and starts the complete ones. is_more: there may be other due ones. */
enum iw_error upload_checks_run(struct domain *domain, bool *is_more) IW_MUST_USE;

/* The store has a new object with this name: its order is looked at next. Other names are ignored. */
enum iw_error upload_check_hasten(struct domain *domain, const char *object_name) IW_MUST_USE;

#endif
