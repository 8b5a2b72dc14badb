/* Design notes
 *
 * The thread polls. A busy thread of the program fills its ring of 64 chunks in a few milliseconds.
 * So a pass that found records is followed by another at once. Idle passes are first a quarter of a
 * millisecond apart, later up to two milliseconds. Open chunks are read only fifty times a second:
 * every read takes the cache line away from the thread that writes it. */
#include "agent/drain/drain.h"

#include "agent/abi/link.h"
#include "agent/drain/added_processes.h"
#include "agent/drain/hook_methods.h"
#include "agent/drain/other_program.h"
#include "agent/drain/process_drain.h"
#include "agent/drain/unsent_records.h"
#include "agent/host/clock.h"
#include "proto/base/array.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Period of summing the counters for the progress line and of checking for ended processes. */
#define HOUSEKEEPING_NS UINT64_C(20000000)

/* An event from outside for the triggers. */
typedef struct drain_signal {
    struct drain_signal *next;
    sj_trigger_event event; /* SJ_TRIGGER_JANK: a stall */
    uint64_t value_ticks;
    char name[SJ_LINK_MARK_NAME_BYTES + 1];
} drain_signal;

/* A request of another thread to the drain's thread. The other thread waits until it is carried
 * out. */
typedef struct drain_command {
    sj_status (*carry_out)(sj_drain *drain, const void *context);
    const void *context;
    sj_status status;
} drain_command;

enum { SIGNALS_MAX = 1024, FILTERED_NS = 1000000000 };

struct sj_drain {
    sj_drain_shared shared; /* used by the drain's thread */
    sj_process_drain **processes;
    size_t process_count;
    size_t process_capacity;
    sj_added_processes added;
    sj_other_programs others; /* processes that now run programs that are not recorded */
    pthread_t thread;
    bool thread_started;
    bool takes_signals; /* a policy exists */
    atomic_bool finish;
    uint64_t next_filtered_ns;
    uint64_t logged_ticks; /* time up to which the live function.txt is written */
    uint64_t next_house_ns;
    sj_status failure;     /* failure of a step; no further steps follow */
    pthread_mutex_t mutex; /* protects the members below */
    pthread_cond_t
        command_done;       /* signals that a request was carried out, or that `finish` was set */
    drain_command *command; /* the request to carry out; NULL: none */
    bool ended;             /* the thread accepts no more requests */
    drain_signal *signals;
    size_t signal_count;
    sj_drain_counters counters;
};

/* Finishes a process. If that fails, the process stays in the list and is finished again later. */
static sj_status remove_process(sj_drain *drain, size_t index, bool is_gone)
{
    sj_process_drain *process = drain->processes[index];
    if (drain->shared.options.zombies != NULL) {
        sj_zombies_end(drain->shared.options.zombies, process->number);
    }
    SJ_TRY(sj_process_drain_finish(process, is_gone));
    if (process->has_executed && !sj_tracked_process_has_ended(&process->tracked)) {
        sj_other_programs_add(&drain->others, process);
    }
    sj_process_drain_free(process);
    drain->processes[index] = drain->processes[--drain->process_count];
    return SJ_OK;
}

static sj_status add_process(sj_drain *drain, sj_added_process *added)
{
    for (size_t i = drain->process_count; i-- > 0;) {
        if (drain->processes[i]->tracked.pid == added->tracked.pid) {
            drain->processes[i]->is_replaced = true;
            SJ_TRY(remove_process(drain, i, true));
        }
    }
    SJ_TRY(sj_array_reserve(&drain->processes, &drain->process_capacity, drain->process_count, 1,
                            sizeof(sj_process_drain *)));
    SJ_TRY(sj_process_drain_new(&drain->shared, added->number, &added->tracked, added->arena_name,
                                &drain->processes[drain->process_count]));
    drain->process_count++;
    return SJ_OK;
}

/* Starts to read the processes that the link's thread added, oldest first. */
static sj_status add_processes(sj_drain *drain)
{
    sj_added_process *oldest = sj_added_processes_pop_all(&drain->added);
    sj_status status = SJ_OK;
    while (oldest != NULL && (status = add_process(drain, oldest)) == SJ_OK) {
        sj_added_process *next = oldest->next;
        free(oldest);
        oldest = next;
    }
    sj_added_processes_put_back(&drain->added, oldest);
    return status;
}

static void publish_counters(sj_drain *drain)
{
    sj_drain_counters counters = drain->shared.ended;
    for (size_t i = 0; i < drain->process_count; i++) {
        sj_process_drain_add_counters(drain->processes[i], &counters);
    }
    if (drain->shared.governor != NULL) {
        sj_overhead_governor_get_counters(drain->shared.governor, &counters.budget);
    }
    counters.other_programs = drain->others.count;
    if (drain->failure != SJ_OK && drain->shared.flight == NULL) {
        /* Records that were read before the failure may have been read again. */
        sj_frame_writer_counters sent;
        sj_frame_writer_get_counters(drain->shared.options.writer, &sent);
        counters.records = sent.block_events;
        counters.calls = sent.block_calls;
    }
    counters.cpu_ns = sj_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    pthread_mutex_lock(&drain->mutex);
    counters.failure = drain->failure;
    drain->counters = counters;
    pthread_mutex_unlock(&drain->mutex);
}

/* Sends the sums of all records read so far. */
static sj_status send_profile(sj_drain *drain)
{
    for (size_t i = 0; i < drain->process_count; i++) {
        SJ_TRY(sj_process_drain_flush(drain->processes[i]));
    }
    return sj_profiler_send(drain->shared.profiler);
}

/* Ends the window of the profile, writes a checkpoint and sends the sums, each if it is due. The
 * sums are also due if they are large. */
static sj_status report_profile(sj_drain *drain)
{
    sj_drain_shared *shared = &drain->shared;
    const uint64_t now_ns = sj_clock_ns(CLOCK_MONOTONIC);
    if (shared->window_end_ns != 0 && now_ns >= shared->window_end_ns) {
        shared->window_end_ns = 0;
        sj_triggers_pause(shared->triggers, true);
    }
    if (shared->profiler == NULL) {
        return SJ_OK;
    }
    sj_profiler_checkpoint_if_due(shared->profiler, now_ns);
    if (now_ns < shared->next_profile_ns && !sj_profiler_is_large(shared->profiler)) {
        return SJ_OK;
    }
    shared->next_profile_ns = now_ns + shared->options.policy->profile_interval_ns;
    return send_profile(drain);
}

static void fire_triggers(sj_drain *drain)
{
    pthread_mutex_lock(&drain->mutex);
    drain_signal *signals = drain->signals;
    drain->signals = NULL;
    drain->signal_count = 0;
    pthread_mutex_unlock(&drain->mutex);
    while (signals != NULL) {
        drain_signal *gone = signals;
        signals = gone->next;
        if (gone->event == SJ_TRIGGER_JANK) {
            uint32_t judged = 0; /* each stall counts by itself */
            sj_triggers_loop(drain->shared.triggers, gone->name, gone->value_ticks,
                             sj_clock_ticks(), 0, &judged);
        } else {
            sj_triggers_event(drain->shared.triggers, gone->event, gone->name, 0, sj_clock_ticks(),
                              0);
        }
        free(gone);
    }
}

/* Sends a child session if it is due, with everything recorded until then. */
static sj_status ship_dump(sj_drain *drain, bool at_end)
{
    sj_flight_recorder *flight = drain->shared.flight;
    if (flight == NULL || !sj_flight_recorder_is_due(flight, sj_clock_ticks(), at_end)) {
        return SJ_OK;
    }
    const uint64_t now_ns = sj_clock_ns(CLOCK_MONOTONIC);
    for (size_t i = 0; i < drain->process_count; i++) {
        SJ_TRY(sj_process_drain_catch_up(drain->processes[i], now_ns));
    }
    drain->shared.ended.dumps++;
    return sj_flight_recorder_ship(flight, sj_clock_ticks());
}

static sj_status report_filtered(sj_drain *drain, bool at_end)
{
    const uint64_t now_ns = sj_clock_ns(CLOCK_MONOTONIC);
    if (drain->shared.options.rules == NULL || (!at_end && now_ns < drain->next_filtered_ns)) {
        return SJ_OK;
    }
    drain->next_filtered_ns = now_ns + FILTERED_NS;
    return sj_function_rules_send(drain->shared.options.rules, drain->shared.options.writer);
}

/* Carries out the request another thread is waiting for. If `closed` is true, refuses it and all
 * later ones. If a request fails, the drain stops, because its state is only partly changed. */
static sj_status run_command(sj_drain *drain, bool closed)
{
    pthread_mutex_lock(&drain->mutex);
    drain_command *command = drain->command;
    drain->ended = drain->ended || closed;
    pthread_mutex_unlock(&drain->mutex);
    if (command == NULL) {
        return SJ_OK;
    }
    const sj_status status = closed ? SJ_ECLOSED : command->carry_out(drain, command->context);
    command->status = status;
    pthread_mutex_lock(&drain->mutex);
    drain->command = NULL;
    pthread_cond_broadcast(&drain->command_done);
    pthread_mutex_unlock(&drain->mutex);
    return status;
}

static sj_status send_command(sj_drain *drain, sj_status (*carry_out)(sj_drain *, const void *),
                              const void *context)
{
    drain_command command = {.carry_out = carry_out, .context = context, .status = SJ_ECLOSED};
    pthread_mutex_lock(&drain->mutex);
    if (!drain->ended) {
        drain->command = &command;
    }
    while (drain->command == &command) {
        pthread_cond_wait(&drain->command_done, &drain->mutex);
    }
    pthread_mutex_unlock(&drain->mutex);
    return command.status;
}

static sj_status keep_house(sj_drain *drain)
{
    if (drain->shared.options.rules != NULL) {
        sj_function_rules_beat(drain->shared.options.rules);
    }
    SJ_TRY(run_command(drain, false));
    /* Before anything that may request a dump: the dump must contain new processes. */
    SJ_TRY(add_processes(drain));
    fire_triggers(drain);
    SJ_TRY(report_profile(drain));
    SJ_TRY(report_filtered(drain, false));
    SJ_TRY(ship_dump(drain, false));
    if (drain->shared.options.zombies != NULL) {
        sj_zombies_poll(drain->shared.options.zombies);
    }
    for (size_t i = drain->process_count; i-- > 0;) {
        if (drain->processes[i]->has_executed ||
            sj_tracked_process_has_ended(&drain->processes[i]->tracked)) {
            SJ_TRY(remove_process(drain, i, true));
        }
    }
    SJ_TRY(sj_other_programs_poll(&drain->others, drain->shared.options.registry));
    (void)sj_frame_writer_retry(drain->shared.options.writer);
    publish_counters(drain);
    return SJ_OK;
}

/* Starts the window at the first records, so that preparing a program does not count. */
static void start_window(sj_drain_shared *shared, uint64_t now_ns)
{
    if (shared->window_ns != 0) {
        shared->window_end_ns = now_ns + shared->window_ns;
        shared->window_ns = 0;
    }
}

/* Lets the live function.txt advance to the time up to which all processes' events are in
 * blocks. */
static void advance_log(sj_drain *drain)
{
    sj_function_log *log = sj_frame_writer_function_log(drain->shared.options.writer);
    uint64_t flushed = log != NULL && drain->process_count != 0 ? UINT64_MAX : 0;
    for (size_t i = 0; log != NULL && i < drain->process_count; i++) {
        const sj_process_drain *process = drain->processes[i];
        const bool is_silent = !process->is_open;
        flushed = !is_silent && process->flushed_ticks < flushed ? process->flushed_ticks : flushed;
    }
    if (flushed != UINT64_MAX && flushed > drain->logged_ticks) {
        drain->logged_ticks = flushed;
        sj_function_log_advance(log, flushed);
    }
}

static sj_status step(sj_drain *drain, bool *busy)
{
    const uint64_t now_ns = sj_clock_ns(CLOCK_MONOTONIC);
    uint64_t records = 0;
    if (now_ns >= drain->next_house_ns) {
        drain->next_house_ns = now_ns + HOUSEKEEPING_NS;
        SJ_TRY(keep_house(drain));
    }
    for (size_t i = 0; i < drain->process_count; i++) {
        SJ_TRY(sj_process_drain_poll(drain->processes[i], now_ns, &records));
    }
    advance_log(drain);
    if (records != 0) {
        start_window(&drain->shared, now_ns);
    }
    *busy = records != 0;
    return SJ_OK;
}

sj_status sj_drain_step(sj_drain *drain, bool *busy)
{
    if (drain->failure == SJ_OK) {
        drain->failure = step(drain, busy);
    }
    return drain->failure;
}

static sj_status poll_all(sj_drain *drain)
{
    uint64_t idle_ns = SJ_DRAIN_IDLE_MIN_NS;
    while (!atomic_load(&drain->finish)) {
        bool busy = false;
        SJ_TRY(sj_drain_step(drain, &busy));
        if (busy) {
            idle_ns = SJ_DRAIN_IDLE_MIN_NS;
            continue;
        }
        const struct timespec pause = {.tv_nsec = (long)idle_ns};
        nanosleep(&pause, NULL);
        idle_ns = idle_ns * 2 > SJ_DRAIN_IDLE_MAX_NS ? SJ_DRAIN_IDLE_MAX_NS : idle_ns * 2;
    }
    return SJ_OK;
}

static sj_status finish_all(sj_drain *drain)
{
    SJ_TRY(add_processes(drain));
    while (drain->process_count != 0) {
        const size_t last = drain->process_count - 1;
        SJ_TRY(remove_process(drain, last,
                              sj_tracked_process_has_ended(&drain->processes[last]->tracked)));
    }
    SJ_TRY(sj_other_programs_poll(&drain->others, drain->shared.options.registry));
    fire_triggers(drain);
    if (drain->shared.triggers != NULL) {
        sj_triggers_finish(drain->shared.triggers, sj_clock_ticks());
    }
    SJ_TRY(report_filtered(drain, true));
    SJ_TRY(ship_dump(drain, true));
    return drain->shared.profiler != NULL ? send_profile(drain) : SJ_OK;
}

/* Reports everything that was not sent as lost. Allocates nothing itself. */
static void give_up(sj_drain *drain)
{
    sj_drain_shared *shared = &drain->shared;
    for (size_t i = 0; i < drain->process_count; i++) {
        sj_unsent_process_report(drain->processes[i]);
    }
    sj_added_process *added = sj_added_processes_pop_all(&drain->added);
    for (const sj_added_process *at = added; at != NULL; at = at->next) {
        sj_unsent_added_report(shared, at);
    }
    sj_added_processes_put_back(&drain->added, added);
    if (shared->profiler != NULL && sj_profiler_send(shared->profiler) != SJ_OK) {
        const sj_profile_sums unsent = sj_profiler_unsent(shared->profiler);
        sj_unsent_report(shared, SJ_GAP_SPOOL_FULL, 0, unsent.calls, unsent.events,
                         unsent.first_ticks);
    }
}

/* Finishes after a failed step. The content of the threads' assemblers is lost. It is reported like
 * records that a killed recorder had read and not sent (drain-002). */
static void resume(sj_drain *drain)
{
    for (size_t i = 0; i < drain->process_count; i++) {
        sj_process_drain_restart(drain->processes[i]);
    }
    drain->shared.resumes = true;
    if (finish_all(drain) != SJ_OK) {
        give_up(drain);
    }
}

static void end(sj_drain *drain)
{
    if (drain->failure == SJ_OK) {
        drain->failure = finish_all(drain);
    }
    (void)!run_command(drain, true);
    /* Records of a killed recorder remain for the next process that recovers the session. */
    if (drain->failure != SJ_OK && !drain->shared.options.salvage) {
        resume(drain);
    }
    publish_counters(drain);
}

/* After a failed step, refuses all requests and waits until the recording ends. */
static void wait_for_finish(sj_drain *drain)
{
    (void)!run_command(drain, true);
    publish_counters(drain);
    pthread_mutex_lock(&drain->mutex);
    while (!atomic_load(&drain->finish)) {
        pthread_cond_wait(&drain->command_done, &drain->mutex);
    }
    pthread_mutex_unlock(&drain->mutex);
}

static void *run(void *argument)
{
    sj_drain *drain = argument;
    if (poll_all(drain) != SJ_OK) {
        wait_for_finish(drain);
    }
    end(drain);
    return NULL;
}

static sj_status start_governor(sj_drain *drain, sj_error *error)
{
    const sj_policy *policy = drain->shared.options.policy;
    if (policy->budget_percent <= 0 || drain->shared.governor != NULL) {
        return SJ_OK;
    }
    const sj_overhead_governor_options options = {.writer = drain->shared.options.writer,
                                                  .call_ns = drain->shared.options.call_ns,
                                                  .hook_methods = sj_hook_methods,
                                                  .context = drain->shared.options.registry};
    return sj_overhead_governor_start(&options, &drain->shared.governor, error);
}

static sj_status start_flight(sj_drain *drain)
{
    const sj_policy *policy = drain->shared.options.policy;
    const double ticks_per_ns = 1 / drain->shared.options.ns_per_tick;
    const sj_flight_recorder_options options = {
        .writer = drain->shared.options.writer,
        .before_ticks = (uint64_t)((double)policy->flight_before_ns * ticks_per_ns),
        .after_ticks = (uint64_t)((double)policy->flight_after_ns * ticks_per_ns),
        .max_bytes = policy->flight_bytes,
        .directory = drain->shared.options.runtime_directory};
    return sj_flight_recorder_new(&options, &drain->shared.flight);
}

/* Creates what the policy needs in the drain. */
static sj_status start_policy(sj_drain *drain, sj_error *error)
{
    sj_drain_shared *shared = &drain->shared;
    const sj_policy *policy = shared->options.policy;
    sj_status status = SJ_OK;
    shared->flight = shared->options.flight;
    if (policy == NULL) {
        return SJ_OK;
    }
    shared->kept_step =
        sj_clock_kept_step(shared->clock_step, policy->resolution_ns, shared->options.ns_per_tick);
    if (policy->mode == SJ_POLICY_PROFILE) {
        const uint64_t now_ns = sj_clock_ns(CLOCK_MONOTONIC);
        shared->next_profile_ns = now_ns + policy->profile_interval_ns;
        shared->window_ns = policy->profile_window_ns;
        const sj_profiler_options profiler = {.writer = shared->options.writer,
                                              .journal = shared->options.journal,
                                              .runtime_directory =
                                                  shared->options.runtime_directory};
        status = sj_profiler_new(&profiler, &shared->profiler);
    } else if (policy->mode == SJ_POLICY_FLIGHT) {
        sj_frame_writer_keep_threads(shared->options.writer, true);
        status = start_flight(drain);
    }
    for (size_t i = 0; i < policy->trigger_count && shared->stacks == NULL; i++) {
        if ((policy->triggers[i].actions & SJ_ACTION_STACKS) != 0) {
            SJ_TRY(sj_stack_sampler_start(shared->options.writer, shared->options.registry,
                                          &shared->stacks, error));
        }
    }
    shared->journal->mode = (uint32_t)policy->mode; /* recovery reads it */
    const sj_triggers_options triggers = {.policy = policy,
                                          .writer = shared->options.writer,
                                          .flight = shared->flight,
                                          .stacks = shared->stacks,
                                          .ns_per_tick = shared->options.ns_per_tick};
    if (status == SJ_OK) {
        status = sj_triggers_new(&triggers, &shared->triggers);
    }
    return status == SJ_OK ? start_governor(drain, error) : sj_fail(error, status, "out of memory");
}

/* Sends what the old mode has kept, and frees everything that start_policy creates except the
 * governor and the stack sampler. */
static sj_status end_policy(sj_drain *drain)
{
    sj_drain_shared *shared = &drain->shared;
    const uint64_t now_ns = sj_clock_ns(CLOCK_MONOTONIC);
    for (size_t i = 0; i < drain->process_count; i++) {
        SJ_TRY(sj_process_drain_catch_up(drain->processes[i], now_ns));
    }
    SJ_TRY(report_filtered(drain, true));
    SJ_TRY(ship_dump(drain, true));
    SJ_TRY(shared->profiler != NULL ? send_profile(drain) : SJ_OK);
    if (shared->triggers != NULL) {
        sj_triggers_finish(shared->triggers, sj_clock_ticks());
    }
    sj_profiler_free(shared->profiler);
    sj_flight_recorder_free(shared->flight);
    sj_triggers_free(shared->triggers);
    sj_frame_writer_keep_threads(shared->options.writer, false);
    shared->profiler = NULL;
    shared->flight = NULL;
    shared->triggers = NULL;
    shared->window_ns = 0;
    shared->window_end_ns = 0;
    return SJ_OK;
}

static sj_status begin_policy(sj_drain *drain)
{
    SJ_TRY(start_policy(drain, NULL));
    for (size_t i = 0; i < drain->process_count; i++) {
        SJ_TRY(sj_process_drain_set_policy(drain->processes[i], drain->shared.flight != NULL));
    }
    return SJ_OK;
}

static sj_status change_policy(sj_drain *drain, const void *context)
{
    const sj_drain_options *wanted = context;
    sj_drain_options *options = &drain->shared.options;
    SJ_TRY(end_policy(drain));
    options->policy = wanted->policy;
    options->rules = wanted->rules;
    const sj_status status = begin_policy(drain);
    if (status != SJ_OK) {
        /* The owner of the policy may free it: the rest is read without a policy. */
        options->policy = NULL;
        options->rules = NULL;
    }
    return status;
}

sj_status sj_drain_set_policy(sj_drain *drain, const sj_policy *policy, sj_function_rules *rules)
{
    const sj_drain_options wanted = {.policy = policy, .rules = rules};
    return send_command(drain, change_policy, &wanted);
}

static sj_process_drain *find_process(const sj_drain *drain, uint64_t number)
{
    for (size_t i = 0; i < drain->process_count; i++) {
        if (drain->processes[i]->number == number) {
            return drain->processes[i];
        }
    }
    return NULL;
}

typedef struct freed_wanted {
    uint64_t process;
    sj_unhooked_set **freed;
} freed_wanted;

static sj_status share_freed(sj_drain *drain, const void *context)
{
    const freed_wanted *wanted = context;
    SJ_TRY(add_processes(drain)); /* the process may be among them */
    sj_process_drain *process = find_process(drain, wanted->process);
    *wanted->freed = process != NULL ? sj_unhooked_set_share(process->freed) : NULL;
    return SJ_OK;
}

sj_status sj_drain_share_freed(sj_drain *drain, uint64_t process, sj_unhooked_set **freed)
{
    const freed_wanted wanted = {.process = process, .freed = freed};
    *freed = NULL;
    return send_command(drain, share_freed, &wanted);
}

static sj_status catch_up(sj_drain *drain, const void *context)
{
    sj_process_drain *process = find_process(drain, *(const uint64_t *)context);
    return process != NULL ? sj_process_drain_catch_up(process, sj_clock_ns(CLOCK_MONOTONIC))
                           : SJ_OK;
}

sj_status sj_drain_catch_up(sj_drain *drain, uint64_t process)
{
    return send_command(drain, catch_up, &process);
}

sj_status sj_drain_start(const sj_drain_options *options, sj_drain **drain, sj_error *error)
{
    sj_drain *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    made->shared.options = *options;
    made->shared.clock_step = sj_clock_step();
    made->takes_signals = options->policy != NULL;
    made->shared.journal =
        options->journal != NULL ? options->journal->data : calloc(1, sizeof(sj_journal_data));
    pthread_mutex_init(&made->mutex, NULL);
    sj_added_processes_init(&made->added);
    pthread_cond_init(&made->command_done, NULL);
    made->shared.buffer = malloc(SJ_CHUNK_RECORDS * sizeof(*made->shared.buffer));
    if (made->shared.journal == NULL || made->shared.buffer == NULL ||
        sj_block_encoder_new(&made->shared.encoder) != SJ_OK) {
        sj_drain_free(made);
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    const sj_status status = start_policy(made, error);
    if (status != SJ_OK) {
        sj_drain_free(made);
        return status;
    }
    sj_drain_resume_budget(made);
    if (!options->threadless && pthread_create(&made->thread, NULL, run, made) != 0) {
        sj_drain_free(made);
        return sj_fail(error, SJ_EIO, "cannot start the thread of the drain");
    }
    made->thread_started = !options->threadless;
    if (made->thread_started) {
        pthread_setname_np(made->thread, "drain"); /* the name is for top, perf and tests */
    }
    *drain = made;
    return SJ_OK;
}

sj_status sj_drain_add(sj_drain *drain, uint64_t process, pid_t pid, const char *arena_name)
{
    return sj_added_processes_add(&drain->added, process, pid, arena_name);
}

uint32_t sj_drain_time_step(const sj_drain *drain)
{
    const sj_drain_shared *shared = &drain->shared;
    return shared->kept_step > shared->clock_step ? shared->kept_step : shared->clock_step;
}

void sj_drain_hold(sj_drain *drain, pid_t pid)
{
    atomic_store(&drain->shared.held_pid, pid);
}

sj_status sj_drain_preopen(sj_drain *drain, pid_t pid, const sj_open_call_at_attach *calls,
                           size_t count, uint64_t ticks)
{
    sj_drain_shared *shared = &drain->shared;
    sj_status status = SJ_OK;
    if (count != 0) {
        free(shared->preopened);
        shared->preopened = malloc(count * sizeof(*calls));
        status = shared->preopened != NULL ? SJ_OK : SJ_ENOMEM;
    }
    if (count != 0 && status == SJ_OK) {
        memcpy(shared->preopened, calls, count * sizeof(*calls));
        shared->preopened_count = count;
        shared->preopened_pid = pid;
        shared->preopened_ticks = ticks;
    }
    /* Pairs with the acquire load of the drain's thread, which reads the list afterwards. */
    atomic_store(&shared->held_pid, 0);
    return status;
}

bool sj_drain_suspend_budget(sj_drain *drain, uint64_t limit_ns)
{
    return drain->shared.governor == NULL ||
           sj_overhead_governor_suspend(drain->shared.governor, limit_ns);
}

void sj_drain_resume_budget(sj_drain *drain)
{
    if (drain->shared.governor != NULL && drain->shared.options.policy != NULL) {
        sj_overhead_governor_resume(drain->shared.governor,
                                    drain->shared.options.policy->budget_percent);
    }
}

static void put_signal(sj_drain *drain, sj_trigger_event event, const char *name,
                       uint64_t value_ticks)
{
    if (!drain->takes_signals) {
        return;
    }
    drain_signal *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return;
    }
    made->event = event;
    made->value_ticks = value_ticks;
    strncpy(made->name, name, sizeof(made->name) - 1);
    pthread_mutex_lock(&drain->mutex);
    if (drain->signal_count < SIGNALS_MAX) {
        drain->signal_count++;
        made->next = drain->signals;
        drain->signals = made;
        made = NULL;
    }
    pthread_mutex_unlock(&drain->mutex);
    free(made);
}

void sj_drain_signal(sj_drain *drain, sj_trigger_event event, const char *name)
{
    put_signal(drain, event, name, 0);
}

void sj_drain_stall(sj_drain *drain, const char *name, uint64_t waited_ticks)
{
    put_signal(drain, SJ_TRIGGER_JANK, name, waited_ticks);
}

void sj_drain_get_counters(sj_drain *drain, sj_drain_counters *counters)
{
    pthread_mutex_lock(&drain->mutex);
    *counters = drain->counters;
    pthread_mutex_unlock(&drain->mutex);
}

void sj_drain_finish(sj_drain *drain)
{
    if (drain->thread_started) {
        pthread_mutex_lock(&drain->mutex);
        atomic_store(&drain->finish, true);
        pthread_cond_broadcast(&drain->command_done);
        pthread_mutex_unlock(&drain->mutex);
        pthread_join(drain->thread, NULL);
        drain->thread_started = false;
    } else if (drain->shared.options.threadless && !drain->ended) {
        end(drain);
    }
}

void sj_drain_free(sj_drain *drain)
{
    if (drain == NULL) {
        return;
    }
    sj_drain_finish(drain);
    sj_stack_sampler_stop(drain->shared.stacks);
    for (size_t i = 0; i < drain->process_count; i++) {
        sj_process_drain_free(drain->processes[i]);
    }
    sj_overhead_governor_stop(drain->shared.governor);
    sj_added_processes_deinit(&drain->added);
    free(drain->processes);
    sj_other_programs_deinit(&drain->others);
    free(drain->shared.preopened);
    if (drain->shared.options.journal == NULL) {
        free(drain->shared.journal);
    }
    free(drain->shared.buffer);
    sj_block_encoder_free(drain->shared.encoder);
    sj_profiler_free(drain->shared.profiler);
    sj_triggers_free(drain->shared.triggers);
    if (drain->shared.options.flight == NULL) {
        sj_flight_recorder_free(drain->shared.flight);
    }
    while (drain->signals != NULL) {
        drain_signal *gone = drain->signals;
        drain->signals = gone->next;
        free(gone);
    }
    pthread_cond_destroy(&drain->command_done);
    pthread_mutex_destroy(&drain->mutex);
    free(drain);
}
