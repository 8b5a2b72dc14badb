/* The SQL function demangle(symbol): returns the source name of a C++, Rust or D symbol, and any
 * other text unchanged. */
#include "agent/objfile/demangle.h"
#include "collector-server/query/query_state.h"

static void demangle(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    const char *symbol = (const char *)sqlite3_value_text(argv[0]);
    if (symbol == NULL) {
        return; /* the result is NULL */
    }
    char *name = sqlite3_malloc(SJ_DEMANGLE_MAX_BYTES);
    if (name == NULL) {
        sqlite3_result_error_nomem(context);
        return;
    }
    sj_demangle(symbol, name, SJ_DEMANGLE_MAX_BYTES);
    sqlite3_result_text(context, name, -1, sqlite3_free);
}

int sj_register_demangle(sj_query_state *state)
{
    return sqlite3_create_function_v2(state->database, "demangle", 1,
                                      SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, NULL,
                                      demangle, NULL, NULL, NULL);
}
