/* JSON of the console's objects, and readers of its bodies. */
#ifndef CONSOLE_VIEW_H
#define CONSOLE_VIEW_H

#include "api/field.h"
#include "domain/people/session.h"
#include "http/request.h"

/* The members of a user in an open object. */
void view_user(struct render *render, const struct user *user);

/* Limits and terms that the pages state, in an open object. */
void view_service(struct render *render, struct arena *arena, const struct config *config);

/* The answer {"data": {}}. */
enum iw_error view_nothing(struct request *request);

/* Reads the body as an object; its fields are read with field.h and the readers below. */
enum iw_error view_body(struct request *request, struct field_scope *body) IW_MUST_USE;

/* A required text of at most most code points; "" and a detail when it is absent or invalid. */
const char *view_text(const struct field_scope *body, const char *name, size_t most);

/* A required password as sent; NULL and a detail when it is absent or has U+0000. */
const char *view_password(const struct field_scope *body, const char *name);

/* A required e-mail address in lower case; "" and a detail when it is absent or invalid. */
const char *view_email(const struct field_scope *body, const char *name);

/* A role; fallback when absent or invalid. */
enum user_role view_role(const struct field_scope *body, const char *name);

/* An id of the path; RESOURCE_NOT_FOUND when it is not a number. */
enum iw_error view_id(struct request *request, const char *name, int64_t *id) IW_MUST_USE;

#endif
