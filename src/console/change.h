/*
 * Changes that a user of the console makes: the number of changes in a day, and the events of changes by the
 * API's handlers.
 *
 * The console's own handlers add their events in the transaction of the change.
 */
#ifndef CONSOLE_CHANGE_H
#define CONSOLE_CHANGE_H

#include "http/request.h"

/* Counts the change of a request with a session, unless the route is excepted (ROUTE_ESCAPE). */
enum iw_error change_count(struct request *request) IW_MUST_USE;

/* After a success, adds the event of a route of the API. If that fails, the error is only logged. */
void change_note(struct request *request);

#endif
