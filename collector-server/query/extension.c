/* libsojourn-sqlite.so: the tables and functions of query.h for any SQLite (3.40 or later) that
 * loads extensions: `sqlite3 FILE`, then `.load ./libsojourn-sqlite`.
 *
 * Design notes. The library is linked with libsqlite3 and does not use the extension's table of
 * function pointers, so that the component is compiled once. A program that loads it must use the
 * same shared libsqlite3, like Debian's sqlite3. */
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
