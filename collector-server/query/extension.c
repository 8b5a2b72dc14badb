/* libsojourn-sqlite.so: the tables and functions of query.h as an extension of SQLite 3.40 or
 * later. Use: `sqlite3 FILE`, then `.load ./libsojourn-sqlite`.
 *
 * Design notes. The library calls libsqlite3 directly, not through the pointers in `api`, so that
 * this component is compiled once for both uses. So a program that loads the library must use the
 * same shared libsqlite3, as Debian's sqlite3 does. */
#include "collector-server/query/query.h"

#include <stddef.h>

#define EXPORTED __attribute__((visibility("default")))

struct sqlite3_api_routines;

EXPORTED int sqlite3_sojournsqlite_init(sqlite3 *database, char **message,
                                        const struct sqlite3_api_routines *api);

int sqlite3_sojournsqlite_init(sqlite3 *database, char **message,
                               const struct sqlite3_api_routines *api)
{
    (void)api;
    sj_error error = {0};
    if (sj_query_register(database, NULL, &error) != SJ_OK) {
        *message = sqlite3_mprintf("%s", error.text);
        return SQLITE_ERROR;
    }
    return SQLITE_OK;
}
