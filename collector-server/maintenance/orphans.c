/* Design notes
 *
 * A new session may use the module of an orphan at any time. So an orphan that is still unused
 * first gets another digest, by which no new session finds it. Then its rows are deleted in
 * pieces, and its own row last. */
#include "collector-server/maintenance/orphans.h"

#include "collector-server/maintenance/slices.h"
#include "collector-server/store/database.h"

#include <stddef.h>

enum { ROWS_A_SLICE = 1000, NOT_WATCHED = 0 };

typedef struct orphan_kind {
    const char *find;   /* SQL that finds the first orphan after the id ?1 */
    const char *retire; /* SQL that hides an orphan from new sessions; changes nothing if it is
                         * in use again */
    const char *empty;  /* SQL that deletes ?2 of its rows */
    const char *drop;
} orphan_kind;

/* Plans come first, because a module with plans is not an orphan. */
static const orphan_kind kinds[] = {
    {"SELECT hook_plan_id FROM hook_plans AS p WHERE hook_plan_id > ?1 AND NOT EXISTS (SELECT 1 "
     "FROM session_modules AS s WHERE s.hook_plan_id = p.hook_plan_id) ORDER BY 1 LIMIT 1",
     "UPDATE hook_plans SET digest = randomblob(24) WHERE hook_plan_id = ?1 AND NOT EXISTS (SELECT "
     "1 FROM session_modules WHERE hook_plan_id = ?1)",
     "DELETE FROM hook_plan_functions WHERE (hook_plan_id, function_id) IN (SELECT hook_plan_id, "
     "function_id FROM hook_plan_functions WHERE hook_plan_id = ?1 LIMIT ?2)",
     "DELETE FROM hook_plans WHERE hook_plan_id = ?1"},
    {"SELECT module_id FROM modules AS m WHERE module_id > ?1 AND NOT EXISTS (SELECT 1 FROM "
     "session_modules AS s WHERE s.module_id = m.module_id) AND NOT EXISTS (SELECT 1 FROM "
     "hook_plans AS p WHERE p.module_id = m.module_id) ORDER BY 1 LIMIT 1",
     "UPDATE modules SET functions_digest = randomblob(24) WHERE module_id = ?1 AND NOT EXISTS "
     "(SELECT 1 FROM session_modules WHERE module_id = ?1)",
     "DELETE FROM functions WHERE function_id IN (SELECT function_id FROM functions WHERE "
     "module_id = ?1 LIMIT ?2)",
     "DELETE FROM modules WHERE module_id = ?1"}};

static sj_status remove_one(sqlite3 *database, const orphan_kind *kind, int64_t id, sj_error *error)
{
    SJ_TRY(sj_slices_run(database, kind->retire, id, 0, NULL, error));
    if (sqlite3_changes(database) == 0) {
        return SJ_OK;
    }
    SJ_TRY(sj_slices_delete(database, kind->empty, id, ROWS_A_SLICE, NOT_WATCHED, error));
    return sj_slices_run(database, kind->drop, id, 0, NULL, error);
}

static sj_status remove_all(sqlite3 *database, const orphan_kind *kind, sj_error *error)
{
    sqlite3_stmt *find = NULL;
    sj_status status = SJ_OK;
    int64_t id = 0;
    int result = sqlite3_prepare_v2(database, kind->find, -1, &find, NULL);
    while (status == SJ_OK && result == SQLITE_OK) {
        sqlite3_bind_int64(find, 1, id);
        result = sqlite3_step(find);
        id = result == SQLITE_ROW ? sqlite3_column_int64(find, 0) : 0;
        if (result == SQLITE_ROW) {
            result = sqlite3_reset(find);
            status = remove_one(database, kind, id, error);
        }
    }
    if (status == SJ_OK && result != SQLITE_DONE) {
        status = sj_fail(error, sj_database_status(result), "cannot look for unused modules: %s",
                         sqlite3_errmsg(database));
    }
    sqlite3_finalize(find);
    return status;
}

sj_status sj_orphans_remove(sqlite3 *database, sj_error *error)
{
    sj_status status = SJ_OK;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && status == SJ_OK; ++i) {
        status = remove_all(database, &kinds[i], error);
    }
    return status;
}
