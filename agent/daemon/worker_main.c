#include "agent/abi/link.h"
#include "agent/daemon/app_runtime.h"
#include "agent/daemon/apps.h"
#include "agent/daemon/enrolment.h"
#include "agent/daemon/json_memory.h"
#include "agent/daemon/worker.h"
#include "agent/host/directories.h"
#include "agent/policy/draft.h"
#include "agent/recording/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DELIVER_MS = 5000, WORDS_MAX = 1024 };

extern char **environ;

/* The state of this worker process. */
typedef struct worker {
    const json_t *task;
    int reply; /* -1: the reply was written. */
    char *words[WORDS_MAX + 1];
    char spool_root[PATH_MAX];
    sj_program program;
    sj_policy policy;
    sj_device device;
    sj_enrolment enrolment;
    sj_recording *recording;
    sj_recording_summary summary;
} worker;

static const char *text_of(const json_t *task, const char *key)
{
    return json_string_value(json_object_get(task, key));
}

static sj_status append_all(const json_t *task, const char *key, sj_policy_draft *draft,
                            const char *policy_key, sj_error *error)
{
    size_t index;
    json_t *glob;
    json_array_foreach(json_object_get(task, key), index, glob)
    {
        const char *text = json_string_value(glob);
        if (text == NULL || sj_policy_draft_append(draft, policy_key, text) != SJ_OK) {
            return sj_fail(error, SJ_EINVAL, "\"%s\" has to be a list of patterns", key);
        }
    }
    return SJ_OK;
}

static sj_status fill_draft(const json_t *task, sj_policy_draft *draft, sj_error *error)
{
    const json_t *document = json_object_get(task, "policy");
    if (json_is_string(document)) {
        SJ_TRY(sj_policy_draft_load(draft, json_string_value(document), error));
    } else if (document != NULL) {
        char *text = json_dumps(document, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
        const sj_status status =
            text != NULL ? sj_policy_draft_parse(draft, text, strlen(text), "policy", error)
                         : sj_fail(error, SJ_EINVAL, "\"policy\" is not a document");
        free(text);
        SJ_TRY(status);
    }
    if (json_is_true(json_object_get(task, "libs"))) {
        SJ_TRY(sj_policy_draft_true(draft, "modules.system"));
    }
    SJ_TRY(append_all(task, "modules", draft, "modules.include", error));
    SJ_TRY(append_all(task, "functions", draft, "functions.include", error));
    return append_all(task, "exclude", draft, "functions.exclude", error);
}

/* Merges all parts of the task that select what is recorded into one policy. */
static sj_status parse_policy(const json_t *task, sj_policy *policy, sj_error *error)
{
    sj_policy_draft *draft = NULL;
    const unsigned before = sj_json_memory_failures();
    SJ_TRY(sj_policy_draft_new(&draft, error));
    sj_status status = fill_draft(task, draft, error);
    if (status == SJ_OK) {
        status = sj_policy_draft_finish(draft, policy, error);
    }
    sj_policy_draft_free(draft);
    /* A pattern that lost a character would select other functions. */
    return sj_json_memory_failures() == before
               ? status
               : sj_fail(error, SJ_ENOMEM, "out of memory for the policy");
}

static void fill_words(const json_t *command, char **words)
{
    size_t index;
    json_t *word;
    json_array_foreach(command, index, word)
    {
        words[index] = (char *)(uintptr_t)json_string_value(word);
    }
    words[json_array_size(command)] = NULL;
}

/* Changes to the app's directory and sets its environment. Then runs its preparation steps, unless
 * the task says that they were run before. */
static sj_status prepare_app(const json_t *task, sj_error *error)
{
    size_t index;
    json_t *command;
    const char *key;
    json_t *value;
    const char *directory = text_of(task, "directory");
    if (directory != NULL && chdir(directory) != 0) {
        return sj_fail(error, SJ_ENOTFOUND, "%s: %s", directory, strerror(errno));
    }
    json_object_foreach(json_object_get(task, "environment"), key, value)
    {
        if (setenv(key, json_string_value(value), 1) != 0) {
            return sj_fail(error, SJ_EINVAL, "cannot set the variable \"%.100s\": %s", key,
                           strerror(errno));
        }
    }
    if (json_is_true(json_object_get(task, "prepared"))) {
        return SJ_OK;
    }
    json_array_foreach(json_object_get(task, "prepare"), index, command)
    {
        char *words[WORDS_MAX + 1];
        int wait_status = 0;
        pid_t pid = 0;
        fill_words(command, words);
        const int result = posix_spawnp(&pid, words[0], NULL, NULL, words, environ);
        if (result != 0 || waitpid(pid, &wait_status, 0) != pid || wait_status != 0) {
            return sj_fail(error, SJ_EIO, "preparation step %zu (%s) failed: %s", index + 1,
                           words[0], result != 0 ? strerror(result) : "see its output");
        }
    }
    return SJ_OK;
}

/* Redirects the program's output to a log file of its own, and keeps the daemon's pipe for the
 * reply. */
static sj_status redirect(const json_t *task, int *reply, sj_error *error)
{
    char directory[PATH_MAX];
    char path[PATH_MAX + 64];
    const char *stamp = text_of(task, "stamp");
    SJ_TRY(sj_state_directory("device/logs", directory, sizeof(directory), error));
    snprintf(path, sizeof(path), "%s/%.32s.log", directory, stamp != NULL ? stamp : "session");
    const int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    *reply = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    if (log < 0 || nothing < 0 || *reply < 0 || dup2(nothing, STDIN_FILENO) < 0 ||
        dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0) {
        return sj_fail(error, SJ_EIO, "cannot write %s: %s", path, strerror(errno));
    }
    close(log);
    close(nothing);
    return SJ_OK;
}

/* Writes a line to the daemon, and releases it. Only the first line is written. */
static void reply_to_daemon(worker *self, json_t *line)
{
    if (line != NULL && self->reply >= 0) {
        (void)json_dumpfd(line, self->reply, JSON_COMPACT);
        (void)!write(self->reply, "\n", 1);
        close(self->reply);
        self->reply = -1;
    }
    json_decref(line);
}

static void report_error(worker *self, const char *text)
{
    reply_to_daemon(self, json_pack("{ss}", "error", text));
}

/* Reports that the recording runs, and under which policy. */
static void report_session(void *context, const sj_recording_progress *progress)
{
    worker *self = context;
    char session[SJ_SESSION_TEXT_BYTES];
    const char *from = text_of(self->task, "policy_from");
    (void)progress;
    if (self->reply >= 0) {
        sj_session_text(sj_recording_session(self->recording), session);
        reply_to_daemon(self, json_pack("{ss ss ss}", "session", session, "policy",
                                        from != NULL ? self->policy.name : "", "policy_from",
                                        from != NULL ? from : ""));
    }
}

static uint64_t number_of(const worker *self, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(self->task, key));
}

static sj_status find_program(worker *self, sj_recording_options *options, sj_error *error)
{
    SJ_TRY(sj_apps_check(self->task, error));
    SJ_TRY(prepare_app(self->task, error));
    fill_words(json_object_get(self->task, "command"), self->words);
    options->arguments = self->words;
    options->program = &self->program;
    options->children = SJ_FOLLOW_FORK | SJ_FOLLOW_EXEC;
    return sj_program_find(self->words[0], &self->program, error) == SJ_PROGRAM_FINE ? SJ_OK
                                                                                     : SJ_EINVAL;
}

static sj_status prepare_recording(worker *self, sj_error *error)
{
    const sj_policy *policy = &self->policy;
    SJ_TRY(sj_enrolment_load(&self->enrolment, error));
    SJ_TRY(sj_state_directory("device/spool", self->spool_root, sizeof(self->spool_root), error));
    SJ_TRY(sj_enrolment_device(&self->device, error));
    SJ_TRY(parse_policy(self->task, &self->policy, error));
    sj_recording_options options = {.device = &self->device,
                                    .name = text_of(self->task, "name"),
                                    .spool_root = self->spool_root,
                                    .destination = self->enrolment.collectors[0].url,
                                    .selection = policy->selection,
                                    .chunks_per_thread = policy->chunks_per_thread,
                                    .full_policy =
                                        policy->drop_when_full ? SJ_FULL_DROP_NEW : SJ_FULL_WAIT,
                                    .block_ms = policy->block_ms,
                                    .max_bytes = number_of(self, "max_bytes"),
                                    .spool_root_bytes = number_of(self, "spool_bytes"),
                                    .duration_ms = number_of(self, "duration_ms"),
                                    .attach_pid = (pid_t)number_of(self, "pid"),
                                    .context = self,
                                    .progress = report_session};
    options.policy = text_of(self->task, "policy_from") != NULL ? policy : NULL;
    if (options.attach_pid != 0) {
        options.children = SJ_FOLLOW_FORK;
    } else {
        SJ_TRY(find_program(self, &options, error));
    }
    return sj_recording_prepare(&options, &self->recording, error);
}

/* Runs only the preparation. Reports the program's runtime and what recording needs. */
static int prepare(worker *self)
{
    sj_error error = {0};
    json_t *needs = NULL;
    sj_status status = sj_apps_check(self->task, &error);
    if (status == SJ_OK) {
        status = prepare_app(self->task, &error);
    }
    if (status == SJ_OK) {
        status = sj_app_runtime_needs(self->task, &needs, &error);
    }
    if (status == SJ_OK) {
        reply_to_daemon(
            self, json_pack("{ss sO}", "runtime", sj_app_runtime_find(self->task), "needs", needs));
    } else {
        report_error(self, error.text);
    }
    json_decref(needs);
    return status == SJ_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int record(worker *self)
{
    sj_error error = {0};
    int exec_errno = 0;
    sj_status status = prepare_recording(self, &error);
    if (status == SJ_OK) {
        const sj_recording_link link = {.collectors = self->enrolment.collectors,
                                        .collector_count = self->enrolment.count,
                                        .is_chosen_once = true,
                                        .wait_ms = DELIVER_MS,
                                        .stays_for_spool = true};
        status = sj_recording_run(self->recording, &link, &self->summary, &exec_errno, &error);
    }
    if (status == SJ_OK) {
        report_session(self, NULL); /* The recording may end before its first progress report. */
    } else {
        report_error(self, error.text);
        fprintf(stderr, "sojourn-device: %s\n", error.text);
    }
    sj_recording_free(self->recording);
    sj_policy_free(&self->policy);
    sj_enrolment_deinit(&self->enrolment);
    return status == SJ_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}

int sj_worker_main(void)
{
    static worker self = {.reply = STDOUT_FILENO};
    json_error_t problem;
    sj_error error = {0};
    json_t *task = sj_json_parse_file(stdin, &problem);
    int code = EXIT_FAILURE;
    self.task = task;
    if (task == NULL) {
        report_error(&self, problem.text);
    } else if (redirect(task, &self.reply, &error) != SJ_OK) {
        report_error(&self, error.text);
    } else {
        code = json_is_true(json_object_get(task, "only_prepare")) ? prepare(&self) : record(&self);
    }
    json_decref(task);
    return code;
}
