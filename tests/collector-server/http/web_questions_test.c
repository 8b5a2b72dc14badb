/* The questions of the dashboard: each statement runs, has the columns and parameters that its file
 * declares, and refuses values of other types. */
#include "collector-server/http/question_worker.h"
#include "collector-server/http/web_questions.h"
#include "collector-server/query/query.h"
#include "tests/collector-server/http/client.h"
#include "tests/collector-server/http/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char database_path[64];
static sqlite3 *writer;
static sqlite3 *database;
static sj_http *server;

static int start(void **state)
{
    (void)state;
    sj_error error;
    snprintf(database_path, sizeof(database_path), "web_questions_test.%d.db", (int)getpid());
    writer = fixture_create(database_path, 0);
    const sj_http_options options = {.database_path = database_path};
    return sj_query_open_reader(database_path, NULL, &database, &error) == SJ_OK &&
                   sj_http_start(&options, &server, &error) == SJ_OK
               ? 0
               : -1;
}

static int stop(void **state)
{
    (void)state;
    sj_http_stop(server);
    sqlite3_close(database);
    sqlite3_close(writer);
    return unlink(database_path);
}

/* Returns a value of a parameter that the fixture has. */
static const char *value_of(const sj_web_parameter *parameter)
{
    static const char *const texts[][2] = {{"a", "1"},          {"b", "2"},
                                           {"by", "function"},  {"threads", "[1]"},
                                           {"sessions", "[1]"}, {"areas", "[[1, 0, 1000]]"},
                                           {"ids", ",1,"},      {"align", "start"}};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (strcmp(texts[i][0], parameter->name) == 0) {
            return texts[i][1];
        }
    }
    return parameter->type == SJ_WEB_TEXT ? "main" : "1";
}

static void expect_columns(const sj_web_question *question, sqlite3_stmt *statement)
{
    char names[2048] = ",";
    for (int i = 0; i < sqlite3_column_count(statement); i++) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof(names) - used, "%s,", sqlite3_column_name(statement, i));
    }
    char declared[2048];
    snprintf(declared, sizeof(declared), ",%s,", question->columns);
    if (!question->has_more_columns) {
        assert_string_equal(names, declared);
        return;
    }
    char *rest = NULL;
    for (char *name = strtok_r(declared, ",", &rest); name != NULL;
         name = strtok_r(NULL, ",", &rest)) {
        char wanted[128];
        snprintf(wanted, sizeof(wanted), ",%s,", name);
        if (strstr(names, wanted) == NULL) {
            fail_msg("%s has no column %s", question->name, name);
        }
    }
}

static void run_question(const sj_web_question *question, bool is_selected)
{
    sj_error error;
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(database, question->sql, -1, &statement, NULL) != SQLITE_OK) {
        fail_msg("%s: %s", question->name, sqlite3_errmsg(database));
    }
    assert_int_equal(sqlite3_bind_parameter_count(statement), question->parameter_count);
    for (int i = 1; i <= (int)question->parameter_count; i++) {
        const sj_web_parameter *parameter = &question->parameters[i - 1];
        const char *value = is_selected || !parameter->is_optional ? value_of(parameter) : NULL;
        assert_string_equal(sqlite3_bind_parameter_name(statement, i) + 1, parameter->name);
        assert_int_equal(sj_web_question_bind(question, statement, i, value, &error), SJ_OK);
    }
    expect_columns(question, statement);
    int step;
    while ((step = sqlite3_step(statement)) == SQLITE_ROW) {
    }
    if (step != SQLITE_DONE) {
        fail_msg("%s: %s", question->name, sqlite3_errmsg(database));
    }
    sqlite3_finalize(statement);
}

static void every_question_runs_and_has_what_its_file_declares(void **state)
{
    (void)state;
    size_t count = 0;
    const sj_web_question *questions = sj_web_questions(&count);
    assert_true(count > 70);
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(sj_web_question_find(questions[i].name), &questions[i]);
        if (!questions[i].is_of_cluster) {
            run_question(&questions[i], false);
            run_question(&questions[i], true);
        }
    }
    assert_null(sj_web_question_find("web.no_such"));
}

static json_t *ask(const char *parameters, int status)
{
    char target[512];
    snprintf(target, sizeof(target), "/api/v1/sql?ms=30000&query=web.%s", parameters);
    return client_json(server, target, status);
}

static size_t rows_of(const char *parameters)
{
    json_t *body = ask(parameters, 200);
    const size_t rows = json_array_size(json_object_get(body, "rows"));
    json_decref(body);
    return rows;
}

static void a_selection_leaves_out_what_it_does_not_select(void **state)
{
    (void)state;
    const size_t all = rows_of("functions&p.session=1");
    assert_true(all > 60);
    assert_int_equal(rows_of("functions&p.session=1&p.functions=leaf_"), 60);
    assert_int_equal(rows_of("functions&p.session=1&p.functions=LEAF_00"), 10);
    assert_int_equal(rows_of("functions&p.session=1&p.functions=leaf_00%3F"), 10);
    assert_int_equal(rows_of("functions&p.session=1&p.functions=leaf_00%2A"), 10);
    assert_int_equal(rows_of("functions&p.session=1&p.functions=eaf_00%2A"), 0);
    assert_int_equal(rows_of("functions&p.session=1&p.functions=000"), 1); /* stays a text */
    assert_int_equal(rows_of("functions&p.session=1&p.functions="), all);
}

static void expect_refusal(const char *parameters, const char *words)
{
    json_t *body = ask(parameters, 400);
    const char *text = json_string_value(json_object_get(body, "error"));
    if (strstr(text, words) == NULL) {
        fail_msg("%s: %s", parameters, text);
    }
    json_decref(body);
}

static void values_of_other_types_and_missing_values_are_refused(void **state)
{
    (void)state;
    expect_refusal("callers&p.session=1&p.function=x", "'function' of the question web.callers");
    expect_refusal("callers&p.session=1&p.function=1.5", "a whole number");
    expect_refusal("callers&p.session=1&p.function=99999999999999999999", "a whole number");
    expect_refusal("callers&p.session=1", "needs a value for 'function'");
    expect_refusal("callers&p.session=x&p.function=1", "the session has to be a number");
    expect_refusal("flame&p.session=1&p.left=0&p.right=wide&p.whole=0", "has to be a number");
    assert_int_equal(rows_of("callers&p.function=1&p.session=last"), 0);
    rows_of("flame&p.session=1&p.left=0.5&p.right=1e15&p.whole=0");
    json_decref(ask("no_such", 404));
}

static void the_console_can_show_the_statement_of_a_question(void **state)
{
    (void)state;
    json_t *body = client_json(server, "/api/v1/queries?name=web.hot", 200);
    const json_t *item = json_array_get(json_object_get(body, "items"), 0);
    assert_non_null(strstr(json_string_value(json_object_get(item, "sql")), "LIMIT 10"));
    assert_int_equal(json_array_size(json_object_get(body, "items")), 1);
    json_decref(body);
    body = client_json(server, "/api/v1/queries?name=loss", 200);
    assert_int_equal(json_array_size(json_object_get(body, "items")), 1);
    json_decref(body);
    json_decref(client_json(server, "/api/v1/queries?name=web.no_such", 404));
}

int main(int argc, char **argv)
{
    sj_question_worker_main(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_question_runs_and_has_what_its_file_declares),
        cmocka_unit_test(a_selection_leaves_out_what_it_does_not_select),
        cmocka_unit_test(values_of_other_types_and_missing_values_are_refused),
        cmocka_unit_test(the_console_can_show_the_statement_of_a_question),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
