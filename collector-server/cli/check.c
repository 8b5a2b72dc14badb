#include "collector-server/cli/commands.h"
#include "collector-server/cli/query_command.h"
#include "collector-server/query/compare.h"
#include "collector-server/query/query.h"
#include "collector-server/store/store.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { OPTION_BASELINE = 1, OPTION_THRESHOLD, OPTION_HELP, NEEDED_SAMPLES = 4 };

typedef struct check_request {
    sj_query_options options;
    const char *baseline;
    const char *set; /* what is checked; NULL: the default */
    double least_effect;
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

/* Prints what became slower; returns the exit code. */
static int judge(sqlite3 *database, const sj_compare *compare)
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
    if (samples[0] < NEEDED_SAMPLES || samples[1] < NEEDED_SAMPLES) {
        return sj_command_error(&sj_command_check, SJ_EXIT_FAILED,
                                "no verdict is possible from %zu and %zu sessions: record at "
                                "least %d of each (10 find 5 %%)",
                                samples[0], samples[1], (int)NEEDED_SAMPLES);
    }
    size_t count;
    size_t slower = 0;
    const sj_compare_row *rows = sj_compare_rows(compare, &count);
    for (size_t i = 0; i < count; ++i) {
        if (rows[i].verdict == SJ_COMPARE_SLOWER) {
            print_regression(database, &rows[i], i == 0);
            ++slower;
        }
    }
    const sj_compare_test *whole = &rows[0].tests[rows[0].decided_by];
    printf("%s: %zu against %zu sessions, everything %+.1f %% (%+.1f..%+.1f), p %.2g\n",
           slower != 0 ? "REGRESSION" : "no regression", samples[0], samples[1],
           (whole->ratio - 1) * 100, (whole->ratio_low - 1) * 100, (whole->ratio_high - 1) * 100,
           whole->p_adjusted);
    return slower != 0 ? SJ_EXIT_DIFFERS : SJ_EXIT_OK;
}

static int check(sqlite3 *database, const check_request *request)
{
    struct stat file;
    const bool other_file = stat(request->baseline, &file) == 0 && S_ISREG(file.st_mode);
    sj_error error = {0};
    sqlite3 *baseline = database;
    if (other_file && sj_database_open_reader(request->baseline, &baseline, &error) != SJ_OK) {
        return sj_command_error(&sj_command_check, SJ_EXIT_FAILED, "%s", error.text);
    }
    const char *set = request->set != NULL ? request->set : other_file ? "all" : "last";
    const sj_compare_side sides[2] = {{baseline, other_file ? "all" : request->baseline},
                                      {database, set}};
    const sj_compare_options options = {.least_effect = request->least_effect};
    sj_compare *compare = NULL;
    const sj_status status = sj_compare_run(sides, &options, &compare, &error);
    int exit_code;
    if (status == SJ_OK) {
        exit_code = judge(database, compare);
    } else {
        exit_code = sj_command_error(&sj_command_check,
                                     status == SJ_ENOTFOUND ? SJ_EXIT_NOT_FOUND : SJ_EXIT_FAILED,
                                     "%s", error.text);
    }
    sj_compare_free(compare);
    if (baseline != database) {
        sqlite3_close(baseline);
    }
    return exit_code;
}

static bool read_percent(const char *text, double *fraction)
{
    char *end;
    *fraction = strtod(text, &end) / 100;
    return end != text && *end == '\0' && *fraction > 0 && *fraction < 100;
}

static int run_check(int argc, char **argv)
{
    static const struct option long_options[] = {
        {"baseline", required_argument, NULL, OPTION_BASELINE},
        {"threshold", required_argument, NULL, OPTION_THRESHOLD},
        {"help", no_argument, NULL, OPTION_HELP},
        {NULL, 0, NULL, 0}};
    check_request request = {0};
    int option;
    optind = 1;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
        if (option == OPTION_HELP) {
            return sj_command_help(&sj_command_check);
        }
        if (option == OPTION_BASELINE) {
            request.baseline = optarg;
        } else if (option != OPTION_THRESHOLD || !read_percent(optarg, &request.least_effect)) {
            return sj_command_usage_error(&sj_command_check, "cannot understand %s",
                                          argv[optind - 1]);
        }
    }
    if (request.baseline == NULL || argc - optind > 2) {
        return sj_command_usage_error(&sj_command_check,
                                      "give --baseline, and at most one set and one FILE");
    }
    request.set = argc > optind ? argv[optind] : NULL;
    request.options.file = argc > optind + 1 ? argv[optind + 1] : NULL;
    sqlite3 *database;
    int exit_code = sj_query_open(&sj_command_check, &request.options, &database, NULL);
    if (exit_code == SJ_EXIT_OK) {
        exit_code = check(database, &request);
        sqlite3_close(database);
    }
    return exit_code;
}

const sj_command sj_command_check = {
    .name = "check",
    .summary = "tell by exit code whether sessions are slower than a baseline",
    .usage = "sojourn check --baseline FILE|SET [OPTIONS] [SET [FILE]]",
    .help =
        "Compares self time by function as `sojourn diff` does. Ends with 0 when nothing became\n"
        "slower for sure, 4 when something did, 1 when there are too few sessions to tell.\n\n"
        "Options:\n"
        "  --baseline FILE|SET  a database (all its sessions), or a set of sessions of FILE such\n"
        "                       as tag:build=41\n"
        "  --threshold PERCENT  least slowdown that counts (default 2)\n"
        "  --help               this text\n\n"
        "SET is what is checked, as in `sojourn diff`: all sessions of FILE when the baseline is\n"
        "another file, else the last one.\n\n"
        "Examples:\n"
        "  sojourn check --baseline baseline.db all new.db\n"
        "  sojourn check --baseline tag:build=41 tag:build=42 lab.db\n",
    .run = run_check,
};
