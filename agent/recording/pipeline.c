#include "agent/recording/pipeline.h"

#include "agent/host/clock.h"
#include "agent/recording/empty_recording.h"
#include "agent/recording/pipeline_state.h"
#include "agent/session/session_frames.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum {
    PLAN_WAIT_MS = 20000,
    DEFAULT_THREADS = 512,
    DEFAULT_BLOCK_MS = 2000,
    FUNCTION_TXT_FILES = 4,
    /* Cost of a probe in a program with much code and data, relative to a probe in a loop that runs
     * from the caches. Measured: 1.9 on python3, 2.3 on perl (tests/bench/budget.py). In programs
     * with cheaper probes, the budget keeps fewer calls than it could. */
    COLD_PROBE = 2
};

static sj_status make_session_id(sj_pipeline *pipeline, sj_error *error)
{
    if (getrandom(pipeline->session.bytes, SJ_SESSION_ID_BYTES, 0) != SJ_SESSION_ID_BYTES) {
        return sj_fail(error, SJ_EIO, "no random numbers for the session: %s", strerror(errno));
    }
    sj_session_text(&pipeline->session, pipeline->session_text);
    return SJ_OK;
}

static sj_status choose_directories(sj_pipeline *pipeline, sj_error *error)
{
    const char *root = pipeline->options.spool_root;
    char usual[PATH_MAX];
    if (root == NULL) {
        SJ_TRY(sj_state_directory("spool", usual, sizeof(usual), error));
        root = usual;
    } else {
        SJ_TRY(sj_directory_make(root, error));
    }
    if (strlen(root) + SJ_SESSION_TEXT_BYTES + 8 >= PATH_MAX) {
        return sj_fail(error, SJ_ELIMIT, "%.64s...: the path is too long", root);
    }
    snprintf(pipeline->spool_directory, PATH_MAX, "%.4000s/%s", root, pipeline->session_text);
    snprintf(pipeline->destination_path, PATH_MAX, "%.4000s/%s.to", root, pipeline->session_text);
    if (!pipeline->options.no_plan_cache) {
        SJ_TRY(sj_cache_directory("plans", pipeline->cache_directory, PATH_MAX, error));
    }
    return sj_runtime_directory_make(&pipeline->session, pipeline->runtime_directory, PATH_MAX,
                                     error);
}

sj_status sj_pipeline_new(const sj_recording_options *options, sj_pipeline **pipeline,
                          sj_error *error)
{
    sj_pipeline *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    made->options = *options;
    made->destination = -1;
    made->journal.fd = -1;
    const sj_status status = sj_policy_changes_init(&made->changes, options->policy, error);
    if (status != SJ_OK) {
        free(made);
        return status;
    }
    *pipeline = made;
    return SJ_OK;
}

sj_status sj_pipeline_place(sj_pipeline *pipeline, sj_error *error)
{
    const sj_recording_options *options = &pipeline->options;
    sj_clock_read_pair(0, &pipeline->start_clock);
    SJ_TRY(make_session_id(pipeline, error));
    if (options->device != NULL) {
        pipeline->device = *options->device;
    } else {
        SJ_TRY(sj_device_read(&pipeline->device, error));
    }
    return choose_directories(pipeline, error);
}

/* Writes and locks the file that names the destination of the frames. `sojourn flush` reads this
 * file to deliver the frames of a killed recorder. The lock makes `sojourn flush` skip a living
 * recorder. */
static sj_status keep_destination(sj_pipeline *pipeline, sj_error *error)
{
    const char *address = pipeline->options.destination;
    char text[2 * PATH_MAX + 128];
    snprintf(text, sizeof(text), "%.4200s\n%.4000s\n%d\n", address != NULL ? address : "",
             pipeline->runtime_directory, (int)getpid());
    /* Rename the file last, so that other processes find only a complete and locked file. */
    char fresh[PATH_MAX + 8];
    snprintf(fresh, sizeof(fresh), "%s.new", pipeline->destination_path);
    pipeline->destination = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (pipeline->destination < 0 || flock(pipeline->destination, LOCK_EX | LOCK_NB) != 0 ||
        write(pipeline->destination, text, strlen(text)) != (ssize_t)strlen(text) ||
        rename(fresh, pipeline->destination_path) != 0) {
        return sj_fail(error, SJ_EIO, "cannot write %s: %s", pipeline->destination_path,
                       strerror(errno));
    }
    return SJ_OK;
}

sj_status sj_pipeline_keep(sj_pipeline *pipeline, sj_error *error)
{
    SJ_TRY(sj_journal_create(pipeline->runtime_directory, &pipeline->session, &pipeline->journal,
                             error));
    return keep_destination(pipeline, error);
}

static sj_status mark_from_outside(void *context, const char *name, bool end)
{
    const sj_pipeline *pipeline = context;
    if (!end) {
        sj_drain_signal(pipeline->drain, SJ_TRIGGER_MARK, name);
    }
    if (pipeline->table != NULL) {
        sj_changes_table_mark(pipeline->table, name, end);
    }
    return sj_frame_writer_mark(pipeline->writer, name, end, sj_clock_ticks(), 0, "cli");
}

/* Passes the command to the drain if a trigger of the policy matches. Otherwise returns
 * SJ_ENOTFOUND. */
static sj_status trigger_from_outside(void *context, const char *name)
{
    sj_pipeline *pipeline = context;
    sj_status status = SJ_ENOTFOUND;
    pthread_mutex_lock(&pipeline->changes.mutex);
    const sj_policy *policy = pipeline->changes.policy;
    for (size_t i = 0; policy != NULL && i < policy->trigger_count; i++) {
        const sj_trigger *trigger = &policy->triggers[i];
        if (trigger->event == SJ_TRIGGER_COMMAND &&
            (trigger->subject.text == NULL || sj_pattern_matches(&trigger->subject, name))) {
            status = SJ_OK;
        }
    }
    pthread_mutex_unlock(&pipeline->changes.mutex);
    if (status == SJ_OK) {
        sj_drain_signal(pipeline->drain, SJ_TRIGGER_COMMAND, name);
    }
    return status;
}

static void stalled(void *context, const char *name, uint64_t waited_ns)
{
    sj_pipeline *pipeline = context;
    sj_drain_stall(pipeline->drain, name, (uint64_t)((double)waited_ns / pipeline->ns_per_tick));
}

static void reply_to_policy(void *context, int fd)
{
    sj_pipeline *pipeline = context;
    pthread_mutex_lock(&pipeline->changes.mutex);
    const sj_policy *policy = pipeline->changes.policy;
    sj_link_reply(fd, policy != NULL ? SJ_LINK_DONE : SJ_LINK_REFUSED,
                  policy != NULL ? policy->document : "this recording has no policy");
    pthread_mutex_unlock(&pipeline->changes.mutex);
}

static sj_status start_uplink(sj_pipeline *pipeline, const sj_pipeline_options *means,
                              sj_error *error)
{
    const sj_spool_options spool = {.directory = pipeline->spool_directory,
                                    .budget_bytes = pipeline->options.spool_bytes,
                                    .root_budget_bytes = pipeline->options.spool_root_bytes};
    SJ_TRY(sj_spool_open(&spool, &pipeline->spool, error));
    const sj_session_uplink uplink = {.device = &pipeline->device,
                                      .directory = pipeline->spool_directory,
                                      .collectors = means->link->collectors,
                                      .collector_count = means->link->collector_count,
                                      .is_chosen_once = means->link->is_chosen_once,
                                      .link = {.channel = means->channel,
                                               .window = means->link->window,
                                               .waits = true,
                                               .resend_ms = means->resend_ms,
                                               .threadless = means->threadless}};
    return sj_session_uplink_start(&uplink, pipeline->spool, &pipeline->uplink, error);
}

static double ns_per_tick(const sj_pipeline *pipeline)
{
    sj_clock_rate rate;
    sj_clock_rate_finish(&pipeline->start_clock, &rate);
    return (double)rate.numerator / (double)rate.denominator;
}

/* True if the recording has a policy and the program does not run in an emulator. The present
 * policy need not watch freed memory, because a later policy may. */
static bool can_watch_zombies(const sj_recording_options *options)
{
    return options->policy != NULL &&
           (options->program == NULL || options->program->emulator[0] == '\0');
}

static sj_status start_zombies(sj_pipeline *pipeline, sj_error *error)
{
    const sj_zombies_options options = {
        .runtime_directory = pipeline->runtime_directory,
        .cache_directory = pipeline->cache_directory[0] != '\0' ? pipeline->cache_directory : NULL,
        .writer = pipeline->writer,
        .settings = sj_policy_zombies_of(pipeline->options.policy, &pipeline->session)};
    return sj_zombies_new(&options, &pipeline->zombies) == SJ_OK
               ? SJ_OK
               : sj_fail(error, SJ_ENOMEM, "out of memory");
}

static sj_status open_function_log(sj_pipeline *pipeline, sj_error *error)
{
    const sj_recording_options *options = &pipeline->options;
    const sj_function_log_options log = {.directory = options->function_txt,
                                         .max_bytes = options->function_txt_bytes,
                                         .max_files = options->function_txt_files != 0
                                                          ? (uint32_t)options->function_txt_files
                                                          : (uint32_t)FUNCTION_TXT_FILES,
                                         .start = pipeline->start_clock};
    if (options->function_txt == NULL) {
        return SJ_OK;
    }
    if (options->policy != NULL && options->policy->mode != SJ_POLICY_TRACE) {
        return sj_fail(error, SJ_EINVAL, "function.txt has every call: it needs --mode trace");
    }
    return sj_function_log_open(&log, &pipeline->function_log, error);
}

/* Shares the value rules of the policy. If some of them change calls, creates the table of
 * changes. */
static sj_status start_changes(sj_pipeline *pipeline, double tick_ns, sj_error *error)
{
    sj_value_rules *values = pipeline->options.selection.values;
    pipeline->values = sj_value_rules_share(values);
    if (sj_value_rules_change(values)) {
        SJ_TRY(sj_changes_start(pipeline, values, values, tick_ns, error));
        sj_function_rules_set_changes(pipeline->rules, pipeline->table);
    }
    return SJ_OK;
}

static uint32_t plan_wait_ms(const sj_recording_options *options)
{
    return options->plan_wait_ms > 0 ? (uint32_t)options->plan_wait_ms : PLAN_WAIT_MS;
}

static sj_status start_drain(sj_pipeline *pipeline, bool threadless, sj_error *error)
{
    const sj_policy *policy = pipeline->options.policy;
    const double tick_ns = policy != NULL ? ns_per_tick(pipeline) : 0;
    if (policy != NULL && sj_function_rules_new(policy, &pipeline->rules) != SJ_OK) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    SJ_TRY(start_changes(pipeline, tick_ns, error));
    if (policy != NULL &&
        sj_metadata_store_new(pipeline->runtime_directory, &pipeline->control) != SJ_OK) {
        return sj_fail(error, SJ_EIO, "cannot write to %s", pipeline->runtime_directory);
    }
    const unsigned redaction = policy != NULL ? sj_redaction_bits(&policy->redaction) : 0;
    pipeline->journal.data->redaction = redaction; /* recovery reads it */
    const sj_frame_writer_options writer = {.session = pipeline->session,
                                            .spool = pipeline->spool,
                                            .uplink = pipeline->uplink,
                                            .journal = &pipeline->journal,
                                            .control_store = pipeline->control,
                                            .function_log = pipeline->function_log,
                                            .max_bytes = pipeline->options.max_bytes,
                                            .redaction = redaction};
    if (sj_frame_writer_new(&writer, &pipeline->writer) != SJ_OK ||
        sj_class_table_new(&pipeline->classes) != SJ_OK) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    sj_selection_set_classes(&pipeline->options.selection, sj_class_table_find, pipeline->classes);
    const sj_registry_options registry = {
        .writer = pipeline->writer,
        .classes = pipeline->classes,
        .selection = &pipeline->options.selection,
        .sysroot = pipeline->options.program != NULL ? pipeline->options.program->sysroot : NULL,
        .runtime_directory = pipeline->runtime_directory,
        .cache_directory = pipeline->cache_directory[0] != '\0' ? pipeline->cache_directory : NULL,
        .rules = pipeline->rules,
        .journal = &pipeline->journal,
        .plan_threads = threadless ? 1 : sj_plan_threads(),
        .ahead = pipeline->ahead,
        .plan_wait_ms = threadless ? 0 : plan_wait_ms(&pipeline->options),
        .counts_calls = policy != NULL && policy->counts_calls};
    if (sj_registry_new(&registry, &pipeline->registry) != SJ_OK) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    if (can_watch_zombies(&pipeline->options)) {
        SJ_TRY(start_zombies(pipeline, error));
    }
    const sj_drain_options drain = {.writer = pipeline->writer,
                                    .zombies = pipeline->zombies,
                                    .registry = pipeline->registry,
                                    .journal = &pipeline->journal,
                                    .policy = policy,
                                    .rules = pipeline->rules,
                                    .ns_per_tick = tick_ns,
                                    .call_ns = tick_ns * sj_clock_probe_ticks() * COLD_PROBE,
                                    .runtime_directory = pipeline->runtime_directory,
                                    .may_count_calls = policy != NULL && policy->counts_calls,
                                    .threadless = threadless};
    return sj_drain_start(&drain, &pipeline->drain, error);
}

/* Returns the features that the agent enables (SJ_LINK_RUNTIME_*). The agent watches event loops
 * only in programs that the recorder starts, because redirected calls cannot be restored later.
 *
 * If the policy counts calls, the agent enables only counting and event loops. The probes for
 * methods of runtimes cannot write the short records of counted calls. */
static uint32_t list_runtimes(const sj_recording_options *options)
{
    const bool watches_loops = options->policy != NULL && options->attach_pid == 0 &&
                               sj_policy_watches_loops(options->policy);
    const bool counts_calls = options->policy != NULL && options->policy->counts_calls;
    if (counts_calls) {
        return (watches_loops ? (uint32_t)SJ_LINK_RUNTIME_LOOPS : 0) |
               (uint32_t)SJ_LINK_RUNTIME_COUNTING;
    }
    return sj_selection_runtime_bits(&options->selection) |
           (watches_loops ? (uint32_t)SJ_LINK_RUNTIME_LOOPS : 0) |
           (options->selection.library_calls ? (uint32_t)SJ_LINK_RUNTIME_LIBRARY_CALLS : 0) |
           (can_watch_zombies(options) ? (uint32_t)SJ_LINK_RUNTIME_ZOMBIES : 0) |
           (can_watch_zombies(options) && options->policy->zombies.objects.is_on != 0
                ? (uint32_t)SJ_LINK_RUNTIME_OBJC_ZOMBIES
                : 0);
}

static sj_status joined(void *context, const sj_link_process *process)
{
    const sj_pipeline *pipeline = context;
    return pipeline->joined(pipeline->owner, process);
}

static sj_status policy_from_outside(void *context, sj_slice document, int fd)
{
    return sj_policy_change_request(context, document, fd);
}

static sj_status start_link(sj_pipeline *pipeline, const sj_pipeline_options *means,
                            sj_error *error)
{
    const sj_recording_options *options = &pipeline->options;
    pipeline->joined = means->joined;
    pipeline->owner = means->context;
    pipeline->may_count_calls = options->policy != NULL && options->policy->counts_calls;
    const sj_link_server_options link = {
        .runtime_directory = pipeline->runtime_directory,
        .welcome = {.session = pipeline->session,
                    .runtimes = list_runtimes(options),
                    .max_threads =
                        options->max_threads != 0 ? options->max_threads : DEFAULT_THREADS,
                    .chunks_per_thread = options->chunks_per_thread != 0
                                             ? options->chunks_per_thread
                                             : SJ_ARENA_MAX_CHUNKS,
                    .full_policy = (uint32_t)options->full_policy,
                    .wait_ms = options->block_ms != 0 ? options->block_ms : DEFAULT_BLOCK_MS,
                    .follow_children = options->children},
        .registry = pipeline->registry,
        .context = pipeline,
        .joined = joined,
        .mark = mark_from_outside,
        .trigger = trigger_from_outside,
        .stall = stalled,
        .policy = means->takes_policies ? policy_from_outside : NULL,
        .reply_to_policy = reply_to_policy,
        .threadless = means->threadless};
    return sj_link_server_start(&link, &pipeline->link, error);
}

/* Writes the arguments, separated by spaces, and truncates the text to `capacity`. */
static void join_arguments(char *const *arguments, char *text, size_t capacity)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; arguments[i] != NULL && used + 1 < capacity; i++) {
        const int written =
            snprintf(text + used, capacity - used, "%s%s", i != 0 ? " " : "", arguments[i]);
        used += written > 0 ? (size_t)written : 0;
    }
}

size_t sj_recording_missed(const sj_recording_options *options, const char *texts[SJ_POLICY_MISSED])
{
    return options->policy != NULL
               ? sj_policy_missed(options->policy, options->attach_pid != 0, texts)
               : 0;
}

/* Returns a JSON list of the parts of the policy that the process does not get, or NULL if there
 * are none. The caller frees the text. */
static char *list_missed(const sj_pipeline *pipeline)
{
    const char *texts[SJ_POLICY_MISSED];
    const size_t count = sj_recording_missed(&pipeline->options, texts);
    json_t *list = count != 0 ? json_array() : NULL;
    for (size_t i = 0; i < count; i++) {
        (void)json_array_append_new(list, json_string(texts[i]));
    }
    char *text = list != NULL ? json_dumps(list, 0) : NULL;
    json_decref(list);
    return text;
}

static sj_status announce_session(sj_pipeline *pipeline, sj_error *error)
{
    char command[4096];
    const sj_policy *policy = pipeline->options.policy;
    sj_clock_rate_finish(&pipeline->start_clock, &pipeline->rate);
    pipeline->ns_per_tick = (double)pipeline->rate.numerator / (double)pipeline->rate.denominator;
    sj_clock_read_pair(pipeline->ns_per_tick, &pipeline->start_clock);
    pipeline->journal.data->ns_per_tick = pipeline->ns_per_tick;
    if (pipeline->options.attach_pid != 0) {
        snprintf(command, sizeof(command), "attached to %d", (int)pipeline->options.attach_pid);
    } else {
        join_arguments(pipeline->options.arguments, command, sizeof(command));
    }
    const sj_session_start start = {
        .device = &pipeline->device,
        .name = pipeline->options.name,
        .command = command,
        .mode = sj_policy_mode_text(policy != NULL ? policy->mode : SJ_POLICY_TRACE),
        .policy = policy,
        .clock = pipeline->start_clock,
        .rate = pipeline->rate,
        .time_step = sj_drain_time_step(pipeline->drain)};
    sj_status status = sj_session_frame_send(pipeline->writer, &start);
    if (status == SJ_OK && policy != NULL) {
        sj_policy_changes *changes = &pipeline->changes;
        changes->not_applied = list_missed(pipeline);
        changes->ticks = pipeline->start_clock.ticks;
        status = sj_policy_frame_send(pipeline->writer, 1, policy, changes->ticks,
                                      changes->not_applied != NULL ? changes->not_applied : "");
    }
    if (status == SJ_OK) {
        status = sj_clock_frame_send(pipeline->writer, &pipeline->device, &pipeline->start_clock);
    }
    return status == SJ_OK ? SJ_OK
                           : sj_fail(error, status, "cannot begin the session in %s: %s",
                                     pipeline->spool_directory, sj_status_text(status));
}

sj_status sj_pipeline_start(sj_pipeline *pipeline, const sj_pipeline_options *means,
                            sj_error *error)
{
    SJ_TRY(open_function_log(pipeline, error));
    SJ_TRY(start_uplink(pipeline, means, error));
    SJ_TRY(start_drain(pipeline, means->threadless, error));
    SJ_TRY(announce_session(pipeline, error));
    /* Start the link last: marks and triggers may then arrive at any time, and they belong to the
     * session. */
    return start_link(pipeline, means, error);
}

void sj_pipeline_send_clock(sj_pipeline *pipeline)
{
    sj_clock_pair pair;
    sj_clock_read_pair(pipeline->ns_per_tick, &pair);
    (void)!sj_clock_frame_send(pipeline->writer, &pipeline->device, &pair);
}

/* CPU time that an agent causes but does not measure (tests/bench/cost_summary.py). The factor
 * agent_in_use adds the program's page faults after patching. program_ns and fork_ns are added for
 * each started program and each forked process: loading the agent and unmapping its memory. */
static const double agent_in_use = 1.2;
static const double program_ns = 550e3;
static const double fork_ns = 200e3;

/* Cost of a probe in a program, relative to a probe in an undisturbed loop (cost_line.py). */
static const double probe_in_programs = 1.0;

static uint64_t start_cpu_ns(const sj_recording_summary *summary)
{
    const sj_registry_counters *registry = &summary->registry;
    const double all = agent_in_use * (double)summary->drain.agent_cpu_ns +
                       program_ns * (double)(registry->processes - registry->forked) +
                       fork_ns * (double)registry->forked;
    return all > (double)registry->hook_ns ? (uint64_t)all - registry->hook_ns : 0;
}

/* Cost of watching freed memory, relative to the time that the monitors measure. The factor adds
 * the program's page faults on guarded pages (cost_line.py). */
static const double first_touches = 1.15;

/* Returns the estimated CPU time of watching freed memory. The monitors measure elapsed time, so
 * the function subtracts the share in which threads waited for a processor. */
static uint64_t watch_cpu_ns(const sj_pipeline *pipeline)
{
    const sj_drain_counters *drain = &pipeline->summary.drain;
    const double passed_ns =
        (double)sj_zombies_watch_ticks(pipeline->zombies) * pipeline->ns_per_tick;
    const double threads_ns = (double)(drain->watched_cpu_ns + drain->watched_ready_ns);
    return (uint64_t)(first_touches * (threads_ns > 0
                                           ? passed_ns * (double)drain->watched_cpu_ns / threads_ns
                                           : passed_ns));
}

static void add_unchanging(void *context, const char *text)
{
    sj_recording_summary *summary = context;
    const size_t used = strlen(summary->unchanging);
    snprintf(summary->unchanging + used, sizeof(summary->unchanging) - used, "%s%s",
             used != 0 ? "\n" : "", text);
}

/* Reports an exception that ended at least SJ_DEEP_THROW calls. The summary reports the exception,
 * too. */
static void report_deep_throw(const sj_pipeline *pipeline, uint64_t calls)
{
    char json[64];
    snprintf(json, sizeof(json), "{\"calls\":%llu}", (unsigned long long)calls);
    const sj_report report = {.ticks = sj_clock_ticks(),
                              .monitor = "recorder",
                              .kind = "deep_exception",
                              .json = json,
                              .json_bytes = strlen(json)};
    if (calls >= SJ_DEEP_THROW) {
        (void)!sj_frame_writer_report(pipeline->writer, &report); /* the writer counts failures */
    }
}

void sj_pipeline_summarize(sj_pipeline *pipeline, const char *how)
{
    sj_recording_summary *summary = &pipeline->summary;
    if (pipeline->rules != NULL) {
        sj_policy_change_settle(pipeline, summary->unmatched, sizeof(summary->unmatched));
        summary->unchanging[0] = '\0';
        sj_function_rules_each_unchanging(pipeline->rules, summary, add_unchanging);
    }
    summary->session = pipeline->session;
    summary->how = how;
    summary->elapsed_ns = sj_clock_ns(CLOCK_MONOTONIC) - pipeline->start_clock.monotonic_ns;
    summary->ns_per_tick = pipeline->ns_per_tick;
    snprintf(summary->spool_directory, sizeof(summary->spool_directory), "%s",
             pipeline->spool_directory);
    sj_drain_get_counters(pipeline->drain, &summary->drain);
    sj_registry_end_late(pipeline->registry);
    sj_registry_end_unrecorded(pipeline->registry);
    report_deep_throw(pipeline, summary->drain.longest_throw);
    sj_registry_get_counters(pipeline->registry, &summary->registry);
    sj_frame_writer_get_counters(pipeline->writer, &summary->writer);
    summary->lost_calls = summary->writer.block_lost_calls + summary->writer.gap_calls +
                          summary->drain.unreported_calls;
    summary->lost_events = summary->writer.block_lost_events + summary->writer.gap_events +
                           summary->drain.unreported_events;
    summary->calls = summary->writer.block_calls + summary->lost_calls;
    sj_empty_recording_explain(summary, pipeline->changes.policy, pipeline->rules,
                               summary->empty_because, sizeof(summary->empty_because));
    const double probes = (double)(summary->drain.records + summary->lost_events) -
                          (1 - SJ_UNTIMED_PRICE) * (double)summary->drain.short_records;
    summary->estimated_probe_ns =
        (uint64_t)(probe_in_programs * sj_clock_call_ticks() * summary->ns_per_tick * probes / 2);
    summary->cost = (sj_recording_cost){
        .cpu_ns = summary->traced_cpu_ns,
        .probe_cpu_ns = summary->estimated_probe_ns,
        .probe_pairs = (uint64_t)(probes / 2),
        .hook_cpu_ns = summary->registry.hook_ns + summary->registry.jvm_transformed_ns,
        .start_cpu_ns = start_cpu_ns(summary),
        .plan_wall_ns = summary->registry.plan_ns,
        .waited_ns = (uint64_t)((double)summary->drain.waited_ticks * summary->ns_per_tick),
        .recorder_cpu_ns = summary->drain.cpu_ns,
        .watch_cpu_ns = watch_cpu_ns(pipeline)};
    sj_recording_cost_settle(&summary->cost);
    summary->estimated_probe_ns = summary->cost.probe_cpu_ns;
}

sj_status sj_pipeline_end_session(sj_pipeline *pipeline)
{
    const sj_recording_summary *summary = &pipeline->summary;
    sj_session_finish finish = {.how = summary->how,
                                .records = summary->drain.records,
                                .calls = summary->calls,
                                .lost_calls = summary->lost_calls,
                                .lost_events = summary->lost_events,
                                .blocks = summary->writer.blocks,
                                .traced_cpu_ns = summary->traced_cpu_ns,
                                .estimated_probe_ns = summary->estimated_probe_ns};
    sj_clock_read_pair(pipeline->ns_per_tick, &finish.clock);
    SJ_TRY(sj_clock_frame_send(pipeline->writer, &pipeline->device, &finish.clock));
    return sj_session_end_frame_send(pipeline->writer, &finish);
}

void sj_pipeline_close_spool(sj_pipeline *pipeline)
{
    sj_uplink_stop(pipeline->uplink);
    pipeline->uplink = NULL;
    if (pipeline->summary.delivered && sj_spool_remove(pipeline->spool, NULL) == SJ_OK) {
        unlink(pipeline->destination_path);
    } else {
        /* a delivered spool that cannot be removed counts as not answered */
        pipeline->summary.answered &= !pipeline->summary.delivered;
        pipeline->summary.delivered = false;
        sj_spool_close(pipeline->spool);
    }
    pipeline->spool = NULL;
    pipeline->is_spool_closed = true;
}

void sj_pipeline_free(sj_pipeline *pipeline)
{
    if (pipeline == NULL) {
        return;
    }
    sj_link_server_stop(pipeline->link);
    sj_drain_free(pipeline->drain);
    sj_zombies_free(pipeline->zombies);
    sj_registry_free(pipeline->registry);
    sj_plan_ahead_free(pipeline->ahead);
    sj_class_table_free(pipeline->classes);
    sj_function_rules_free(pipeline->rules);
    sj_changes_table_free(pipeline->table);
    sj_value_rules_free(pipeline->values);
    sj_policy_changes_deinit(&pipeline->changes);
    if (pipeline->uplink != NULL) {
        sj_uplink_stop(pipeline->uplink);
    }
    sj_frame_writer_free(pipeline->writer);
    sj_function_log_close(pipeline->function_log);
    sj_metadata_store_free(pipeline->control);
    if (pipeline->spool != NULL) {
        sj_spool_close(pipeline->spool);
        sj_directory_remove(pipeline->spool_directory);
    }
    if (pipeline->destination >= 0) {
        if (!pipeline->is_spool_closed) {
            unlink(pipeline->destination_path);
        }
        close(pipeline->destination);
    }
    sj_journal_close(&pipeline->journal);
    if (pipeline->runtime_directory[0] != '\0') {
        sj_directory_remove(pipeline->runtime_directory);
    }
    free(pipeline);
}

sj_drain *sj_pipeline_drain(const sj_pipeline *pipeline)
{
    return pipeline->drain;
}

sj_link_server *sj_pipeline_link(const sj_pipeline *pipeline)
{
    return pipeline->link;
}

sj_uplink *sj_pipeline_uplink(const sj_pipeline *pipeline)
{
    return pipeline->uplink;
}

sj_frame_writer *sj_pipeline_frame_writer(const sj_pipeline *pipeline)
{
    return pipeline->writer;
}

const char *sj_pipeline_runtime_directory(const sj_pipeline *pipeline)
{
    return pipeline->runtime_directory;
}

const char *sj_pipeline_spool_directory(const sj_pipeline *pipeline)
{
    return pipeline->spool_directory;
}

void sj_pipeline_set_main_process(sj_pipeline *pipeline, uint64_t process)
{
    atomic_store(&pipeline->main_process, process);
}

void sj_pipeline_stop_collecting(sj_pipeline *pipeline, sj_link_server_counters *link)
{
    if (pipeline->table != NULL) {
        sj_changes_table_stop(pipeline->table);
    }
    sj_drain_finish(pipeline->drain);
    sj_link_server_get_counters(pipeline->link, link);
    sj_link_server_stop(pipeline->link);
    pipeline->link = NULL;
    if (pipeline->function_log != NULL) {
        sj_function_log_advance(pipeline->function_log, UINT64_MAX);
        sj_function_log_get_counters(pipeline->function_log, &pipeline->summary.function_log);
    }
}

void sj_pipeline_end_main_process(sj_pipeline *pipeline, const sj_process_end *end)
{
    const uint64_t process = atomic_load(&pipeline->main_process);
    if (process != 0) {
        (void)!sj_registry_end_process(pipeline->registry, process, end);
    }
}

void sj_pipeline_set_traced_cpu(sj_pipeline *pipeline, uint64_t cpu_ns)
{
    pipeline->summary.traced_cpu_ns = cpu_ns;
}

const char *sj_pipeline_set_delivered(sj_pipeline *pipeline, bool answered)
{
    sj_recording_summary *summary = &pipeline->summary;
    sj_spool_aside aside;
    const bool has_aside = sj_spool_aside_read(pipeline->spool_directory, &aside);
    if (has_aside) {
        sj_spool_aside_text(&aside, pipeline->spool_directory, summary->set_aside);
    }
    summary->answered = answered;
    summary->delivered = answered && !has_aside;
    return summary->set_aside;
}
