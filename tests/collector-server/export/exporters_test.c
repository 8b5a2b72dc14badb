#include "collector-server/export/exporter.h"
#include "collector-server/query/query.h"
#include "collector-server/store/store.h"
#include "proto/base/utf8_text.h"
#include "tests/support/trace_maker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char path[] = "exporters_test.db";
static sqlite3 *database;

static int open_trace(void **state)
{
    (void)state;
    trace made;
    const trace_shape shape = {.seed = 4,
                               .sessions = 1,
                               .streams = 2,
                               .calls = 600,
                               .block_events = 100,
                               .functions = 15,
                               .max_depth = 9,
                               .leave_open = true};
    make_trace(path, &shape, &made);
    free_trace(&made);
    sj_error error = {0};
    return sj_database_open_reader(path, &database, &error) != SJ_OK;
}

static int close_trace(void **state)
{
    (void)state;
    sqlite3_close(database);
    return 0;
}

/* Returns the output of an exporter. The caller frees it. */
static char *export_text(const char *format)
{
    char *text = NULL;
    size_t size = 0;
    FILE *output = open_memstream(&text, &size);
    sj_error error = {0};
    const sj_exporter *exporter = sj_exporter_find(format);
    assert_non_null(exporter);
    assert_int_equal(exporter->write(database, &(sj_call_part){.session_id = 1}, output, &error),
                     SJ_OK);
    fclose(output);
    return text;
}

static int64_t ask(const char *sql, const char *text)
{
    sqlite3_stmt *statement;
    assert_int_equal(sqlite3_prepare_v2(database, sql, -1, &statement, NULL), SQLITE_OK);
    sqlite3_bind_text(statement, 1, text, -1, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    const int64_t number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return number;
}

static size_t count_of(const char *text, const char *what)
{
    size_t count = 0;
    while ((text = strstr(text, what)) != NULL) {
        ++count;
        ++text;
    }
    return count;
}

static void chrome_json_is_json_with_every_call(void **state)
{
    (void)state;
    char *text = export_text("chrome-json");
    assert_int_equal(ask("SELECT json_valid(?1)", text), 1);
    assert_int_equal(count_of(text, "\"ph\":\"B\""), 1200);
    assert_int_equal(count_of(text, "\"name\":\"thread_name\",\"ph\":\"M\""),
                     ask("SELECT count(*) FROM threads WHERE name <> '' AND tid <> 0", NULL));
    assert_int_equal(count_of(text, "\"ph\":\"E\""), ask("SELECT count(end_ns) FROM calls", NULL));
    free(text);
}

static void function_txt_has_an_entry_and_an_exit_for_every_call(void **state)
{
    (void)state;
    char *text = export_text("function.txt");
    assert_int_equal(count_of(text, "]enter:"), 1200);
    assert_int_equal(count_of(text, "]leave:"), ask("SELECT count(end_ns) FROM calls", NULL));
    assert_int_equal(count_of(text, "ret:- tid:"),
                     ask("SELECT count(*) FROM calls WHERE ending = 'returned'", NULL));
    assert_int_equal(count_of(text, "ret:! tid:"),
                     ask("SELECT count(*) FROM calls WHERE ending = 'unwound'", NULL));
    free(text);
}

static void function_txt_counts_lines_in_the_order_of_time(void **state)
{
    (void)state;
    char *text = export_text("function.txt");
    long long last_ns = 0;
    long long number = 0;
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        char *end;
        assert_int_equal(strtoll(line, &end, 10), ++number);
        assert_int_equal(*end, '[');
        const long long seconds = strtoll(end + 1, &end, 10);
        assert_int_equal(*end, ',');
        const long long at_ns = seconds * 1000000000 + strtoll(end + 1, &end, 10);
        assert_int_equal(*end, ']');
        assert_true(at_ns >= last_ns);
        last_ns = at_ns;
    }
    assert_true(number > 1200);
    free(text);
}

static void folded_self_times_add_up(void **state)
{
    (void)state;
    char *text = export_text("folded");
    int64_t sum = 0;
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        sum += atoll(strrchr(line, ' '));
    }
    assert_true(sum > 0);
    assert_int_equal(sum, ask("SELECT sum(self_ns) FROM call_paths", NULL));
    free(text);
}

static void bytes_that_are_no_utf8_are_replaced(void **state)
{
    (void)state;
    static const char expected[] = "a\xef\xbf\xbd\xe2\x82\xac\xef\xbf\xbd\xef\xbf\xbd";
    char out[40];
    const size_t size = sj_utf8_clean("a\xff\xe2\x82\xac\xe2\x82", out);
    assert_int_equal(size, sizeof(expected) - 1);
    assert_memory_equal(out, expected, size);
    assert_int_equal(sj_utf8_clean("a\xff\xe2\x82\xac\xe2\x82", NULL), size);
    assert_int_equal(sj_utf8_clean("", out), 0);
}

/* Adds values, types and costs of the call in the table `first`. */
static const char valued_sql[] =
    "INSERT INTO reports (session_id, number, at_ns, monitor, kind, payload) SELECT 1, 1000, 0,"
    " 'values', 'types', json_object('module', number, 'functions', json_array(json_object("
    "'offset', offset, 'values', json_array(json_object('position', 1, 'name', 'path', 'type',"
    " 'char *', 'state', 'recorded'))))) FROM first;"
    "INSERT INTO arguments SELECT 1, call_id, 1, 'string', '', 'a \"b\"', NULL FROM first;"
    "INSERT INTO arguments SELECT 1, call_id, 2, 'long', '', 9007199254740993, NULL FROM first;"
    "INSERT INTO arguments SELECT 1, call_id, 3, 'string', '', NULL, 'unreadable' FROM first;"
    "INSERT INTO arguments SELECT 1, call_id, 0, 'int', rule, -1, NULL FROM first,"
    " (SELECT '' AS rule UNION ALL SELECT 'failed');"
    "INSERT INTO arguments SELECT 1, call_id, 0, 'errno', '', 13, NULL FROM first;"
    "INSERT INTO call_costs (session_id, call_id, function_id, is_nested, cpu_ns, allocated_bytes)"
    " SELECT 1, call_id, function_id, 0, 1234, 4096 FROM first;";

static void values_and_costs_of_a_call_are_in_its_event(void **state)
{
    (void)state;
    static const char valued_path[] = "exporters_valued.db";
    char first_sql[400];
    sqlite3 *written = NULL;
    sqlite3 *without_values = database;
    trace made;
    sj_error error = {0};
    const trace_shape shape = {.seed = 5,
                               .sessions = 1,
                               .streams = 1,
                               .calls = 20,
                               .block_events = 100,
                               .functions = 4,
                               .max_depth = 5};
    make_trace(valued_path, &shape, &made);
    free_trace(&made);
    assert_int_equal(sj_database_open_reader(valued_path, &database, &error), SJ_OK);
    snprintf(first_sql, sizeof(first_sql),
             "CREATE TEMP TABLE first AS SELECT %lld AS call_id, f.function_id, f.offset, m.number"
             " FROM functions AS f JOIN session_modules AS m ON m.module_id = f.module_id"
             " WHERE f.function_id = %lld",
             (long long)ask("SELECT min(call_id) FROM calls WHERE ending = 'returned'", NULL),
             (long long)ask("SELECT function_id FROM calls WHERE ending = 'returned'"
                            " ORDER BY call_id LIMIT 1",
                            NULL));
    sqlite3_close(database);
    assert_int_equal(sqlite3_open(valued_path, &written), SQLITE_OK);
    assert_int_equal(sqlite3_exec(written, first_sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(written, valued_sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(written);
    assert_int_equal(sj_database_open_reader(valued_path, &database, &error), SJ_OK);
    char *events = export_text("chrome-json");
    char *lines = export_text("function.txt");
    assert_int_equal(ask("SELECT json_valid(?1)", events), 1);
    assert_int_equal(count_of(events, "\"args\":") - count_of(events, "\"args\":{\"name\":"), 1);
    assert_int_equal(
        count_of(events, "\"args\":{\"path\":\"a \\\"b\\\"\",\"argument 2\":\"9007199254740993\","
                         "\"argument 3\":\"unreadable\",\"errno\":13,\"result\":-1,"
                         "\"rules\":\"failed\",\"cpu_ns\":1234,\"allocated_bytes\":4096}"),
        1);
    assert_int_equal(
        count_of(lines, "(\"a \\\"b\\\"\",9007199254740993,unreadable)ret:-1 errno:13 tid:"), 1);
    free(events);
    free(lines);
    sqlite3_close(database);
    database = without_values;
}

static void the_format_follows_from_the_file_name(void **state)
{
    (void)state;
    static const char *const files[][2] = {
        {"a/trace.json", "chrome-json"}, {"a.speedscope.json", "speedscope"},
        {"a.b.perfetto", "perfetto"},    {"a.pftrace", "perfetto"},
        {"coverage.info", "lcov"},       {"calls.parquet", "parquet"},
        {"a.report.txt", "report.txt"}};
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); ++i) {
        const sj_exporter *exporter = sj_exporter_of_file(files[i][0]);
        assert_non_null(exporter);
        assert_string_equal(exporter->name, files[i][1]);
    }
    assert_null(sj_exporter_of_file("-"));
    assert_null(sj_exporter_of_file("function.txt"));
    assert_null(sj_exporter_of_file(".json"));
}

static int64_t line_of(const char *text, const char *start)
{
    const char *at = strstr(text, start);
    assert_non_null(at);
    return atoll(at + strlen(start));
}

/* Gives two functions a line, one of them twice entered, and asks for their coverage. */
static void lcov_counts_functions_whose_lines_are_known(void **state)
{
    (void)state;
    static const char lined_path[] = "exporters_lined.db";
    sqlite3 *without_lines = database;
    sqlite3 *written = NULL;
    trace made;
    sj_error error = {0};
    const trace_shape shape = {.seed = 6,
                               .sessions = 1,
                               .streams = 1,
                               .calls = 40,
                               .block_events = 100,
                               .functions = 4,
                               .max_depth = 5};
    make_trace(lined_path, &shape, &made);
    free_trace(&made);
    assert_int_equal(sqlite3_open(lined_path, &written), SQLITE_OK);
    assert_int_equal(sqlite3_exec(written,
                                  "INSERT INTO function_lines SELECT function_id, 'a.c', 10 FROM"
                                  " function_stats WHERE calls > 0 ORDER BY function_id LIMIT 1;"
                                  "INSERT INTO function_lines SELECT function_id, 'b.c', 7 FROM"
                                  " function_stats WHERE calls > 0 ORDER BY function_id LIMIT 2"
                                  " OFFSET 1;"
                                  "UPDATE function_stats SET calls = 0 WHERE function_id = (SELECT"
                                  " max(function_id) FROM function_lines);"
                                  "UPDATE function_lines SET file = file || char(10) ||"
                                  " 'end_of_record';"
                                  "UPDATE functions SET name = name || char(13, 10) ||"
                                  " 'end_of_record'",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(written);
    assert_int_equal(sj_database_open_reader(lined_path, &database, &error), SJ_OK);
    char *text = export_text("lcov");
    assert_int_equal(count_of(text, "SF:"), 2);
    assert_int_equal(count_of(text, "\nend_of_record"), 2);
    assert_int_equal(line_of(text, "DA:10,"), ask("SELECT calls FROM function_stats JOIN"
                                                  " function_lines USING (function_id) WHERE"
                                                  " line = 10",
                                                  NULL));
    const char *second = strstr(text, "SF:b.c");
    assert_non_null(second);
    assert_int_equal(line_of(second, "FNF:"), 2);
    assert_int_equal(line_of(second, "FNH:"), 1);
    assert_int_equal(line_of(second, "LF:"), 1);
    assert_int_equal(line_of(second, "LH:"), 1);
    assert_int_equal(line_of(second, "DA:7,"),
                     ask("SELECT max(calls) FROM function_stats JOIN function_lines USING"
                         " (function_id) WHERE line = 7",
                         NULL));
    free(text);
    sqlite3_close(database);
    database = without_lines;
}

/* Interrupts the database once, when it has been asked `at` times. */
typedef struct interruption {
    int asked, at;
} interruption;

static int interrupt_once(void *context)
{
    interruption *one = context;
    return ++one->asked == one->at;
}

/* Exports, with an interruption. Returns the status; the caller frees `*text`. */
static sj_status export_interrupted(const sj_exporter *exporter, interruption *one, char **text,
                                    size_t *size, sj_error *error)
{
    FILE *output = open_memstream(text, size);
    *error = (sj_error){0};
    sqlite3_progress_handler(database, 20, interrupt_once, one);
    const sj_status status =
        exporter->write(database, &(sj_call_part){.session_id = 1}, output, error);
    sqlite3_progress_handler(database, 0, NULL, NULL);
    fclose(output);
    return status;
}

static void check_interruptions(const sj_exporter *exporter)
{
    enum { MOMENTS = 40 };
    char *whole = NULL;
    size_t whole_size = 0;
    sj_error error;
    interruption none = {.at = -1};
    const sj_status status = export_interrupted(exporter, &none, &whole, &whole_size, &error);
    for (int i = 0; status == SJ_OK && i < MOMENTS; i++) {
        char *text = NULL;
        size_t size = 0;
        interruption one = {.at = 1 + (int)((int64_t)i * none.asked / MOMENTS)};
        if (export_interrupted(exporter, &one, &text, &size, &error) == SJ_OK) {
            if (size != whole_size) {
                fail_msg("%s: %zu bytes of %zu after an interruption at %d of %d", exporter->name,
                         size, whole_size, one.at, none.asked);
            }
            assert_memory_equal(text, whole, size);
        } else {
            assert_string_not_equal(error.text, "");
        }
        free(text);
    }
    free(whole);
}

static void an_interrupted_export_fails_or_is_whole(void **state)
{
    (void)state;
    static const char *const formats[] = {"folded",   "chrome-json", "function.txt", "report.txt",
                                          "perfetto", "speedscope",  "pprof",        "callgrind",
                                          "arrow",    "parquet"};
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        assert_non_null(sj_exporter_find(formats[i]));
        check_interruptions(sj_exporter_find(formats[i]));
    }
}

static void an_unknown_format_is_not_found(void **state)
{
    (void)state;
    assert_null(sj_exporter_find("pdf"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chrome_json_is_json_with_every_call),
        cmocka_unit_test(function_txt_has_an_entry_and_an_exit_for_every_call),
        cmocka_unit_test(function_txt_counts_lines_in_the_order_of_time),
        cmocka_unit_test(folded_self_times_add_up),
        cmocka_unit_test(bytes_that_are_no_utf8_are_replaced),
        cmocka_unit_test(values_and_costs_of_a_call_are_in_its_event),
        cmocka_unit_test(the_format_follows_from_the_file_name),
        cmocka_unit_test(lcov_counts_functions_whose_lines_are_known),
        cmocka_unit_test(an_interrupted_export_fails_or_is_whole),
        cmocka_unit_test(an_unknown_format_is_not_found),
    };
    return cmocka_run_group_tests(tests, open_trace, close_trace);
}
