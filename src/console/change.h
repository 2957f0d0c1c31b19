/*
 * Changes by a user of the console: their number in a day, and the events of those that the API's handlers
 * make.
 *
 * The console's own handlers add their events in the transaction of the change.
 */
#ifndef CONSOLE_CHANGE_H
#define CONSOLE_CHANGE_H

#include "http/request.h"

/* Counts the change of a request with a session, unless the route is a way out (ROUTE_ESCAPE). */
enum iw_error change_count(struct request *request) IW_MUST_USE;

/* After a success: adds the event of a route of the API.  A failure is in the log. */
void change_note(struct request *request);

#endif
