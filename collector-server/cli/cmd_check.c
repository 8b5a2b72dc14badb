#include "collector-server/cli/clock_mix.h"
#include "collector-server/cli/commands.h"
#include "collector-server/cli/function_name.h"
#include "collector-server/cli/json_output.h"
#include "collector-server/cli/needed_sessions.h"
#include "collector-server/cli/query_command.h"
#include "collector-server/cli/terminal.h"
#include "collector-server/cli/work_progress.h"
#include "collector-server/cli/zombie_check.h"
#include "collector-server/query/compare.h"
#include "collector-server/query/query.h"
#include "collector-server/store/store.h"
#include "proto/base/units.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct check_request {
    sj_query_options options;
    const char *baseline;
    const char *set; /* the sessions to check; NULL: "all" or "last" */
    double least_effect;
    bool zombies;
    bool as_json;
} check_request;

/* The result of a comparison. The first row is the total. */
typedef struct check_result {
    sqlite3 *database; /* database of the checked sessions */
    const sj_compare_row *rows;
    size_t count;
    size_t samples[2];
    size_t needed;               /* sessions per side that are necessary to decide a function */
    size_t slower, inconclusive; /* number of rows; `inconclusive` omits the total */
    double matched_share;        /* matched share of the time of unnamed functions */
    bool has_nameless, is_stripped;
    double least_effect;
} check_result;

/* Returns the name of a function, or "(unnamed)" if the database lacks the function. Returns NULL
 * if out of memory. The caller frees the name with sqlite3_free. */
static char *find_name(sqlite3 *database, int64_t function_id)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(database, "SELECT name FROM functions WHERE function_id = ?1", -1,
                           &statement, NULL) == SQLITE_OK) {
        sqlite3_bind_int64(statement, 1, function_id);
    }
    char *name = sqlite3_mprintf("%s", sqlite3_step(statement) == SQLITE_ROW
                                           ? (const char *)sqlite3_column_text(statement, 0)
                                           : "(unnamed)");
    sqlite3_finalize(statement);
    return name;
}

/* Prints the change and its confidence interval as percentages of the baseline's time. */
static void print_change(FILE *file, const sj_compare_row *row)
{
    const sj_compare_test *test = &row->tests[row->decided_by];
    if (!(test->ratio > 0)) {
        fputs("new", file); /* the baseline's time is zero */
        return;
    }
    fprintf(file, "%+.1f %%", (test->ratio - 1) * 100);
    if (test->ratio_low > 0) {
        fprintf(file, " (%+.1f..%+.1f)", (test->ratio_low - 1) * 100, (test->ratio_high - 1) * 100);
    }
}

static void print_regression(FILE *file, sqlite3 *database, const sj_compare_row *row, bool whole)
{
    char before[SJ_DURATION_TEXT_BYTES];
    char after[SJ_DURATION_TEXT_BYTES];
    fputs("slower  ", file);
    print_change(file, row);
    fprintf(file, "  p %.2g  %s -> %s  ", row->tests[row->decided_by].p_adjusted,
            sj_format_duration((int64_t)row->compared[0], before),
            sj_format_duration((int64_t)row->compared[1], after));
    if (whole) {
        fputs("(everything)\n", file);
    } else {
        char clean[SJ_FUNCTION_NAME_BYTES];
        char *name = find_name(database, row->function_id[1]);
        fprintf(file, "%s\n", sj_function_name_fit(name != NULL ? name : "", 0, clean));
        sqlite3_free(name);
    }
}

static size_t fewer_samples(const check_result *result)
{
    return result->samples[0] < result->samples[1] ? result->samples[0] : result->samples[1];
}

/* Prints the verdict and the change of the total. Also prints how many functions could not be
 * decided, and the matched share of unnamed functions. */
static void print_conclusion(FILE *file, const char *verdict, const check_result *result)
{
    const sj_compare_row *whole = result->rows;
    fprintf(file, "%s: %zu against %s, everything ", verdict, result->samples[0],
            SJ_COUNTED(result->samples[1], "session"));
    print_change(file, whole);
    fprintf(file, ", p %.2g", whole->tests[whole->decided_by].p_adjusted);
    if (result->inconclusive != 0) {
        char text[SJ_NEEDED_SESSIONS_BYTES];
        fprintf(file, "; %s",
                sj_needed_sessions_text(fewer_samples(result), result->needed, result->inconclusive,
                                        text));
    }
    if (result->has_nameless) {
        fprintf(file, "; %.0f %% of the time of functions without names was matched by their code",
                result->matched_share * 100);
    }
    fputc('\n', file);
}

/* True if the confidence interval of the total is known and lies below the least slowdown that
 * counts. */
static bool excludes_slowdown(const sj_compare_row *whole, double least_effect)
{
    const sj_compare_test *test = &whole->tests[whole->decided_by];
    return test->ratio_low > 0 && test->ratio_high < 1 + least_effect;
}

/* Warns about lost calls. Notes how many calls are on folded call paths. */
static void warn(const sj_compare *compare)
{
    int64_t lost[2];
    (void)sj_compare_samples(compare, 0, &lost[0]);
    (void)sj_compare_samples(compare, 1, &lost[1]);
    if (lost[0] + lost[1] > 0) {
        fprintf(stderr,
                "sojourn check: warning: %lld calls of the baseline and %lld of the checked "
                "sessions were lost; their times are missing\n",
                (long long)lost[0], (long long)lost[1]);
    }
    const int64_t folded[2] = {sj_compare_folded_calls(compare, 0),
                               sj_compare_folded_calls(compare, 1)};
    if (folded[0] + folded[1] > 0) {
        fprintf(
            stderr,
            "sojourn check: note: %lld calls of the baseline and %lld of the checked sessions are "
            "on rare call paths that were folded; functions are compared by caller there\n",
            (long long)folded[0], (long long)folded[1]);
    }
}

static bool has_enough(const check_result *result)
{
    return fewer_samples(result) >= result->rows[0].needed_sessions;
}

/* Returns the exit code of the verdict. */
static int decide(const check_result *result)
{
    return !has_enough(result) || result->is_stripped              ? SJ_EXIT_INCONCLUSIVE
           : result->slower != 0                                   ? SJ_EXIT_DIFFERS
           : excludes_slowdown(result->rows, result->least_effect) ? SJ_EXIT_OK
                                                                   : SJ_EXIT_INCONCLUSIVE;
}

static void write_text(FILE *file, const check_result *result)
{
    for (size_t i = 0; i < result->count && has_enough(result); ++i) {
        if (result->rows[i].verdict == SJ_COMPARE_SLOWER) {
            print_regression(file, result->database, &result->rows[i], i == 0);
        }
    }
    if (has_enough(result)) {
        const int code = decide(result);
        print_conclusion(file,
                         code == SJ_EXIT_DIFFERS ? "REGRESSION"
                         : code == SJ_EXIT_OK    ? "no regression"
                                                 : "inconclusive",
                         result);
    }
}

/* Prints the result as text and wraps long lines at the terminal's width. Does not wrap them if out
 * of memory. */
static void print_text(const check_result *result)
{
    enum { INDENT = 8 };
    char *lines = NULL;
    size_t size = 0;
    sj_terminal terminal;
    FILE *file = open_memstream(&lines, &size);
    write_text(file != NULL ? file : stdout, result);
    if (file == NULL) {
        return;
    }
    fclose(file);
    sj_terminal_open(&terminal);
    sj_terminal_wrap(stdout, &terminal, lines, INDENT);
    free(lines);
}

/* Returns the change and its confidence interval as fractions of the baseline's time, and the
 * p-value. An unknown fraction is null. */
static json_t *changes_of(const sj_compare_row *row)
{
    const sj_compare_test *test = &row->tests[row->decided_by];
    const bool is_known = test->ratio_low > 0;
    return json_pack(
        "{so so so sf}", "change", test->ratio > 0 ? json_real(test->ratio - 1) : json_null(),
        "change_low", is_known ? json_real(test->ratio_low - 1) : json_null(), "change_high",
        is_known ? json_real(test->ratio_high - 1) : json_null(), "p", test->p_adjusted);
}

static json_t *describe_regression(const check_result *result, const sj_compare_row *row)
{
    char *name = row != result->rows ? find_name(result->database, row->function_id[1]) : NULL;
    json_t *made = json_pack(
        "{so sI sI}", "function", name != NULL ? sj_json_clean_string(name) : json_null(),
        "before_ns", (json_int_t)row->compared[0], "after_ns", (json_int_t)row->compared[1]);
    json_t *changes = changes_of(row);
    json_object_update(made, changes);
    json_decref(changes);
    sqlite3_free(name);
    return made;
}

static int print_json(const check_result *result)
{
    const int code = decide(result);
    json_t *slower = json_array();
    for (size_t i = 0; i < result->count && has_enough(result); ++i) {
        if (result->rows[i].verdict == SJ_COMPARE_SLOWER) {
            json_array_append_new(slower, describe_regression(result, &result->rows[i]));
        }
    }
    json_t *all =
        json_pack("{ss sI sI sI sI so so sI so}", "verdict",
                  code == SJ_EXIT_OK        ? "no_regression"
                  : code == SJ_EXIT_DIFFERS ? "regression"
                                            : "inconclusive",
                  "baseline_sessions", (json_int_t)result->samples[0], "checked_sessions",
                  (json_int_t)result->samples[1], "needed_sessions",
                  (json_int_t)result->rows[0].needed_sessions, "needed_by_functions",
                  (json_int_t)result->needed, "matched_share",
                  result->has_nameless ? json_real(result->matched_share) : json_null(),
                  "everything", has_enough(result) ? changes_of(result->rows) : json_null(),
                  "inconclusive_functions", (json_int_t)result->inconclusive, "slower", slower);
    return sj_json_output(&sj_command_check, all);
}

static check_result read_result(sqlite3 *database, const sj_compare *compare, double least_effect)
{
    int64_t unused;
    check_result result = {.database = database, .least_effect = least_effect};
    result.samples[0] = sj_compare_samples(compare, 0, &unused);
    result.samples[1] = sj_compare_samples(compare, 1, &unused);
    result.rows = sj_compare_rows(compare, &result.count);
    result.has_nameless = sj_compare_matched_share(compare, &result.matched_share);
    result.is_stripped = sj_compare_is_stripped(compare);
    for (size_t i = 0; i < result.count; ++i) {
        result.needed = result.rows[i].needed_sessions; /* the same in all rows except the total */
        result.inconclusive += i != 0 && result.rows[i].verdict == SJ_COMPARE_INCONCLUSIVE;
        result.slower += result.rows[i].verdict == SJ_COMPARE_SLOWER;
    }
    return result;
}

/* Prints the result as JSON or text. If the verdict is inconclusive, also prints the reason as an
 * error. Returns the exit code. */
static int print_verdict(const check_result *result, bool as_json)
{
    const int written = as_json ? print_json(result) : SJ_EXIT_OK;
    const int code = decide(result);
    if (!as_json) {
        print_text(result);
    }
    if (written != SJ_EXIT_OK || code != SJ_EXIT_INCONCLUSIVE) {
        return written != SJ_EXIT_OK ? written : code;
    }
    if (result->is_stripped) {
        return sj_command_error(&sj_command_check, code, SJ_STRIPPED_TEXT);
    }
    if (has_enough(result)) {
        return sj_command_error(&sj_command_check, code,
                                "the total may have slowed by more than --threshold (%.3g %%): "
                                "record more sessions, on a quieter machine, or raise it",
                                result->least_effect * 100);
    }
    const size_t advice = sj_needed_sessions_advice(result->needed);
    return sj_command_error(&sj_command_check, code,
                            "too few sessions (%zu and %zu): record %zu a side: sojourn bench -n "
                            "%zu",
                            result->samples[0], result->samples[1], advice, advice);
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
        const check_result result = read_result(database, compare, request->least_effect);
        warn(compare);
        sj_clock_mix_warn(&sj_command_check, sides);
        exit_code = print_verdict(&result, request->as_json);
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
        exit_code =
            sj_zombie_check(&sj_command_check, database, request->baseline, request->as_json);
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
        sj_query_parse_file(&sj_command_check, argc, argv, first, &request.options.file);
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
     .help = "check for uses of freed memory that are neither resolved nor in the\n"
             "baseline (a database, which may be left out)"},
    {.name = "json",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(check_request, as_json),
     .help = "as JSON, with times in nanoseconds"},
    {0}};

const sj_command sj_command_check = {
    .name = "check",
    .summary = "report by exit code whether sessions are slower than a baseline",
    .usage = "sojourn check --baseline FILE|SET [OPTIONS] [SET [FILE]]\n"
             "       sojourn check --zombies [--baseline FILE] [FILE]",
    .help =
        "Compares self time by function as `sojourn diff` does. Ends with 0 when nothing became\n"
        "slower, 4 when something did, 5 when it cannot decide: too few sessions (ten a side\n"
        "decide most changes; below six almost nothing can be decided), or the total may have\n"
        "slowed by more than --threshold.\n",
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
