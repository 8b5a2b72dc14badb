/* Design notes
 *
 * A function is (build-id, offset), hashed; `symbol_key` is the same function in other builds. A
 * call path is the hash of its caller's path and its symbol key, so that paths of two builds, labs
 * and devices meet; functions of one name in one file share them, which sums do not mind. Names,
 * builds and devices stand in the rows that most questions are about: ClickHouse stores repeated
 * texts in next to nothing, and joins of many sessions cost more than all the rest. */
#include "collector-server/forward/forward_tables.h"

#include "collector-server/store/database.h"
#include "proto/callgraph/histogram.h"

#include <string.h>

#define KEYS "function_key(m.build_id, f.offset), coalesce(f.symbol_key, 0)"
#define FUNCTION_OF(id)                                                                            \
    " LEFT JOIN functions AS f ON f.function_id = " id " LEFT JOIN modules AS m USING (module_id)"

const sj_forward_table sj_forward_tables[] = {
    {.name = "functions",
     .order = "function",
     .select = "SELECT " KEYS ", coalesce(f.name, ''), m.build_id, coalesce(f.offset, 0),"
               " coalesce(m.path, '') FROM (SELECT function_id FROM function_stats"
               " WHERE session_id = ?1) AS s" FUNCTION_OF("s.function_id"),
     .columns = {{"function", SJ_FORWARD_COUNT},
                 {"symbol_key", SJ_FORWARD_COUNT},
                 {"name", SJ_FORWARD_TEXT},
                 {"build_id", SJ_FORWARD_HEX},
                 {"offset", SJ_FORWARD_COUNT},
                 {"module", SJ_FORWARD_TEXT}}},
    {.name = "function_stats",
     .order = "function",
     .select = "SELECT " KEYS ", coalesce(f.name, ''), m.build_id, d.uuid, d.name, s.calls,"
               " s.total_ns, s.self_ns, s.min_ns, s.max_ns, s.unwound, s.untrusted, s.histogram"
               " FROM function_stats AS s" FUNCTION_OF(
                   "s.function_id") " JOIN sessions AS x USING (session_id) JOIN devices AS d "
                                    "USING (device_id)"
                                    " WHERE session_id = ?1",
     .columns = {{"function", SJ_FORWARD_COUNT},
                 {"symbol_key", SJ_FORWARD_COUNT},
                 {"name", SJ_FORWARD_TEXT},
                 {"build_id", SJ_FORWARD_HEX},
                 {"device", SJ_FORWARD_UUID},
                 {"device_name", SJ_FORWARD_TEXT},
                 {"calls", SJ_FORWARD_COUNT},
                 {"total_ns", SJ_FORWARD_NUMBER},
                 {"self_ns", SJ_FORWARD_NUMBER},
                 {"min_ns", SJ_FORWARD_MAYBE},
                 {"max_ns", SJ_FORWARD_MAYBE},
                 {"unwound", SJ_FORWARD_COUNT},
                 {"untrusted", SJ_FORWARD_COUNT},
                 {"bins", SJ_FORWARD_HISTOGRAM}}},
    {.name = "call_edges",
     .order = "callee, caller",
     .select = "SELECT CASE WHEN caller_function_id = 0 THEN 0 ELSE"
               " function_key(cm.build_id, c.offset) END, coalesce(c.symbol_key, 0), "
               "coalesce(c.name, ''),"
               " " KEYS ", coalesce(f.name, ''), calls, total_ns, self_ns FROM call_edges AS e"
               " LEFT JOIN functions AS c ON c.function_id = e.caller_function_id"
               " LEFT JOIN modules AS cm ON cm.module_id = c.module_id"
               " LEFT JOIN functions AS f ON f.function_id = e.callee_function_id"
               " LEFT JOIN modules AS m ON m.module_id = f.module_id WHERE session_id = ?1",
     .columns = {{"caller", SJ_FORWARD_COUNT},
                 {"caller_symbol_key", SJ_FORWARD_COUNT},
                 {"caller_name", SJ_FORWARD_TEXT},
                 {"callee", SJ_FORWARD_COUNT},
                 {"callee_symbol_key", SJ_FORWARD_COUNT},
                 {"callee_name", SJ_FORWARD_TEXT},
                 {"calls", SJ_FORWARD_COUNT},
                 {"total_ns", SJ_FORWARD_NUMBER},
                 {"self_ns", SJ_FORWARD_NUMBER}}},
    {.name = "call_paths",
     .order = "path",
     .select = "WITH RECURSIVE tree(path_id, parent, path) AS ("
               " SELECT path_id, 0, path_key(rare, f.symbol_key) FROM call_paths AS p"
               " LEFT JOIN functions AS f USING (function_id)"
               " WHERE session_id = ?1 AND parent_path_id IS NULL UNION ALL"
               " SELECT p.path_id, t.path, path_key(t.path, f.symbol_key) FROM tree AS t"
               " JOIN call_paths AS p ON p.parent_path_id = t.path_id"
               " LEFT JOIN functions AS f USING (function_id))"
               " SELECT t.path, t.parent, " KEYS ", depth, recursive, rare, calls, total_ns,"
               " self_ns, min_ns, max_ns, unwound, untrusted, histogram FROM tree AS t"
               " JOIN call_paths AS p USING (path_id)" FUNCTION_OF("p.function_id"),
     .columns = {{"path", SJ_FORWARD_COUNT},
                 {"parent_path", SJ_FORWARD_COUNT},
                 {"function", SJ_FORWARD_COUNT},
                 {"symbol_key", SJ_FORWARD_COUNT},
                 {"depth", SJ_FORWARD_COUNT},
                 {"recursive", SJ_FORWARD_SMALL},
                 {"rare", SJ_FORWARD_SMALL},
                 {"calls", SJ_FORWARD_COUNT},
                 {"total_ns", SJ_FORWARD_NUMBER},
                 {"self_ns", SJ_FORWARD_NUMBER},
                 {"min_ns", SJ_FORWARD_MAYBE},
                 {"max_ns", SJ_FORWARD_MAYBE},
                 {"unwound", SJ_FORWARD_COUNT},
                 {"untrusted", SJ_FORWARD_COUNT},
                 {"bins", SJ_FORWARD_HISTOGRAM}}},
    {.name = "slow_calls",
     .order = "function, place",
     .select = "SELECT " KEYS ", place, call_id, start_ns, duration_ns, self_ns, ending, flags"
               " FROM slow_calls AS s" FUNCTION_OF("s.function_id") " WHERE session_id = ?1",
     .columns = {{"function", SJ_FORWARD_COUNT},
                 {"symbol_key", SJ_FORWARD_COUNT},
                 {"place", SJ_FORWARD_COUNT},
                 {"call_id", SJ_FORWARD_COUNT},
                 {"start_ns", SJ_FORWARD_NUMBER},
                 {"duration_ns", SJ_FORWARD_NUMBER},
                 {"self_ns", SJ_FORWARD_NUMBER},
                 {"ending", SJ_FORWARD_COUNT},
                 {"flags", SJ_FORWARD_COUNT}}},
    {.name = "gaps",
     .order = "reason",
     .select = "SELECT reason, calls, events, start_ns, end_ns, thread_number FROM gaps"
               " WHERE session_id = ?1 ORDER BY gap_id",
     .columns = {{"reason", SJ_FORWARD_TEXT},
                 {"calls", SJ_FORWARD_COUNT},
                 {"events", SJ_FORWARD_COUNT},
                 {"start_ns", SJ_FORWARD_MAYBE},
                 {"end_ns", SJ_FORWARD_MAYBE},
                 {"thread_number", SJ_FORWARD_MAYBE}}},
    {.name = "marks",
     .order = "number",
     .select = "SELECT number, name, is_end, at_ns, thread_number, source FROM marks"
               " WHERE session_id = ?1 ORDER BY number",
     .columns = {{"number", SJ_FORWARD_COUNT},
                 {"name", SJ_FORWARD_TEXT},
                 {"is_end", SJ_FORWARD_SMALL},
                 {"at_ns", SJ_FORWARD_NUMBER},
                 {"thread_number", SJ_FORWARD_MAYBE},
                 {"source", SJ_FORWARD_TEXT}}},
    {.name = "coverage",
     .order = "build_id",
     .select =
         "SELECT m.build_id, coalesce(x.path, m.path), x.function_count, x.hooked_count,"
         " (SELECT count(*) FROM function_stats AS s WHERE s.session_id = ?1 AND s.function_id"
         " BETWEEN m.first_function_id AND m.first_function_id + m.function_count - 1)"
         " FROM session_modules AS x JOIN modules AS m USING (module_id)"
         " WHERE session_id = ?1 ORDER BY number",
     .columns = {{"build_id", SJ_FORWARD_HEX},
                 {"module", SJ_FORWARD_TEXT},
                 {"functions", SJ_FORWARD_COUNT},
                 {"hooked", SJ_FORWARD_COUNT},
                 {"entered", SJ_FORWARD_COUNT}}},
    {.name = "zombie_reports",
     .order = "fingerprint",
     .select = "SELECT z.fingerprint, z.kind, z.used_in, z.freed_in, z.allocated_in, r.at_ns,"
               " r.thread_name FROM zombie_reports AS r JOIN zombies AS z USING (zombie_id)"
               " WHERE r.session_id = ?1 ORDER BY r.report_id",
     .columns = {{"fingerprint", SJ_FORWARD_TEXT},
                 {"kind", SJ_FORWARD_TEXT},
                 {"used_in", SJ_FORWARD_TEXT},
                 {"freed_in", SJ_FORWARD_TEXT},
                 {"allocated_in", SJ_FORWARD_TEXT},
                 {"at_ns", SJ_FORWARD_NUMBER},
                 {"thread_name", SJ_FORWARD_TEXT}}},
    {.name = "sessions",
     .order = "removed",
     .select = "SELECT 0, (SELECT uuid FROM lab), d.uuid, d.name, d.model, d.os, d.build,"
               " d.machine, d.tags, s.name, s.command, s.mode, s.state, s.cause, s.tags,"
               " (SELECT m.build_id FROM session_modules AS x JOIN modules AS m USING (module_id)"
               " WHERE x.session_id = s.session_id ORDER BY x.number LIMIT 1),"
               " s.started_realtime_ns, s.ended_realtime_ns, s.stored_blocks, s.stored_bytes,"
               " s.stored_calls, s.stored_events, s.lost_calls, s.lost_events, s.folded_paths,"
               " s.folded_calls, s.sent_calls, s.device_lost_calls, s.traced_cpu_ns"
               " FROM sessions AS s JOIN devices AS d USING (device_id) WHERE session_id = ?1",
     .columns = {{"removed", SJ_FORWARD_SMALL},
                 {"lab", SJ_FORWARD_UUID},
                 {"device", SJ_FORWARD_UUID},
                 {"device_name", SJ_FORWARD_TEXT},
                 {"device_model", SJ_FORWARD_TEXT},
                 {"device_os", SJ_FORWARD_TEXT},
                 {"device_build", SJ_FORWARD_TEXT},
                 {"machine", SJ_FORWARD_TEXT},
                 {"device_tags", SJ_FORWARD_TEXT},
                 {"name", SJ_FORWARD_TEXT},
                 {"command", SJ_FORWARD_TEXT},
                 {"mode", SJ_FORWARD_TEXT},
                 {"state", SJ_FORWARD_TEXT},
                 {"cause", SJ_FORWARD_TEXT},
                 {"tags", SJ_FORWARD_TEXT},
                 {"build_id", SJ_FORWARD_HEX},
                 {"started_realtime_ns", SJ_FORWARD_NUMBER},
                 {"ended_realtime_ns", SJ_FORWARD_MAYBE},
                 {"stored_blocks", SJ_FORWARD_COUNT},
                 {"stored_bytes", SJ_FORWARD_COUNT},
                 {"stored_calls", SJ_FORWARD_COUNT},
                 {"stored_events", SJ_FORWARD_COUNT},
                 {"lost_calls", SJ_FORWARD_COUNT},
                 {"lost_events", SJ_FORWARD_COUNT},
                 {"folded_paths", SJ_FORWARD_COUNT},
                 {"folded_calls", SJ_FORWARD_COUNT},
                 {"sent_calls", SJ_FORWARD_MAYBE},
                 {"device_lost_calls", SJ_FORWARD_MAYBE},
                 {"traced_cpu_ns", SJ_FORWARD_MAYBE}}},
};
const size_t sj_forward_table_count = sizeof(sj_forward_tables) / sizeof(sj_forward_tables[0]);

static sj_slice blob_of(sqlite3_value *value)
{
    const void *data = sqlite3_value_blob(value); /* before the size: may convert */
    return (sj_slice){.data = data, .size = (size_t)sqlite3_value_bytes(value)};
}

static uint64_t mix(uint64_t hash)
{
    hash = (hash ^ (hash >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ (hash >> 27)) * UINT64_C(0x94d049bb133111eb);
    return hash ^ (hash >> 31);
}

static uint64_t hash_bytes(uint64_t hash, sj_slice bytes)
{
    for (size_t i = 0; i < bytes.size; ++i) { /* FNV-1a */
        hash = (hash ^ bytes.data[i]) * UINT64_C(0x100000001b3);
    }
    return mix(hash);
}

/* function_key(build_id, offset): never 0, which says that there is no function. */
static void function_key(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    const uint64_t hash = hash_bytes(UINT64_C(0xcbf29ce484222325), blob_of(argv[0])) ^
                          (uint64_t)sqlite3_value_int64(argv[1]) * UINT64_C(0x9e3779b97f4a7c15);
    const uint64_t key = mix(hash);
    sqlite3_result_int64(context, (int64_t)(key != 0 ? key : 1));
}

/* path_key(path of the caller, symbol key) */
static void path_key(sqlite3_context *context, int argc, sqlite3_value **argv)
{
    (void)argc;
    const uint64_t caller = (uint64_t)sqlite3_value_int64(argv[0]);
    const uint64_t key =
        mix(mix(caller + UINT64_C(0x9e3779b97f4a7c15)) ^ (uint64_t)sqlite3_value_int64(argv[1]));
    sqlite3_result_int64(context, (int64_t)(key != 0 ? key : 1));
}

sj_status sj_forward_register(sqlite3 *database, sj_error *error)
{
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
    if (sqlite3_create_function_v2(database, "function_key", 2, flags, NULL, function_key, NULL,
                                   NULL, NULL) != SQLITE_OK ||
        sqlite3_create_function_v2(database, "path_key", 2, flags, NULL, path_key, NULL, NULL,
                                   NULL) != SQLITE_OK) {
        return sj_fail(error, SJ_EIO, "%s", sqlite3_errmsg(database));
    }
    return SJ_OK;
}

/* Each bin of ticks goes to the bin of its middle in nanoseconds, as histogram_merge() does. */
static sj_status to_nanoseconds(const sj_histogram *ticks, const sj_tick_scale *scale,
                                sj_histogram *ns)
{
    const uint32_t first = ticks->first_octave << SJ_HISTOGRAM_SUB_BITS;
    const uint32_t count = ticks->octave_count << SJ_HISTOGRAM_SUB_BITS;
    for (uint32_t i = 0; i < count; ++i) {
        const uint64_t calls = ticks->octaves[i >> SJ_HISTOGRAM_SUB_BITS]
                                   .count[i & ((1u << SJ_HISTOGRAM_SUB_BITS) - 1)];
        if (calls != 0) {
            const uint64_t low = sj_histogram_low(first + i);
            const uint64_t middle = low + (sj_histogram_high(first + i) - low) / 2;
            SJ_TRY(sj_histogram_add(ns, (uint64_t)sj_ticks_to_ns(scale, middle), calls));
        }
    }
    return SJ_OK;
}

static void put_arrays(const sj_histogram *ns, sj_row_buffer *rows)
{
    const uint32_t first = ns->first_octave << SJ_HISTOGRAM_SUB_BITS;
    const uint32_t bins = ns->octave_count << SJ_HISTOGRAM_SUB_BITS;
    const uint32_t mask = (1u << SJ_HISTOGRAM_SUB_BITS) - 1;
    uint64_t used = 0;
    for (uint32_t i = 0; i < bins; ++i) {
        used += ns->octaves[i >> SJ_HISTOGRAM_SUB_BITS].count[i & mask] != 0;
    }
    for (unsigned array = 0; array < 2; ++array) {
        sj_row_put_varint(rows, used);
        for (uint32_t i = 0; i < bins; ++i) {
            const uint64_t calls = ns->octaves[i >> SJ_HISTOGRAM_SUB_BITS].count[i & mask];
            if (calls != 0) {
                sj_row_put_number(rows, array == 0 ? first + i : calls, array == 0 ? 2 : 8);
            }
        }
    }
}

static sj_status put_histogram(sj_slice bytes, const sj_tick_scale *scale, sj_row_buffer *rows)
{
    sj_histogram ticks = {0};
    sj_histogram ns = {0};
    sj_status status = bytes.size != 0 ? sj_histogram_decode(bytes, &ticks) : SJ_OK;
    if (status == SJ_OK) {
        status = to_nanoseconds(&ticks, scale, &ns);
    }
    if (status == SJ_OK) {
        put_arrays(&ns, rows);
    }
    sj_histogram_deinit(&ticks);
    sj_histogram_deinit(&ns);
    return status;
}

static sj_slice column_of(sqlite3_stmt *row, int at)
{
    const void *data = sqlite3_column_blob(row, at); /* before the size: may convert */
    return (sj_slice){.data = data, .size = (size_t)sqlite3_column_bytes(row, at)};
}

static sj_status put_value(const sj_forward_column *column, sqlite3_stmt *row, int at,
                           const sj_forward_place *place, sj_row_buffer *rows)
{
    const uint64_t number = (uint64_t)sqlite3_column_int64(row, at);
    const bool is_null = sqlite3_column_type(row, at) == SQLITE_NULL;
    switch (column->kind) {
    case SJ_FORWARD_TEXT: {
        const char *text = (const char *)sqlite3_column_text(row, at);
        sj_row_put_text(rows, (sj_slice){.data = (const uint8_t *)text,
                                         .size = (size_t)sqlite3_column_bytes(row, at)});
        break;
    }
    case SJ_FORWARD_UUID:
        sj_row_put_hex(rows, column_of(row, at), 16);
        break;
    case SJ_FORWARD_HEX:
        sj_row_put_varint(rows, 2 * (uint64_t)column_of(row, at).size);
        sj_row_put_hex(rows, column_of(row, at), column_of(row, at).size);
        break;
    case SJ_FORWARD_SMALL:
        sj_row_put_number(rows, number, 1);
        break;
    case SJ_FORWARD_COUNT:
    case SJ_FORWARD_NUMBER:
        sj_row_put_number(rows, number, 8);
        break;
    case SJ_FORWARD_MAYBE:
        sj_row_put_number(rows, is_null, 1);
        if (!is_null) {
            sj_row_put_number(rows, number, 8);
        }
        break;
    case SJ_FORWARD_HISTOGRAM:
        return put_histogram(column_of(row, at), &place->scale, rows);
    }
    return SJ_OK;
}

static void put_place(const sj_forward_place *place, sj_row_buffer *rows)
{
    sj_row_put_hex(rows, place->session, 16);
    sj_row_put_number(rows, place->version, 8);
    sj_row_put_number(rows, place->day, 2);
    rows->rows++;
}

sj_status sj_forward_collect(sqlite3 *database, const sj_forward_table *table, int64_t session_id,
                             const sj_forward_place *place, sj_row_buffer *rows, sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    sj_status status = SJ_OK;
    int result = sqlite3_prepare_v2(database, table->select, -1, &statement, NULL);
    if (result == SQLITE_OK) {
        sqlite3_bind_int64(statement, 1, session_id);
        while (status == SJ_OK && (result = sqlite3_step(statement)) == SQLITE_ROW) {
            put_place(place, rows);
            for (int i = 0; status == SJ_OK && i < sqlite3_column_count(statement); ++i) {
                status = put_value(&table->columns[i], statement, i, place, rows);
            }
        }
    }
    if (status != SJ_OK) {
        sj_fail(error, status, "a histogram of %s cannot be read", table->name);
    } else if (result != SQLITE_DONE) {
        status = sj_fail(error, sj_database_status(result), "cannot read %s: %s", table->name,
                         sqlite3_errmsg(database));
    } else if (rows->failed) {
        status = sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    sqlite3_finalize(statement);
    return status;
}

void sj_forward_put_removed(const sj_forward_place *place, sj_slice lab, sj_row_buffer *rows)
{
    const sj_forward_table *sessions = &sj_forward_tables[sj_forward_table_count - 1];
    put_place(place, rows);
    for (const sj_forward_column *column = sessions->columns; column->name != NULL; ++column) {
        if (column->kind == SJ_FORWARD_SMALL || column->kind == SJ_FORWARD_MAYBE) {
            sj_row_put_number(rows, 1, 1); /* removed; NULL */
        } else if (column->kind == SJ_FORWARD_UUID) {
            sj_row_put_hex(rows, column == &sessions->columns[1] ? lab : (sj_slice){0}, 16);
        } else if (column->kind == SJ_FORWARD_COUNT || column->kind == SJ_FORWARD_NUMBER) {
            sj_row_put_number(rows, 0, 8);
        } else {
            sj_row_put_varint(rows, 0);
        }
    }
}
