/* Importers against the exporters, against a naive definition of containment, and against damaged
 * files. Files of other tools are in foreign_files.py. */
#include "collector-server/export/exporter.h"
#include "collector-server/import/importer.h"
#include "collector-server/query/query.h"
#include "collector-server/store/verify.h"
#include "tests/support/trace_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char source_path[] = "importers_test.db";
static const char target_path[] = "importers_test_imported.db";
static const char file_path[] = "importers_test.file";

static void remove_database(const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm"};
    char name[128];
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        snprintf(name, sizeof(name), "%s%s", path, ends[i]);
        unlink(name);
    }
}

static void write_file(const char *text, size_t size)
{
    FILE *file = fopen(file_path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static sj_status import(const char *format, sj_import_sums *sums, sj_error *error)
{
    const sj_importer *used = NULL;
    const sj_import_request request = {.path = file_path,
                                       .importer = format != NULL ? sj_importer_find(format) : NULL,
                                       .database = target_path};
    remove_database(target_path);
    return sj_import_file(&request, &used, sums, error);
}

static void fail_finding(void *context, const sj_finding *finding)
{
    (void)context;
    fail_msg("%s", finding->what);
}

/* Checks the blocks and all sums of the imported session. */
static void check_sound(void)
{
    sj_error error = {0};
    sj_store *store = NULL;
    sj_verified verified;
    const sj_store_options options = {.path = target_path};
    const sj_verify_options verify = {.check_only = true, .report = fail_finding};
    assert_int_equal(sj_store_open(&options, &store, &error), SJ_OK);
    assert_int_equal(sj_store_verify(store, &verify, &verified, &error), SJ_OK);
    assert_int_equal(verified.sessions, 1);
    sj_store_close(store);
}

static sqlite3 *import_text(const char *text, sj_import_sums *sums)
{
    sj_error error = {0};
    sqlite3 *database = NULL;
    write_file(text, strlen(text));
    const sj_status status = import(NULL, sums, &error);
    if (status != SJ_OK) {
        fail_msg("%s", error.text);
    }
    check_sound();
    assert_int_equal(sj_database_open_reader(target_path, &database, &error), SJ_OK);
    return database;
}

static void expect_failure(const char *text, sj_status expected, const char *message)
{
    sj_error error = {0};
    sj_import_sums sums;
    write_file(text, strlen(text));
    assert_int_equal(import(NULL, &sums, &error), expected);
    if (strstr(error.text, message) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", message, error.text);
    }
}

/* Returns the rows of a query as one text. The caller frees it. */
static char *ask(sqlite3 *database, const char *sql)
{
    char *text = NULL;
    size_t size = 0;
    FILE *output = open_memstream(&text, &size);
    sqlite3_stmt *row;
    if (sqlite3_prepare_v2(database, sql, -1, &row, NULL) != SQLITE_OK) {
        fail_msg("%s", sqlite3_errmsg(database));
    }
    int result;
    while ((result = sqlite3_step(row)) == SQLITE_ROW) {
        for (int i = 0; i < sqlite3_column_count(row); i++) {
            const char *column = (const char *)sqlite3_column_text(row, i);
            fprintf(output, "%s%s", i != 0 ? "|" : "", column != NULL ? column : "-");
        }
        fputc('\n', output);
    }
    assert_int_equal(result, SQLITE_DONE);
    sqlite3_finalize(row);
    fclose(output);
    return text;
}

static void expect_rows(sqlite3 *database, const char *sql, const char *rows)
{
    char *text = ask(database, sql);
    assert_string_equal(text, rows);
    free(text);
}

static void export_to_file(sqlite3 *database, const char *format)
{
    sj_error error = {0};
    FILE *output = fopen(file_path, "wb");
    assert_non_null(output);
    assert_int_equal(
        sj_exporter_find(format)->write(database, &(sj_call_part){.session_id = 1}, output, &error),
        SJ_OK);
    assert_int_equal(fclose(output), 0);
}

/* Calls by thread, in order, with times since the first call. */
static const char calls_sql[] =
    "WITH first AS (SELECT min(start_ns) AS at FROM calls WHERE session_id = 1) "
    "SELECT t.tid, t.name, f.name, c.depth, c.start_ns - first.at, c.end_ns - first.at "
    "FROM calls AS c CROSS JOIN first JOIN functions AS f USING (function_id) "
    "JOIN threads AS t ON t.thread_id = c.thread_id "
    "WHERE c.session_id = 1 ORDER BY c.call_id";

/* As calls_sql, without the names of threads, which function.txt does not have. */
static const char nameless_calls_sql[] =
    "WITH first AS (SELECT min(start_ns) AS at FROM calls WHERE session_id = 1) "
    "SELECT t.tid, f.name, c.depth, c.start_ns - first.at, c.end_ns - first.at "
    "FROM calls AS c CROSS JOIN first JOIN functions AS f USING (function_id) "
    "JOIN threads AS t ON t.thread_id = c.thread_id "
    "WHERE c.session_id = 1 ORDER BY t.tid, c.start_ns, c.depth";

static void round_trip(const char *format, const trace_shape *shape)
{
    const bool has_names = strcmp(format, "function.txt") != 0;
    const char *sql = has_names ? calls_sql : nameless_calls_sql;
    trace made;
    sj_error error = {0};
    sj_import_sums sums;
    sqlite3 *source = NULL;
    sqlite3 *target = NULL;
    make_trace(source_path, shape, &made);
    free_trace(&made);
    assert_int_equal(sj_database_open_reader(source_path, &source, &error), SJ_OK);
    export_to_file(source, format);
    if (import(NULL, &sums, &error) != SJ_OK) {
        fail_msg("%s", error.text);
    }
    check_sound();
    assert_int_equal(sums.calls, (uint64_t)shape->calls * (uint64_t)shape->streams);
    assert_int_equal(sj_database_open_reader(target_path, &target, &error), SJ_OK);
    char *before = ask(source, sql);
    char *after = ask(target, sql);
    assert_string_equal(before, after);
    free(before);
    free(after);
    char tag[64];
    snprintf(tag, sizeof(tag), "trace|completed|%s|importers_test.file\n", format);
    expect_rows(target,
                "SELECT mode, state, tags ->> 'imported', tags ->> 'imported_from' FROM sessions",
                tag);
    expect_rows(target, "SELECT count(*) > 0 FROM annotations WHERE author = 'sojourn import'",
                "1\n");
    sqlite3_close(source);
    sqlite3_close(target);
}

static void an_export_is_imported_without_a_loss(void **state)
{
    static const char *const formats[] = {"chrome-json", "speedscope", "perfetto", "function.txt"};
    (void)state;
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        for (uint64_t seed = 1; seed <= (i < 2 ? 6 : 2); seed++) {
            const trace_shape shape = {.seed = seed,
                                       .sessions = 1,
                                       .streams = 1 + (int)(seed % 3),
                                       .calls = 700,
                                       .block_events = 150,
                                       .functions = 13,
                                       .max_depth = 3 + (uint32_t)seed * 4,
                                       .regular = seed % 2 == 0};
            round_trip(formats[i], &shape);
        }
    }
}

/* Exports a made trace and imports the file again, and compares what `sql` returns of both. */
static void round_trip_of_sums(const char *format, const char *sql)
{
    const trace_shape shape = {.seed = 4,
                               .sessions = 1,
                               .streams = 2,
                               .calls = 900,
                               .block_events = 150,
                               .functions = 17,
                               .max_depth = 9};
    trace made;
    sj_error error = {0};
    sj_import_sums sums;
    sqlite3 *source = NULL;
    sqlite3 *target = NULL;
    make_trace(source_path, &shape, &made);
    free_trace(&made);
    assert_int_equal(sj_database_open_reader(source_path, &source, &error), SJ_OK);
    export_to_file(source, format);
    if (import(NULL, &sums, &error) != SJ_OK) {
        fail_msg("%s", error.text);
    }
    check_sound();
    assert_int_equal(sj_database_open_reader(target_path, &target, &error), SJ_OK);
    char *before = ask(source, sql);
    char *after = ask(target, sql);
    assert_true(strlen(before) > 100);
    assert_string_equal(before, after);
    free(before);
    free(after);
    sqlite3_close(source);
    sqlite3_close(target);
}

static void a_pprof_export_keeps_each_call_path(void **state)
{
    (void)state;
    round_trip_of_sums("pprof",
                       "WITH RECURSIVE numbered AS (SELECT row_number() OVER () AS n, depth, name, "
                       "calls, self_ns FROM call_tree(1)), paths AS (SELECT n.*, (SELECT "
                       "group_concat(name, ';') FROM (SELECT (SELECT b.name FROM numbered b WHERE "
                       "b.n <= n.n AND b.depth = d.depth ORDER BY b.n DESC LIMIT 1) AS name FROM "
                       "(SELECT DISTINCT depth FROM numbered) d WHERE d.depth <= n.depth ORDER BY "
                       "d.depth)) AS path FROM numbered n) SELECT path, calls, self_ns "
                       "FROM paths ORDER BY path");
}

static void a_callgrind_export_keeps_own_costs(void **state)
{
    (void)state;
    round_trip_of_sums("callgrind",
                       "SELECT f.name, s.self_ns FROM function_stats s JOIN functions f USING "
                       "(function_id) WHERE s.session_id = 1 ORDER BY 1");
}

/* Rounds a time down, so that many calls begin or end together, or last no time. */
static int64_t coarse(int64_t at_ns)
{
    return at_ns / 16 * 16;
}

/* Writes the calls of a trace as complete events, in a random order. */
static void write_complete_events(const trace *made)
{
    FILE *output = fopen(file_path, "wb");
    size_t *order = calloc(made->count, sizeof(*order));
    uint64_t random = 5;
    assert_non_null(output);
    for (size_t i = 0; i < made->count; i++) {
        const size_t place = next_random(&random) % (i + 1);
        order[i] = order[place];
        order[place] = i;
    }
    fputs("[", output);
    for (size_t i = 0; i < made->count; i++) {
        const made_call *call = &made->calls[order[i]];
        const int64_t start = coarse(call->start_ns);
        const int64_t length = coarse(call->end_ns) - start;
        fprintf(output,
                "%s{\"ph\":\"X\",\"name\":\"f%lld\",\"pid\":7,\"tid\":%lld,\"ts\":%lld.%03lld,"
                "\"dur\":%lld.%03lld}",
                i != 0 ? "," : "", (long long)call->function_id, (long long)call->stream_id,
                (long long)start / 1000, (long long)start % 1000, (long long)length / 1000,
                (long long)length % 1000);
    }
    fputs("]", output);
    assert_int_equal(fclose(output), 0);
    free(order);
}

/* By the definition: the caller of a call is the innermost call of its thread whose interval
 * contains its own. If two calls have equal intervals, the one that is earlier in the file contains
 * the other. Calls have ids in the order of their start, so the innermost one has the largest
 * id. */
static const char contained_sql[] =
    "WITH c AS MATERIALIZED (SELECT call_id, parent_id, stream_id, start_ns, end_ns FROM calls) "
    "SELECT count(*) FROM c WHERE parent_id IS NOT (SELECT max(o.call_id) FROM c AS o WHERE "
    "o.stream_id = c.stream_id AND o.start_ns <= c.start_ns AND o.end_ns >= c.end_ns AND "
    "o.call_id < c.call_id)";

static void whole_calls_nest_by_containment(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        const trace_shape shape = {.seed = seed,
                                   .sessions = 1,
                                   .streams = 2,
                                   .calls = 500,
                                   .block_events = 100,
                                   .functions = 9,
                                   .max_depth = 12,
                                   .keep_calls = true};
        trace made;
        sj_import_sums sums;
        sj_error error = {0};
        sqlite3 *target = NULL;
        make_trace(source_path, &shape, &made);
        write_complete_events(&made);
        if (import(NULL, &sums, &error) != SJ_OK) {
            fail_msg("%s", error.text);
        }
        check_sound();
        assert_int_equal(sums.calls, made.count);
        assert_int_equal(sj_database_open_reader(target_path, &target, &error), SJ_OK);
        expect_rows(target, contained_sql, "0\n");
        expect_rows(target, "SELECT count(DISTINCT stream_id) FROM calls", "2\n");
        int64_t time = 0;
        for (size_t i = 0; i < made.count; i++) {
            time += coarse(made.calls[i].end_ns) - coarse(made.calls[i].start_ns);
        }
        char row[64];
        snprintf(row, sizeof(row), "%lld\n", (long long)time);
        expect_rows(target, "SELECT sum(duration_ns) FROM calls", row);
        sqlite3_close(target);
        free_trace(&made);
    }
}

static const char short_sql[] = "SELECT f.name, c.depth, c.start_ns, c.end_ns FROM calls AS c JOIN "
                                "functions AS f USING (function_id) ORDER BY c.call_id";

static void calls_that_overlap_are_on_stacks_of_their_own(void **state)
{
    (void)state;
    sj_import_sums sums;
    sqlite3 *database = import_text("[{\"ph\":\"X\",\"name\":\"a\",\"ts\":0,\"dur\":10},"
                                    "{\"ph\":\"X\",\"name\":\"b\",\"ts\":5,\"dur\":10},"
                                    "{\"ph\":\"X\",\"name\":\"c\",\"ts\":6,\"dur\":1},"
                                    "{\"ph\":\"X\",\"name\":\"d\",\"ts\":12,\"dur\":2}]",
                                    &sums);
    expect_rows(database, short_sql,
                "a|0|0|10000\nc|1|6000|7000\nd|0|12000|14000\nb|0|5000|15000\n");
    expect_rows(database, "SELECT count(*), count(DISTINCT thread_id) FROM streams", "2|1\n");
    sqlite3_close(database);
}

static void both_kinds_of_events_nest_in_each_other(void **state)
{
    (void)state;
    sj_import_sums sums;
    sqlite3 *database = import_text(
        "{\"displayTimeUnit\":\"ms\",\"traceEvents\":["
        "{\"ph\":\"B\",\"name\":\"a\",\"pid\":1,\"tid\":2,\"ts\":1.5},"
        "{\"ph\":\"X\",\"name\":\"b\",\"pid\":1,\"tid\":2,\"ts\":2,\"dur\":3},"
        "{\"ph\":\"B\",\"name\":\"c\",\"pid\":1,\"tid\":2,\"ts\":3},"
        "{\"ph\":\"E\",\"pid\":1,\"tid\":2,\"ts\":4},"
        "{\"ph\":\"E\",\"pid\":1,\"tid\":2,\"ts\":6},"
        "{\"ph\":\"i\",\"name\":\"no call\",\"ts\":6},"
        "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":2,\"args\":{\"name\":\"w\"}}]}",
        &sums);
    expect_rows(database, short_sql, "a|0|0|4500\nb|1|500|3500\nc|2|1500|2500\n");
    expect_rows(database, "SELECT name, tid FROM threads", "w|2\n");
    expect_rows(database,
                "SELECT count(*) FROM annotations WHERE note LIKE '1 event could not be imported%'",
                "1\n");
    sqlite3_close(database);
}

static void unmatched_exits_and_early_times_are_counted(void **state)
{
    (void)state;
    sj_import_sums sums;
    sqlite3 *database = import_text(
        "[{\"ph\":\"E\",\"ts\":1},{\"ph\":\"B\",\"name\":\"a\",\"ts\":5},"
        "{\"ph\":\"B\",\"name\":\"b\",\"ts\":3},{\"ph\":\"E\",\"ts\":9},{\"ph\":\"E\",\"ts\":9}]",
        &sums);
    expect_rows(database, short_sql, "a|0|0|4000\nb|1|0|4000\n");
    expect_rows(database,
                "SELECT count(*) FROM annotations WHERE note LIKE '1 exit had no entry%' OR "
                "note LIKE '1 record had an earlier time%'",
                "2\n");
    sqlite3_close(database);
}

static void a_call_without_an_exit_is_open(void **state)
{
    (void)state;
    sj_import_sums sums;
    sqlite3 *database =
        import_text("[{\"ph\":\"B\",\"name\":\"a\",\"ts\":5},"
                    "{\"ph\":\"B\",\"name\":\"b\",\"ts\":6},{\"ph\":\"E\",\"ts\":7}]",
                    &sums);
    expect_rows(database, "SELECT ending FROM calls ORDER BY call_id", "open\nreturned\n");
    sqlite3_close(database);
}

static void a_call_without_an_exit_contains_whole_calls(void **state)
{
    (void)state;
    sj_import_sums sums;
    sqlite3 *database = import_text("[{\"ph\":\"B\",\"name\":\"a\",\"ts\":5},"
                                    "{\"ph\":\"X\",\"name\":\"b\",\"ts\":6,\"dur\":10}]",
                                    &sums);
    expect_rows(database, short_sql, "a|0|0|11000\nb|1|1000|11000\n");
    expect_rows(database, "SELECT ending FROM calls ORDER BY call_id", "open\nreturned\n");
    sqlite3_close(database);
}

static void samples_make_a_profile(void **state)
{
    (void)state;
    sj_import_sums sums;
    sqlite3 *database =
        import_text("main;work;leaf 30\nmain;work 5\nmain;work;leaf 12\nmain 1\n", &sums);
    assert_int_equal(sums.samples, 4);
    expect_rows(database, "SELECT mode FROM sessions", "profile\n");
    expect_rows(database, "SELECT depth, name, calls, self_ns, total_ns FROM call_tree(1)",
                "0|main|1|1|48\n1|work|1|5|47\n2|leaf|2|42|42\n");
    sqlite3_close(database);
}

static void sampled_speedscope_profiles_keep_weights_and_units(void **state)
{
    (void)state;
    sj_import_sums sums;
    sqlite3 *database = import_text(
        "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"shared\":"
        "{\"frames\":[{\"name\":\"m\",\"file\":\"a.c\",\"line\":3},{\"name\":\"l\"}]},\"profiles\":"
        "[{\"type\":\"sampled\",\"name\":\"t\",\"unit\":\"microseconds\",\"startValue\":0,"
        "\"endValue\":6,\"weights\":[1,2.5,3],\"samples\":[[0],[0,1],[]]}]}",
        &sums);
    expect_rows(database, "SELECT depth, name, calls, self_ns FROM call_tree(1)",
                "0|m|1|1000\n1|l|1|2500\n");
    sqlite3_close(database);
}

/* A file that ends too early is an error at every length, with a byte offset. */
static void a_cut_file_is_refused_at_every_length(void **state)
{
    static const char *const files[] = {
        "{\"traceEvents\":[{\"ph\":\"B\",\"name\":\"a\\u00e4\",\"ts\":5.25e1},"
        "{\"ph\":\"E\",\"ts\":60}],\"otherData\":{\"a\":[true,null]}}",
        "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"profiles\":["
        "{\"type\":\"evented\",\"unit\":\"seconds\",\"events\":[{\"type\":\"O\",\"frame\":0,\"at\":"
        "1},"
        "{\"type\":\"C\",\"frame\":0,\"at\":2}]}],\"shared\":{\"frames\":[{\"name\":\"a\"}]}}"};
    static const char *const formats[] = {"chrome-json", "speedscope"};
    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        for (size_t size = 0; size < strlen(files[i]); size++) {
            sj_error error = {0};
            sj_import_sums sums;
            write_file(files[i], size);
            assert_int_equal(import(formats[i], &sums, &error), SJ_ECORRUPT);
            assert_non_null(strstr(error.text, "byte "));
        }
    }
}

static void wrong_files_are_refused_with_the_place(void **state)
{
    (void)state;
    expect_failure("[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":-1}]", SJ_ECORRUPT,
                   "byte 1: the event has a negative \"dur\"");
    expect_failure("[{\"ph\":\"B\",\"name\":\"a\"}]", SJ_ECORRUPT,
                   "byte 1: the event has no \"ts\"");
    expect_failure("[{\"ph\":\"B\",\"name\":\"a\",\"ts\":1e30}]", SJ_ELIMIT,
                   "byte 27: ts is a number");
    expect_failure("[1]", SJ_ECORRUPT, "byte 1: an event is not an object");
    expect_failure("{\"a\":[]}", SJ_ECORRUPT, "there is no \"traceEvents\"");
    expect_failure("[]", SJ_ECORRUPT, "it has no calls");
    expect_failure("", SJ_ECORRUPT, "it is empty");
    expect_failure("SQLite format 3\x10", SJ_EUNSUPPORTED, "sojourn session import");
    expect_failure("[] x", SJ_ECORRUPT, "byte 3: text after the end");
    expect_failure("main;a 1\nmain;b\n", SJ_ECORRUPT, "byte 9: a line is not");
    expect_failure("main 99999999999999999999\n", SJ_EUNSUPPORTED, "its format is not known");
    expect_failure("main 9223372036854775807\n", SJ_ELIMIT, "too large");
    expect_failure("[{\"ph\":\"B\",\"name\":\"a\",\"ts\":1},{\"ph\":\"E\",\"ts\":99999999999}]",
                   SJ_ELIMIT, "more than 19 hours");
    expect_failure("\x7f"
                   "ELF",
                   SJ_EUNSUPPORTED, "its format is not known");
    char deep[2000];
    memset(deep, '[', sizeof(deep) - 1);
    deep[sizeof(deep) - 1] = '\0';
    deep[1] = '{';
    expect_failure(deep, SJ_ECORRUPT, "byte 2");
    memcpy(deep, "{\"a\":", 5);
    expect_failure(deep, SJ_ELIMIT, "nested more than");
}

static void names_of_any_bytes_are_kept(void **state)
{
    (void)state;
    sj_import_sums sums;
    sqlite3 *database = import_text("[{\"ph\":\"B\",\"name\":\"a\\u0000\\ud83d\\ude00\\ud800\xff\","
                                    "\"ts\":1},{\"ph\":\"E\",\"ts\":2}]",
                                    &sums);
    expect_rows(database, "SELECT count(*), name LIKE 'a\\0%' FROM functions", "1|1\n");
    sqlite3_close(database);
    database = import_text("[{\"ph\":\"X\",\"name\":\"\\ud800\\n\",\"ts\":1,\"dur\":1,\"tid\":"
                           "18446744073709551615}]",
                           &sums);
    expect_rows(database, "SELECT unicode(name), unicode(substr(name, 2)) FROM functions",
                "65533|10\n");
    sqlite3_close(database);
}

static void an_escape_after_half_a_pair_keeps_its_meaning(void **state)
{
    (void)state;
    sj_import_sums sums;
    sqlite3 *database = import_text("[{\"ph\":\"B\",\"name\":\"a\\ud800\\tz\","
                                    "\"ts\":1},{\"ph\":\"E\",\"ts\":2}]",
                                    &sums);
    expect_rows(database, "SELECT hex(name) FROM functions", "61EFBFBD097A\n");
    sqlite3_close(database);
    expect_failure("[{\"name\":\"\\ud800\\q\"}]", SJ_ECORRUPT, "unknown escape");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_escape_after_half_a_pair_keeps_its_meaning),
        cmocka_unit_test(an_export_is_imported_without_a_loss),
        cmocka_unit_test(a_pprof_export_keeps_each_call_path),
        cmocka_unit_test(a_callgrind_export_keeps_own_costs),
        cmocka_unit_test(whole_calls_nest_by_containment),
        cmocka_unit_test(calls_that_overlap_are_on_stacks_of_their_own),
        cmocka_unit_test(both_kinds_of_events_nest_in_each_other),
        cmocka_unit_test(unmatched_exits_and_early_times_are_counted),
        cmocka_unit_test(a_call_without_an_exit_is_open),
        cmocka_unit_test(a_call_without_an_exit_contains_whole_calls),
        cmocka_unit_test(samples_make_a_profile),
        cmocka_unit_test(sampled_speedscope_profiles_keep_weights_and_units),
        cmocka_unit_test(a_cut_file_is_refused_at_every_length),
        cmocka_unit_test(wrong_files_are_refused_with_the_place),
        cmocka_unit_test(names_of_any_bytes_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
