#include "collector-server/query/table_function.h"

#include <string.h>

/* The user data of a module. */
typedef struct table_module {
    const sj_table_kind *kind;
    sj_query_state *state;
} table_module;

static void release_module(void *context)
{
    table_module *module = context;
    sj_query_state_release(module->state);
    sqlite3_free(module);
}

int sj_table_register(sj_query_state *state, const sj_table_kind *kind,
                      const sqlite3_module *methods)
{
    table_module *module = sqlite3_malloc(sizeof(*module));
    if (module == NULL) {
        return SQLITE_NOMEM;
    }
    *module = (table_module){kind, sj_query_state_hold(state)};
    return sqlite3_create_module_v2(state->database, kind->name, methods, module, release_module);
}

int sj_table_connect(sqlite3 *database, void *context, int argc, const char *const *argv,
                     sqlite3_vtab **out, char **error)
{
    (void)argc;
    (void)argv;
    (void)error;
    const table_module *module = context;
    const int declared = sqlite3_declare_vtab(database, module->kind->declaration);
    if (declared != SQLITE_OK) {
        return declared;
    }
    sj_table *table = sqlite3_malloc(sizeof(*table));
    if (table == NULL) {
        return SQLITE_NOMEM;
    }
    *table = (sj_table){.kind = module->kind, .state = module->state};
    sqlite3_vtab_config(database, SQLITE_VTAB_INNOCUOUS);
    *out = &table->base;
    return SQLITE_OK;
}

int sj_table_disconnect(sqlite3_vtab *base)
{
    sqlite3_free(base);
    return SQLITE_OK;
}

int sj_table_use_arguments(sqlite3_vtab *base, sqlite3_index_info *info)
{
    const sj_table_kind *kind = ((const sj_table *)base)->kind;
    int given = 0;
    for (int i = 0; i < info->nConstraint; ++i) {
        const int argument = info->aConstraint[i].iColumn - kind->first_argument;
        if (argument < 0 || info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_EQ) {
            continue;
        }
        if (!info->aConstraint[i].usable) {
            return SQLITE_CONSTRAINT;
        }
        given |= 1 << argument;
    }
    for (int i = 0; i < info->nConstraint; ++i) {
        const int argument = info->aConstraint[i].iColumn - kind->first_argument;
        if (argument >= 0 && info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ) {
            const int before = given & ((1 << argument) - 1);
            info->aConstraintUsage[i].argvIndex = __builtin_popcount((unsigned)before) + 1;
            info->aConstraintUsage[i].omit = 1;
        }
    }
    const int required = (1 << kind->required_count) - 1;
    info->idxNum = given;
    info->estimatedRows = (sqlite3_int64)kind->rows;
    info->estimatedCost = kind->cost;
    return (given & required) == required ? SQLITE_OK : SQLITE_CONSTRAINT;
}

void *sj_table_new_cursor(size_t bytes)
{
    void *cursor = sqlite3_malloc64(bytes);
    if (cursor != NULL) {
        memset(cursor, 0, bytes);
    }
    return cursor;
}
