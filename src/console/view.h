/* Renders the console's objects as JSON and reads the console's request bodies. */
#ifndef CONSOLE_VIEW_H
#define CONSOLE_VIEW_H

#include "api/field.h"
#include "domain/people/session.h"
#include "http/request.h"

/* Renders the members of a user into an open object. */
void view_user(struct render *render, const struct user *user);

/* Limits and terms that the pages state, in an open object. */
void view_service(struct render *render, struct arena *arena, const struct config *config);

/* Answers {"data": {}}. */
enum iw_error view_nothing(struct request *request);

/* Reads the body as an object; its fields are read with field.h and the readers below. */
enum iw_error view_body(struct request *request, struct field_scope *body) IW_MUST_USE;

/*
 * Reads a required text of at most most code points. Returns "" and adds a detail if it is absent or invalid.
 */
const char *view_text(const struct field_scope *body, const char *name, size_t most);

/* Reads a required password as sent. Returns NULL and adds a detail if it is absent or has U+0000. */
const char *view_password(const struct field_scope *body, const char *name);

/* Reads a required email address in lower case. Returns "" and adds a detail if it is absent or invalid. */
const char *view_email(const struct field_scope *body, const char *name);

/* Reads a role. Returns fallback if it is absent or invalid. */
enum user_role view_role(const struct field_scope *body, const char *name);

/* Reads an id of the path. RESOURCE_NOT_FOUND if it is not a number. */
enum iw_error view_id(struct request *request, const char *name, int64_t *id) IW_MUST_USE;

#endif
