/* Finds sessions that are new or changed since the previous poll. Not thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_QUERY_SESSION_CHANGES_H
#define SJ_COLLECTOR_SERVER_QUERY_SESSION_CHANGES_H

#include <jansson.h>
#include <sqlite3.h>

typedef struct sj_session_changes sj_session_changes;

/* It compares the newest sessions and all that are being recorded, up to a maximum. */
enum { SJ_SESSION_CHANGES_NEWEST = 200, SJ_SESSION_CHANGES_MAX = 1000 };

sj_session_changes *sj_session_changes_new(void); /* NULL: out of memory */
void sj_session_changes_free(sj_session_changes *changes);

/* Returns {"items": [...]} with rows as in /api/v1/sessions, owned by the caller. Returns NULL if
 * nothing changed (which costs one pragma), or if the database cannot be read now; the next poll
 * then includes the changes. The first poll returns every session. */
json_t *sj_session_changes_poll(sj_session_changes *changes, sqlite3 *database);

#endif
