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

/* clang-format off */
#define KEYS {"function", SJ_FORWARD_KEY}, {"symbol_key", SJ_FORWARD_SYMBOL}
#define DEVICE(column) \
    "(SELECT d." column " FROM sessions JOIN devices AS d USING (device_id) WHERE session_id = ?1)"
/* clang-format on */

const sj_forward_table sj_forward_tables[] = {
    {.name = "functions",
     .owner = "session",
     .order = "function",
     .select = "SELECT function_id, function_id, function_id, function_id, function_id, function_id"
               " FROM function_stats WHERE session_id = ?1",
     .columns = {KEYS,
                 {"name", SJ_FORWARD_NAME},
                 {"build_id", SJ_FORWARD_BUILD},
                 {"offset", SJ_FORWARD_OFFSET},
                 {"module", SJ_FORWARD_MODULE}}},
    {.name = "function_stats",
     .owner = "session",
     .order = "function",
     .select =
         "SELECT function_id, function_id, function_id, function_id, " DEVICE("uuid") ", " DEVICE(
             "name") ", calls, total_ns, self_ns, min_ns, max_ns, unwound, untrusted,"
                     " histogram FROM function_stats WHERE session_id = ?1",
     .columns = {KEYS,
                 {"name", SJ_FORWARD_NAME},
                 {"build_id", SJ_FORWARD_BUILD},
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
     .owner = "session",
     .order = "callee, caller",
     .select = "SELECT nullif(caller_function_id, 0), nullif(caller_function_id, 0),"
               " nullif(caller_function_id, 0), callee_function_id, callee_function_id,"
               " callee_function_id, calls, total_ns, self_ns FROM call_edges"
               " WHERE session_id = ?1",
     .columns = {{"caller", SJ_FORWARD_KEY},
                 {"caller_symbol_key", SJ_FORWARD_SYMBOL},
                 {"caller_name", SJ_FORWARD_NAME},
                 {"callee", SJ_FORWARD_KEY},
                 {"callee_symbol_key", SJ_FORWARD_SYMBOL},
                 {"callee_name", SJ_FORWARD_NAME},
                 {"calls", SJ_FORWARD_COUNT},
                 {"total_ns", SJ_FORWARD_NUMBER},
                 {"self_ns", SJ_FORWARD_NUMBER}}},
    {.name = "call_paths",
     .owner = "session",
     .order = "path",
     .select = "SELECT path_id, parent_path_id, function_id, function_id, depth, recursive, rare,"
               " calls, total_ns, self_ns, min_ns, max_ns, unwound, untrusted, histogram"
               " FROM call_paths WHERE path_id >= ?1 << 32 AND path_id < (?1 + 1) << 32"
               " AND +session_id = ?1",
     .columns = {{"path", SJ_FORWARD_PATH},
                 {"parent_path", SJ_FORWARD_PATH},
                 KEYS,
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
     .owner = "session",
     .order = "function, place",
     .select = "SELECT function_id, function_id, place, call_id, start_ns, duration_ns, self_ns,"
               " ending, flags FROM slow_calls WHERE session_id = ?1",
     .columns = {KEYS,
                 {"place", SJ_FORWARD_COUNT},
                 {"call_id", SJ_FORWARD_COUNT},
                 {"start_ns", SJ_FORWARD_NUMBER},
                 {"duration_ns", SJ_FORWARD_NUMBER},
                 {"self_ns", SJ_FORWARD_NUMBER},
                 {"ending", SJ_FORWARD_COUNT},
                 {"flags", SJ_FORWARD_COUNT}}},
    {.name = "gaps",
     .owner = "session",
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
     .owner = "session",
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
     .owner = "session",
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
     .owner = "session",
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
     .owner = "session",
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

const sj_forward_table sj_forward_commands = {
    .name = "commands",
    .owner = "lab",
    .order = "command_id",
    .is_replacing = true,
    .select = "SELECT ?1, c.command_id IS NULL, d.uuid, d.name, c.kind, c.arguments, c.state,"
              " c.requested_by, c.timeout_ms, c.created_realtime_ns, c.sent_realtime_ns,"
              " c.finished_realtime_ns, c.result, c.file_bytes FROM (SELECT 1)"
              " LEFT JOIN commands AS c ON c.command_id = ?1"
              " LEFT JOIN devices AS d ON d.device_id = c.device_id",
    .columns = {{"command_id", SJ_FORWARD_COUNT},
                {"removed", SJ_FORWARD_SMALL},
                {"device", SJ_FORWARD_UUID},
                {"device_name", SJ_FORWARD_TEXT},
                {"kind", SJ_FORWARD_TEXT},
                {"arguments", SJ_FORWARD_TEXT},
                {"state", SJ_FORWARD_TEXT},
                {"requested_by", SJ_FORWARD_TEXT},
                {"timeout_ms", SJ_FORWARD_NUMBER},
                {"created_realtime_ns", SJ_FORWARD_NUMBER},
                {"sent_realtime_ns", SJ_FORWARD_MAYBE},
                {"finished_realtime_ns", SJ_FORWARD_MAYBE},
                {"result", SJ_FORWARD_TEXT},
                {"file_bytes", SJ_FORWARD_MAYBE}}};

const sj_forward_table sj_forward_calls = {
    .name = "calls",
    .owner = "session",
    .order = "call_id",
    .is_replacing = true,
    .select = "SELECT function_id, function_id, function_id, call_id, parent_id, depth,"
              " (SELECT t.number FROM threads AS t WHERE t.thread_id = calls.thread_id), start_ns,"
              " duration_ns, self_ns, ending, flags FROM calls"
              " WHERE session_id = ?1 AND start_ns >= ?2 AND start_ns < ?3",
    .columns = {KEYS,
                {"name", SJ_FORWARD_NAME},
                {"call_id", SJ_FORWARD_COUNT},
                {"parent_id", SJ_FORWARD_MAYBE},
                {"depth", SJ_FORWARD_COUNT},
                {"thread_number", SJ_FORWARD_MAYBE},
                {"start_ns", SJ_FORWARD_NUMBER},
                {"duration_ns", SJ_FORWARD_MAYBE},
                {"self_ns", SJ_FORWARD_MAYBE},
                {"ending", SJ_FORWARD_TEXT},
                {"flags", SJ_FORWARD_COUNT}}};

/* Bins of nanoseconds, in order. */
typedef struct ns_bins {
    uint32_t used;
    uint16_t bin[SJ_HISTOGRAM_BINS];
    uint64_t calls[SJ_HISTOGRAM_BINS];
} ns_bins;

/* Each bin of ticks goes to the bin of its middle in nanoseconds, as histogram_merge() does; the
 * order stays. */
static void to_nanoseconds(const sj_histogram *ticks, const sj_tick_scale *scale, ns_bins *ns)
{
    const uint32_t first = ticks->first_octave << SJ_HISTOGRAM_SUB_BITS;
    const uint32_t count = ticks->octave_count << SJ_HISTOGRAM_SUB_BITS;
    ns->used = 0;
    for (uint32_t i = 0; i < count; ++i) {
        const uint64_t calls = ticks->octaves[i >> SJ_HISTOGRAM_SUB_BITS]
                                   .count[i & ((1u << SJ_HISTOGRAM_SUB_BITS) - 1)];
        if (calls == 0) {
            continue;
        }
        const uint64_t low = sj_histogram_low(first + i);
        const uint64_t middle = low + (sj_histogram_high(first + i) - low) / 2;
        const uint16_t bin = (uint16_t)sj_histogram_bin((uint64_t)sj_ticks_to_ns(scale, middle));
        if (ns->used == 0 || ns->bin[ns->used - 1] != bin) {
            ns->bin[ns->used] = bin;
            ns->calls[ns->used++] = 0;
        }
        ns->calls[ns->used - 1] += calls;
    }
}

static sj_status put_histogram(sj_slice bytes, const sj_tick_scale *scale, sj_row_buffer *rows)
{
    sj_histogram ticks = {0};
    ns_bins ns;
    SJ_TRY(bytes.size != 0 ? sj_histogram_decode(bytes, &ticks) : SJ_OK);
    to_nanoseconds(&ticks, scale, &ns);
    sj_histogram_deinit(&ticks);
    sj_row_put_varint(rows, ns.used);
    for (uint32_t i = 0; i < ns.used; ++i) {
        sj_row_put_number(rows, ns.bin[i], 2);
    }
    sj_row_put_varint(rows, ns.used);
    for (uint32_t i = 0; i < ns.used; ++i) {
        sj_row_put_number(rows, ns.calls[i], 8);
    }
    return SJ_OK;
}

/* put_function writes what a column says of the function whose id is `id`; NULL: of none. */
static sj_status put_function(sj_forward_kind kind, const int64_t *id,
                              const sj_forward_place *place, sj_row_buffer *rows)
{
    static const sj_forward_function none;
    const sj_forward_function *function =
        id != NULL ? sj_function_keys_get(place->functions, *id) : &none;
    if (function == NULL) {
        return SJ_ENOMEM;
    }
    if (kind == SJ_FORWARD_KEY || kind == SJ_FORWARD_SYMBOL || kind == SJ_FORWARD_OFFSET) {
        sj_row_put_number(rows,
                          kind == SJ_FORWARD_KEY      ? function->key
                          : kind == SJ_FORWARD_SYMBOL ? function->symbol_key
                                                      : function->offset,
                          8);
        return SJ_OK;
    }
    const sj_row_buffer *text = kind == SJ_FORWARD_NAME    ? &function->name
                                : kind == SJ_FORWARD_BUILD ? &function->build_id
                                                           : &function->module;
    if (text->size == 0) {
        sj_row_put_varint(rows, 0);
    } else {
        sj_row_put_fixed(rows, (sj_slice){.data = text->bytes, .size = text->size}, text->size);
    }
    return SJ_OK;
}

static sj_slice column_of(sqlite3_stmt *row, int at)
{
    const void *data = sqlite3_column_blob(row, at); /* before the size: may convert */
    return (sj_slice){.data = data, .size = (size_t)sqlite3_column_bytes(row, at)};
}

static sj_status put_value(const sj_forward_column *column, sqlite3_stmt *row, int at,
                           const sj_forward_place *place, sj_row_buffer *rows)
{
    const int64_t id = sqlite3_column_int64(row, at);
    const uint64_t number = (uint64_t)id;
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
    case SJ_FORWARD_PATH:
        sj_row_put_number(rows, is_null ? 0 : sj_function_keys_path(place->functions, id), 8);
        break;
    case SJ_FORWARD_KEY:
    case SJ_FORWARD_SYMBOL:
    case SJ_FORWARD_NAME:
    case SJ_FORWARD_BUILD:
    case SJ_FORWARD_OFFSET:
    case SJ_FORWARD_MODULE:
        return put_function(column->kind, is_null ? NULL : &id, place, rows);
    case SJ_FORWARD_HISTOGRAM:
        return put_histogram(column_of(row, at), &place->scale, rows);
    }
    return SJ_OK;
}

static void put_place(const sj_forward_place *place, sj_row_buffer *rows)
{
    sj_row_put_hex(rows, place->owner, 16);
    sj_row_put_number(rows, place->version, 8);
    sj_row_put_number(rows, place->day, 2);
    rows->rows++;
}

sj_status sj_forward_collect_row(const sj_forward_table *table, sqlite3_stmt *statement,
                                 const sj_forward_place *place, sj_row_buffer *rows)
{
    sj_status status = SJ_OK;
    put_place(place, rows);
    for (int i = 0; status == SJ_OK && i < sqlite3_column_count(statement); ++i) {
        status = put_value(&table->columns[i], statement, i, place, rows);
    }
    return status;
}

sj_status sj_forward_collect(sqlite3 *database, const sj_forward_table *table, int64_t id,
                             const sj_forward_place *place, sj_row_buffer *rows, sj_error *error)
{
    sqlite3_stmt *statement = NULL;
    sj_status status = SJ_OK;
    int result = sqlite3_prepare_v2(database, table->select, -1, &statement, NULL);
    if (result == SQLITE_OK) {
        sqlite3_bind_int64(statement, 1, id);
        while (status == SJ_OK && (result = sqlite3_step(statement)) == SQLITE_ROW) {
            status = sj_forward_collect_row(table, statement, place, rows);
        }
    }
    if (status != SJ_OK) {
        sj_fail(error, status,
                status == SJ_ENOMEM ? "no memory for the rows of %s"
                                    : "a histogram of %s cannot be read",
                table->name);
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
