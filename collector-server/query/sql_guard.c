/* Design notes. SQLite asks the authorizer for every action while it compiles a statement. The
 * authorizer refuses every action that it does not list, so also new actions of later SQLite
 * versions. A query may read the whole database. The progress handler checks the time, and so ends
 * an endless recursion. SQLite also calls it for the statements that virtual tables run. */
#include "collector-server/query/sql_guard.h"

#include "collector-server/query/sql_bounds.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { DEFAULT_VALUE_BYTES = 16 * 1024 * 1024, PROGRESS_INSTRUCTIONS = 250, SQL_BYTES = 1 << 20 };

struct sj_sql_guard {
    sqlite3 *database;
    sj_sql_limits limits;
    int64_t deadline_ns;  /* CLOCK_MONOTONIC; 0: none */
    int64_t processor_ns; /* CLOCK_THREAD_CPUTIME_ID at which the query ends; 0: none */
    int64_t look_ns;      /* CLOCK_MONOTONIC before which processor_ns cannot be reached */
    int64_t former_heap_limit;
    bool timed_out;
    sj_sql_prepared prepared;
    void *prepared_context;
    sj_sql_watch watch;
    void *watch_context;
    char refusal[200]; /* the first action that the authorizer refused; empty: none */
};

static int64_t ns_of(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void set_deadlines(sj_sql_guard *guard)
{
    const int64_t now = ns_of(CLOCK_MONOTONIC);
    const int64_t wall = guard->limits.time_ms * 1000000;
    const int64_t processor = guard->limits.processor_ms * 1000000;
    guard->deadline_ns = wall > 0 ? now + wall : 0;
    guard->processor_ns = processor > 0 ? ns_of(CLOCK_THREAD_CPUTIME_ID) + processor : 0;
    guard->look_ns = now + processor;
}

/* A thread cannot use more processor time than has passed, so that most calls read one clock, which
 * needs no system call. */
static bool is_over(sj_sql_guard *guard)
{
    if (guard->deadline_ns == 0 && guard->processor_ns == 0) {
        return false;
    }
    const int64_t now = ns_of(CLOCK_MONOTONIC);
    if (guard->deadline_ns != 0 && now >= guard->deadline_ns) {
        return true;
    }
    if (guard->processor_ns == 0 || now < guard->look_ns) {
        return false;
    }
    const int64_t left = guard->processor_ns - ns_of(CLOCK_THREAD_CPUTIME_ID);
    guard->look_ns = now + left;
    return left <= 0;
}

static const char *action_name(int action)
{
    switch (action) {
    case SQLITE_ATTACH:
        return "ATTACH (another database)";
    case SQLITE_DETACH:
        return "DETACH";
    case SQLITE_PRAGMA:
        return "PRAGMA";
    case SQLITE_INSERT:
        return "INSERT into";
    case SQLITE_UPDATE:
        return "UPDATE of";
    case SQLITE_DELETE:
        return "DELETE from";
    case SQLITE_FUNCTION:
        return "function";
    case SQLITE_TRANSACTION:
    case SQLITE_SAVEPOINT:
        return "transaction control";
    case SQLITE_REINDEX:
        return "REINDEX";
    case SQLITE_ANALYZE:
        return "ANALYZE";
    default:
        return "a statement that changes the database or its schema:";
    }
}

static int refuse(sj_sql_guard *guard, int action, const char *what)
{
    if (guard->refusal[0] == '\0') {
        snprintf(guard->refusal, sizeof(guard->refusal), "%s %s", action_name(action),
                 what != NULL ? what : "");
    }
    return SQLITE_DENY;
}

static bool is_listed(const char *name, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        if (sqlite3_stricmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static int authorize_function(sj_sql_guard *guard, const char *name)
{
    /* These functions use files or extensions, fill memory, or disturb the connection. */
    static const char *const refused[] = {
        "load_extension", "writefile", "readfile",       "edit",    "fts3_tokenizer",
        "lsdir",          "fsdir",     "sqlar_compress", "zipfile", "shell",
    };
    if (name != NULL && is_listed(name, refused, sizeof(refused) / sizeof(refused[0]))) {
        return refuse(guard, SQLITE_FUNCTION, name);
    }
    return SQLITE_OK;
}

static int authorize_pragma(sj_sql_guard *guard, const char *name, const char *argument)
{
    /* Pragmas that describe the schema may have an argument. SQLite also asks here for the
     * table-valued forms, as pragma_table_info. */
    static const char *const schema_pragmas[] = {"table_info", "table_xinfo", "table_list",
                                                 "index_list", "index_info",  "foreign_key_list"};
    static const char *const database_pragmas[] = {
        "data_version", "page_count",     "page_size",       "freelist_count", "function_list",
        "module_list",  "collation_list", "compile_options", "database_list"};
    if (name != NULL &&
        (is_listed(name, schema_pragmas, sizeof(schema_pragmas) / sizeof(schema_pragmas[0])) ||
         (argument == NULL && is_listed(name, database_pragmas,
                                        sizeof(database_pragmas) / sizeof(database_pragmas[0]))))) {
        return SQLITE_OK;
    }
    return refuse(guard, SQLITE_PRAGMA, name);
}

static int authorize(void *held, int action, const char *first, const char *second,
                     const char *database, const char *trigger)
{
    (void)database;
    (void)trigger;
    sj_sql_guard *guard = held;
    switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
        return SQLITE_OK;
    case SQLITE_FUNCTION:
        return authorize_function(guard, second);
    case SQLITE_UPDATE:
        /* SQLite also asks for this update when a virtual table declares its columns at its first
         * use. SQLite and the read-only connection refuse a real update of the schema. */
        return sqlite3_stricmp(first, "sqlite_master") == 0 ? SQLITE_OK
                                                            : refuse(guard, action, first);
    case SQLITE_PRAGMA:
        return authorize_pragma(guard, first, second);
    default:
        return refuse(guard, action, first);
    }
}

static int watch_time(void *held)
{
    sj_sql_guard *guard = held;
    if (is_over(guard)) {
        guard->timed_out = true;
        return 1;
    }
    return guard->watch != NULL && !guard->watch(guard->watch_context);
}

sj_status sj_sql_guard_new(sqlite3 *database, const sj_sql_limits *limits, sj_sql_guard **out,
                           sj_error *error)
{
    sj_sql_guard *guard = sqlite3_malloc(sizeof(*guard));
    if (guard == NULL) {
        return sj_fail(error, SJ_ENOMEM, "no memory for the SQL guard");
    }
    memset(guard, 0, sizeof(*guard));
    guard->database = database;
    guard->limits = *limits;
    if (guard->limits.max_value_bytes <= 0) {
        guard->limits.max_value_bytes = DEFAULT_VALUE_BYTES;
    }
    sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
    sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 1, NULL);
    sqlite3_limit(database, SQLITE_LIMIT_LENGTH, (int)guard->limits.max_value_bytes);
    sqlite3_limit(database, SQLITE_LIMIT_SQL_LENGTH, SQL_BYTES);
    sqlite3_limit(database, SQLITE_LIMIT_EXPR_DEPTH, 200);
    sqlite3_limit(database, SQLITE_LIMIT_COMPOUND_SELECT, 64);
    sqlite3_limit(database, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, SJ_SQL_PATTERN_BYTES);
    sqlite3_limit(database, SQLITE_LIMIT_ATTACHED, 0);
    if (sj_sql_bounds_register(database, guard->limits.max_value_bytes) != SQLITE_OK) {
        sqlite3_free(guard);
        return sj_fail(error, SJ_ENOMEM, "no memory for the SQL guard");
    }
    guard->former_heap_limit =
        limits->heap_bytes > 0 ? sqlite3_hard_heap_limit64(limits->heap_bytes) : -1;
    sqlite3_set_authorizer(database, authorize, guard);
    sqlite3_progress_handler(database, PROGRESS_INSTRUCTIONS, watch_time, guard);
    *out = guard;
    return SJ_OK;
}

void sj_sql_guard_free(sj_sql_guard *guard)
{
    if (guard == NULL) {
        return;
    }
    sqlite3_set_authorizer(guard->database, NULL, NULL);
    sqlite3_progress_handler(guard->database, 0, NULL, NULL);
    sj_sql_bounds_remove(guard->database);
    if (guard->former_heap_limit >= 0) {
        sqlite3_hard_heap_limit64(guard->former_heap_limit);
    }
    sqlite3_free(guard);
}

void sj_sql_guard_set_prepared(sj_sql_guard *guard, sj_sql_prepared prepared, void *context)
{
    guard->prepared = prepared;
    guard->prepared_context = context;
}

void sj_sql_guard_set_watch(sj_sql_guard *guard, sj_sql_watch watch, void *context)
{
    guard->watch = watch;
    guard->watch_context = context;
}

static sj_status fail_with_reason(sj_sql_guard *guard, int result, sj_error *error)
{
    const char *message = sqlite3_errmsg(guard->database);
    if (guard->refusal[0] != '\0') {
        return sj_fail(error, SJ_EPERM, "refused: %s is not allowed here; only reading queries are",
                       guard->refusal);
    }
    switch (result & 0xff) {
    case SQLITE_INTERRUPT:
        if (guard->timed_out) {
            return sj_fail(error, SJ_ETIMEDOUT,
                           "the query ran longer than its limit of %lld ms; narrow it (session_id, "
                           "start_ns, function_id) or ask for a longer limit",
                           (long long)(guard->limits.processor_ms > 0 ? guard->limits.processor_ms
                                                                      : guard->limits.time_ms));
        }
        return sj_fail(error, SJ_ECLOSED, "the query was interrupted");
    case SQLITE_NOMEM:
        return sj_fail(error, SJ_ELIMIT,
                       "the query needs more memory than it may have (%lld bytes)",
                       (long long)guard->limits.heap_bytes);
    case SQLITE_IOERR:
        return sqlite3_system_errno(guard->database) == EFBIG
                   ? sj_fail(error, SJ_ELIMIT,
                             "the query needs larger temporary files than it may have; narrow it, "
                             "or sort fewer columns")
                   : sj_fail(error, SJ_EIO, "%s", message);
    case SQLITE_CANTOPEN:
        return sqlite3_system_errno(guard->database) == EMFILE
                   ? sj_fail(error, SJ_ELIMIT,
                             "the query needs more temporary files than it may have; narrow it, or "
                             "materialize fewer tables")
                   : sj_fail(error, SJ_EIO, "%s", message);
    case SQLITE_TOOBIG:
        return strcmp(message, "string or blob too big") != 0
                   ? sj_fail(error, SJ_ELIMIT, "%s", message)
                   : sj_fail(error, SJ_ELIMIT, "a value or the query is larger than %lld bytes",
                             (long long)guard->limits.max_value_bytes);
    case SQLITE_AUTH:
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return sj_fail(error, SJ_EPERM, "refused: %s; only reading queries are allowed", message);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return sj_fail(error, SJ_ECORRUPT, "the database is damaged: %s", message);
    case SQLITE_ERROR:
        return sj_fail(error, SJ_EINVAL, "%s", message);
    default:
        return sj_fail(error, SJ_EIO, "%s", message);
    }
}

static bool is_blank(const char *text)
{
    return text[strspn(text, " \t\r\n;")] == '\0';
}

static sj_status step_rows(sj_sql_guard *guard, sqlite3_stmt *statement, sj_sql_row_callback row,
                           void *context, sj_sql_outcome *outcome, sj_error *error)
{
    if (!row(context, statement, false)) {
        return SJ_OK;
    }
    for (;;) {
        const int result = sqlite3_step(statement);
        if (result == SQLITE_DONE) {
            return SJ_OK;
        }
        if (result != SQLITE_ROW) {
            return fail_with_reason(guard, result, error);
        }
        if (guard->limits.max_rows > 0 && outcome->rows == guard->limits.max_rows) {
            outcome->truncated = true;
            return SJ_OK;
        }
        ++outcome->rows;
        if (!row(context, statement, true)) {
            return SJ_OK;
        }
    }
}

sj_status sj_sql_guard_run(sj_sql_guard *guard, const char *sql, sj_sql_row_callback row,
                           void *context, sj_sql_outcome *outcome, sj_error *error)
{
    *outcome = (sj_sql_outcome){0};
    guard->refusal[0] = '\0';
    guard->timed_out = false;
    set_deadlines(guard);
    sqlite3_stmt *statement = NULL;
    const char *tail = "";
    const int prepared = sqlite3_prepare_v2(guard->database, sql, -1, &statement, &tail);
    if (prepared != SQLITE_OK) {
        return fail_with_reason(guard, prepared, error);
    }
    sj_status status;
    if (statement == NULL) {
        status = sj_fail(error, SJ_EINVAL, "there is no SQL statement to run");
    } else if (!is_blank(tail)) {
        status =
            sj_fail(error, SJ_EINVAL, "one statement at a time; a second begins at: %.60s", tail);
    } else if (!sqlite3_stmt_readonly(statement)) {
        status = sj_fail(error, SJ_EPERM, "refused: only reading queries are allowed");
    } else {
        status = guard->prepared != NULL
                     ? guard->prepared(guard->prepared_context, statement, error)
                     : SJ_OK;
        if (status == SJ_OK) {
            status = step_rows(guard, statement, row, context, outcome, error);
        }
    }
    sqlite3_finalize(statement);
    return status;
}
