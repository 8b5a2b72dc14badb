/* The table `audit`: who did what with the collector. */
#ifndef SJ_COLLECTOR_SERVER_FLEET_AUDIT_H
#define SJ_COLLECTOR_SERVER_FLEET_AUDIT_H

#include "proto/base/error.h"

#include <sqlite3.h>

/* Texts are borrowed. */
typedef struct sj_audit_entry {
    const char *who;     /* "token:NAME", or NULL: the user of this process, as "user:NAME" */
    const char *peer;    /* address of the client; "": the command line */
    const char *action;  /* one of the actions in the description of the table */
    const char *object;  /* what the action changed or read */
    const char *outcome; /* "done", or why it failed */
} sj_audit_entry;

/* Adds a row. Removes the oldest rows about SQL statements if there are too many of these. Returns
 * the error of the database. Waits for other writers. */
SJ_MUST_CHECK sj_status sj_audit_add(sqlite3 *database, const sj_audit_entry *entry,
                                     sj_error *error);

/* Adds a row about an action of the command line, after it was carried out. If the row cannot be
 * written, logs the action. */
void sj_audit_add_local(sqlite3 *database, const char *action, const char *object,
                        const char *outcome);

#endif
