#include "collector-server/query/query.h"
#include "collector-server/store/database.h"

#include <stddef.h>

sj_status sj_query_open_reader(const char *path, struct sj_sums_cache *sums, sqlite3 **database,
                               sj_error *error)
{
    sqlite3 *opened = NULL;
    SJ_TRY(sj_database_open(path, SJ_DATABASE_READ, &opened, error));
    const sj_status status = sj_query_register(opened, sums, error);
    if (status != SJ_OK) {
        sqlite3_close(opened);
        return status;
    }
    *database = opened;
    return SJ_OK;
}

sj_status sj_database_open_reader(const char *path, sqlite3 **database, sj_error *error)
{
    return sj_query_open_reader(path, NULL, database, error);
}
