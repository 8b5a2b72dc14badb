/* Measures what a question costs in a process of its own, beside the same question in this process.
 *
 *   question_bench DATABASE [rounds]
 *
 * Each round asks each question in three ways, in an order that changes: on a connection that stays
 * open, on a new connection, and in a process that has answered before (question_pool.h). A
 * difference is that of one round. The median's interval holds it with a probability of 95 %. */
#include "collector-server/http/question.h"
#include "collector-server/http/question_pool.h"
#include "collector-server/http/question_worker.h"
#include "collector-server/query/query.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS_MAX = 20000, WARM_ROUNDS = 5, TIME_MS = 30000 };

typedef enum way { WAY_KEPT, WAY_OPENED, WAY_PROCESS, WAYS } way;

static const char *const way_names[WAYS] = {"kept connection", "new connection", "warm process"};

static const char *const statements[] = {
    "SELECT count(*) AS n, sum(stored_calls) AS calls FROM sessions",
    "SELECT name, sum(calls) AS n FROM function_stats JOIN functions USING (function_id) GROUP BY "
    "function_id ORDER BY n DESC LIMIT 20",
    "SELECT * FROM function_stats LIMIT 1000",
};

typedef struct bench {
    const char *path;
    sqlite3 *kept;
    sj_question_pool *pool;
} bench;

static void must(sj_status status, const sj_error *error)
{
    if (status != SJ_OK) {
        fprintf(stderr, "question_bench: %s (%s)\n", sj_status_text(status), error->text);
        exit(1);
    }
}

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static char *ask_here(sqlite3 *database, const json_t *question)
{
    sj_error error = {0};
    json_t *body = NULL;
    must(sj_question_run(database, question, sj_question_default_limits.heap_bytes, NULL, NULL,
                         &body, &error),
         &error);
    char *text = json_dumps(body, JSON_COMPACT);
    json_decref(body);
    return text;
}

/* Returns the microseconds until the answer is there as text. */
static double ask(const bench *all, way how, const json_t *question)
{
    sj_error error = {0};
    char *text = NULL;
    const double begun = now_us();
    if (how == WAY_PROCESS) {
        must(sj_question_pool_ask(all->pool, question, NULL, NULL, &text, &error), &error);
    } else if (how == WAY_KEPT) {
        text = ask_here(all->kept, question);
    } else {
        sqlite3 *opened = NULL;
        must(sj_query_open_reader(all->path, NULL, &opened, &error), &error);
        text = ask_here(opened, question);
        sqlite3_close(opened);
    }
    const double took = now_us() - begun;
    free(text);
    return took;
}

static int compare(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

static void print_median(const char *what, const double *values, size_t count)
{
    static double sorted[ROUNDS_MAX];
    for (size_t i = 0; i < count; i++) {
        sorted[i] = values[i];
    }
    qsort(sorted, count, sizeof(*sorted), compare);
    const size_t reach = (size_t)(0.98 * sqrt((double)count)); /* this many ranks on both sides */
    const size_t low = count / 2 > reach ? count / 2 - reach : 0;
    const size_t high = count / 2 + reach < count ? count / 2 + reach : count - 1;
    printf("  %-34s %7.0f us (%.0f to %.0f), p99 %.0f\n", what, sorted[count / 2], sorted[low],
           sorted[high], sorted[count * 99 / 100]);
}

static void measure(const bench *all, const char *sql, size_t rounds)
{
    static double took[WAYS][ROUNDS_MAX];
    static double more[ROUNDS_MAX];
    json_t *question =
        json_pack("{ss si si s{}}", "sql", sql, "rows", 20000, "ms", TIME_MS, "values");
    for (size_t i = 0; i < WARM_ROUNDS + rounds; i++) {
        for (size_t k = 0; k < WAYS; k++) {
            const way how = (way)((k + i) % WAYS);
            took[how][i < WARM_ROUNDS ? 0 : i - WARM_ROUNDS] = ask(all, how, question);
        }
    }
    json_decref(question);
    printf("%s\n", sql);
    for (size_t k = 0; k < WAYS; k++) {
        print_median(way_names[k], took[k], rounds);
    }
    for (size_t i = 0; i < rounds; i++) {
        more[i] = took[WAY_PROCESS][i] - took[WAY_KEPT][i];
    }
    print_median("process, more than kept connection", more, rounds);
}

int main(int argc, char **argv)
{
    sj_question_worker_main(argc, argv);
    const size_t rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 500;
    bench all = {.path = argc > 1 ? argv[1] : NULL};
    sj_error error = {0};
    if (all.path == NULL || rounds == 0 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: question_bench DATABASE [rounds, at most %d]\n", ROUNDS_MAX);
        return 2;
    }
    must(sj_query_open_reader(all.path, NULL, &all.kept, &error), &error);
    must(sj_question_pool_new(all.path, &sj_question_default_limits, &all.pool, &error), &error);
    for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++) {
        measure(&all, statements[i], rounds);
    }
    sj_question_pool_free(all.pool);
    sqlite3_close(all.kept);
    return 0;
}
