/* Design notes
 *
 * A call's function is the first function of its module plus a number. So a lost module gets a
 * substitute with its remaining functions only if none is missing, because only then the first one
 * is known. Otherwise, all functions of the substitute are substitutes, so that no call gets a
 * wrong name. */
#include "collector-server/maintenance/salvage_repair.h"

#include "collector-server/store/database.h"
#include "collector-server/store/sql.h"
#include "schema/queries/maintenance/salvage_repair.h"

#include <string.h>

/* A statement that inserts substitutes into `table` or drops rows of it. It is repeated until it
 * changes nothing. */
typedef struct repair_step {
    const char *table;
    const char *sql;
    bool drops;
} repair_step;

static const repair_step steps[] = {
    {"devices", sj_salvage_repair_devices_sql, false},
    {"modules", sj_salvage_repair_whole_modules_sql, false},
    {"modules", sj_salvage_repair_cut_modules_sql, false},
    {"functions",
     "DELETE FROM functions WHERE EXISTS (SELECT 1 FROM modules AS m WHERE m.module_id ="
     " functions.module_id AND function_id NOT BETWEEN m.first_function_id AND"
     " m.first_function_id + m.function_count - 1)",
     true},
    {"functions", sj_salvage_repair_functions_sql, false},
    {"hook_plans",
     "INSERT INTO hook_plans (hook_plan_id, module_id, digest) SELECT hook_plan_id,"
     " min(module_id), randomblob(24) FROM session_modules WHERE hook_plan_id NOT IN (SELECT"
     " hook_plan_id FROM hook_plans) GROUP BY hook_plan_id",
     false},
    /* Drops the gap of a lost block. The lost block leaves a hole, which gets its own gap. */
    {"gaps",
     "DELETE FROM gaps WHERE block_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM blocks AS b WHERE"
     " b.block_id = gaps.block_id)",
     true},
};

static sj_status fail_sql(sqlite3 *database, sj_error *error)
{
    const sj_status status = sj_database_status(sqlite3_errcode(database));
    return sj_fail(error, status != SJ_OK ? status : SJ_EIO, "cannot repair references: %s",
                   sqlite3_errmsg(database));
}

static sj_salvaged_table *find_table(const sj_salvaged *salvaged, const char *name)
{
    for (size_t i = 0; i < salvaged->count; ++i) {
        if (strcmp(salvaged->tables[i].name, name) == 0) {
            return &salvaged->tables[i];
        }
    }
    return NULL;
}

static sj_status run(sqlite3 *database, const char *sql, int *changes, sj_error *error)
{
    if (sqlite3_exec(database, sql, NULL, NULL, NULL) != SQLITE_OK) {
        return fail_sql(database, error);
    }
    *changes = sqlite3_changes(database);
    return SJ_OK;
}

static sj_status run_steps(sqlite3 *database, const sj_salvaged *salvaged, sj_error *error)
{
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); ++i) {
        sj_salvaged_table *table = find_table(salvaged, steps[i].table);
        int changes = table != NULL; /* an older schema may lack the table */
        while (changes != 0) {
            SJ_TRY(run(database, steps[i].sql, &changes, error));
            *(steps[i].drops ? &table->dropped : &table->substitutes) += changes;
        }
    }
    return SJ_OK;
}

/* Sets the invalid references of one foreign key to NULL, or drops their rows. */
typedef struct table_repair {
    sqlite3 *database;
    sj_salvaged_table *table;
    int *changes;
    sj_error *error;
} table_repair;

static sj_status repair_key(void *context, sqlite3_stmt *key)
{
    const table_repair *repair = context;
    sj_salvaged_table *table = repair->table;
    const char *column = (const char *)sqlite3_column_text(key, 0);
    const bool may_be_empty = sqlite3_column_int(key, 3) != 0;
    int changed = 0;
    char *start = may_be_empty
                      ? sqlite3_mprintf("UPDATE \"%w\" AS t SET \"%w\" = NULL", table->name, column)
                      : sqlite3_mprintf("DELETE FROM \"%w\" AS t", table->name);
    char *sql = start == NULL
                    ? NULL
                    : sqlite3_mprintf("%s WHERE t.\"%w\" IS NOT NULL AND NOT EXISTS (SELECT 1 FROM"
                                      " \"%w\" AS p WHERE p.\"%w\" = t.\"%w\")",
                                      start, column, sqlite3_column_text(key, 1),
                                      sqlite3_column_text(key, 2), column);
    const sj_status status =
        sql != NULL ? run(repair->database, sql, &changed, repair->error) : SJ_ENOMEM;
    if (status == SJ_OK && !may_be_empty) {
        table->dropped += changed;
    }
    *repair->changes += changed;
    sqlite3_free(start);
    sqlite3_free(sql);
    return status;
}

/* Repairs the foreign keys of a table. Adds the number of changes to `*changes`. */
static sj_status repair_table(sqlite3 *database, sj_salvaged_table *table, int *changes,
                              sj_error *error)
{
    table_repair repair = {
        .database = database, .table = table, .changes = changes, .error = error};
    return sj_sql_each(database, sj_salvage_repair_keys_sql, SJ_SQL_TEXT(table->name), repair_key,
                       &repair, error);
}

sj_status sj_salvage_repair(sqlite3 *database, sj_salvaged *salvaged, sj_error *error)
{
    int changes = 1;
    SJ_TRY(run_steps(database, salvaged, error));
    while (changes != 0) {
        changes = 0;
        for (size_t i = 0; i < salvaged->count; ++i) {
            SJ_TRY(repair_table(database, &salvaged->tables[i], &changes, error));
        }
    }
    /* dropped rows may require further substitutes, or leave gaps of lost blocks */
    return run_steps(database, salvaged, error);
}
