#include "tests/collector-server/http/fixture.h"

#include "collector-server/store/database.h"
#include "proto/callgraph/histogram.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODULE_APP = 1, MODULE_LIBC = 2 };

static void stop_on(sqlite3 *database, int code, const char *what)
{
    if (code != SQLITE_OK && code != SQLITE_DONE) {
        fprintf(stderr, "fixture: %s: %s\n", what, sqlite3_errmsg(database));
        abort();
    }
}

void fixture_run(sqlite3 *database, const char *sql)
{
    stop_on(database, sqlite3_exec(database, sql, NULL, NULL, NULL), sql);
}

static void add_function(sqlite3 *database, int64_t id, int module, const char *name)
{
    sqlite3_stmt *statement = NULL;
    stop_on(database,
            sqlite3_prepare_v2(database,
                               "INSERT INTO functions (function_id, module_id, offset, size_bytes,"
                               " name, symbol, symbol_key, source)"
                               " VALUES (?1, ?2, ?1 * 64, 64, ?3, ?3, ?1, 'symtab')",
                               -1, &statement, NULL),
            "prepare function");
    sqlite3_bind_int64(statement, 1, id);
    sqlite3_bind_int(statement, 2, module);
    sqlite3_bind_text(statement, 3, name, -1, SQLITE_STATIC);
    stop_on(database, sqlite3_step(statement), "insert function");
    sqlite3_finalize(statement);
}

/* Binds durations around `each_ns` in ticks: nine of ten calls take this long, the tenth ten times
 * as long. */
static void bind_histogram(sqlite3_stmt *statement, int index, int64_t calls, int64_t each_ns)
{
    sj_histogram histogram = {0};
    const uint64_t ticks = (uint64_t)each_ns * FIXTURE_TICKS_DENOMINATOR / FIXTURE_TICKS_NUMERATOR;
    const uint64_t slow = (uint64_t)calls / 10;
    if (calls == 0) {
        return;
    }
    if (sj_histogram_add(&histogram, ticks, (uint64_t)calls - slow) != SJ_OK ||
        (slow > 0 && sj_histogram_add(&histogram, ticks * 10, slow) != SJ_OK)) {
        abort();
    }
    const size_t capacity = sj_histogram_encoded_bound(&histogram);
    uint8_t *bytes = malloc(capacity);
    const size_t size = sj_histogram_encode(&histogram, bytes, capacity);
    sqlite3_bind_blob(statement, index, bytes, (int)size, free);
    sj_histogram_deinit(&histogram);
}

typedef struct fixture_path {
    int64_t node;
    int64_t parent; /* 0: a root */
    int64_t function;
    int depth;
    int recursive;
    int64_t calls;
    int64_t total_ns;
    int64_t self_ns;
} fixture_path;

static void add_path(sqlite3 *database, int64_t session, const fixture_path *path)
{
    sqlite3_stmt *statement = NULL;
    const int64_t base = session << 32;
    stop_on(database,
            sqlite3_prepare_v2(
                database,
                "INSERT INTO call_paths (path_id, session_id, parent_path_id, function_id,"
                " depth, recursive, calls, total_ns, self_ns, min_ns, max_ns, unwound,"
                " untrusted, histogram, state) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9,"
                " CASE WHEN ?7 > 0 THEN ?8 / ?7 / 2 END,"
                " CASE WHEN ?7 > 0 THEN ?8 / ?7 * 10 END, 0, 0, ?10, zeroblob(0))",
                -1, &statement, NULL),
            "prepare path");
    sqlite3_bind_int64(statement, 1, base | path->node);
    sqlite3_bind_int64(statement, 2, session);
    if (path->parent != 0) {
        sqlite3_bind_int64(statement, 3, base | path->parent);
    }
    sqlite3_bind_int64(statement, 4, path->function);
    sqlite3_bind_int(statement, 5, path->depth);
    sqlite3_bind_int(statement, 6, path->recursive);
    sqlite3_bind_int64(statement, 7, path->calls);
    sqlite3_bind_int64(statement, 8, path->total_ns);
    sqlite3_bind_int64(statement, 9, path->self_ns);
    bind_histogram(statement, 10, path->calls, path->calls > 0 ? path->total_ns / path->calls : 0);
    stop_on(database, sqlite3_step(statement), "insert path");
    sqlite3_finalize(statement);
}

static void add_stats(sqlite3 *database, int64_t session, int64_t function, int64_t calls,
                      int64_t total_ns, int64_t self_ns)
{
    sqlite3_stmt *statement = NULL;
    stop_on(
        database,
        sqlite3_prepare_v2(database,
                           "INSERT INTO function_stats (session_id, function_id, calls, total_ns,"
                           " self_ns, min_ns, max_ns, unwound, untrusted, histogram)"
                           " VALUES (?1, ?2, ?3, ?4, ?5,"
                           " CASE WHEN ?3 > 0 THEN ?4 / ?3 / 2 END,"
                           " CASE WHEN ?3 > 0 THEN ?4 / ?3 * 10 END, 0, 0, ?6)",
                           -1, &statement, NULL),
        "prepare stats");
    sqlite3_bind_int64(statement, 1, session);
    sqlite3_bind_int64(statement, 2, function);
    sqlite3_bind_int64(statement, 3, calls);
    sqlite3_bind_int64(statement, 4, total_ns);
    sqlite3_bind_int64(statement, 5, self_ns);
    bind_histogram(statement, 6, calls, calls > 0 ? total_ns / calls : 0);
    stop_on(database, sqlite3_step(statement), "insert stats");
    sqlite3_finalize(statement);
}

static void add_shared_rows(sqlite3 *database)
{
    fixture_run(
        database,
        "INSERT INTO devices (device_id, uuid, name, model, os, machine, agent_version, tags,"
        " first_seen_realtime_ns, last_seen_realtime_ns) VALUES (1, "
        "x'0102030405060708090a0b0c0d0e0f10', 'bench-07', 'Pixel 9',"
        " 'Debian 12', 'x86_64', '0.1.0', '{}', 1760000000000000000,"
        " 1760000000000000000);"
        "INSERT INTO modules VALUES (1, x'aabbccddeeff00112233', x'01', '/usr/bin/editor', "
        "'x86_64',"
        " 1, 200000), (2, x'99887766554433221100', x'02', '/usr/lib/libcore.so.4', 'x86_64', "
        "200001,"
        " 100);"
        "INSERT INTO hook_plans VALUES (1, 1, x'01'), (2, 2, x'02')");
}

static void add_session_row(sqlite3 *database, int64_t id, const char *command, const char *state,
                            int64_t calls, int64_t lost)
{
    char sql[2048];
    const bool ended = strcmp(state, "recording") != 0;
    sqlite3_snprintf(
        sizeof(sql), sql,
        "INSERT INTO sessions (session_id, uuid, device_id, command, state, started_realtime_ns,"
        " ended_realtime_ns, started_ticks, tick_ns_numerator, tick_ns_denominator, stored_blocks,"
        " stored_bytes, stored_calls, stored_events, lost_calls, lost_events, clock_name)"
        " VALUES (%lld, randomblob(16), 1, %Q, %Q, 1760000000000000000 + %lld * 3600000000000,"
        " %s, 0, 1, 2, 40, %lld, %lld, %lld, %lld, %lld, 'tsc');"
        "INSERT INTO processes (session_id, number, pid, executable, command, how, exit_code)"
        " VALUES (%lld, 1, 4242, '/usr/bin/editor', %Q, 'launched', %s);"
        "INSERT INTO threads (thread_id, session_id, number, process_number, tid, name, is_main)"
        " VALUES (%lld * 10, %lld, 1, 1, 4242, 'editor', 1),"
        " (%lld * 10 + 1, %lld, 2, 1, 4243, 'worker', 0);"
        "INSERT INTO streams (session_id, number, thread_id, calls, first_enter_ns, last_leave_ns,"
        " max_depth) VALUES (%lld, 1, %lld * 10, %lld, 100, 2500000000, 12);"
        "INSERT INTO session_modules VALUES (%lld, 1, 1, 1, 1, 200000, 1990, NULL),"
        " (%lld, 2, 2, 2, 200001, 100, 98, NULL)",
        id, command, state, id, ended ? "1760000003000000000 + 3600000000000" : "NULL", calls,
        calls, calls * 2, lost, lost * 2, id, command, ended ? "0" : "NULL", id, id, id, id, id, id,
        calls, id, id);
    fixture_run(database, sql);
    if (ended) {
        sqlite3_snprintf(sizeof(sql), sql,
                         "UPDATE sessions SET ended_realtime_ns = started_realtime_ns + 3000000000"
                         " WHERE session_id = %lld",
                         id);
        fixture_run(database, sql);
    }
}

static void add_names(sqlite3 *database)
{
    static const char *const names[] = {"main",
                                        "parse_document",
                                        "tokenize",
                                        "render",
                                        "many_children",
                                        "Layout::measure(Box&)",
                                        "walk",
                                        "100%_done",
                                        "bad\xff"
                                        "utf8",
                                        "Cache::find(std::string)"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        add_function(database, (int64_t)i + 1, i % 3 == 2 ? MODULE_LIBC : MODULE_APP, names[i]);
    }
    for (int i = 0; i < 60; i++) {
        char name[32];
        snprintf(name, sizeof(name), "leaf_%03d", i);
        add_function(database, 100 + i, MODULE_APP, name);
    }
}

static void add_tree(sqlite3 *database, int64_t session, int64_t main_calls)
{
    const int64_t main_ns = main_calls > 0 ? 2500000000 : 0;
    const fixture_path paths[] = {
        {1, 0, 1, 0, 0, main_calls, main_ns, main_ns / 25},
        {2, 1, 2, 1, 0, 1000, 1200000000, 200000000},
        {3, 2, 3, 2, 0, 50000, 1000000000, 1000000000},
        {4, 1, 4, 1, 0, 600, 700000000, 300000000},
        {5, 4, 6, 2, 0, 12000, 400000000, 400000000},
        {6, 1, 5, 1, 0, 10, 500000000, 20000000},
        {7, 4, 7, 2, 0, 5, 50000000, 10000000},
        {8, 7, 7, 3, 1, 5, 40000000, 40000000},
    };
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        add_path(database, session, &paths[i]);
        if (!paths[i].recursive) {
            add_stats(database, session, paths[i].function,
                      paths[i].function == 7 ? 10 : paths[i].calls, paths[i].total_ns,
                      paths[i].function == 7 ? 50000000 : paths[i].self_ns);
        }
    }
    for (int i = 0; i < 60; i++) {
        const int64_t total = 16000000 - i * 250000;
        const fixture_path leaf = {10 + i, 6, 100 + i, 2, 0, 100, total, total};
        add_path(database, session, &leaf);
        add_stats(database, session, 100 + i, 100, total, total);
    }
    add_stats(database, session, 8, 1000, 5000000, 5000000);
    add_stats(database, session, 9, 1000, 4000000, 4000000);
    add_stats(database, session, 10, 7, 7000, 7000);
}

static void add_loss(sqlite3 *database, int64_t session)
{
    char sql[1024];
    sqlite3_snprintf(sizeof(sql), sql,
                     "INSERT INTO gaps (session_id, thread_number, number, reason, calls, events,"
                     " start_ns, end_ns) VALUES (%lld, 1, 1, 'ring_full', 900, 1800, 1000000,"
                     " 5000000), (%lld, 2, 2, 'torn', 34, 67, 2000000, 2000100);"
                     "INSERT OR IGNORE INTO hook_plan_functions VALUES (1, 8, 'none', 'the head is"
                     " 2 bytes short'), (1, 10, 'none', 'a jump leads into the head');"
                     "UPDATE function_stats SET untrusted = 12 WHERE session_id = %lld"
                     " AND function_id = 2",
                     session, session, session);
    fixture_run(database, sql);
}

static void add_timeline(sqlite3 *database)
{
    fixture_run(database, "INSERT INTO timeline VALUES (1, 22, 0, 0, 4000, 30000, 9, 4294967297),"
                          " (1, 14, 0, 0, 1000, 8000, 9, 4294967297),"
                          " (1, 14, 1, 1001, 2000, 8000, 7, 4294967298),"
                          " (1, 14, 2, 2001, 3000, 8000, 8, 4294967298),"
                          " (1, 14, 3, 3001, 4000, 6000, 5, NULL)");
}

sqlite3 *fixture_create(const char *path, unsigned extra_functions)
{
    sqlite3 *database = NULL;
    sj_error error = {0};
    if (sj_database_open(path, SJ_DATABASE_CREATE, &database, &error) != SJ_OK) {
        fprintf(stderr, "fixture: %s\n", error.text);
        abort();
    }
    fixture_run(database, "PRAGMA foreign_keys = OFF");
    fixture_run(database, "BEGIN");
    add_shared_rows(database);
    add_names(database);
    add_session_row(database, 1, "editor --open report.txt", "completed", 63610, 0);
    add_tree(database, 1, 1);
    add_timeline(database);
    add_session_row(database, 2, "editor --crash", "crashed", 63610, 934);
    add_tree(database, 2, 1);
    add_loss(database, 2);
    add_session_row(database, 3, "editor --live", "recording", 5000, 0);
    add_tree(database, 3, 0);
    for (unsigned i = 0; i < extra_functions; i++) {
        char name[48];
        snprintf(name, sizeof(name), "generated::function_%06u()", i);
        add_function(database, 1000 + i, MODULE_APP, name);
        add_stats(database, 1, 1000 + i, 10 + i % 90, 3000 + i, 3000 + i);
    }
    fixture_run(database, "COMMIT");
    return database;
}

int64_t fixture_add_session(sqlite3 *database, const char *command, int64_t calls)
{
    sqlite3_stmt *statement = NULL;
    stop_on(database,
            sqlite3_prepare_v2(database, "SELECT max(session_id) + 1 FROM sessions", -1, &statement,
                               NULL),
            "prepare id");
    if (sqlite3_step(statement) != SQLITE_ROW) {
        abort();
    }
    const int64_t id = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    fixture_run(database, "BEGIN");
    add_session_row(database, id, command, "recording", calls, 0);
    fixture_run(database, "COMMIT");
    return id;
}
