/* Design notes. Each run works like `sojourn record`, in a new process and with the same database.
 * Each run is one session, and all sessions have one name: `diff` and `check` compare sets of
 * sessions with one name. */
#include "agent/host/clock.h"
#include "agent/host/file_limit.h"
#include "agent/host/own_limits.h"
#include "collector-server/cli/commands.h"
#include "collector-server/cli/json_output.h"
#include "collector-server/cli/query_command.h"

#include "collector-server/query/query.h"
#include "proto/base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { DEFAULT_RUNS = 10, MOST_RUNS = 100000, WORDS = 256, FIXED_WORDS = 8 };

typedef struct bench_options {
    int64_t runs;
    int64_t warmup;
    const char *output;
    const char *name;
    bool show_output;
    bool ignore_failure;
    bool as_json;
    /* derived from the arguments: */
    char file[64];
    char *words[WORDS]; /* arguments of `record`: its options as given, the program, NULL */
    int word_count;
} bench_options;

/* True if `word` is an option of this command. Other options before "--" are for `record`. Writes
 * to `takes_value` whether the next word is the option's value. */
static bool is_own(const char *word, bool *takes_value)
{
    const bool is_long = strncmp(word, "--", 2) == 0;
    const size_t length = is_long ? strcspn(word + 2, "=") : 0;
    for (const sj_option *option = sj_option_first(sj_command_bench.options, false); option != NULL;
         option = sj_option_next(option, false)) {
        const bool same =
            is_long ? strlen(option->name) == length && strncmp(option->name, word + 2, length) == 0
                    : option->letter != '\0' && word[1] == option->letter;
        if (same) {
            *takes_value =
                option->argument != NULL && (is_long ? word[2 + length] == '\0' : word[2] == '\0');
            return true;
        }
    }
    *takes_value = false;
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 ||
           strcmp(word, "--help-all") == 0;
}

/* Copies the options of `bench` to `own`, and the other words to options->words for `record`.
 * Returns the number of words in `own`. */
static int split_words(int argc, char **argv, char **own, bench_options *options)
{
    int own_count = 0;
    int i = 0;
    own[own_count++] = argv[i++];
    while (i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0) {
        bool takes_value;
        if (is_own(argv[i], &takes_value)) {
            own[own_count++] = argv[i++];
            if (takes_value && i < argc) {
                own[own_count++] = argv[i++];
            }
            continue;
        }
        do { /* the option and its values, up to the next option */
            options->words[options->word_count++] = argv[i++];
        } while (i < argc && argv[i][0] != '-' && options->word_count < WORDS - FIXED_WORDS);
    }
    while (i < argc) {
        options->words[options->word_count++] = argv[i++];
    }
    options->words[options->word_count] = NULL;
    return own_count;
}

/* Records the program in a child process and returns the exit code of `record`. If not
 * `is_recorded`, runs the program without recording it and returns its exit code. A program that a
 * signal ended has the exit code 128 + signal. */
static int record_once(const bench_options *options, bool is_recorded)
{
    char *arguments[WORDS + FIXED_WORDS];
    int count = 0;
    arguments[count++] = (char *)"record";
    arguments[count++] = (char *)"--quiet";
    arguments[count++] = (char *)"--output";
    arguments[count++] = (char *)(is_recorded ? options->output : "/dev/null");
    arguments[count++] = (char *)"--name";
    arguments[count++] = (char *)options->name;
    for (int i = 0; i < options->word_count; i++) {
        arguments[count++] = options->words[i];
    }
    arguments[count] = NULL;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const int null_fd = options->show_output ? -1 : open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (null_fd >= 0) {
            (void)dup2(null_fd, STDOUT_FILENO);
        }
        if (!is_recorded) {
            char **program = options->words[0] != NULL && strcmp(options->words[0], "--") == 0
                                 ? (char **)options->words + 1
                                 : (char **)options->words;
            sj_file_limit_restore();
            sj_own_limits_restore();
            execvp(program[0], program);
            _exit(SJ_EXIT_PROGRAM_NOT_FOUND);
        }
        exit(sj_command_record.run(count, arguments));
    }
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return child < 0             ? SJ_EXIT_RECORD_FAILED
           : WIFEXITED(status)   ? WEXITSTATUS(status)
           : WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                                 : SJ_EXIT_RECORD_FAILED;
}

/* Shows the number of the next run. Shows the remaining time if it is 1 s or more, as estimated
 * from the earlier runs. */
static void show_run(const bench_options *options, int64_t run, uint64_t begun_ns)
{
    const int64_t done = run + options->warmup;
    const double each_s =
        done != 0 ? (double)(sj_clock_ns(CLOCK_MONOTONIC) - begun_ns) / 1e9 / (double)done : 0;
    fprintf(stderr, "\r\033[K%s %lld of %lld", run < 0 ? "warm-up" : "run",
            (long long)(run < 0 ? done + 1 : run + 1),
            (long long)(run < 0 ? options->warmup : options->runs));
    if (done != 0 && each_s * (double)(options->runs - run) >= 1) {
        fprintf(stderr, ", about %.0f s left", each_s * (double)(options->runs - run));
    }
    fputc(' ', stderr);
}

static int run_all(const bench_options *options)
{
    const uint64_t begun_ns = sj_clock_ns(CLOCK_MONOTONIC);
    for (int64_t i = -options->warmup; i < options->runs; i++) {
        if (isatty(STDERR_FILENO)) {
            show_run(options, i, begun_ns);
        }
        const int code = record_once(options, i >= 0);
        if (code != SJ_EXIT_OK && !options->ignore_failure) {
            fputs(isatty(STDERR_FILENO) ? "\n" : "", stderr);
            return sj_command_error(&sj_command_bench, code,
                                    "%s %lld ended with %d; --ignore-failure continues",
                                    i < 0 ? "warm-up" : "run",
                                    (long long)(i < 0 ? i + options->warmup + 1 : i + 1), code);
        }
    }
    fputs(isatty(STDERR_FILENO) ? "\r\033[K" : "", stderr);
    return SJ_EXIT_OK;
}

typedef struct spread {
    double sum, squares, least, most;
} spread;

static void add_value(spread *values, double value, int64_t earlier_count)
{
    values->sum += value;
    values->squares += value * value;
    values->least = earlier_count == 0 || value < values->least ? value : values->least;
    values->most = value > values->most ? value : values->most;
}

static double standard_deviation(const spread *values, int64_t count)
{
    const double mean = values->sum / (double)count;
    const double variance =
        count > 1 ? (values->squares - values->sum * mean) / (double)(count - 1) : 0;
    return sqrt(variance > 0 ? variance : 0);
}

static void print_spread(const char *label, const spread *values, int64_t count)
{
    char text[4][SJ_DURATION_TEXT_BYTES];
    printf("  %-6s %s +- %s (%s to %s)\n", label,
           sj_format_duration((int64_t)(values->sum / (double)count), text[0]),
           sj_format_duration((int64_t)standard_deviation(values, count), text[1]),
           sj_format_duration((int64_t)values->least, text[2]),
           sj_format_duration((int64_t)values->most, text[3]));
}

/* The results of the stored runs. */
typedef struct bench_result {
    spread time, cpu; /* nanoseconds */
    int64_t count;
    int64_t least_calls, most_calls; /* of one run */
    int64_t lost_calls;              /* sum over all runs */
} bench_result;

static sj_status add_run(void *context, sqlite3_stmt *row)
{
    bench_result *result = context;
    const int64_t calls = sqlite3_column_int64(row, 2);
    const bool is_first = result->count == 0;
    add_value(&result->time, sqlite3_column_double(row, 0), result->count);
    add_value(&result->cpu, sqlite3_column_double(row, 1), result->count);
    result->least_calls = is_first || calls < result->least_calls ? calls : result->least_calls;
    result->most_calls = calls > result->most_calls ? calls : result->most_calls;
    result->lost_calls += sqlite3_column_int64(row, 3);
    result->count++;
    return SJ_OK;
}

typedef struct run_binds {
    const char *name;
    int64_t most;
} run_binds;

static int read_result(const bench_options *options, bench_result *result)
{
    static const char sql[] =
        "SELECT ended_realtime_ns - started_realtime_ns, coalesce(traced_cpu_ns, 0), stored_calls, "
        "lost_calls FROM sessions WHERE name = ?1 ORDER BY session_id DESC LIMIT ?2";
    static const sj_sql_field fields[] = {{SJ_BIND_TEXT, offsetof(run_binds, name)},
                                          {SJ_BIND_INT, offsetof(run_binds, most)}};
    const run_binds values = {.name = options->name, .most = options->runs};
    sqlite3 *database = NULL;
    const sj_query_options query = {.file = options->output};
    int exit_code = sj_query_open(&sj_command_bench, &query, &database, NULL);
    if (exit_code != SJ_EXIT_OK) {
        return exit_code;
    }
    exit_code = sj_query_each(&sj_command_bench, database, sql, (sj_sql_binds){fields, 2, &values},
                              add_run, result);
    sqlite3_close(database);
    return exit_code != SJ_EXIT_OK || result->count != 0
               ? exit_code
               : sj_command_error(&sj_command_bench, SJ_EXIT_FAILED, "no run was stored");
}

static void print_text(const bench_options *options, const bench_result *result)
{
    const char *none_lost = result->lost_calls == 0 ? ", none lost" : "";
    printf("%s -> %s, name %s\n", SJ_COUNTED(result->count, "run"), options->output, options->name);
    print_spread("time", &result->time, result->count);
    print_spread("CPU", &result->cpu, result->count);
    if (result->least_calls == result->most_calls) {
        printf("  calls  %lld each%s\n", (long long)result->most_calls, none_lost);
    } else {
        printf("  calls  %lld to %lld%s\n", (long long)result->least_calls,
               (long long)result->most_calls, none_lost);
    }
    if (result->lost_calls != 0) {
        printf("  lost   %s: `sojourn sql --query loss` says where\n",
               SJ_COUNTED(result->lost_calls, "call"));
    }
    printf("next: the same with another build and --name, then\n"
           "  sojourn diff name:%s name:OTHER %s\n",
           options->name, options->output);
}

static json_t *describe_spread(const spread *values, int64_t count)
{
    return json_pack("{sI sI sI sI}", "mean", (json_int_t)(values->sum / (double)count),
                     "deviation", (json_int_t)standard_deviation(values, count), "least",
                     (json_int_t)values->least, "most", (json_int_t)values->most);
}

static int print_json(const bench_options *options, const bench_result *result)
{
    return sj_json_output(&sj_command_bench,
                          json_pack("{sI so so so so sI sI sI}", "runs", (json_int_t)result->count,
                                    "database", sj_json_clean_string(options->output), "name",
                                    sj_json_clean_string(options->name), "time_ns",
                                    describe_spread(&result->time, result->count), "cpu_ns",
                                    describe_spread(&result->cpu, result->count), "least_calls",
                                    (json_int_t)result->least_calls, "most_calls",
                                    (json_int_t)result->most_calls, "lost_calls",
                                    (json_int_t)result->lost_calls));
}

static int print_result(const bench_options *options)
{
    bench_result result = {0};
    const int exit_code = read_result(options, &result);
    if (exit_code != SJ_EXIT_OK) {
        return exit_code;
    }
    if (options->as_json) {
        return print_json(options, &result);
    }
    print_text(options, &result);
    return SJ_EXIT_OK;
}

static int run_bench(int argc, char **argv)
{
    bench_options options = {.runs = DEFAULT_RUNS};
    int first = 0;
    char *own[WORDS];
    if (argc >= WORDS - FIXED_WORDS) {
        return sj_command_usage_error(&sj_command_bench, "too many words");
    }
    const int own_count = split_words(argc, argv, own, &options);
    own[own_count] = NULL;
    const int code = sj_options_parse(&sj_command_bench, own_count, own, &options, &first);
    if (code >= 0) {
        return code;
    }
    if (options.word_count == 0 ||
        (options.word_count == 1 && strcmp(options.words[0], "--") == 0)) {
        return sj_command_usage_error(&sj_command_bench, "name the program to run");
    }
    if (options.warmup != 0 && options.words[0][0] == '-' && strcmp(options.words[0], "--") != 0) {
        return sj_command_usage_error(
            &sj_command_bench, "--warmup runs the program alone: leave the options of record out");
    }
    if (options.output == NULL) {
        snprintf(options.file, sizeof(options.file), "sojourn-bench.db");
        options.output = options.file;
    }
    if (options.name == NULL) {
        options.name = "bench";
    }
    const int run_code = run_all(&options);
    return run_code == SJ_EXIT_OK ? print_result(&options) : run_code;
}

static const sj_option bench_table[] = {
    {.name = "runs",
     .letter = 'n',
     .argument = "N",
     .kind = SJ_ARG_NUMBER,
     .offset = offsetof(bench_options, runs),
     .least = 1,
     .most = MOST_RUNS,
     .help = "number of runs (default 10)"},
    {.name = "output",
     .letter = 'o',
     .argument = "FILE",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(bench_options, output),
     .help = "the database; an existing one gets more sessions (default sojourn-bench.db)"},
    {.name = "name",
     .argument = "TEXT",
     .kind = SJ_ARG_TEXT,
     .offset = offsetof(bench_options, name),
     .help = "name of the sessions, for `sojourn diff name:TEXT` (default bench)"},
    {.name = "warmup",
     .letter = 'w',
     .argument = "N",
     .kind = SJ_ARG_NUMBER,
     .offset = offsetof(bench_options, warmup),
     .most = MOST_RUNS,
     .help = "first run the program N times unrecorded"},
    {.name = "show-output",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(bench_options, show_output),
     .help = "show the program's output instead of sending it to /dev/null"},
    {.name = "ignore-failure",
     .letter = 'i',
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(bench_options, ignore_failure),
     .help = "continue after a run that does not end with 0"},
    {.name = "json",
     .kind = SJ_ARG_FLAG,
     .offset = offsetof(bench_options, as_json),
     .help = "as JSON, with times in nanoseconds"},
    {0}};

const sj_command sj_command_bench = {
    .name = "bench",
    .summary = "record repeated runs of a program into one database, for diff and check",
    .usage = "sojourn bench [OPTIONS] [OPTIONS OF RECORD] [--] PROGRAM [ARGUMENTS]",
    .help =
        "Each run becomes a session; all sessions have the same name. Prints how long the runs\n"
        "took. Accepts the options of `sojourn record`; \"--\" ends them.\n",
    .options = bench_table,
    .examples = "Examples:\n"
                "  sojourn bench -n 10 --name before -o app.db -- old/app input.txt\n"
                "  sojourn bench -n 10 --name after -o app.db -- new/app input.txt\n"
                "  sojourn diff name:before name:after app.db\n",
    .stops_at_argument = true,
    .run = run_bench,
};
