#include "collector-server/cli/commands.h"
#include "collector-server/cli/query_command.h"
#include "collector-server/cli/work_progress.h"
#include "collector-server/cli/zombie_check.h"
#include "collector-server/query/compare.h"
#include "collector-server/query/query.h"
#include "collector-server/store/store.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NEEDED_SAMPLES = 4 };

typedef struct check_request {
    sj_query_options options;
    const char *baseline;
    const char *set; /* what is checked; NULL: the default */
    double least_effect;
    bool zombies;
} check_request;

static void print_name(sqlite3 *database, int64_t function_id)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(database, "SELECT name FROM functions WHERE function_id = ?1", -1,
                           &statement, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(statement, 1, function_id);
    }
    printf("%s\n", sqlite3_step(statement) == SQLITE_ROW
                       ? (const char *)sqlite3_column_text(statement, 0)
                       : "(unnamed)");
    sqlite3_finalize(statement);
}

static void print_regression(sqlite3 *database, const sj_compare_row *row, bool whole)
{
    char before[SJ_DURATION_TEXT_BYTES];
    char after[SJ_DURATION_TEXT_BYTES];
    const sj_compare_test *test = &row->tests[row->decided_by];
    const double *self_ns = row->decided_by == SJ_COMPARE_BY_SUM ? row->self_ns : row->typical_ns;
    printf("slower  %+6.1f %% (%+.1f..%+.1f)  p %.2g  %s -> %s  ", (test->ratio - 1) * 100,
           (test->ratio_low - 1) * 100, (test->ratio_high - 1) * 100, test->p_adjusted,
           sj_format_duration((int64_t)self_ns[0], before),
           sj_format_duration((int64_t)self_ns[1], after));
    if (whole) {
        printf("(everything)\n");
    } else {
        print_name(database, row->function_id[1]);
    }
}

/* How the whole came out, and how many functions could not be judged. */
static void print_conclusion(const char *verdict, const size_t samples[2],
                             const sj_compare_row *whole, size_t inconclusive)
{
    const sj_compare_test *test = &whole->tests[whole->decided_by];
    printf("%s: %zu against %zu sessions, everything %+.1f %%", verdict, samples[0], samples[1],
           (test->ratio - 1) * 100);
    if (test->ratio_low > 0) {
        printf(" (%+.1f..%+.1f)", (test->ratio_low - 1) * 100, (test->ratio_high - 1) * 100);
    }
    printf(", p %.2g", test->p_adjusted);
    if (inconclusive != 0) {
        printf("; %zu functions vary too much to be judged", inconclusive);
    }
    putchar('\n');
}

/* excludes_slowdown: also the upper end of the interval is below what counts. */
static bool excludes_slowdown(const sj_compare_row *whole, double least_effect)
{
    const sj_compare_test *test = &whole->tests[whole->decided_by];
    return test->ratio_low > 0 && test->ratio_high < 1 + least_effect;
}

/* Prints what became slower; returns the exit code. */
static int print_verdict(sqlite3 *database, const sj_compare *compare, double least_effect)
{
    int64_t lost[2];
    const size_t samples[2] = {sj_compare_samples(compare, 0, &lost[0]),
                               sj_compare_samples(compare, 1, &lost[1])};
    if (lost[0] + lost[1] > 0) {
        fprintf(stderr,
                "sojourn check: warning: %lld calls of the baseline and %lld of what is checked "
                "were lost; their times are missing\n",
                (long long)lost[0], (long long)lost[1]);
    }
    const int64_t folded[2] = {sj_compare_folded_calls(compare, 0),
                               sj_compare_folded_calls(compare, 1)};
    if (folded[0] + folded[1] > 0) {
        fprintf(
            stderr,
            "sojourn check: note: %lld calls of the baseline and %lld of what is checked are on "
            "rare call paths that were folded; functions are compared by caller there\n",
            (long long)folded[0], (long long)folded[1]);
    }
    if (samples[0] < NEEDED_SAMPLES || samples[1] < NEEDED_SAMPLES) {
        return sj_command_error(&sj_command_check, SJ_EXIT_INCONCLUSIVE,
                                "inconclusive: no verdict is possible from %zu and %zu sessions: "
                                "record at least %d of each (10 find 5 %%)",
                                samples[0], samples[1], (int)NEEDED_SAMPLES);
    }
    size_t count;
    size_t slower = 0;
    size_t inconclusive = 0;
    const sj_compare_row *rows = sj_compare_rows(compare, &count);
    for (size_t i = 0; i < count; ++i) {
        inconclusive += i != 0 && rows[i].verdict == SJ_COMPARE_INCONCLUSIVE;
        if (rows[i].verdict == SJ_COMPARE_SLOWER) {
            print_regression(database, &rows[i], i == 0);
            ++slower;
        }
    }
    if (slower != 0) {
        print_conclusion("REGRESSION", samples, &rows[0], inconclusive);
        return SJ_EXIT_DIFFERS;
    }
    if (excludes_slowdown(&rows[0], least_effect)) {
        print_conclusion("no regression", samples, &rows[0], inconclusive);
        return SJ_EXIT_OK;
    }
    print_conclusion("inconclusive", samples, &rows[0], inconclusive);
    return sj_command_error(&sj_command_check, SJ_EXIT_INCONCLUSIVE,
                            "a slowdown of %.3g %% cannot be excluded: record more sessions, on a "
                            "quieter machine, or raise --threshold",
                            least_effect * 100);
}

static bool is_file(const char *path)
{
    struct stat file;
    return stat(path, &file) == 0 && S_ISREG(file.st_mode);
}

static int check_sessions(sqlite3 *database, const check_request *request)
{
    const bool other_file = is_file(request->baseline);
    sj_error error = {0};
    sqlite3 *baseline = database;
    if (other_file && sj_database_open_reader(request->baseline, &baseline, &error) != SJ_OK) {
        return sj_command_failed(&sj_command_check, &error);
    }
    const char *set = request->set != NULL ? request->set : other_file ? "all" : "last";
    const sj_compare_side sides[2] = {{baseline, other_file ? "all" : request->baseline},
                                      {database, set}};
    const sj_compare_options options = {.least_effect = request->least_effect};
    sj_compare *compare = NULL;
    const sj_status status = sj_compare_run(sides, &options, &compare, &error);
    int exit_code;
    if (status == SJ_OK) {
        exit_code = print_verdict(database, compare, request->least_effect);
    } else {
        exit_code = sj_command_failed(&sj_command_check, &error);
    }
    sj_compare_free(compare);
    if (baseline != database) {
        sqlite3_close(baseline);
    }
    return exit_code;
}

static sj_status parse_threshold(const sj_option *option, void *values, const char *text,
                                 sj_error *error)
{
    (void)option;
    check_request *request = values;
    char *end;
    request->least_effect = strtod(text, &end) / 100;
    if (end == text || *end != '\0' ||
        !(request->least_effect > 0 && request->least_effect < 100)) {
        return sj_fail(error, SJ_EINVAL, "--threshold needs a percentage, not \"%s\"", text);
    }
    return SJ_OK;
}

static int check_zombies(check_request *request)
{
    sqlite3 *database;
    int exit_code = sj_query_open(&sj_command_check, &request->options, &database, NULL);
    if (exit_code == SJ_EXIT_OK) {
        exit_code = sj_zombie_check(&sj_command_check, database, request->baseline);
        sqlite3_close(database);
    }
    return exit_code;
}

static int run_check(int argc, char **argv)
{
    check_request request = {.least_effect = 0.02};
    int first = 0;
    const int code = sj_options_parse(&sj_command_check, argc, argv, &request, &first);
    if (code >= 0) {
        return code;
    }
    sj_work_progress_start();
    if (request.baseline == NULL && !request.zombies) {
        return sj_command_usage_error(&sj_command_check,
                                      "give --baseline, and at most one set and one FILE");
    }
    if (!request.zombies && argc > first) {
        request.set = argv[first++];
    }
    const int taken =
        sj_query_take_file(&sj_command_check, argc, argv, first, &request.options.file);
    if (taken >= 0) {
        return taken;
    }
    if (request.zombies && request.options.cluster.url != NULL) {
        return sj_command_usage_error(&sj_command_check, "--zombies asks a database, no cluster");
    }
    if (request.zombies) {
        return check_zombies(&request);
    }
    const bool other_file = is_file(request.baseline);
    request.options.cluster_sets[0] = request.set != NULL ? request.set
                                      : other_file        ? "all"
                                                          : "last";
    request.options.cluster_sets[1] = other_file ? NULL : request.baseline;
    sqlite3 *database;
    int exit_code = sj_query_open(&sj_command_check, &request.options, &database, NULL);
    if (exit_code == SJ_EXIT_OK) {
        exit_code = check_sessions(database, &request);
        sqlite3_close(database);
    }
    return exit_code;
}

static const sj_option check_options[] = {
    SJ_DATABASE_OPTION(offsetof(check_request, options.file)),
    SJ_QUERY_CLUSTER_OPTIONS(offsetof(check_request, options)),
    {.name = "baseline",
     .argument = "FILE|SET",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(check_request, baseline),
     .help = "a database (all its sessions), or a set of sessions of FILE such\n"
             "as tag:build=41"},
    {.name = "threshold",
     .argument = "PERCENT",
     .kind = SJ_ARG_PARSED,
     .parse = parse_threshold,
     .help = "least slowdown that counts (default 2)"},
    {.name = "zombies",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(check_request, zombies),
     .help = "check for uses of freed memory that are not resolved and not in the\n"
             "baseline, a database; it may be left out"},
    {0}};

const sj_command sj_command_check = {
    .name = "check",
    .summary = "report by exit code whether sessions are slower than a baseline",
    .usage = "sojourn check --baseline FILE|SET [OPTIONS] [SET [FILE]]\n"
             "       sojourn check --zombies [--baseline FILE] [FILE]",
    .help =
        "Compares self time by function as `sojourn diff` does. Ends with 0 when nothing became\n"
        "slower, 4 when something did, 5 when it cannot decide: fewer than four sessions a side, "
        "or\n"
        "an interval of the whole that reaches the threshold.\n",
    .options = check_options,
    .examples =
        "SET is what is checked, as in `sojourn diff`: all sessions of FILE when the baseline is\n"
        "another file, else the last one.\n"
        "\n"
        "Examples:\n"
        "  sojourn check --baseline baseline.db all new.db\n"
        "  sojourn check --baseline tag:build=41 tag:build=42 lab.db\n",
    .run = run_check,
};
