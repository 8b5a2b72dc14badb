#include "collector-server/cli/unnamed_functions.h"

#include "agent/objfile/source_package.h"
#include "collector-server/cli/function_name.h"
#include "collector-server/store/sql.h"
#include "proto/base/units.h"
#include "schema/queries/cli/unnamed_functions.h"

#include <string.h>

enum { LEAST_SHARE = 10 /* 1 / 10 of the called functions */, NAME_COLUMNS = 60 };

/* Writes the name of the package with the debug symbols of the package that contains `path`. */
static void find_package(const char *dpkg, const char *path, char *package)
{
    char owner[SJ_PACKAGE_NAME_BYTES];
    if (sj_owning_package_find(dpkg, path, owner) == SJ_OK) {
        snprintf(package, SJ_UNNAMED_PACKAGE_BYTES, "%s-dbgsym", owner);
    }
}

typedef struct row_target {
    const char *dpkg;
    sj_unnamed_functions *found;
} row_target;

static sj_status read_row(void *context, sqlite3_stmt *row)
{
    const row_target *target = context;
    sj_unnamed_functions *found = target->found;
    const char *path = (const char *)sqlite3_column_text(row, 0);
    const int64_t unnamed = sqlite3_column_int64(row, 1);
    const int64_t called = sqlite3_column_int64(row, 2);
    if (path == NULL || unnamed * LEAST_SHARE < called) {
        return SJ_OK;
    }
    const char *slash = strrchr(path, '/');
    found->unnamed = (uint64_t)unnamed;
    found->called = (uint64_t)called;
    snprintf(found->file, sizeof(found->file), "%s", slash != NULL ? slash + 1 : path);
    find_package(target->dpkg, path, found->package);
    return SJ_OK;
}

sj_status sj_unnamed_functions_read(sqlite3 *database, int64_t session_id, const char *dpkg,
                                    sj_unnamed_functions *found, sj_error *error)
{
    row_target target = {.dpkg = dpkg, .found = found};
    *found = (sj_unnamed_functions){0};
    return sj_sql_each(database, sj_unnamed_functions_counts_sql, SJ_SQL_INTS(session_id), read_row,
                       &target, error);
}

void sj_unnamed_functions_print(FILE *file, const sj_unnamed_functions *found, const char *first)
{
    char name[SJ_FUNCTION_NAME_BYTES];
    if (found->unnamed == 0) {
        return;
    }
    fprintf(file, "%s%llu of %s called in %s %s no name: ", first,
            (unsigned long long)found->unnamed, SJ_COUNTED(found->called, "function"),
            sj_function_name_fit(found->file, NAME_COLUMNS, name),
            found->unnamed == 1 ? "has" : "have");
    if (found->package[0] != '\0') {
        fprintf(file, "apt install %s\n", found->package);
    } else {
        fprintf(file, "sojourn symbols add FILE, with its debug file\n");
    }
}
