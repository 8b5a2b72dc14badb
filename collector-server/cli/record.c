#include "agent/control/attach_check.h"
#include "agent/control/directories.h"
#include "agent/control/name_check.h"
#include "agent/control/recording.h"
#include "agent/control/salvage.h"
#include "agent/lifecycle/link.h"
#include "collector-server/cli/commands.h"
#include "collector-server/cli/embedded.h"
#include "collector-server/cli/policy_options.h"
#include "collector-server/cli/report_text.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_MAX_BYTES (UINT64_C(4) << 30)

enum { DEFAULT_WAIT_MS = 10000, SIGNAL_EXIT_BASE = 128, STOPPED_EXIT = 130 };

/* `record` or `attach`: they differ in what is recorded, not in how. */
static const sj_command *command = &sj_command_record;

static int failure_code(void)
{
    return command == &sj_command_attach ? SJ_EXIT_FAILED : SJ_EXIT_RECORD_FAILED;
}

typedef struct record_options {
    sj_recording_options recording;
    sj_policy_draft *draft; /* what flags and --policy say */
    sj_policy policy;
    const char *policy_name; /* NULL: none */
    const char *map_file;
    char output[PATH_MAX];
    char destination[PATH_MAX + 16];
    const char *collector; /* NULL: embedded */
    const char *summary_path;
    int64_t wait_ms;
    bool has_output;
    bool quiet;
} record_options;

enum {
    OPTION_COLLECTOR = 256,
    OPTION_SPOOL,
    OPTION_MAP,
    OPTION_WAIT,
    OPTION_MAX_BYTES,
    OPTION_SUMMARY,
    OPTION_NAME,
    OPTION_AGENT,
    OPTION_THREADS,
    OPTION_CHILDREN,
    OPTION_NO_CACHE,
    OPTION_FOR
};

static const struct option long_options[] = {
    SJ_POLICY_OPTIONS,
    {"output", required_argument, NULL, 'o'},
    {"collector", required_argument, NULL, OPTION_COLLECTOR},
    {"spool", required_argument, NULL, OPTION_SPOOL},
    {"map", required_argument, NULL, OPTION_MAP},
    {"wait", required_argument, NULL, OPTION_WAIT},
    {"max-bytes", required_argument, NULL, OPTION_MAX_BYTES},
    {"summary", required_argument, NULL, OPTION_SUMMARY},
    {"name", required_argument, NULL, OPTION_NAME},
    {"agent", required_argument, NULL, OPTION_AGENT},
    {"threads", required_argument, NULL, OPTION_THREADS},
    {"children", required_argument, NULL, OPTION_CHILDREN},
    {"no-plan-cache", no_argument, NULL, OPTION_NO_CACHE},
    {"for", required_argument, NULL, OPTION_FOR},
    {"quiet", no_argument, NULL, 'q'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0}};

static sj_status take_children(record_options *options, const char *text, sj_error *error)
{
    if (strcmp(text, "all") == 0) {
        options->recording.children = SJ_FOLLOW_FORK | SJ_FOLLOW_EXEC;
    } else if (strcmp(text, "forked") == 0) {
        options->recording.children = SJ_FOLLOW_FORK;
    } else if (strcmp(text, "none") == 0) {
        options->recording.children = SJ_FOLLOW_NONE;
    } else {
        return sj_fail(error, SJ_EINVAL,
                       "--children is \"all\", \"forked\" or \"none\", not \"%s\"", text);
    }
    return SJ_OK;
}

/* take_duration reads a time: a number with ms, s (default), m or h. */
static sj_status take_duration(const char *text, uint64_t *duration_ms, sj_error *error)
{
    static const struct {
        const char *unit;
        double ms;
    } units[] = {{"", 1e3}, {"s", 1e3}, {"ms", 1}, {"m", 6e4}, {"h", 3.6e6}};
    char *end = NULL;
    const double value = strtod(text, &end);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (end != text && strcmp(end, units[i].unit) == 0 && value > 0 &&
            value * units[i].ms < 1e12) {
            *duration_ms = (uint64_t)(value * units[i].ms);
            return SJ_OK;
        }
    }
    return sj_fail(error, SJ_EINVAL, "--for needs a time such as 30s or 5m, not \"%s\"", text);
}

static sj_status take_tuning(record_options *options, int option, const char *value,
                             sj_error *error)
{
    sj_recording_options *recording = &options->recording;
    uint64_t number = 0;
    sj_status status = SJ_OK;
    switch (option) {
    case OPTION_WAIT:
        status = sj_option_number("--wait", value, 86400, &number, error);
        options->wait_ms = (int64_t)number * 1000;
        break;
    case OPTION_MAX_BYTES:
        status = sj_option_number("--max-bytes", value, INT64_MAX, &recording->max_bytes, error);
        break;
    case OPTION_THREADS:
        status = sj_option_number("--threads", value, SJ_ARENA_MAX_THREADS, &number, error);
        recording->max_threads = (uint32_t)number;
        break;
    case OPTION_CHILDREN:
        return take_children(options, value, error);
    case OPTION_FOR:
        if (command != &sj_command_attach) {
            return sj_fail(error, SJ_EINVAL, "--for is an option of `sojourn attach`");
        }
        return take_duration(value, &recording->duration_ms, error);
    default:
        recording->no_plan_cache = true;
        break;
    }
    return status;
}

static sj_status take_option(record_options *options, int option, const char *value,
                             sj_error *error)
{
    switch (option) {
    case 'o':
        options->has_output = true;
        if (strlen(value) >= sizeof(options->output)) {
            return sj_fail(error, SJ_ELIMIT, "the path of --output is too long");
        }
        snprintf(options->output, sizeof(options->output), "%s", value);
        return SJ_OK;
    case 'q':
        options->quiet = true;
        return SJ_OK;
    case OPTION_COLLECTOR:
        options->collector = value;
        return SJ_OK;
    case OPTION_SPOOL:
        options->recording.spool_root = value;
        return SJ_OK;
    case OPTION_MAP:
        options->map_file = value;
        return access(value, R_OK) == 0
                   ? SJ_OK
                   : sj_fail(error, SJ_ENOTFOUND, "%s: %s", value, strerror(errno));
    case OPTION_SUMMARY:
        options->summary_path = value;
        return SJ_OK;
    case OPTION_NAME:
        options->recording.name = value;
        return SJ_OK;
    case OPTION_AGENT:
        options->recording.agent_path = value;
        return SJ_OK;
    default:
        return take_tuning(options, option, value, error);
    }
}

static sj_status take_any_option(record_options *options, int option, const char *value,
                                 sj_error *error)
{
    bool taken = false;
    const sj_status status = sj_policy_options_take(options->draft, option, value, &taken, error);
    return status != SJ_OK || taken ? status : take_option(options, option, value, error);
}

/* finish_policy reads flags and file as one document and hands it to the recording. */
static sj_status finish_policy(record_options *options, sj_error *error)
{
    sj_recording_options *recording = &options->recording;
    const sj_policy *policy = &options->policy;
    SJ_TRY(sj_policy_draft_finish(options->draft, &options->policy, error));
    recording->policy = policy;
    recording->selection = policy->selection;
    recording->selection.map_file = options->map_file;
    recording->chunks_per_thread = policy->chunks_per_thread;
    recording->full_policy = policy->drop_when_full ? SJ_FULL_DROP_NEW : SJ_FULL_BLOCK;
    recording->block_ms = policy->block_ms;
    return SJ_OK;
}

/* short_options: those of `record` end where the program begins ("+"). */
static const char *short_options(void)
{
    return command == &sj_command_record ? "+:o:qh" : ":o:qh";
}

/* parse_options returns -1 when the command can run, else the exit code. */
static int parse_options(int argc, char **argv, record_options *options)
{
    sj_error error = {0};
    int option;
    if (sj_policy_options_load(argc, argv, short_options(), long_options, &options->draft,
                               &error) != SJ_OK) {
        return sj_command_error(command, failure_code(), "%s", error.text);
    }
    while ((option = getopt_long(argc, argv, short_options(), long_options, NULL)) != -1) {
        if (option == 'h') {
            return sj_command_help(command);
        }
        if (option == ':') {
            return sj_command_usage_error(command, "%s needs a value", argv[optind - 1]);
        }
        if (option == '?') {
            return sj_command_usage_error(command, "there is no option %s", argv[optind - 1]);
        }
        if (take_any_option(options, option, optarg, &error) != SJ_OK) {
            return sj_command_usage_error(command, "%s", error.text);
        }
    }
    if (optind == argc) {
        return sj_command_usage_error(command, command == &sj_command_attach
                                                   ? "name the process to attach to"
                                                   : "name the program to record");
    }
    if (options->has_output && options->collector != NULL) {
        return sj_command_usage_error(command, "--output and --collector exclude each other");
    }
    if (finish_policy(options, &error) != SJ_OK) {
        return sj_command_usage_error(command, "%s", error.text);
    }
    options->recording.arguments = argv + optind;
    return -1;
}

/* choose_output names the file after the program and the moment, in the working directory. */
static void choose_output(record_options *options, const char *program_path)
{
    char stamp[32] = "";
    const time_t now = time(NULL);
    struct tm local;
    const char *slash = strrchr(program_path, '/');
    const char *program = slash != NULL ? slash + 1 : program_path;
    if (localtime_r(&now, &local) != NULL) {
        strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &local);
    }
    snprintf(options->output, sizeof(options->output), "sojourn-%.200s-%s.db", program, stamp);
    for (int i = 2; access(options->output, F_OK) == 0 && i < 1000; i++) {
        snprintf(options->output, sizeof(options->output), "sojourn-%.200s-%s-%d.db", program,
                 stamp, i);
    }
}

/* describe_destination is what `sojourn flush` reads: a URL, or "file " and an absolute path. */
static sj_status describe_destination(record_options *options, sj_error *error)
{
    char directory[PATH_MAX];
    if (options->collector != NULL) {
        snprintf(options->destination, sizeof(options->destination), "%s", options->collector);
        return SJ_OK;
    }
    if (options->output[0] == '/') {
        snprintf(options->destination, sizeof(options->destination), "file %s", options->output);
        return SJ_OK;
    }
    if (getcwd(directory, sizeof(directory)) == NULL) {
        return sj_fail(error, SJ_EIO, "the working directory has no path: %s", strerror(errno));
    }
    const int written = snprintf(options->destination, sizeof(options->destination), "file %s/%s",
                                 directory, options->output);
    if (written < 0 || (size_t)written >= sizeof(options->destination)) {
        return sj_fail(error, SJ_ELIMIT, "the path of the database is too long");
    }
    return SJ_OK;
}

static uint64_t size_of_file(const char *path)
{
    struct stat status;
    return path != NULL && stat(path, &status) == 0 ? (uint64_t)status.st_size : 0;
}

static void write_summary(const record_options *options, const sj_recording_summary *summary,
                          const sj_report_text *text, uint64_t file_bytes)
{
    if (options->summary_path == NULL) {
        return;
    }
    FILE *file = fopen(options->summary_path, "we");
    if (file != NULL) {
        sj_report_text_json(file, text, summary, file_bytes);
    }
    if (file == NULL || fclose(file) != 0) {
        (void)sj_command_error(command, SJ_EXIT_FAILED, "cannot write %s: %s",
                               options->summary_path, strerror(errno));
    }
}

static int exit_code_of(const sj_recording_summary *summary)
{
    if (command == &sj_command_attach) {
        return summary->leave_problem[0] == '\0' ? SJ_EXIT_OK : SJ_EXIT_FAILED;
    }
    if (summary->program_left) {
        return STOPPED_EXIT;
    }
    return WIFSIGNALED(summary->wait_status) ? SIGNAL_EXIT_BASE + WTERMSIG(summary->wait_status)
                                             : WEXITSTATUS(summary->wait_status);
}

/* print_report: who profiles a running process wants to see what it did. */
static int print_report(record_options *options, const sj_recording_summary *summary)
{
    char session[SJ_SESSION_TEXT_BYTES];
    char *arguments[] = {"report", "--session", session, options->output, NULL};
    if (command != &sj_command_attach || options->quiet || options->collector != NULL ||
        options->policy.mode != SJ_POLICY_PROFILE || !summary->delivered) {
        return SJ_EXIT_OK;
    }
    sj_session_text(&summary->session, session);
    return sj_command_report.run(4, arguments);
}

static int run_recording(record_options *options, sj_recording *recording, sj_report_text *text)
{
    sj_embedded *embedded = NULL;
    sj_error error = {0};
    sj_recording_summary summary;
    int exec_errno = 0;
    if (options->collector == NULL &&
        sj_embedded_start(options->output, &embedded, &error) != SJ_OK) {
        sj_recording_free(recording);
        return sj_command_error(command, failure_code(), "%s", error.text);
    }
    const sj_recording_link link = {.url = embedded != NULL ? sj_embedded_url(embedded)
                                                            : options->collector,
                                    .token = getenv("SOJOURN_TOKEN"),
                                    .wait_ms = embedded != NULL ? -1 : options->wait_ms};
    const sj_status status = sj_recording_run(recording, &link, &summary, &exec_errno, &error);
    sj_recording_free(recording);
    sj_embedded_stop(embedded, status != SJ_OK);
    if (status != SJ_OK) {
        return sj_command_error(command, exec_errno != 0 ? SJ_EXIT_NOT_EXECUTABLE : failure_code(),
                                "%s", error.text);
    }
    const uint64_t file_bytes = embedded != NULL ? size_of_file(options->output) : 0;
    if (embedded != NULL) {
        (void)sj_apart_reason_in(options->output, &summary.session, text->apart_because);
    }
    sj_report_text_summary(text, &summary, file_bytes);
    write_summary(options, &summary, text, file_bytes);
    const int reported = print_report(options, &summary);
    return reported == SJ_EXIT_OK ? exit_code_of(&summary) : reported;
}

/* salvage_earlier finishes sessions of recorders that were killed; `flush` delivers them. */
static void salvage_earlier(const record_options *options)
{
    char usual[PATH_MAX];
    unsigned count = 0;
    sj_error error = {0};
    const char *root = options->recording.spool_root;
    if (root == NULL) {
        if (sj_state_directory("spool", usual, sizeof(usual), &error) != SJ_OK) {
            return;
        }
        root = usual;
    }
    if (sj_salvage_all(root, &count, &error) != SJ_OK) {
        fprintf(stderr, "sojourn record: an earlier recording: %s\n", error.text);
    }
    if (count != 0 && !options->quiet) {
        fprintf(stderr,
                "sojourn record: %u earlier recordings were cut short; \"sojourn flush\" "
                "delivers what they hold\n",
                count);
    }
}

static void tell_missed(const sj_recording_options *options)
{
    const char *texts[SJ_POLICY_MISSED];
    const size_t count = options->attach_pid != 0 && options->policy != NULL
                             ? sj_policy_missed(options->policy, texts)
                             : 0;
    for (size_t i = 0; i < count; i++) {
        fprintf(stderr, "sojourn attach: %s\n", texts[i]);
    }
}

static int start_recording(record_options *options, const char *program_path)
{
    sj_error error = {0};
    sj_recording *recording = NULL;
    if (!options->has_output) {
        choose_output(options, program_path);
    }
    sj_report_text text = {.quiet = options->quiet,
                           .is_terminal = isatty(STDERR_FILENO) == 1,
                           .target =
                               options->collector != NULL ? options->collector : options->output};
    options->recording.destination = options->destination;
    options->recording.context = &text;
    options->recording.progress = sj_report_text_progress;
    salvage_earlier(options);
    tell_missed(&options->recording);
    sj_status status = describe_destination(options, &error);
    if (status == SJ_OK) {
        status = sj_recording_prepare(&options->recording, &recording, &error);
    }
    if (status != SJ_OK) {
        return sj_command_error(command, failure_code(), "%s", error.text);
    }
    return run_recording(options, recording, &text);
}

/* The first name that matches nothing, as a sentence. */
typedef struct unmatched_names {
    const record_options *options;
    size_t count;
    sj_error error;
} unmatched_names;

static void note_unmatched(void *context, const sj_unmatched *unmatched)
{
    unmatched_names *names = context;
    char origin[PATH_MAX + 32];
    if (names->count++ == 0) {
        sj_policy_draft_origin(names->options->draft, unmatched->steps, unmatched->step_count,
                               origin, sizeof(origin));
        (void)sj_fail(&names->error, SJ_EINVAL,
                      "%.200s: no %s of the program matches \"%.100s\"; if it comes with a library "
                      "that is loaded later, say --allow-unmatched or \"unmatched\": \"allow\"",
                      origin, unmatched->kind, unmatched->pattern->text);
    }
}

/* check_names refuses names that match nothing: a misspelt filter would record the wrong calls. */
static sj_status check_names(const record_options *options, const sj_program *program,
                             sj_error *error)
{
    char cache[PATH_MAX];
    unmatched_names names = {.options = options};
    const sj_recording_options *recording = &options->recording;
    const bool has_cache = !recording->no_plan_cache &&
                           sj_cache_directory("plans", cache, sizeof(cache), NULL) == SJ_OK;
    if (sj_name_check(recording->policy, &recording->selection, program, has_cache ? cache : NULL,
                      &names, note_unmatched) != SJ_OK) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    *error = names.count != 0 ? names.error : *error;
    return names.count != 0 ? SJ_EINVAL : SJ_OK;
}

static int launch_recording(record_options *options)
{
    sj_program program;
    sj_error error = {0};
    switch (sj_program_find(options->recording.arguments[0], &program, &error)) {
    case SJ_PROGRAM_FINE:
        break;
    case SJ_PROGRAM_NOT_FOUND:
        return sj_command_error(command, SJ_EXIT_PROGRAM_NOT_FOUND, "%s", error.text);
    case SJ_PROGRAM_NOT_EXECUTABLE:
        return sj_command_error(command, SJ_EXIT_NOT_EXECUTABLE, "%s", error.text);
    case SJ_PROGRAM_NOT_RECORDABLE:
        return sj_command_error(command, failure_code(), "%s", error.text);
    }
    if (check_names(options, &program, &error) != SJ_OK) {
        return sj_command_error(command, failure_code(), "%s", error.text);
    }
    options->recording.program = &program;
    return start_recording(options, program.path);
}

/* attach_recording records a running process; its name names the file. */
static int attach_recording(record_options *options)
{
    char name[64];
    uint64_t pid = 0;
    sj_process_facts facts;
    const char *text = options->recording.arguments[0];
    if (sj_option_number("", text, INT32_MAX, &pid, NULL) != SJ_OK || pid == 0 ||
        options->recording.arguments[1] != NULL) {
        return sj_command_usage_error(command, "attach to one process, by its number");
    }
    options->recording.attach_pid = (pid_t)pid;
    snprintf(name, sizeof(name), "%s", text);
    if (sj_process_facts_read((pid_t)pid, &facts) == SJ_OK) {
        snprintf(name, sizeof(name), "%s", facts.name);
        for (char *at = name; *at != '\0'; at++) {
            *at = *at == '/' || *at == ' ' ? '_' : *at;
        }
    }
    return start_recording(options, name);
}

static int run_record(int argc, char **argv)
{
    record_options options = {
        .recording = {.max_bytes = DEFAULT_MAX_BYTES, .children = SJ_FOLLOW_FORK | SJ_FOLLOW_EXEC},
        .wait_ms = DEFAULT_WAIT_MS};
    int code = parse_options(argc, argv, &options);
    if (code < 0) {
        code = launch_recording(&options);
    } else if (code == SJ_EXIT_USAGE) {
        /* As env(1) and timeout(1) do: wrong use of the command is told apart from the program. */
        code = SJ_EXIT_RECORD_FAILED;
    }
    sj_policy_free(&options.policy);
    sj_policy_draft_free(options.draft);
    return code;
}

static int run_attach(int argc, char **argv)
{
    record_options options = {
        .recording = {.max_bytes = DEFAULT_MAX_BYTES, .children = SJ_FOLLOW_FORK},
        .wait_ms = DEFAULT_WAIT_MS};
    command = &sj_command_attach;
    int code = parse_options(argc, argv, &options);
    if (code < 0) {
        code = attach_recording(&options);
    }
    sj_policy_free(&options.policy);
    sj_policy_draft_free(options.draft);
    return code;
}

const sj_command sj_command_attach = {
    .name = "attach",
    .summary = "record all calls of a running process, and leave it as it was",
    .usage = "sojourn attach [OPTIONS] PID",
    .help =
        "The process runs on: its threads are stopped once for some milliseconds at the beginning\n"
        "and at the end. Ctrl-C, or `sojourn detach PID`, ends the recording and takes everything\n"
        "out of the process again. Calls that were open at the beginning are part of the "
        "recording.\n\n"
        "  --for TIME           leave after this time (30s, 5m, 1500ms)\n"
        "  --profile            sums per call path only; the report is printed at the end\n"
        "  -o, --output FILE    database file; a session is added when it exists\n"
        "                       (default sojourn-NAME-TIME.db)\n\n"
        "All other options of `sojourn record` mean the same here: --policy, --budget, --module,\n"
        "--function, --exclude, --map, --collector, --max-bytes, --quiet, ... What is recorded "
        "can\n"
        "be changed meanwhile: `sojourn policy set`.\n\n"
        "Exit status: 0, 1 when the process could not be attached to or not be left.\n\n"
        "Examples:\n"
        "  sojourn attach 4711 --profile --for 30s --map app.map\n"
        "  sojourn attach -o run.db --exclude '*_unlock' 4711\n",
    .run = run_attach,
};

const sj_command sj_command_record = {
    .name = "record",
    .summary = "run a program and record all its calls",
    .usage = "sojourn record [OPTIONS] [--] PROGRAM [ARGUMENTS]",
    .help =
        "Without options the calls of the program and of its own libraries go to a database in\n"
        "the working directory. It ends as the program does; a second Ctrl-C stops the recording\n"
        "and leaves the program alone. What is told goes to standard error.\n\n"
        "Where to:\n"
        "  -o, --output FILE    database file; a session is added when it exists\n"
        "                       (default sojourn-PROGRAM-TIME.db)\n"
        "  --collector URL      send to a server, as tcp://lab:7654\n"
        "  --wait SECONDS       wait so long for the server at the end (default 10)\n"
        "  --spool DIR          keep what is not yet taken there\n"
        "  --name TEXT          label of the session\n"
        "  --summary FILE       write the closing summary as JSON (/dev/fd/3 works, too)\n"
        "  -q, --quiet          tell errors only\n\n"
        "What:\n"
        "  --libs               system libraries, too\n"
        "  --module GLOB        only modules whose path or file name matches (repeatable)\n"
        "  --function GLOB      only functions whose name matches (repeatable)\n"
        "  --exclude GLOB       without functions whose name matches (repeatable)\n"
        "  --source GLOB        only functions of matching source files, where the program says\n"
        "                       which they are (repeatable); --exclude-source GLOB: without them\n"
        "  --allow-unmatched    names that match nothing are told, not refused: they may belong "
        "to\n"
        "                       libraries that are loaded later\n"
        "  --map FILE           take functions from a linker map or from `nm -S`\n\n"
        "How:\n"
        "  --policy FILE|NAME   a policy, or a shipped one: default, everything, jank, coverage;\n"
        "                       flags change it\n"
        "  --mode MODE          trace: every call (default); profile: sums per call path; flight:\n"
        "                       the last seconds, when a trigger asks for them\n"
        "  --profile, --flight  --mode profile, --mode flight\n"
        "  --budget N%          add at most so much CPU time, leaving out what tells least\n"
        "  --depth N            no calls deeper than that\n"
        "  --minimum TIME       count calls shorter than, say, 50us, but do not keep them\n"
        "  --value RULE         record a value of a function's calls (repeatable): an argument,\n"
        "                       'malloc_it(1:ulong)', or the result, 'find(result:string)'\n"
        "  --thread NAME        only threads whose name matches (repeatable)\n"
        "  --max-bytes N[kMG]   stop recording at this size (default 4G, 0: no limit)\n"
        "  --buffer N           chunks of 64 KiB per thread, 1 to 64 (default 64)\n"
        "  --when-full WHAT     block: wait for room, then drop (default); drop: at once\n"
        "  --block-ms N         wait so long at most (default 100)\n"
        "  --threads N          threads of a process that can be recorded at once (default 512)\n"
        "  --children WHICH     all: forked ones and programs run by them, too (default);\n"
        "                       forked: only forked ones; none\n"
        "  --agent FILE         the agent to load\n"
        "  --objc HOW           Objective-C: methods (default: their code is patched) or\n"
        "                       dispatch (where messages are looked up: the receiver's class)\n"
        "  --receivers          the receiver's class with patched methods, too\n"
        "  --class GLOB         of Objective-C only classes whose name matches (repeatable)\n"
        "  --selector GLOB      only messages whose selector matches (repeatable)\n"
        "  --subclasses-of GLOB only such classes and what descends from them (repeatable)\n"
        "  --no-system-classes  without the classes that system libraries define\n"
        "  --library-calls      also calls into libraries, as FILE!NAME: from the program and the\n"
        "                       libraries that are recorded, through their import tables\n"
        "  --no-plan-cache      look at the program's code afresh\n\n"
        "Exit status: that of the program, 128 + N when signal N ended it; 125 when recording\n"
        "failed, 126 when the program cannot be executed, 127 when it was not found.\n\n"
        "Examples:\n"
        "  sojourn record -- ./app --its-option\n"
        "  sojourn record -o run.db --exclude '*_unlock' -- ./app\n"
        "  sojourn record --collector tcp://lab:7654 --name nightly -- ./app\n",
    .run = run_record,
};
