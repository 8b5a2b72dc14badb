#include "collector-server/forward/clickhouse.h"

#include "collector-server/forward/clickhouse_block.h"
#include "collector-server/forward/clickhouse_http.h"
#include "proto/base/units.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES_A_MS = 1000, MS_A_S = 1000, LOOK_MS = 60000, LATER_DAYS = 7 };

/* Writes the column list of a table, with SQL types if `types` is true. */
static void print_columns(FILE *text, const sj_forward_table *table, bool types)
{
    fprintf(text, types ? "%s FixedString(32), version UInt64, day Date" : "%s, version, day",
            table->owner);
    for (const sj_forward_column *column = table->columns; column->name != NULL; ++column) {
        if (column->kind == SJ_FORWARD_HISTOGRAM) {
            fprintf(text, types ? ", bins Array(UInt16), counts Array(UInt64)" : ", bins, counts");
        } else {
            fprintf(text, ", %s%s%s", column->name, types ? " " : "",
                    types ? sj_clickhouse_type(column->kind) : "");
        }
    }
}

typedef struct statement {
    char *text;
    size_t size;
    FILE *file;
} statement;

static bool begin_statement(statement *made)
{
    *made = (statement){0};
    made->file = open_memstream(&made->text, &made->size);
    return made->file != NULL;
}

static sj_status run_statement(sj_forward_target *target, statement *made, sj_error *error)
{
    const bool failed = fclose(made->file) != 0;
    const sj_status status = failed ? sj_fail(error, SJ_ENOMEM, "out of memory")
                                    : sj_clickhouse_run(target, made->text, error);
    free(made->text);
    return status;
}

static sj_status make_raw(sj_forward_target *target, const sj_forward_table *table,
                          const sj_clickhouse_layout *layout, sj_error *error)
{
    statement made;
    if (!begin_statement(&made)) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    fprintf(made.file, "CREATE TABLE IF NOT EXISTS %s.raw_%s (", target->database, table->name);
    print_columns(made.file, table, true);
    const char *replacing = table->is_replacing ? "Replacing" : "";
    if (layout->is_replicated) {
        fprintf(made.file,
                ") ENGINE = Replicated%sMergeTree('/clickhouse/tables/{shard}/%s/raw_%s', "
                "'{replica}'%s)",
                replacing, target->database, table->name, table->is_replacing ? ", version" : "");
    } else {
        fprintf(made.file, ") ENGINE = %sMergeTree%s", replacing,
                table->is_replacing ? "(version)" : "");
    }
    fprintf(made.file, " PARTITION BY toYYYYMM(day) ORDER BY (%s, %s%s)", table->owner,
            table->is_replacing ? "" : "version, ", table->order);
    return run_statement(target, &made, error);
}

static sj_status make_view(sj_forward_target *target, const sj_forward_table *table,
                           const sj_clickhouse_layout *layout, sj_error *error)
{
    statement made;
    const bool is_sessions = strcmp(table->name, "sessions") == 0;
    const bool is_removals = table == &sj_forward_removals;
    const char *database = target->database;
    if (!begin_statement(&made)) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    fprintf(made.file, "CREATE VIEW IF NOT EXISTS %s.%s%s AS SELECT ", database,
            layout->cluster != NULL ? "part_" : "", table->name);
    print_columns(made.file, table, false);
    if (table == &sj_forward_commands) {
        fprintf(made.file, " FROM %s.raw_%s FINAL WHERE removed = 0", database, table->name);
        return run_statement(target, &made, error);
    }
    if (table->is_replacing) {
        fprintf(made.file, " FROM %s.raw_%s FINAL WHERE session IN (SELECT session FROM %s.%s)",
                database, table->name, database,
                layout->cluster != NULL ? "part_sessions" : "sessions");
        return run_statement(target, &made, error);
    }
    fprintf(made.file,
            " FROM %s.raw_%s WHERE (session, version) IN (SELECT session, max(version) FROM "
            "%s.raw_sessions GROUP BY session)%s",
            database, is_removals ? "sessions" : table->name, database,
            is_removals   ? " AND removed = 1"
            : is_sessions ? " AND removed = 0"
                          : "");
    return run_statement(target, &made, error);
}

static sj_status make_distributed(sj_forward_target *target, const sj_forward_table *table,
                                  const char *name_prefix, const char *local_prefix,
                                  const char *cluster, sj_error *error)
{
    statement made;
    if (!begin_statement(&made)) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    fprintf(made.file, "CREATE TABLE IF NOT EXISTS %s.%s%s (", target->database, name_prefix,
            table->name);
    print_columns(made.file, table, true);
    fprintf(made.file, ") ENGINE = Distributed(%s, %s, %s%s, cityHash64(%s))", cluster,
            target->database, local_prefix, table->name, table->owner);
    return run_statement(target, &made, error);
}

static sj_status make_table(sj_forward_target *target, const sj_forward_table *table,
                            const sj_clickhouse_layout *layout, sj_error *error)
{
    SJ_TRY(make_view(target, table, layout, error));
    if (layout->cluster == NULL) {
        return SJ_OK;
    }
    SJ_TRY(make_distributed(target, table, "", "part_", layout->cluster, error));
    return table == &sj_forward_removals /* inserts write removals to `sessions` */
               ? SJ_OK
               : make_distributed(target, table, "put_", "raw_", layout->cluster, error);
}

static sj_status ask_number(sj_forward_target *target, const char *sql, uint64_t *number,
                            sj_error *error)
{
    char *reply = NULL;
    size_t size = 0;
    SJ_TRY(sj_clickhouse_ask(target, sql, "", LOOK_MS, &reply, &size, error));
    *number = strtoull(reply, NULL, 10);
    free(reply);
    return SJ_OK;
}

/* True if the version of a server, such as "24.8.1.1", is `year`.`month` or later. */
static bool is_since(const char *version, long year, long month)
{
    char *end = NULL;
    const long its_year = strtol(version, &end, 10);
    const long its_month = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
    return its_year > year || (its_year == year && its_month >= month);
}

/* Reads the version of the tables. Stores the name of their cluster and has_async_inserts in
 * `target`. Returns SJ_ENOTFOUND if the database has no tables of Sojourn. */
static sj_status read_schema(sj_forward_target *target, unsigned long long *version,
                             sj_error *error)
{
    char sql[160];
    char *reply = NULL;
    size_t size = 0;
    snprintf(sql, sizeof(sql),
             "SELECT max(version), any(cluster), version() FROM %s.schema_version",
             target->database);
    const sj_status status = sj_clickhouse_ask(target, sql, "", LOOK_MS, &reply, &size, error);
    if (status == SJ_ENOTFOUND) {
        return sj_fail(error, status,
                       "%s has no tables of Sojourn in %s: run \"sojourn forward init\" first",
                       target->url, target->database);
    }
    SJ_TRY(status);
    char *cluster = NULL;
    *version = strtoull(reply, &cluster, 10);
    cluster += *cluster == '\t';
    const size_t name_bytes = strcspn(cluster, "\t\n");
    snprintf(target->cluster, sizeof(target->cluster), "%.*s", (int)name_bytes, cluster);
    target->has_async_inserts =
        cluster[name_bytes] == '\t' && is_since(cluster + name_bytes + 1, 21, 11);
    free(reply);
    if (target->cluster[0] != '\0' && !sj_clickhouse_is_name(target->cluster)) {
        return sj_fail(error, SJ_EVERSION, "%s.schema_version was changed by hand",
                       target->database);
    }
    return SJ_OK;
}

static sj_status check_schema(sj_forward_target *target, sj_error *error)
{
    unsigned long long version = 0;
    SJ_TRY(read_schema(target, &version, error));
    return version == SJ_CLICKHOUSE_SCHEMA
               ? SJ_OK
               : sj_fail(error, SJ_EVERSION,
                         "%s.%s has tables of version %llu, this Sojourn writes version %d%s",
                         target->url, target->database, version, (int)SJ_CLICKHOUSE_SCHEMA,
                         version < SJ_CLICKHOUSE_SCHEMA
                             ? ": run \"sojourn forward init\" with it again"
                             : "");
}

/* Returns SJ_EINVAL unless the existing tables have the cluster of `layout`, or both have none. A
 * query over tables of two layouts would miss rows. */
static sj_status check_layout(sj_forward_target *target, const sj_clickhouse_layout *layout,
                              sj_error *error)
{
    if (strcmp(target->cluster, layout->cluster != NULL ? layout->cluster : "") == 0) {
        return SJ_OK;
    }
    if (target->cluster[0] == '\0') {
        return sj_fail(error, SJ_EINVAL, "%s.%s has tables of one node: init them without --shards",
                       target->url, target->database);
    }
    return sj_fail(error, SJ_EINVAL,
                   "%s.%s has tables of the cluster %s: init them with --shards %s", target->url,
                   target->database, target->cluster, target->cluster);
}

/* Adds the columns of estimates to raw_function_stats, which lacks them before version 6. Drops the
 * view and the distributed tables of function_stats; the caller creates them again. */
static sj_status add_estimates(sj_forward_target *target, sj_error *error)
{
    static const char *const shown_by[] = {"", "part_", "put_"};
    char sql[256];
    uint64_t is_there = 0;
    for (size_t i = 0; i < sizeof(shown_by) / sizeof(shown_by[0]); ++i) {
        snprintf(sql, sizeof(sql), "DROP TABLE IF EXISTS %s.%sfunction_stats", target->database,
                 shown_by[i]);
        SJ_TRY(sj_clickhouse_run(target, sql, error));
    }
    SJ_TRY(ask_number(target,
                      "SELECT count() FROM system.columns WHERE database = currentDatabase() "
                      "AND table = 'raw_function_stats' AND name = 'error_ns'",
                      &is_there, error));
    snprintf(sql, sizeof(sql),
             "ALTER TABLE %s.raw_function_stats ADD COLUMN untimed_calls Nullable(Int64), "
             "ADD COLUMN sampled_calls Nullable(Int64), ADD COLUMN error_ns Nullable(Int64)",
             target->database);
    return is_there == 0 ? sj_clickhouse_run(target, sql, error) : SJ_OK;
}

sj_status sj_clickhouse_init(sj_forward_target *target, const sj_clickhouse_layout *layout,
                             sj_error *error)
{
    char sql[256];
    if (layout->cluster != NULL && !sj_clickhouse_is_name(layout->cluster)) {
        return sj_fail(error, SJ_EINVAL, "%s: not the name of a cluster", layout->cluster);
    }
    snprintf(sql, sizeof(sql), "CREATE DATABASE IF NOT EXISTS %s", target->database);
    SJ_TRY(sj_clickhouse_run(target, sql, error));
    unsigned long long version = 0;
    const sj_status status = read_schema(target, &version, error);
    if (status != SJ_OK && status != SJ_ENOTFOUND) {
        return status;
    }
    if (version > SJ_CLICKHOUSE_SCHEMA) {
        return check_schema(target, error);
    }
    SJ_TRY(version != 0 ? check_layout(target, layout, error) : SJ_OK);
    for (size_t i = 0; i < sj_forward_table_count; ++i) {
        SJ_TRY(make_raw(target, &sj_forward_tables[i], layout, error));
    }
    SJ_TRY(make_raw(target, &sj_forward_calls, layout, error));
    SJ_TRY(make_raw(target, &sj_forward_commands, layout, error));
    SJ_TRY(version < SJ_CLICKHOUSE_SCHEMA ? add_estimates(target, error) : SJ_OK);
    for (size_t i = 0; i < sj_forward_table_count; ++i) {
        SJ_TRY(make_table(target, &sj_forward_tables[i], layout, error));
    }
    SJ_TRY(make_table(target, &sj_forward_removals, layout, error));
    SJ_TRY(make_table(target, &sj_forward_calls, layout, error));
    SJ_TRY(make_table(target, &sj_forward_commands, layout, error));
    if (layout->cluster != NULL) { /* a query of `shards` returns one row per reachable shard */
        snprintf(sql, sizeof(sql),
                 "CREATE TABLE IF NOT EXISTS %s.shards (dummy UInt8) "
                 "ENGINE = Distributed(%s, system, one)",
                 target->database, layout->cluster);
        SJ_TRY(sj_clickhouse_run(target, sql, error));
    }
    snprintf(sql, sizeof(sql),
             "CREATE TABLE IF NOT EXISTS %s.schema_version (version UInt64, cluster String) "
             "ENGINE = TinyLog",
             target->database);
    SJ_TRY(sj_clickhouse_run(target, sql, error));
    snprintf(sql, sizeof(sql), "INSERT INTO %s.schema_version VALUES (%d, '%s')", target->database,
             (int)SJ_CLICKHOUSE_SCHEMA, layout->cluster != NULL ? layout->cluster : "");
    return version < SJ_CLICKHOUSE_SCHEMA ? sj_clickhouse_run(target, sql, error) : SJ_OK;
}

static sj_status retain_table(sj_forward_target *target, const sj_forward_table *table,
                              unsigned days, sj_error *error)
{
    char sql[256];
    const bool is_sessions = strcmp(table->name, "sessions") == 0;
    const bool has_removals = is_sessions || table == &sj_forward_commands;
    snprintf(sql, sizeof(sql), "ALTER TABLE %s.raw_%s MODIFY TTL day + toIntervalDay(%u)%s",
             target->database, table->name, has_removals ? days : days + LATER_DAYS,
             has_removals ? " DELETE WHERE removed = 0" : "");
    return sj_clickhouse_run(target, sql, error);
}

sj_status sj_clickhouse_retain(sj_forward_target *target, unsigned days, sj_error *error)
{
    for (size_t i = 0; i < sj_forward_table_count; ++i) {
        SJ_TRY(retain_table(target, &sj_forward_tables[i], days, error));
    }
    SJ_TRY(retain_table(target, &sj_forward_calls, days, error));
    return retain_table(target, &sj_forward_commands, days, error);
}

static sj_status newest_version(sj_forward_target *target, const sj_forward_table *table,
                                sj_slice owners, uint64_t *version, sj_error *error)
{
    enum { ID_BYTES = 16 };
    statement made;
    char *reply = NULL;
    size_t size = 0;
    if (!begin_statement(&made)) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    /* Views hide removals, but the version of a removal counts. So query the raw table. */
    fprintf(made.file, "SELECT max(version) FROM %s_%s WHERE %s IN (''",
            target->cluster[0] != '\0' ? "put" : "raw", table->name, table->owner);
    for (size_t i = 0; i < owners.size; ++i) {
        fprintf(made.file, "%s%02x%s", i % ID_BYTES == 0 ? ", '" : "", owners.data[i],
                i % ID_BYTES == ID_BYTES - 1 ? "'" : "");
    }
    fprintf(made.file, ")");
    sj_status status = fclose(made.file) != 0 ? sj_fail(error, SJ_ENOMEM, "out of memory") : SJ_OK;
    if (status == SJ_OK) {
        status = sj_clickhouse_ask(target, made.text, "", LOOK_MS, &reply, &size, error);
    }
    *version = status == SJ_OK ? strtoull(reply, NULL, 10) : 0;
    free(made.text);
    free(reply);
    return status;
}

/* Writes the settings of an insert. They make the server reply only after the rows are stored in
 * the tables. In a cluster, the server waits for the shards that receive rows. */
static void write_settings(const sj_forward_target *target, char *settings, size_t capacity)
{
    const bool is_distributed = target->cluster[0] != '\0';
    int size = snprintf(settings, capacity, "%s",
                        target->has_async_inserts ? "&async_insert=0&wait_for_async_insert=1" : "");
    if (is_distributed) {
        /* Without this timeout, ClickHouse 18.16 waits forever for a dead replica. */
        snprintf(settings + size, capacity - (size_t)size,
                 "&insert_distributed_sync=1&insert_distributed_timeout=%lld",
                 (long long)(target->limit_ms + MS_A_S - 1) / MS_A_S);
    }
}

static sj_status write_rows(sj_forward_target *target, const sj_forward_table *table,
                            const sj_native_rows *rows, sj_error *error)
{
    statement made;
    sj_clickhouse_text reply = {0};
    sj_clickhouse_block block;
    char settings[160];
    write_settings(target, settings, sizeof(settings));
    if (!begin_statement(&made)) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    fprintf(made.file, "INSERT INTO %s.%s_%s (", target->database,
            target->cluster[0] != '\0' ? "put" : "raw", table->name);
    print_columns(made.file, table, false);
    fprintf(made.file, ") FORMAT Native");
    const bool is_made = fclose(made.file) == 0;
    sj_status status = sj_clickhouse_block_make(&block, table, rows);
    if (!is_made || status != SJ_OK) {
        status = sj_fail(error, SJ_ENOMEM, "out of memory");
    } else {
        const sj_clickhouse_question request = {
            .query = made.text,
            .settings = settings,
            .pieces = block.pieces,
            .piece_count = block.count,
            .timeout_ms = target->limit_ms + (int64_t)(sj_native_rows_bytes(rows) / BYTES_A_MS)};
        status = sj_clickhouse_request(target, &request, &reply, error);
    }
    sj_clickhouse_block_deinit(&block);
    free(made.text);
    free(reply.bytes);
    return status;
}

/* Counts all shards of the cluster, including those that do not reply. Without a cluster: 1. */
static sj_status count_all_shards(sj_forward_target *target, uint64_t *all, sj_error *error)
{
    char sql[160];
    *all = 1;
    if (target->cluster[0] == '\0') {
        return SJ_OK;
    }
    snprintf(sql, sizeof(sql),
             "SELECT uniqExact(shard_num) FROM system.clusters WHERE cluster = '%s'",
             target->cluster);
    return ask_number(target, sql, all, error);
}

sj_status sj_clickhouse_count_shards(sj_forward_target *target, uint64_t *answering,
                                     sj_error *error)
{
    char sql[160];
    char *reply = NULL;
    size_t size = 0;
    *answering = 1;
    if (target->cluster[0] == '\0') {
        return SJ_OK;
    }
    snprintf(sql, sizeof(sql), "SELECT count() FROM %s.shards", target->database);
    SJ_TRY(sj_clickhouse_ask(target, sql, SJ_CLICKHOUSE_PARTIAL, 0, &reply, &size, error));
    *answering = strtoull(reply, NULL, 10);
    free(reply);
    return SJ_OK;
}

/* Appends formatted text to `line`. Cuts the text off at the capacity. */
__attribute__((format(printf, 3, 4))) static void append_text(char *line, size_t capacity,
                                                              const char *format, ...)
{
    va_list values;
    const size_t used = strlen(line);
    va_start(values, format);
    vsnprintf(line + used, capacity - used, format, values);
    va_end(values);
}

/* Appends the names of the tables that some labs do not send. In these tables, the sessions of
 * these labs have no rows. */
static sj_status append_left_out(sj_forward_target *target, char *line, size_t capacity,
                                 sj_error *error)
{
    char *reply = NULL;
    size_t size = 0;
    SJ_TRY(sj_clickhouse_ask(target,
                             "SELECT arrayStringConcat(arraySort(groupUniqArray(name)), ', ') "
                             "FROM left_out",
                             SJ_CLICKHOUSE_PARTIAL, 0, &reply, &size, error));
    const int length = (int)strcspn(reply, "\n");
    if (length != 0) {
        append_text(line, capacity, "; some labs do not give %.*s", length, reply);
    }
    free(reply);
    return SJ_OK;
}

sj_status sj_clickhouse_explain(sj_forward_target *target, uint64_t answered, char *line,
                                size_t capacity, sj_error *error)
{
    char *reply = NULL;
    size_t size = 0;
    uint64_t all = 0;
    uint64_t answering = 0;
    SJ_TRY(count_all_shards(target, &all, error));
    SJ_TRY(sj_clickhouse_count_shards(target, &answering, error));
    answering = answered < answering ? answered : answering;
    SJ_TRY(sj_clickhouse_ask(target,
                             "SELECT version(), toString(count()), toString(uniqExact(lab)) "
                             "FROM sessions",
                             SJ_CLICKHOUSE_PARTIAL, 0, &reply, &size, error));
    char *sessions = strchr(reply, '\t');
    char *labs = sessions != NULL ? strchr(sessions + 1, '\t') : NULL;
    if (labs != NULL) {
        *sessions = '\0';
        snprintf(line, capacity, "answered by ClickHouse %s at %s: %s of %s", reply, target->url,
                 SJ_COUNTED(strtoull(sessions + 1, NULL, 10), "session"),
                 SJ_COUNTED(strtoull(labs + 1, NULL, 10), "lab"));
        if (answering < all) {
            append_text(line, capacity, "; INCOMPLETE: no answer from %llu of %s",
                        (unsigned long long)(all - answering), SJ_COUNTED(all, "shard"));
        }
    }
    free(reply);
    return labs != NULL ? append_left_out(target, line, capacity, error)
                        : sj_fail(error, SJ_EIO, "%s: not an answer of ClickHouse", target->url);
}

const sj_forward_target_kind sj_forward_clickhouse = {.name = "clickhouse",
                                                      .open = sj_clickhouse_open,
                                                      .check = check_schema,
                                                      .newest_version = newest_version,
                                                      .write = write_rows,
                                                      .close = sj_clickhouse_close};
