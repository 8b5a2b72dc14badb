/* The questions for clusters: one for each of a lab's, in SQL that both 18.16 and later servers
 * accept. Also tests how values and patterns get into them. */
#include "collector-server/forward/cluster_question.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void every_question_of_a_lab_exists_for_clusters(void **state)
{
    (void)state;
    size_t count = 0;
    size_t of_clusters = 0;
    const sj_shipped_query *queries = sj_shipped_queries(&count);
    (void)sj_cluster_questions(&of_clusters);
    assert_int_equal(count, of_clusters);
    for (size_t i = 0; i < count; ++i) {
        const sj_shipped_query *found = sj_cluster_question_find(queries[i].name);
        char text[512];
        assert_non_null(found);
        if (strstr(found->text, "\nSELECT") == NULL) { /* otherwise the text says why */
            assert_true(sj_shipped_query_field(found, "refused", 0, text, sizeof(text)));
        }
    }
}

/* Returns what follows the parenthesis that begins at `at`. */
static const char *end_of(const char *at)
{
    unsigned depth = 0;
    do {
        if (*at == '\'') {
            for (++at; *at != '\'' && *at != '\0'; ++at) {
                at += *at == '\\';
            }
        }
        depth += *at == '(';
        depth -= *at == ')';
        ++at;
    } while (depth != 0 && *at != '\0');
    return at + strspn(at, " \n");
}

/* Checks that each subquery has a name, because servers from 20.1 on refuse unnamed subqueries of
 * joins. */
static void check_names(const sj_shipped_query *question)
{
    static const char *const before[] = {"FROM (", "JOIN ("};
    for (size_t i = 0; i < sizeof(before) / sizeof(before[0]); ++i) {
        for (const char *at = question->text; (at = strstr(at, before[i])) != NULL; ++at) {
            if (strncmp(end_of(strchr(at, '(')), "AS ", 3) != 0) {
                fail_msg("%s: a subquery has no name: %.60s", question->name, at);
            }
        }
    }
}

static void every_subquery_has_a_name(void **state)
{
    (void)state;
    size_t count = 0;
    const sj_shipped_query *questions = sj_cluster_questions(&count);
    for (size_t i = 0; i < count; ++i) {
        check_names(&questions[i]);
    }
}

/* Version 18.16 lacks these words. */
static void no_question_needs_a_later_server(void **state)
{
    (void)state;
    static const char *const later[] = {" OVER (",        "WITH ",     "JSONExtract", "CODEC(",
                                        "LowCardinality", " QUALIFY ", "ASOF ",       "SEMI "};
    size_t count = 0;
    const sj_shipped_query *questions = sj_cluster_questions(&count);
    for (size_t i = 0; i < count; ++i) {
        const char *sql = strstr(questions[i].text, "\nSELECT");
        for (size_t k = 0; sql != NULL && k < sizeof(later) / sizeof(later[0]); ++k) {
            if (strstr(sql, later[k]) != NULL) {
                fail_msg("%s uses %s", questions[i].name, later[k]);
            }
        }
    }
}

static const char *value_of(void *context, const char *name)
{
    (void)context;
    return strcmp(name, "text") == 0 ? "it's \\ so" : strcmp(name, "number") == 0 ? "-7.5e3" : NULL;
}

static void values_are_literals(void **state)
{
    (void)state;
    char *filled = NULL;
    sj_error error = {0};
    assert_int_equal(sj_cluster_fill("SELECT :text, ':text', \":text\" -- :no\n /* :no */ :number",
                                     value_of, NULL, &filled, &error),
                     SJ_OK);
    assert_string_equal(filled,
                        "SELECT 'it\\'s \\\\ so', ':text', \":text\" -- :no\n /* :no */ -7.5e3");
    free(filled);
    assert_int_equal(sj_cluster_fill("SELECT :missing", value_of, NULL, &filled, &error),
                     SJ_EINVAL);
    assert_non_null(strstr(error.text, "--param missing=VALUE"));
    char *pattern = sj_cluster_pattern("100%_*?\\");
    assert_string_equal(pattern, "100\\%\\_%_\\\\");
    free(pattern);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_question_of_a_lab_exists_for_clusters),
        cmocka_unit_test(every_subquery_has_a_name),
        cmocka_unit_test(no_question_needs_a_later_server), cmocka_unit_test(values_are_literals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
