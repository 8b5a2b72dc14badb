/* Design notes
 *
 * A function's key is a hash of build-id and offset. Its `symbol_key` is the same for this function
 * in other builds. The key of a call path is a hash of its caller's path and its symbol key, which
 * is the same in all builds, labs and devices. Functions of one name in one file share paths; this
 * does not affect sums.
 *
 * Names, builds and devices are repeated in the rows that most questions read. ClickHouse stores
 * repeated texts in very few bytes, and joins of many sessions cost more than the rest of a
 * question. */
#include "collector-server/forward/forward_tables.h"

#include "collector-server/store/sql.h"
#include "proto/callgraph/histogram.h"

#include "schema/queries/forward/tables.h"

#include <string.h>

/* clang-format off */
#define KEYS {"function", SJ_FORWARD_KEY}, {"symbol_key", SJ_FORWARD_SYMBOL}
/* clang-format on */

const sj_forward_table sj_forward_tables[] = {
    {.name = "functions",
     .owner = "session",
     .order = "function",
     .select = sj_forward_functions_sql,
     .columns = {KEYS,
                 {"name", SJ_FORWARD_NAME},
                 {"build_id", SJ_FORWARD_BUILD},
                 {"offset", SJ_FORWARD_OFFSET},
                 {"module", SJ_FORWARD_MODULE}}},
    {.name = "function_stats",
     .owner = "session",
     .order = "function",
     .select = sj_forward_function_stats_sql,
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
                 /* NULL: unknown, because written before version 6 */
                 {"untimed_calls", SJ_FORWARD_MAYBE},
                 {"sampled_calls", SJ_FORWARD_MAYBE},
                 {"error_ns", SJ_FORWARD_MAYBE},
                 {"bins", SJ_FORWARD_HISTOGRAM}}},
    {.name = "call_edges",
     .owner = "session",
     .order = "callee, caller",
     .select = sj_forward_call_edges_sql,
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
     .select = sj_forward_call_paths_sql,
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
     .select = sj_forward_slow_calls_sql,
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
     .select = sj_forward_gaps_sql,
     .columns = {{"reason", SJ_FORWARD_TEXT},
                 {"calls", SJ_FORWARD_COUNT},
                 {"events", SJ_FORWARD_COUNT},
                 {"start_ns", SJ_FORWARD_MAYBE},
                 {"end_ns", SJ_FORWARD_MAYBE},
                 {"thread_number", SJ_FORWARD_MAYBE}}},
    {.name = "marks",
     .owner = "session",
     .order = "number",
     .select = sj_forward_marks_sql,
     .columns = {{"number", SJ_FORWARD_COUNT},
                 {"name", SJ_FORWARD_TEXT},
                 {"is_end", SJ_FORWARD_SMALL},
                 {"at_ns", SJ_FORWARD_NUMBER},
                 {"thread_number", SJ_FORWARD_MAYBE},
                 {"source", SJ_FORWARD_TEXT}}},
    {.name = "coverage",
     .owner = "session",
     .order = "build_id",
     .select = sj_forward_coverage_sql,
     .columns = {{"build_id", SJ_FORWARD_HEX},
                 {"module", SJ_FORWARD_TEXT},
                 {"functions", SJ_FORWARD_COUNT},
                 {"hooked", SJ_FORWARD_COUNT},
                 {"entered", SJ_FORWARD_COUNT}}},
    {.name = "threads",
     .owner = "session",
     .order = "thread_number",
     .select = sj_forward_threads_sql,
     .columns = {{"thread_number", SJ_FORWARD_NUMBER},
                 {"tid", SJ_FORWARD_NUMBER},
                 {"name", SJ_FORWARD_TEXT},
                 {"is_main", SJ_FORWARD_SMALL},
                 {"calls", SJ_FORWARD_COUNT},
                 {"run_time_ns", SJ_FORWARD_MAYBE},
                 {"max_depth", SJ_FORWARD_COUNT},
                 {"dropped_calls", SJ_FORWARD_COUNT},
                 {"dropped_events", SJ_FORWARD_COUNT},
                 {"waited_ns", SJ_FORWARD_NUMBER}}},
    {.name = "open_calls",
     .owner = "session",
     .order = "stream_id, depth",
     .select = sj_forward_open_calls_sql,
     .columns = {KEYS,
                 {"name", SJ_FORWARD_NAME},
                 {"stream_id", SJ_FORWARD_NUMBER},
                 {"thread_number", SJ_FORWARD_MAYBE},
                 {"depth", SJ_FORWARD_COUNT},
                 {"start_ns", SJ_FORWARD_NUMBER},
                 {"flags", SJ_FORWARD_COUNT}}},
    {.name = "unhooked",
     .owner = "session",
     .order = "reason",
     .select = sj_forward_unhooked_sql,
     .columns = {{"reason", SJ_FORWARD_TEXT},
                 {"functions", SJ_FORWARD_COUNT},
                 {"bytes", SJ_FORWARD_COUNT},
                 {"example", SJ_FORWARD_TEXT}}},
    {.name = "zombie_reports",
     .owner = "session",
     .order = "fingerprint",
     .select = sj_forward_zombie_reports_sql,
     .columns = {{"fingerprint", SJ_FORWARD_TEXT},
                 {"kind", SJ_FORWARD_TEXT},
                 {"used_in", SJ_FORWARD_TEXT},
                 {"freed_in", SJ_FORWARD_TEXT},
                 {"allocated_in", SJ_FORWARD_TEXT},
                 {"at_ns", SJ_FORWARD_NUMBER},
                 {"thread_name", SJ_FORWARD_TEXT}}},
    {.name = "left_out",
     .owner = "session",
     .order = "name",
     .select = sj_forward_left_out_sql,
     .columns = {{"name", SJ_FORWARD_TEXT}}},
    {.name = "sessions",
     .owner = "session",
     .order = "removed",
     .select = sj_forward_sessions_sql,
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
_Static_assert(sizeof(sj_forward_tables) / sizeof(sj_forward_tables[0]) <= SJ_FORWARD_MOST_TABLES,
               "more tables than a choice of them holds");

const sj_forward_table sj_forward_removals = {
    .name = "removals",
    .owner = "session",
    .columns = {{"lab", SJ_FORWARD_UUID}, {"cause", SJ_FORWARD_TEXT}}};

const sj_forward_table sj_forward_commands = {
    .name = "commands",
    .owner = "lab",
    .order = "command_id",
    .is_replacing = true,
    .select = sj_forward_commands_sql,
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

const sj_forward_table sj_forward_calls = {.name = "calls",
                                           .owner = "session",
                                           .order = "call_id",
                                           .is_replacing = true,
                                           .select = sj_forward_calls_sql,
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

/* Converts a bin of ticks to the bin of its middle in nanoseconds, as histogram_merge() does. The
 * order of bins stays the same. */
static uint16_t to_nanoseconds(uint32_t bin, const sj_tick_scale *scale)
{
    const uint64_t low = sj_histogram_low(bin);
    const uint64_t middle = low + (sj_histogram_high(bin) - low) / 2;
    return (uint16_t)sj_histogram_bin((uint64_t)sj_ticks_to_ns(scale, middle));
}

static sj_status put_histogram(sj_slice bytes, const sj_tick_scale *scale, sj_native_rows *rows,
                               sj_native_column *to)
{
    sj_histogram_reader reader;
    sj_status status = bytes.size != 0 ? sj_histogram_open(bytes, &reader) : SJ_ENOTFOUND;
    uint32_t bin = 0;
    uint64_t count = 0;
    int last = -1;
    uint64_t calls = 0;
    SJ_TRY(status == SJ_ENOTFOUND ? SJ_OK : status);
    while (status == SJ_OK && (status = sj_histogram_next(&reader, &bin, &count)) == SJ_OK) {
        const uint16_t ns = to_nanoseconds(bin, scale);
        if (ns != last && last >= 0) {
            sj_byte_buffer_put_number(&rows->counts, calls, 8);
            calls = 0;
        }
        if (ns != last) {
            sj_byte_buffer_put_number(&to->data, ns, 2);
            rows->elements++;
        }
        last = ns;
        calls += count;
    }
    if (last >= 0) {
        sj_byte_buffer_put_number(&rows->counts, calls, 8);
    }
    sj_byte_buffer_put_number(&to->extra, rows->elements, 8);
    return status == SJ_ENOTFOUND ? SJ_OK : status;
}

/* Writes the value of a column about a function. */
static void put_function(sj_forward_kind kind, const sj_forward_function *function,
                         sj_byte_buffer *to)
{
    if (kind == SJ_FORWARD_KEY || kind == SJ_FORWARD_SYMBOL || kind == SJ_FORWARD_OFFSET) {
        sj_byte_buffer_put_number(to,
                                  kind == SJ_FORWARD_KEY      ? function->key
                                  : kind == SJ_FORWARD_SYMBOL ? function->symbol_key
                                                              : function->offset,
                                  8);
        return;
    }
    const sj_byte_buffer *text = kind == SJ_FORWARD_NAME    ? &function->name
                                 : kind == SJ_FORWARD_BUILD ? &function->build_id
                                                            : &function->module;
    if (text->size == 0) {
        sj_byte_buffer_put_varint(to, 0);
    } else {
        sj_row_put_fixed(to, (sj_slice){.data = text->bytes, .size = text->size}, text->size);
    }
}

static sj_slice bytes_of(sqlite3_value *value)
{
    const void *data = sqlite3_value_blob(value); /* call this before asking for the size,
                                                   * because it may convert the value */
    return (sj_slice){.data = data, .size = (size_t)sqlite3_value_bytes(value)};
}

/* The position in a row. Columns about a function reuse the last key, because each SQLite call
 * costs time. */
typedef struct row_reader {
    sqlite3_stmt *statement;
    int next;
    const sj_forward_function *function; /* function of the last key */
} row_reader;

static sj_status read_function(row_reader *row, sqlite3_value *value, const sj_forward_place *place)
{
    static const sj_forward_function none;
    row->function = sqlite3_value_type(value) == SQLITE_NULL
                        ? &none
                        : sj_function_keys_get(place->functions, sqlite3_value_int64(value));
    return row->function != NULL ? SJ_OK : SJ_ENOMEM;
}

static bool is_of_function(sj_forward_kind kind)
{
    return kind == SJ_FORWARD_SYMBOL || kind == SJ_FORWARD_NAME || kind == SJ_FORWARD_BUILD ||
           kind == SJ_FORWARD_OFFSET || kind == SJ_FORWARD_MODULE;
}

static sj_status put_value(sj_forward_kind kind, row_reader *row, const sj_forward_place *place,
                           sj_native_rows *rows, sj_native_column *both)
{
    sj_byte_buffer *to = &both->data;
    if (is_of_function(kind)) {
        put_function(kind, row->function, to);
        return SJ_OK;
    }
    sqlite3_value *value = sqlite3_column_value(row->statement, row->next++);
    switch (kind) {
    case SJ_FORWARD_TEXT:
        sj_row_put_text(to, bytes_of(value));
        break;
    case SJ_FORWARD_UUID:
        sj_row_put_hex(to, bytes_of(value), 16);
        break;
    case SJ_FORWARD_HEX:
        sj_byte_buffer_put_varint(to, 2 * (uint64_t)bytes_of(value).size);
        sj_row_put_hex(to, bytes_of(value), bytes_of(value).size);
        break;
    case SJ_FORWARD_SMALL:
        sj_byte_buffer_put_number(to, (uint64_t)sqlite3_value_int64(value), 1);
        break;
    case SJ_FORWARD_MAYBE:
        sj_byte_buffer_put_number(&both->extra, sqlite3_value_type(value) == SQLITE_NULL, 1);
        sj_byte_buffer_put_number(to, (uint64_t)sqlite3_value_int64(value), 8);
        break;
    case SJ_FORWARD_PATH: /* NULL gives 0, which is not the key of any path */
        sj_byte_buffer_put_number(
            to, sj_function_keys_path(place->functions, sqlite3_value_int64(value)), 8);
        break;
    case SJ_FORWARD_KEY:
        SJ_TRY(read_function(row, value, place));
        put_function(kind, row->function, to);
        break;
    case SJ_FORWARD_HISTOGRAM:
        return put_histogram(bytes_of(value), &place->scale, rows, both);
    default:
        sj_byte_buffer_put_number(to, (uint64_t)sqlite3_value_int64(value), 8);
        break;
    }
    return SJ_OK;
}

void sj_forward_place_own(sj_forward_place *place, const uint8_t owner[16])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < 16; ++i) {
        place->owner[2 * i] = (uint8_t)digits[owner[i] >> 4];
        place->owner[2 * i + 1] = (uint8_t)digits[owner[i] & 15];
    }
}

static void put_place(const sj_forward_place *place, sj_native_rows *rows)
{
    sj_row_put_fixed(&rows->owners, (sj_slice){.data = place->owner, .size = sizeof(place->owner)},
                     sizeof(place->owner));
    sj_byte_buffer_put_number(&rows->versions, place->version, 8);
    sj_byte_buffer_put_number(&rows->days, place->day, 2);
    rows->rows++;
}

sj_status sj_forward_collect_row(const sj_forward_table *table, sqlite3_stmt *statement,
                                 const sj_forward_place *place, sj_native_rows *rows)
{
    sj_status status = SJ_OK;
    row_reader row = {.statement = statement};
    put_place(place, rows);
    for (size_t i = 0; status == SJ_OK && table->columns[i].name != NULL; ++i) {
        status = put_value(table->columns[i].kind, &row, place, rows, &rows->columns[i]);
    }
    return status;
}

sj_status sj_forward_prepare(sqlite3 *database, const sj_forward_table *table,
                             sqlite3_stmt **statement, sj_error *error)
{
    return sqlite3_prepare_v3(database, table->select, -1, SQLITE_PREPARE_PERSISTENT, statement,
                              NULL) == SQLITE_OK
               ? SJ_OK
               : sj_fail(error, SJ_EIO, "cannot read %s: %s", table->name,
                         sqlite3_errmsg(database));
}

typedef struct row_collection {
    const sj_forward_table *table;
    const sj_forward_place *place;
    sj_native_rows *rows;
    sj_error *error;
} row_collection;

static sj_status collect_row(void *context, sqlite3_stmt *row)
{
    const row_collection *to = context;
    const sj_status status = sj_forward_collect_row(to->table, row, to->place, to->rows);
    return status == SJ_OK || status == SJ_ENOMEM
               ? status
               : sj_fail(to->error, status, "a histogram of %s cannot be read", to->table->name);
}

sj_status sj_forward_collect(sqlite3_stmt *statement, const sj_forward_table *table, int64_t id,
                             const sj_forward_place *place, sj_native_rows *rows, sj_error *error)
{
    row_collection to = {.table = table, .place = place, .rows = rows, .error = error};
    sqlite3_bind_int64(statement, 1, id);
    SJ_TRY(sj_sql_each_row(statement, collect_row, &to, error));
    return sj_native_rows_failed(rows) ? sj_fail(error, SJ_ENOMEM, "out of memory") : SJ_OK;
}

void sj_forward_put_removed(const sj_forward_place *place, sj_slice lab, sj_slice cause,
                            sj_native_rows *rows)
{
    const sj_forward_table *sessions = &sj_forward_tables[sj_forward_table_count - 1];
    put_place(place, rows);
    for (size_t i = 0; sessions->columns[i].name != NULL; ++i) {
        const sj_forward_kind kind = sessions->columns[i].kind;
        sj_native_column *to = &rows->columns[i];
        if (kind == SJ_FORWARD_SMALL) {
            sj_byte_buffer_put_number(&to->data, 1, 1); /* removed */
        } else if (kind == SJ_FORWARD_UUID) {
            sj_row_put_hex(&to->data, i == 1 ? lab : (sj_slice){0}, 16);
        } else if (kind == SJ_FORWARD_COUNT || kind == SJ_FORWARD_NUMBER ||
                   kind == SJ_FORWARD_MAYBE) {
            sj_byte_buffer_put_number(&to->data, 0, 8);
        } else {
            sj_row_put_text(
                &to->data, strcmp(sessions->columns[i].name, "cause") == 0 ? cause : (sj_slice){0});
        }
        if (kind == SJ_FORWARD_MAYBE) {
            sj_byte_buffer_put_number(&to->extra, 1, 1);
        }
    }
}
