/* Design notes
 *
 * The link's thread receives a request. The recording's thread carries it out, because it also
 * attaches to processes and leaves them: no other thread may trace them meanwhile. The link's
 * thread serves the agents that are asked for more hooks.
 *
 * The steps:
 * 1. Suspend the budget.
 * 2. Select plans and rules again.
 * 3. Change the drain's mode and filters.
 * 4. Change the processes' hooks.
 * 5. Resume the budget.
 *
 * What cannot be changed in a running process (its buffers) is reported. */
#include "agent/attach/live_runtimes.h"
#include "agent/host/clock.h"
#include "agent/livepatch/heap_watch.h"
#include "agent/livepatch/jvm_request.h"
#include "agent/livepatch/mono_request.h"
#include "agent/livepatch/mute.h"
#include "agent/livepatch/transition.h"
#include "agent/recording/change_permit.h"
#include "agent/recording/each_process.h"
#include "agent/recording/pipeline_state.h"
#include "agent/session/session_frames.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { PROCESSES_MAX = 1024, UNMATCHED_BYTES = 1024, MUTED_MAX = 1024 };

#define BUDGET_WAIT_NS UINT64_C(1000000000) /* maximum time of one wait for the budget */

/* The effects of a change, in all processes. */
typedef struct change_sums {
    json_t *not_applied; /* list of texts */
    size_t processes;
    size_t hooked;
    size_t freed;
    size_t refused;      /* functions that are wanted and could not be hooked */
    size_t kept;         /* functions that are not wanted and could not be unhooked */
    size_t stale;        /* functions that still record what they did before */
    size_t unsure;       /* processes in which a call may bypass its hook */
    size_t failed;       /* living processes that could not be changed */
    uint64_t stopped_ns; /* the longest stop of a process */
} change_sums;

sj_status sj_policy_changes_init(sj_policy_changes *changes, const sj_policy *policy,
                                 sj_error *error)
{
    *changes = (sj_policy_changes){.policy = policy, .number = 1, .reply = -1};
    pthread_mutex_init(&changes->mutex, NULL);
    changes->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return changes->wake >= 0 ? SJ_OK
                              : sj_fail(error, SJ_EIO, "cannot make an event: %s", strerror(errno));
}

static void free_policy(sj_policy *policy)
{
    if (policy != NULL) {
        sj_policy_free(policy);
        free(policy);
    }
}

void sj_policy_changes_deinit(sj_policy_changes *changes)
{
    if (changes->wake >= 0) {
        close(changes->wake);
    }
    if (changes->reply >= 0) {
        close(changes->reply);
    }
    free_policy(changes->owned);
    free(changes->requested);
    free(changes->not_applied);
    pthread_mutex_destroy(&changes->mutex);
}

static sj_status keep_request(sj_policy_changes *changes, sj_slice document, int fd)
{
    if (changes->policy == NULL) {
        return SJ_EUNSUPPORTED;
    }
    if (changes->requested != NULL) {
        return SJ_EAGAIN;
    }
    char *copy = malloc(document.size + 1);
    const int reply = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy == NULL || reply < 0) {
        free(copy);
        return SJ_ENOMEM;
    }
    memcpy(copy, document.data, document.size);
    changes->requested = copy;
    changes->requested_bytes = document.size;
    changes->reply = reply;
    return SJ_OK;
}

sj_status sj_policy_change_request(sj_pipeline *pipeline, sj_slice document, int fd)
{
    sj_policy_changes *changes = &pipeline->changes;
    pthread_mutex_lock(&changes->mutex);
    const sj_status status = keep_request(changes, document, fd);
    pthread_mutex_unlock(&changes->mutex);
    if (status == SJ_OK) {
        (void)eventfd_write(changes->wake, 1);
    }
    return status;
}

static void note_problem(change_sums *sums, const char *text)
{
    (void)json_array_append_new(sums->not_applied, json_string(text));
}

static void note_text(void *sums, const char *text)
{
    note_problem(sums, text);
}

/* Unmutes all Java methods of a process that the budget had muted. If the process refuses, they
 * stay muted until the next policy. */
static void unmute_all(const sj_pipeline *pipeline, uint64_t process, pid_t pid,
                       sj_unhooked_set *freed, change_sums *sums)
{
    uint32_t methods[MUTED_MAX];
    size_t count = 0;
    sj_status status = SJ_OK;
    do {
        sj_error error = {0};
        uint64_t stopped_ns = 0;
        count = sj_registry_find_all_muted(pipeline->registry, process, methods, MUTED_MAX);
        if (count != 0) {
            status = sj_mute_functions(pid, methods, count, false, freed, &stopped_ns, &error);
        }
        if (status == SJ_OK) {
            (void)sj_registry_unmute_found(pipeline->registry, process, methods, count);
        } else if (kill(pid, 0) == 0) {
            note_problem(sums, error.text);
        }
    } while (status == SJ_OK && count == MUTED_MAX);
}

/* The change that all processes must apply. */
typedef struct reselection {
    sj_pipeline *pipeline;
    const sj_function_states *states;
    change_sums *sums;
} reselection;

/* Applies the change to one process. Errors of a process that has ended are ignored. */
static void reselect_process(void *context, pid_t pid)
{
    const reselection *wanted = context;
    sj_pipeline *pipeline = wanted->pipeline;
    change_sums *sums = wanted->sums;
    uint64_t process = 0;
    sj_error error = {0};
    sj_transition_report report;
    if (sj_registry_find_process(pipeline->registry, pid, &process) != SJ_OK) {
        return;
    }
    const bool has_methods = !pipeline->may_count_calls;
    if (has_methods && sj_live_runtimes_are_bound(pid) && sj_mono_select(pid, &error) != SJ_OK &&
        kill(pid, 0) == 0) {
        note_problem(sums, error.text);
    }
    sj_unhooked_set *freed = NULL;
    (void)!sj_drain_share_freed(pipeline->drain, process, &freed);
    const sj_status status = sj_transition_process(pipeline->registry, process, pid, wanted->states,
                                                   freed, &report, &error);
    unmute_all(pipeline, process, pid, freed, sums);
    sj_unhooked_set_release(freed);
    if (status != SJ_OK && kill(pid, 0) == 0) {
        note_problem(sums, error.text);
        sums->failed++;
    }
    bool is_joined = false;
    if (status == SJ_OK && has_methods && sj_live_runtimes_are_joined(pid) &&
        sj_jvm_select(pid, &is_joined, &error) != SJ_OK && kill(pid, 0) == 0) {
        note_problem(sums, error.text);
    }
    (void)!sj_drain_catch_up(pipeline->drain, process);
    size_t reported = 0;
    (void)!sj_registry_report_missed(pipeline->registry, process, report.missed,
                                     report.missed_count, &reported);
    sums->processes++;
    sums->hooked += report.hooked_count;
    sums->freed += report.freed_count;
    sums->refused += reported;
    sums->kept += report.kept_count;
    sums->stale += report.stale_count;
    sums->unsure += report.is_unsure;
    sums->stopped_ns = report.stopped_ns > sums->stopped_ns ? report.stopped_ns : sums->stopped_ns;
    sj_transition_report_deinit(&report);
}

/* Restores the settings of a runtime that were fixed when the processes joined. Reports the changes
 * that the policy asked for. */
static void keep_runtime(const sj_runtime *runtime, const sj_runtime_selection *fixed,
                         sj_runtime_selection *selection, change_sums *sums)
{
    char text[160];
    if (selection->dispatch != fixed->dispatch || selection->receivers != fixed->receivers) {
        snprintf(text, sizeof(text),
                 "%s.technique, %s.receivers: stay as they were at the beginning", runtime->name,
                 runtime->name);
        note_problem(sums, text);
    }
    selection->dispatch = fixed->dispatch;
    selection->receivers = fixed->receivers;
    if (selection->lines != fixed->lines || selection->in_place != fixed->in_place) {
        snprintf(text, sizeof(text), "%s.lines, %s.engine: stay as they were at the beginning",
                 runtime->name, runtime->name);
        note_problem(sums, text);
        selection->lines = fixed->lines;
        selection->in_place = fixed->in_place;
    }
    if (fixed->dispatch) {
        snprintf(text, sizeof(text), "%s: messages that have been sent before stay as they are",
                 runtime->name);
        note_problem(sums, text);
    }
}

static void keep_runtimes(const sj_selection *fixed, sj_selection *selection, change_sums *sums)
{
    for (size_t i = 0; i < SJ_RUNTIMES; i++) {
        keep_runtime(sj_runtimes[i], &fixed->runtimes[i], &selection->runtimes[i], sums);
    }
}

static void note_refused(void *context, const char *rule, const char *why)
{
    char text[256];
    snprintf(text, sizeof(text), "values: '%s' does not begin in a program that runs: %s", rule,
             why);
    note_problem(context, text);
}

/* Makes the list of the recording's rules if there is none. */
static sj_status need_values(sj_pipeline *pipeline, sj_error *error)
{
    if (pipeline->values != NULL ||
        (sj_value_rules_new(&pipeline->values) == SJ_OK &&
         sj_value_rules_redact(pipeline->values, &pipeline->changes.policy->redaction) == SJ_OK)) {
        return SJ_OK;
    }
    return sj_fail(error, SJ_ENOMEM, "out of memory");
}

/* Adds the policy's rules to the recording's list, which holds the rules of all earlier policies.
 * Gives that list to the selection. */
static sj_status add_values(sj_pipeline *pipeline, sj_selection *selection, change_sums *sums,
                            sj_error *error)
{
    const sj_value_rules *wanted = selection->values;
    if (wanted != NULL) {
        SJ_TRY(need_values(pipeline, error));
    }
    if (!sj_value_rules_have_records(wanted, pipeline->values)) {
        note_problem(sums, "values: the rules of the old policy record until the end");
    }
    if (pipeline->values != NULL &&
        sj_value_rules_add_missing(pipeline->values, wanted, sums, note_refused) != SJ_OK) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    sj_value_rules_free(selection->values);
    selection->values = sj_value_rules_share(pipeline->values);
    if (pipeline->table != NULL) {
        sj_changes_table_grow(pipeline->table);
    }
    return SJ_OK;
}

/* Checks whether this machine allows the policy's rules that change calls. Creates their table if
 * it does not exist yet. */
static sj_status begin_changes(sj_pipeline *pipeline, const sj_policy *policy, sj_error *error)
{
    const sj_value_rules *wanted = policy->selection.values;
    if (!sj_value_rules_change(wanted)) {
        return SJ_OK;
    }
    if (pipeline->table != NULL) {
        return sj_change_permit_check(wanted, sj_changes_table_program(pipeline->table),
                                      pipeline->options.asks_user_for_changes, error);
    }
    SJ_TRY(need_values(pipeline, error));
    SJ_TRY(sj_changes_start(pipeline, wanted, pipeline->values, pipeline->ns_per_tick, error));
    pipeline->changes.is_unsure = true; /* joined agents must open the table */
    return SJ_OK;
}

static bool same_buffers(const sj_policy *left, const sj_policy *right)
{
    return left->chunks_per_thread == right->chunks_per_thread &&
           left->drop_when_full == right->drop_when_full && left->block_ms == right->block_ms;
}

static void keep_libraries(const sj_pipeline *pipeline, sj_selection *selection, change_sums *sums)
{
    if (selection->library_calls && pipeline->options.attach_pid != 0) {
        note_problem(sums, SJ_POLICY_LIBRARIES_UNBOUND);
        selection->library_calls = false;
    }
}

/* Ends the budget if receivers are recorded: one hook then records many functions, which cannot
 * be unhooked separately. */
static void keep_budget(sj_policy *policy, change_sums *sums)
{
    if (policy->budget_percent > 0 && sj_selection_has_receivers(&policy->selection)) {
        note_problem(sums, "budget: receivers are recorded, so nothing is unhooked");
        policy->budget_percent = 0;
    }
}

/* Reports a policy that watches event loops if the program was started without it: the hooks are
 * set when the program starts. */
static void note_loops(const sj_pipeline *pipeline, const sj_policy *policy, change_sums *sums)
{
    const sj_recording_options *options = &pipeline->options;
    if (sj_policy_watches_loops(policy) &&
        (options->attach_pid != 0 || !sj_policy_watches_loops(options->policy))) {
        note_problem(sums, SJ_POLICY_LOOPS_UNSEEN);
    }
}

/* Reports settings that contradict whether the processes were started with counted calls. */
static void note_clock(const sj_pipeline *pipeline, sj_policy *policy, change_sums *sums)
{
    if (policy->counts_calls && !pipeline->may_count_calls) {
        note_problem(sums, "calls.clock: calls are counted only where recording began so");
    }
    if (policy->selection.library_calls && pipeline->may_count_calls) {
        note_problem(sums, "modules.library_calls: calls into libraries are not recorded, as "
                           "recording began with \"clock\": \"adaptive\"");
        policy->selection.library_calls = false;
    }
    const char *runtime = sj_selection_names_methods(&policy->selection);
    if (runtime != NULL && pipeline->may_count_calls) {
        char text[128];
        snprintf(
            text, sizeof(text),
            "%s: its methods are not recorded, as recording began with \"clock\": \"adaptive\"",
            runtime);
        note_problem(sums, text);
    }
}

/* Loads the monitor of freed memory into a process, unless it has it. The monitor also counts
 * allocations. */
static void watch_heap(const sj_pipeline *pipeline, pid_t pid, const sj_zombie_settings *settings,
                       change_sums *sums)
{
    char text[192];
    sj_error error = {0};
    const bool with_heap = settings->one_in != 0 || settings->counts != 0;
    const sj_status status = sj_heap_watch(pid, with_heap, &error);
    if (status != SJ_OK && kill(pid, 0) == 0) {
        note_problem(sums, error.text);
    }
    const char *why = status == SJ_OK && settings->counts != 0
                          ? sj_zombies_not_counted(pipeline->zombies, pid)
                          : NULL;
    if (why != NULL) {
        snprintf(text, sizeof(text), "memory: what process %d allocates is not counted: %s",
                 (int)pid, why);
        note_problem(sums, text);
    }
}

/* Applies the policy's settings about freed memory to all processes. */
static void change_zombies(sj_pipeline *pipeline, const sj_policy *policy, change_sums *sums)
{
    pid_t living[PROCESSES_MAX];
    const sj_zombie_settings settings = sj_policy_zombies_of(policy, &pipeline->session);
    const bool is_wanted =
        settings.one_in != 0 || settings.counts != 0 || settings.objects.is_on != 0;
    if (pipeline->zombies == NULL) {
        if (is_wanted) {
            note_problem(sums, "zombies, memory: the allocator of emulated programs is left alone");
        }
        return;
    }
    sj_zombies_set(pipeline->zombies, &settings);
    const size_t count =
        is_wanted ? sj_registry_list_living(pipeline->registry, living, PROCESSES_MAX) : 0;
    for (size_t i = 0; i < count; i++) {
        watch_heap(pipeline, living[i], &settings, sums);
    }
}

/* Applies `policy`, whose plans are selected, to the drain and the processes. */
static sj_status apply_policy(sj_pipeline *pipeline, const sj_policy *policy,
                              sj_function_rules *rules, const sj_function_states *states,
                              change_sums *sums, sj_error *error)
{
    const sj_policy *before = pipeline->changes.policy;
    /* A budget may have unhooked functions, which must be hooked again. */
    const bool same_hooks = states->renewed_count == 0 &&
                            sj_selection_same(&before->selection, &policy->selection) &&
                            before->budget_percent <= 0 && !pipeline->changes.is_unsure;
    const sj_status status = sj_drain_set_policy(pipeline->drain, policy, rules);
    if (status != SJ_OK) {
        return sj_fail(error, status, "the recording has failed: %s", sj_status_text(status));
    }
    if (!same_hooks) {
        sj_registry_leave_out_none(pipeline->registry);
        reselection wanted = {.pipeline = pipeline, .states = states, .sums = sums};
        sj_each_process(pipeline->registry, reselect_process, &wanted);
    }
    if (sums->kept != 0) {
        note_problem(sums, "functions: some are still recorded, a thread stands in their hooks");
    }
    if (sums->stale != 0) {
        note_problem(sums,
                     "values: some functions do what they did before, a thread stands in their "
                     "hooks; the next policy tries again");
    }
    const bool is_followed = sums->stale == 0 && sums->failed == 0;
    if (is_followed) {
        sj_registry_settle_renewed(pipeline->registry);
    }
    pipeline->changes.is_unsure = sums->unsure != 0 || !is_followed;
    if (sums->unsure != 0) {
        note_problem(sums, "modules.library_calls: a thread waits for another that loads a module; "
                           "what it calls first may stay unrecorded until the next policy");
    }
    if (!same_buffers(before, policy)) {
        note_problem(sums, "buffer: stays unchanged when the process was joined");
    }
    return SJ_OK;
}

/* Makes `policy` the current policy and reports it. Frees the former one. */
static void set_current_policy(sj_pipeline *pipeline, sj_policy *policy, sj_function_rules *rules,
                               uint64_t ticks, char *not_applied)
{
    sj_policy_changes *changes = &pipeline->changes;
    pthread_mutex_lock(&changes->mutex);
    sj_policy *gone = changes->owned;
    changes->policy = policy;
    changes->owned = policy;
    changes->number++;
    changes->ticks = ticks;
    free(changes->not_applied);
    changes->not_applied = not_applied;
    pthread_mutex_unlock(&changes->mutex);
    sj_function_rules_free(pipeline->rules);
    pipeline->rules = rules;
    free_policy(gone);
    (void)!sj_policy_frame_send(pipeline->writer, changes->number, policy, ticks,
                                not_applied != NULL ? not_applied : "");
}

static char *describe(const sj_pipeline *pipeline, const change_sums *sums)
{
    const sj_policy_changes *changes = &pipeline->changes;
    json_t *reply = json_pack(
        "{s:I, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:O}", "policy", (json_int_t)changes->number,
        "name", changes->policy->name, "mode", sj_policy_mode_text(changes->policy->mode),
        "processes", (json_int_t)sums->processes, "hooked", (json_int_t)sums->hooked, "freed",
        (json_int_t)sums->freed, "refused", (json_int_t)sums->refused, "stopped_ns",
        (json_int_t)sums->stopped_ns, "not_applied", sums->not_applied);
    char *text = reply != NULL ? json_dumps(reply, JSON_COMPACT) : NULL;
    json_decref(reply);
    return text;
}

static sj_status read_policy(const sj_pipeline *pipeline, sj_slice document, sj_policy **policy,
                             sj_error *error)
{
    const sj_selection *fixed = &pipeline->options.selection;
    sj_policy *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    const sj_status status =
        sj_policy_parse((const char *)document.data, document.size, "policy", made, error);
    if (status != SJ_OK) {
        free(made);
        return status;
    }
    if (!sj_redaction_same(&made->redaction, &pipeline->changes.policy->redaction)) {
        free_policy(made);
        return sj_fail(error, SJ_EINVAL,
                       "policy: \"redact\" of a recording stays as it was at the start: use the "
                       "same, or start a new recording");
    }
    made->selection.map_file = fixed->map_file;
    sj_selection_set_classes(&made->selection, fixed->runtimes[0].classes.find,
                             fixed->runtimes[0].classes.context);
    *policy = made;
    return SJ_OK;
}

/* Replaces the rules that change calls, as far as the probes record the values that these need. */
static void replace_changes(const sj_pipeline *pipeline, sj_value_rules *changing,
                            change_sums *sums)
{
    size_t unknown = 0;
    if (pipeline->table != NULL) {
        sj_changes_table_replace(pipeline->table, changing, &unknown);
    }
    if (unknown != 0) {
        note_problem(sums,
                     "values: rules that change calls and have no place change none; those of "
                     "Java methods do what they did");
    }
}

/* Replaces the current policy by `policy`, and the rules that change calls by `changing`. Takes
 * ownership of `policy` and `rules`. */
static sj_status replace_policy(sj_pipeline *pipeline, sj_policy *policy, sj_function_rules *rules,
                                sj_value_rules *changing, change_sums *sums, sj_error *error)
{
    sj_function_states states = {0};
    sj_status status = sj_registry_select(pipeline->registry, &policy->selection, rules, &states);
    if (status != SJ_OK) {
        sj_value_rules_undo(pipeline->values, &pipeline->changes.values_before);
        sj_function_rules_free(rules);
        free_policy(policy);
        sj_function_states_deinit(&states);
        return sj_fail(error, status, "the functions cannot be selected again: %s",
                       sj_status_text(status));
    }
    states.asks_agents = pipeline->changes.is_unsure;
    replace_changes(pipeline, changing, sums); /* from here on, nothing refuses the policy */
    sj_function_rules_keep_unchanging(rules, pipeline->rules);
    status = apply_policy(pipeline, policy, rules, &states, sums, error);
    sj_function_states_deinit(&states);
    /* From now on all processes follow the policy; some followed it earlier. */
    set_current_policy(pipeline, policy, rules, sj_clock_ticks(),
                       json_array_size(sums->not_applied) != 0 ? json_dumps(sums->not_applied, 0)
                                                               : NULL);
    return status;
}

/* Adds the patterns that match no loaded function, for the reply only. Code that is loaded later
 * may match. */
static void note_unmatched(const sj_pipeline *pipeline, change_sums *sums)
{
    char unmatched[UNMATCHED_BYTES];
    char text[UNMATCHED_BYTES + 64];
    sj_function_rules_unmatched(pipeline->rules, unmatched, sizeof(unmatched));
    json_t *list = json_loads(unmatched, 0, NULL);
    size_t index;
    const json_t *pattern;
    json_array_foreach(list, index, pattern)
    {
        snprintf(text, sizeof(text), "\"%s\" matches no function so far",
                 json_string_value(pattern));
        note_problem(sums, text);
    }
    json_decref(list);
}

/* Applies a policy document. Writes a description of the result to `*reply` (allocated). */
static sj_status change_policy(sj_pipeline *pipeline, sj_slice document, char **reply,
                               sj_error *error)
{
    char unmatched[UNMATCHED_BYTES];
    sj_policy *policy = NULL;
    sj_function_rules *rules = NULL;
    SJ_TRY(read_policy(pipeline, document, &policy, error));
    change_sums sums = {.not_applied = json_array()};
    if (sums.not_applied == NULL || sj_function_rules_new(policy, &rules) != SJ_OK) {
        free_policy(policy);
        json_decref(sums.not_applied);
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    sj_value_rules *changing = sj_value_rules_share(policy->selection.values);
    sj_value_rules_remember(pipeline->values, &pipeline->changes.values_before);
    sj_status allowed = begin_changes(pipeline, policy, error);
    if (allowed == SJ_OK) {
        /* Before the list gets the rules of the new policy. */
        sj_policy_change_settle(pipeline, unmatched, sizeof(unmatched));
        allowed = add_values(pipeline, &policy->selection, &sums, error);
    }
    if (allowed != SJ_OK) {
        sj_value_rules_undo(pipeline->values, &pipeline->changes.values_before);
        sj_value_rules_free(changing);
        sj_function_rules_free(rules);
        free_policy(policy);
        json_decref(sums.not_applied);
        return allowed;
    }
    sj_function_rules_set_changes(rules, pipeline->table);
    keep_runtimes(&pipeline->options.selection, &policy->selection, &sums);
    keep_libraries(pipeline, &policy->selection, &sums);
    keep_budget(policy, &sums);
    note_loops(pipeline, policy, &sums);
    note_clock(pipeline, policy, &sums);
    change_zombies(pipeline, policy, &sums);
    while (!sj_drain_suspend_budget(pipeline->drain, BUDGET_WAIT_NS)) {
        /* the requester waits meanwhile */
    }
    const sj_status status = replace_policy(pipeline, policy, rules, changing, &sums, error);
    sj_value_rules_free(changing);
    sj_drain_resume_budget(pipeline->drain);
    if (status == SJ_OK) {
        note_unmatched(pipeline, &sums);
        sj_function_rules_each_untyped(pipeline->rules, &sums, note_text);
        *reply = describe(pipeline, &sums);
    }
    json_decref(sums.not_applied);
    return status;
}

static void append_text(void *list, const char *text)
{
    (void)json_array_append_new(list, json_string(text));
}

void sj_policy_change_settle(sj_pipeline *pipeline, char *unmatched, size_t capacity)
{
    const sj_policy_changes *changes = &pipeline->changes;
    sj_function_rules_unmatched(pipeline->rules, unmatched, capacity);
    json_t *list = json_loads(unmatched, 0, NULL);
    json_t *problems =
        changes->not_applied != NULL ? json_loads(changes->not_applied, 0, NULL) : json_array();
    const size_t reported = json_array_size(problems);
    if (json_array_size(list) == 0) {
        unmatched[0] = '\0';
    }
    sj_function_rules_each_unchanging(pipeline->rules, problems, append_text);
    if (problems != NULL && json_array_extend(problems, list) == 0 &&
        json_array_size(problems) > reported) {
        char *text = json_dumps(problems, 0);
        (void)!sj_policy_frame_send(pipeline->writer, changes->number, changes->policy,
                                    changes->ticks, text != NULL ? text : "");
        free(text);
    }
    json_decref(list);
    json_decref(problems);
}

void sj_policy_change_apply(sj_pipeline *pipeline)
{
    sj_policy_changes *changes = &pipeline->changes;
    sj_error error = {0};
    char *reply = NULL;
    eventfd_t count;
    (void)eventfd_read(changes->wake, &count);
    pthread_mutex_lock(&changes->mutex);
    const sj_slice document = {.data = (const uint8_t *)changes->requested,
                               .size = changes->requested_bytes};
    pthread_mutex_unlock(&changes->mutex);
    if (document.data == NULL) {
        return;
    }
    const sj_status status = change_policy(pipeline, document, &reply, &error);
    pthread_mutex_lock(&changes->mutex);
    free(changes->requested);
    changes->requested = NULL;
    const int fd = changes->reply;
    changes->reply = -1;
    pthread_mutex_unlock(&changes->mutex);
    sj_link_reply(fd, status == SJ_OK ? SJ_LINK_DONE : SJ_LINK_REFUSED,
                  status == SJ_OK ? (reply != NULL ? reply : "{}") : error.text);
    close(fd);
    free(reply);
}
