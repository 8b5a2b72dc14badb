#include "agent/abi/link.h"
#include "agent/attach/preflight.h"
#include "agent/daemon/enrolment.h"
#include "agent/host/directories.h"
#include "agent/host/own_limits.h"
#include "agent/launch/policy_check.h"
#include "agent/policy/value_capacity.h"
#include "agent/recording/recording.h"
#include "agent/recording/recovery.h"
#include "collector-server/cli/commands.h"
#include "collector-server/cli/embedded.h"
#include "collector-server/cli/policy_options.h"
#include "collector-server/cli/process_list.h"
#include "collector-server/cli/record_options.h"
#include "collector-server/cli/report_json.h"
#include "collector-server/cli/report_progress.h"
#include "collector-server/cli/signature_check.h"
#include "collector-server/cli/spool_flush.h"
#include "collector-server/cli/work_progress.h"
#include "collector-server/store/database.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_MAX_BYTES (UINT64_C(4) << 30)
#define DEFAULT_FUNCTION_TXT_BYTES (UINT64_C(64) << 20)

enum {
    /* one of the next two: for a collector, and for a database that stores nothing more */
    USUAL_WAIT = -1,
    DEFAULT_WAIT_MS = 10000,
    FILE_WAIT_MS = 60000,
    SIGNAL_EXIT_BASE = 128,
    STOPPED_EXIT = 130
};

/* `record` or `attach`. They differ in the process that they record; the rest is the same. */
static const sj_command *command = &sj_command_record;

static int failure_code(void)
{
    return command == &sj_command_attach ? SJ_EXIT_FAILED : SJ_EXIT_RECORD_FAILED;
}

/* Returns the exit code of a recording that did not begin. `attach` has a code of its own for a
 * missing process. SJ_ENOTFOUND can also mean that something else is missing, so the process is
 * checked. */
static int beginning_code(const sj_record_values *options, sj_status status)
{
    sj_error ignored;
    return command == &sj_command_attach && status == SJ_ENOTFOUND &&
                   sj_preflight_check(options->recording.attach_pid, NULL, &ignored) == SJ_ENOTFOUND
               ? SJ_EXIT_NOT_FOUND
               : failure_code();
}

/* Prints a failure. Names low limits of this process, too, because they may be the cause. */
static int report_failure(int code, const char *text)
{
    char limits[256];
    sj_own_limits_describe(limits, sizeof(limits));
    return sj_command_error(command, code, "%s%s%s", text, limits[0] != '\0' ? "; " : "", limits);
}

/* Reads the flags and the policy file as one document. Gives it to the recording. */
static sj_status finish_policy(sj_record_values *options, sj_error *error)
{
    sj_recording_options *recording = &options->recording;
    const sj_policy *policy = &options->policy;
    SJ_TRY(sj_policy_draft_finish(options->draft, &options->policy, error));
    recording->policy = policy;
    recording->selection = policy->selection;
    recording->selection.map_file = options->map_file;
    recording->chunks_per_thread = policy->chunks_per_thread;
    recording->full_policy = policy->drop_when_full ? SJ_FULL_DROP_NEW : SJ_FULL_WAIT;
    recording->block_ms = policy->block_ms;
    return SJ_OK;
}

/* Parses the options. Returns -1 if the command can run, else the exit code. */
static int parse_options(int argc, char **argv, sj_record_values *options)
{
    sj_error error = {0};
    int first = 0;
    if (sj_policy_draft_new(&options->draft, &error) != SJ_OK) {
        return sj_command_error(command, failure_code(), "%s", error.text);
    }
    const int code = sj_options_parse(command, argc, argv, options, &first);
    if (code >= 0) {
        return code;
    }
    if (first == argc) {
        return sj_command_usage_error(command, command == &sj_command_attach
                                                   ? "name the process to attach to"
                                                   : "name the program to record");
    }
    if (options->has_output && options->collector != NULL) {
        return sj_command_usage_error(command, "--output and --collector exclude each other");
    }
    if (options->recording.until_all_end && command == &sj_command_attach) {
        return sj_command_usage_error(command, "--until-all-end is for programs that are started");
    }
    if (finish_policy(options, &error) != SJ_OK) {
        return sj_command_usage_error(command, "%s", error.text);
    }
    options->recording.arguments = argv + first;
    return -1;
}

/* Names the output file after the program and the time, in the working directory. */
static void choose_output(sj_record_values *options, const char *program_path)
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

/* Writes the destination in the format that `sojourn flush` reads: a URL, or "file " and an
 * absolute path. */
static sj_status describe_destination(sj_record_values *options, sj_error *error)
{
    char directory[PATH_MAX];
    if (options->collector != NULL) {
        snprintf(options->destination, sizeof(options->destination), "%s", options->collector);
        /* The name comes from the enrolment: another name would rename the device on the
         * collector. */
        SJ_TRY(sj_enrolment_device(&options->device, error));
        options->recording.device = &options->device;
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

static void write_summary(const sj_record_values *options, const sj_recording_summary *summary,
                          const sj_report_text *text, uint64_t file_bytes)
{
    if (options->summary_path == NULL) {
        return;
    }
    FILE *file = fopen(options->summary_path, "we");
    if (file != NULL) {
        sj_report_json(file, text, summary, file_bytes);
    }
    if (file == NULL || fclose(file) != 0) {
        (void)sj_command_error(command, SJ_EXIT_FAILED, "cannot write %s: %s",
                               options->summary_path, strerror(errno));
    }
}

static int exit_code_of(const sj_recording_summary *summary)
{
    if (command == &sj_command_attach) {
        return summary->detach_problem[0] == '\0' ? SJ_EXIT_OK : SJ_EXIT_FAILED;
    }
    if (summary->program_left) {
        return STOPPED_EXIT;
    }
    return WIFSIGNALED(summary->wait_status) ? SIGNAL_EXIT_BASE + WTERMSIG(summary->wait_status)
                                             : WEXITSTATUS(summary->wait_status);
}

/* Prints a report after profiling a running process: the user wants to see what the process did. */
static int print_report(sj_record_values *options, const sj_recording_summary *summary)
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

/* Returns the folder of spools, or NULL if there is none. */
static const char *spool_root(const sj_record_values *options, char usual[PATH_MAX])
{
    sj_error ignored;
    if (options->recording.spool_root != NULL) {
        return options->recording.spool_root;
    }
    return sj_state_directory("spool", usual, PATH_MAX, &ignored) == SJ_OK ? usual : NULL;
}

/* Delivers to the database what killed recorders left for it. Otherwise their sessions would remain
 * in the state "recording" for ever. */
static void settle_earlier(const sj_record_values *options)
{
    char usual[PATH_MAX];
    sj_error ignored;
    sj_flush_totals totals;
    const sj_flush_request request = {.command = command,
                                      .root = spool_root(options, usual),
                                      .only_for = options->destination,
                                      .wait_ms = SJ_FLUSH_USUAL_WAIT};
    if (request.root == NULL || sj_flush_spool(&request, &totals, &ignored) != SJ_OK) {
        return;
    }
    if (totals.delivered != 0 && !options->quiet) {
        fprintf(stderr, "sojourn %s: %u earlier recording%s cut short %s in %s now\n",
                command->name, totals.delivered,
                totals.delivered == 1 ? " that was" : "s that were",
                totals.delivered == 1 ? "is" : "are", options->output);
    }
}

/* Reads from the database what is worth reporting of the session. `arguments` is the program's
 * command line; NULL: an attach. The recorder has closed the database. */
static void read_stored(const char *path, const sj_session_id *session, char *const *arguments,
                        sj_report_text *text)
{
    sqlite3 *database = NULL;
    sqlite3_stmt *row = NULL;
    sj_error error;
    if (sj_database_open(path, SJ_DATABASE_READ, &database, &error) != SJ_OK) {
        return;
    }
    if (sqlite3_prepare_v2(database, "SELECT session_id FROM sessions WHERE uuid = ?1", -1, &row,
                           NULL) == SQLITE_OK) {
        sqlite3_bind_blob(row, 1, session->bytes, sizeof(session->bytes), SQLITE_STATIC);
        text->is_stored = sqlite3_step(row) == SQLITE_ROW;
    }
    if (text->is_stored) {
        const int64_t session_id = sqlite3_column_int64(row, 0);
        sj_session_doubts_read(database, session_id, &text->doubts);
        if (sj_session_highlights_read(database, session_id, arguments, &text->highlights,
                                       &error) != SJ_OK) {
            fprintf(stderr, "sojourn: warning: the summary is incomplete: %s\n", error.text);
        }
    }
    sqlite3_finalize(row);
    sqlite3_close(database);
}

/* Records into the database. Fills `summary`, which is too large for a return value. */
static int record_into(sj_record_values *options, sj_recording *recording, sj_report_text *text,
                       sj_recording_summary *summary)
{
    sj_embedded *embedded = NULL;
    sj_error error = {0};
    int exec_errno = 0;
    if (options->collector == NULL &&
        sj_embedded_start(options->output, &embedded, &error) != SJ_OK) {
        sj_recording_free(recording);
        return report_failure(failure_code(), error.text);
    }
    const sj_session_collector collector = {.url = embedded != NULL ? sj_embedded_url(embedded)
                                                                    : options->collector,
                                            .token = getenv("SOJOURN_TOKEN")};
    const sj_recording_link link = {.collectors = &collector,
                                    .collector_count = 1,
                                    .window = embedded != NULL ? SJ_EMBEDDED_WINDOW : 0,
                                    .wait_ms = options->wait_ms != USUAL_WAIT ? options->wait_ms
                                               : embedded != NULL             ? FILE_WAIT_MS
                                                                              : DEFAULT_WAIT_MS,
                                    .waits_from_last = embedded != NULL};
    const sj_status status = sj_recording_run(recording, &link, summary, &exec_errno, &error);
    sj_recording_free(recording);
    sj_embedded_stop(embedded, status != SJ_OK);
    if (status != SJ_OK) {
        return exec_errno != 0 ? sj_command_error(command, SJ_EXIT_NOT_EXECUTABLE, "%s", error.text)
                               : report_failure(beginning_code(options, status), error.text);
    }
    if (embedded != NULL && summary->delivered) {
        settle_earlier(options);
    }
    const uint64_t file_bytes = embedded != NULL ? size_of_file(options->output) : 0;
    if (embedded != NULL) {
        read_stored(options->output, &summary->session, options->recording.arguments, text);
    }
    sj_report_text_summary(text, summary, file_bytes);
    write_summary(options, summary, text, file_bytes);
    const int reported = print_report(options, summary);
    return reported == SJ_EXIT_OK ? exit_code_of(summary) : reported;
}

static int run_recording(sj_record_values *options, sj_recording *recording, sj_report_text *text)
{
    sj_recording_summary *summary = calloc(1, sizeof(*summary));
    if (summary == NULL) {
        sj_recording_free(recording);
        return sj_command_error(command, failure_code(), "out of memory");
    }
    const int code = record_into(options, recording, text, summary);
    free(summary);
    return code;
}

/* Completes the sessions of killed recorders. `flush` delivers them. */
static void salvage_earlier(const sj_record_values *options)
{
    char usual[PATH_MAX];
    unsigned count = 0;
    sj_error error = {0};
    const char *root = spool_root(options, usual);
    if (root == NULL) {
        return;
    }
    if (sj_recovery_all(root, &count, &error) != SJ_OK) {
        fprintf(stderr, "sojourn record: an earlier recording: %s\n", error.text);
    }
    if (count != 0 && !options->quiet) {
        fprintf(stderr,
                "sojourn record: %u earlier recording%s cut short; \"sojourn flush\" "
                "delivers what %s\n",
                count, count == 1 ? " was" : "s were", count == 1 ? "it holds" : "they hold");
    }
}

static void report_missed(const sj_recording_options *options)
{
    const char *texts[SJ_POLICY_MISSED];
    const size_t count = sj_recording_missed(options, texts);
    for (size_t i = 0; i < count; i++) {
        fprintf(stderr, "sojourn %s: %s\n", options->attach_pid != 0 ? "attach" : "record",
                texts[i]);
    }
}

static int start_recording(sj_record_values *options, const char *program_path)
{
    sj_error error = {0};
    sj_recording *recording = NULL;
    if (!options->has_output) {
        choose_output(options, program_path);
    }
    sj_report_text text = {
        .quiet = options->quiet,
        .has_terminal = options->recording.attach_pid != 0 && isatty(STDERR_FILENO) == 1,
        .drops = options->policy.drop_when_full,
        .target = options->collector != NULL ? options->collector : options->output};
    options->recording.destination = options->destination;
    options->recording.context = &text;
    options->recording.progress = sj_report_progress;
    sj_work_progress_start();
    salvage_earlier(options);
    sj_work_progress_stop();
    report_missed(&options->recording);
    sj_status status = describe_destination(options, &error);
    if (status == SJ_OK) {
        status = sj_recording_prepare(&options->recording, &recording, &error);
    }
    if (status != SJ_OK) {
        return report_failure(beginning_code(options, status), error.text);
    }
    return run_recording(options, recording, &text);
}

/* The number of names that match nothing, and an error that names the first. */
typedef struct unmatched_names {
    const sj_record_values *options;
    size_t count;
    sj_error error;
} unmatched_names;

static void note_unmatched(void *context, const sj_unmatched *unmatched)
{
    unmatched_names *names = context;
    char origin[PATH_MAX + 32];
    if (names->count++ != 0) {
        return;
    }
    sj_policy_draft_origin(names->options->draft, unmatched->steps, unmatched->step_count, origin,
                           sizeof(origin));
    if (unmatched->pattern->place != NULL) {
        (void)sj_fail(&names->error, SJ_EINVAL,
                      "%.200s: no function begins at %.200s%s; list them with: sojourn functions "
                      "FILE",
                      origin, unmatched->pattern->text,
                      unmatched->pattern->place->build_id[0] != '\0'
                          ? ", or the module is another build"
                          : "");
    } else {
        (void)sj_fail(&names->error, SJ_EINVAL,
                      "%.200s: no %s of the program matches \"%.100s\"; if it comes with a library "
                      "that is loaded later, say --allow-unmatched or \"unmatched\": \"allow\"",
                      origin, unmatched->kind, unmatched->pattern->text);
    }
}

/* Returns the directory of plans. Returns NULL if the user wants none or it cannot be created. */
static const char *plan_cache(const sj_recording_options *recording, char path[PATH_MAX])
{
    return !recording->no_plan_cache && sj_cache_directory("plans", path, PATH_MAX, NULL) == SJ_OK
               ? path
               : NULL;
}

/* Fails if a map file cannot be read or does not match the program. */
static sj_status check_map(const sj_record_values *options, const char *binary, sj_error *error)
{
    char cache[PATH_MAX];
    return sj_map_check(&options->recording.selection, binary,
                        plan_cache(&options->recording, cache), error);
}

/* Fails if a name matches nothing: a misspelt filter would record the wrong calls. */
static sj_status check_names(const sj_record_values *options, const sj_program *program,
                             sj_error *error)
{
    char cache[PATH_MAX];
    unmatched_names names = {.options = options};
    const sj_recording_options *recording = &options->recording;
    const sj_status status = sj_name_check(recording->policy, &recording->selection, program,
                                           plan_cache(recording, cache), &names, note_unmatched);
    if (status == SJ_ENOTFOUND && recording->policy->zombies.one_in != 0) {
        return SJ_OK; /* watching freed memory needs no functions */
    }
    if (status == SJ_ENOTFOUND) {
        return sj_fail(
            error, SJ_EINVAL,
            "the policy selects no function, because --exclude leaves out all that --function "
            "selects; --allow-unmatched records functions that are loaded later");
    }
    if (status != SJ_OK) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    *error = names.count != 0 ? names.error : *error;
    return names.count != 0 ? SJ_EINVAL : SJ_OK;
}

/* Prints, before the run, that the values of a rule do not fit into the functions that it names. */
static void note_crowded(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "sojourn %s: note: %s\n", command->name, text);
}

static int launch_recording(sj_record_values *options)
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
    sj_work_progress_start();
    const bool is_known = check_map(options, program.binary, &error) == SJ_OK &&
                          check_names(options, &program, &error) == SJ_OK;
    sj_work_progress_stop();
    if (!is_known) {
        return sj_command_error(command, failure_code(), "%s", error.text);
    }
    if (program.emulator[0] == '\0') { /* an emulated machine may pass arguments differently */
        sj_signature_check(options->policy.document, program.binary);
    }
    sj_value_capacity_each_crowded(options->policy.selection.values, SJ_LINK_METHOD_VALUES, NULL,
                                   note_crowded);
    options->recording.program = &program;
    return start_recording(options, program.path);
}

/* Finds the file that a process runs. Uses its path, because related files lie beside it. Uses the
 * link in /proc if that path is another file here, for example because the process runs in a
 * container. */
static bool find_binary(pid_t pid, char binary[PATH_MAX])
{
    char link[64];
    struct stat runs;
    struct stat found;
    snprintf(link, sizeof(link), "/proc/%d/exe", pid);
    if (stat(link, &runs) != 0) {
        return false;
    }
    if (realpath(link, binary) == NULL || stat(binary, &found) != 0 ||
        found.st_dev != runs.st_dev || found.st_ino != runs.st_ino) {
        snprintf(binary, PATH_MAX, "%s", link);
    }
    return true;
}

/* Records a running process. The output file is named after the process. */
static int attach_recording(sj_record_values *options)
{
    char name[64];
    char binary[PATH_MAX];
    sj_error error = {0};
    pid_t pid = 0;
    sj_proc_status facts;
    const char *text = options->recording.arguments[0];
    if (options->recording.arguments[1] != NULL) {
        return sj_command_usage_error(command, "attach to one process, by its number or name");
    }
    if (sj_process_find(text, &pid, &error) != SJ_OK) {
        return sj_process_refuse(command, &error);
    }
    options->recording.attach_pid = pid;
    if (find_binary(pid, binary)) {
        if (check_map(options, binary, &error) != SJ_OK) {
            return sj_command_error(command, failure_code(), "%s", error.text);
        }
        sj_signature_check(options->policy.document, binary);
    }
    sj_value_capacity_each_crowded(options->policy.selection.values, SJ_LINK_METHOD_VALUES, NULL,
                                   note_crowded);
    snprintf(name, sizeof(name), "%s", text);
    if (sj_proc_status_read(pid, &facts) == SJ_OK) {
        snprintf(name, sizeof(name), "%s", facts.name);
        for (char *at = name; *at != '\0'; at++) {
            *at = *at == '/' || *at == ' ' ? '_' : *at;
        }
    }
    return start_recording(options, name);
}

static int run_record(int argc, char **argv)
{
    sj_record_values options = {.recording = {.max_bytes = DEFAULT_MAX_BYTES,
                                              .function_txt_bytes = DEFAULT_FUNCTION_TXT_BYTES,
                                              .asks_user_for_changes = true,
                                              .children = SJ_FOLLOW_FORK | SJ_FOLLOW_EXEC},
                                .wait_ms = USUAL_WAIT};
    int code = parse_options(argc, argv, &options);
    if (code < 0) {
        code = launch_recording(&options);
    } else if (code != SJ_EXIT_OK) {
        /* As in env(1) and timeout(1), wrong usage has a code that differs from the program's exit
         * codes. */
        code = SJ_EXIT_RECORD_FAILED;
    }
    sj_policy_free(&options.policy);
    sj_policy_draft_free(options.draft);
    return code;
}

static int run_attach(int argc, char **argv)
{
    sj_record_values options = {.recording = {.max_bytes = DEFAULT_MAX_BYTES,
                                              .function_txt_bytes = DEFAULT_FUNCTION_TXT_BYTES,
                                              .asks_user_for_changes = true,
                                              .children = SJ_FOLLOW_FORK},
                                .wait_ms = USUAL_WAIT};
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
    .summary = "record the calls of a running process, and restore it",
    .usage = "sojourn attach [OPTIONS] PID|NAME",
    .help =
        "The process continues: its threads are stopped for some milliseconds at the beginning\n"
        "and at the end. Ctrl-C, or `sojourn detach PID`, ends the recording and removes "
        "everything\n"
        "from the process. Calls that were open at the beginning are part of the recording.\n",
    .options = sj_attach_options,
    .examples =
        "All other options of `sojourn record` mean the same here: --policy, --budget, --module,\n"
        "--function, --exclude, --map, --collector, --max-bytes, --quiet, ... What is recorded "
        "can\n"
        "be changed meanwhile: `sojourn policy set`.\n"
        "\n"
        "Exit status: 0, 1 when the process could not be attached to or detached, 3 when it is\n"
        "not there.\n"
        "\n"
        "Examples:\n"
        "  sojourn attach 4711 --profile --for 30s --map app.map\n"
        "  sojourn attach -o run.db --exclude '*_unlock' nginx\n",
    .run = run_attach,
};

const sj_command sj_command_record = {
    .name = "record",
    .summary = "run a program and record the calls of its own code",
    .usage = "sojourn record [OPTIONS] [--] PROGRAM [ARGUMENTS]",
    .help =
        "Without options, the calls of the program and of its own libraries go to a database in\n"
        "the working directory. The exit status is the program's. A second Ctrl-C stops the\n"
        "recording, and the program continues. Messages go to standard error.\n",
    .options = sj_record_options,
    .examples =
        "Exit status: that of the program, 128 + N when signal N ended it; 125 when recording\n"
        "failed, 126 when the program cannot be executed, 127 when it was not found.\n"
        "\n"
        "Examples:\n"
        "  sojourn record -- ./app --its-option\n"
        "  sojourn record -o run.db --exclude '*_unlock' -- ./app\n"
        "  sojourn record --collector tcp://collector:7654 --name nightly -- ./app\n",
    .stops_at_argument = true,
    .run = run_record,
};
