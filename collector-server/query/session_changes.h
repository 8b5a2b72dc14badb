/* Finds sessions that are new or that changed since the previous poll. Not thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SESSION_CHANGES_H
#define SJ_COLLECTOR_SERVER_QUERY_SESSION_CHANGES_H

#include <jansson.h>
#include <sqlite3.h>

typedef struct sj_session_changes sj_session_changes;

/* A poll compares the SJ_SESSION_CHANGES_NEWEST newest sessions, the sessions that are being
 * recorded, and those that were being recorded at the previous poll. It compares at most
 * SJ_SESSION_CHANGES_MAX sessions. */
enum { SJ_SESSION_CHANGES_NEWEST = 200, SJ_SESSION_CHANGES_MAX = 1000 };

/* Returns NULL if out of memory. */
sj_session_changes *sj_session_changes_new(void);
void sj_session_changes_free(sj_session_changes *changes); /* NULL is allowed */

/* Returns {"items": [...]} with rows as in /api/v1/sessions; the caller owns the result. Returns
 * NULL if nothing changed, if out of memory, or if the database cannot be read now. After an error,
 * the next poll includes the changes. The first poll returns every compared session. If no other
 * connection changed the database, a poll runs one pragma only. Blocks on the database. */
json_t *sj_session_changes_poll(sj_session_changes *changes, sqlite3 *database);

#endif
