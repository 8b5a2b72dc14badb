/* Design notes
 *
 * sj_recording_prepare creates the session id and the directories and forks; the child waits. It
 * then blocks the signals that concern both processes; the child keeps its inherited mask. The
 * recorder reads these signals through a signalfd. So threads that start later do not receive them.
 *
 * sj_recording_run starts the pipeline, lets the child continue, waits, and stops the pipeline. */
#include "agent/recording/recording.h"

#include "agent/abi/machine.h"
#include "agent/attach/live_runtimes.h"
#include "agent/attach/preflight.h"
#include "agent/host/clock.h"
#include "agent/host/device.h"
#include "agent/host/directories.h"
#include "agent/host/file_limit.h"
#include "agent/launch/agent_machine.h"
#include "agent/launch/launch.h"
#include "agent/link/link_server.h"
#include "agent/livepatch/heap_watch.h"
#include "agent/livepatch/jvm_request.h"
#include "agent/ptrace/tracee.h"
#include "agent/recording/code_samples.h"
#include "agent/recording/late_hooks.h"
#include "agent/recording/left_processes.h"
#include "agent/recording/open_calls_at_attach.h"
#include "agent/recording/pipeline_state.h"
#include "agent/uplink/nng_channel.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    TICK_MS = 250,
    LAST_TICK_MS = 25, /* while the last processes of the program end or join */
    LAST_MS = 250,     /* maximum time for that, without until_all_end */
    LAST_CHECK_MS = 10 /* time without processes after which none is expected */
};

#define RELIEVE_NS UINT64_C(500000000)

struct sj_recording {
    sj_pipeline *pipeline;
    int signals; /* signalfd */
    sj_launch launch;
    char agent_path[PATH_MAX];
    bool is_attached;
    bool has_program_ended; /* the launched process was reaped, so its pid may be reused */
    bool is_delivering;     /* the program has ended or was left */
    atomic_bool is_full;    /* the session has its maximum size, and its processes are left */
    int interrupts;
    sj_code_samples *samples; /* NULL: none are taken */
};

static sj_status block_signals(sj_recording *recording, sj_error *error)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGQUIT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    sj_file_limit_ignore();
    recording->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return recording->signals >= 0
               ? SJ_OK
               : sj_fail(error, SJ_EIO, "cannot read signals: %s", strerror(errno));
}

static sj_status prepare_launch(sj_recording *recording, sj_error *error)
{
    const sj_recording_options *options = &recording->pipeline->options;
    const sj_program *program = options->program;
    const sj_launch_options launch = {.path = program->path,
                                      .emulator =
                                          program->emulator[0] != '\0' ? program->emulator : NULL,
                                      .sysroot = program->sysroot,
                                      .arguments = options->arguments,
                                      .agent_path = recording->agent_path,
                                      .runtime_directory = recording->pipeline->runtime_directory};
    return sj_launch_prepare(&launch, &recording->launch, error);
}

/* Starts to plan the program early, because the program will soon request its plan. */
static void plan_ahead(sj_recording *recording)
{
    const sj_selection *selection = &recording->pipeline->options.selection;
    const sj_program *program = recording->pipeline->options.program;
    if (recording->pipeline->cache_directory[0] == '\0' || program->emulator[0] != '\0' ||
        !sj_selection_wants_module(selection, program->binary, true)) {
        return;
    }
    const sj_planner_options options = {.module_path = program->binary,
                                        .map_file = selection->map_file,
                                        .cache_directory = recording->pipeline->cache_directory,
                                        .with_receivers = true,
                                        .library_calls = selection->library_calls,
                                        .threads = sj_plan_threads()};
    /* on failure, the program's request plans it */
    (void)!sj_plan_ahead_start(&options, &recording->pipeline->ahead);
}

/* Finds the agent, and checks that it fits the program. */
static sj_status find_agent(sj_recording *recording, const sj_recording_options *options,
                            sj_error *error)
{
    const char *emulated = options->program != NULL ? options->program->agent : NULL;
    const uint16_t machine =
        options->program != NULL ? options->program->machine : (uint16_t)SJ_MACHINE_ELF;
    SJ_TRY(sj_agent_find(options->agent_path, emulated, recording->agent_path, PATH_MAX, error));
    return sj_agent_check_machine(recording->agent_path, machine, error);
}

static sj_status prepare(sj_recording *recording, sj_error *error)
{
    const sj_recording_options *options = &recording->pipeline->options;
    if (options->program != NULL && options->program->agent != NULL) {
        sj_clock_follow_emulator();
    }
    if (options->attach_pid != 0) {
        recording->pipeline->options.selection.library_calls =
            false; /* SJ_POLICY_LIBRARIES_UNBOUND */
        SJ_TRY(sj_preflight_check(options->attach_pid, recording->agent_path, error));
    }
    SJ_TRY(sj_pipeline_place(recording->pipeline, error));
    if (options->attach_pid == 0) {
        SJ_TRY(prepare_launch(recording, error));
    }
    SJ_TRY(sj_pipeline_keep(recording->pipeline, error));
    SJ_TRY(block_signals(recording, error));
    if (options->attach_pid == 0) { /* after the fork, which requires a single thread */
        plan_ahead(recording);
    }
    return SJ_OK;
}

sj_status sj_recording_prepare(const sj_recording_options *options, sj_recording **recording,
                               sj_error *error)
{
    sj_recording *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    made->signals = -1;
    made->launch = (sj_launch){.pid = -1, .go = -1, .failed = -1};
    /* before the pipeline makes folders, so that a refusal leaves nothing behind */
    sj_status status = find_agent(made, options, error);
    if (status == SJ_OK) {
        status = sj_pipeline_new(options, &made->pipeline, error);
    }
    if (status == SJ_OK) {
        status = prepare(made, error);
    }
    if (status != SJ_OK) {
        sj_recording_free(made);
        return status;
    }
    *recording = made;
    return SJ_OK;
}

const sj_session_id *sj_recording_session(const sj_recording *recording)
{
    return &recording->pipeline->session;
}

static sj_status process_joined(void *context, const sj_link_process *process)
{
    sj_recording *recording = context;
    if (atomic_load(&recording->is_full)) {
        const sj_process_end end = {.ended_ticks = sj_clock_ticks(),
                                    .disarm_reason = SJ_DISARM_LEFT};
        (void)!sj_registry_end_process(recording->pipeline->registry, process->number, &end);
        return SJ_EFULL;
    }
    if (process->pid == recording->launch.pid ||
        process->pid == recording->pipeline->options.attach_pid) {
        atomic_store(&recording->pipeline->main_process, process->number);
    } else if (recording->pipeline->options.attach_pid != 0) {
        const sj_status status = sj_attach_commit_forked(process->pid, NULL);
        if (status != SJ_OK) {
            /* In another container, another process may have the same pid. */
            const sj_process_end end = {.ended_ticks = sj_clock_ticks(),
                                        .disarm_reason = SJ_DISARM_NO_RECORDER};
            (void)!sj_registry_end_process(recording->pipeline->registry, process->number, &end);
            return status;
        }
    }
    if (recording->pipeline->zombies != NULL) {
        sj_zombies_join(recording->pipeline->zombies, process->number, process->pid,
                        process->arena_name);
    }
    return sj_drain_add(recording->pipeline->drain, process->number, process->pid,
                        process->arena_name);
}

static void report_progress(sj_recording *recording, sj_recording_phase phase)
{
    sj_recording_progress progress = {.phase = phase};
    if (recording->pipeline->options.progress == NULL) {
        return;
    }
    progress.elapsed_ns =
        sj_clock_ns(CLOCK_MONOTONIC) - recording->pipeline->start_clock.monotonic_ns;
    sj_drain_get_counters(recording->pipeline->drain, &progress.drain);
    sj_frame_writer_get_counters(recording->pipeline->writer, &progress.writer);
    sj_spool_get_counters(recording->pipeline->spool, &progress.spool);
    sj_uplink_get_status(recording->pipeline->uplink, &progress.uplink);
    recording->pipeline->options.progress(recording->pipeline->options.context, &progress);
}

/* Forwards signals that only the recorder received. Signals of the terminal reach the whole process
 * group, including the program. */
static void handle_signals(sj_recording *recording)
{
    struct signalfd_siginfo info;
    while (read(recording->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        const bool from_terminal = info.ssi_code == SI_KERNEL;
        if (recording->pipeline->options.attach_pid != 0 || recording->has_program_ended ||
            recording->is_delivering) {
            /* The recorder does not end an attached process: any signal means detaching from it.
             * After the program's end its pid may be reused, so a signal means to stop waiting. */
            recording->interrupts += info.ssi_signo != SIGINT;
        } else if (!from_terminal && recording->launch.pid > 0) {
            kill(recording->launch.pid, (int)info.ssi_signo);
        }
        recording->interrupts += info.ssi_signo == SIGINT;
    }
}

/* True if the process has ended. Asks the pidfd: wait4 on a running program would also consume its
 * ptrace stops, which belong to the thread that hooks and unhooks its functions. */
static bool has_ended(int pidfd)
{
    struct pollfd polled = {.fd = pidfd, .events = POLLIN};
    return pidfd < 0 || poll(&polled, 1, 0) > 0;
}

/* Reaps the program. Returns false if it still runs. */
static bool reap(sj_recording *recording, int pidfd)
{
    struct rusage usage;
    if (!has_ended(pidfd)) {
        return false;
    }
    const pid_t got =
        wait4(recording->launch.pid, &recording->pipeline->summary.wait_status, WNOHANG, &usage);
    if (got != recording->launch.pid || WIFSTOPPED(recording->pipeline->summary.wait_status)) {
        return false;
    }
    recording->pipeline->summary.traced_cpu_ns =
        UINT64_C(1000000000) * (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
        UINT64_C(1000) * (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    return true;
}

/* Waits for a signal, the program's end or a request, at most `timeout_ms`. */
static void wait_for_event(const sj_recording *recording, int pidfd, int timeout_ms)
{
    struct pollfd polled[] = {{.fd = recording->signals, .events = POLLIN},
                              {.fd = recording->pipeline->changes.wake, .events = POLLIN},
                              {.fd = pidfd, .events = POLLIN}};
    (void)poll(polled, sizeof(polled) / sizeof(polled[0]), timeout_ms);
}

/* Makes watched processes save memory when memory is short. A process that allocates does it
 * itself; the recorder does it for idle processes. */
static void relieve_memory(sj_recording *recording, uint64_t *next_ns)
{
    enum { IDLE_MOST = 64 };
    pid_t idle[IDLE_MOST];
    const uint64_t now_ns = sj_clock_ns(CLOCK_MONOTONIC);
    if (recording->pipeline->zombies == NULL || now_ns < *next_ns) {
        return;
    }
    *next_ns = now_ns + RELIEVE_NS;
    const size_t count = sj_zombies_relieve(recording->pipeline->zombies, idle, IDLE_MOST);
    for (size_t i = 0; i < count; i++) {
        sj_error error = {0};
        (void)!sj_heap_shrink(idle[i], &error); /* on failure, at the next call */
    }
}

/* Times at which periodic work is due. */
typedef struct due_times {
    uint64_t next_pair_ns;
    uint64_t next_relief_ns;
} due_times;

static due_times first_due_times(void)
{
    return (due_times){.next_pair_ns = sj_clock_ns(CLOCK_MONOTONIC) + SJ_CLOCK_PAIR_NS};
}

static void suspend_budget(sj_recording *recording)
{
    while (!sj_drain_suspend_budget(recording->pipeline->drain, TICK_MS * UINT64_C(1000000))) {
        report_progress(recording, SJ_PHASE_WAITING_FOR_BUDGET);
    }
}

/* Removes the hooks once the session has its maximum size, because nothing more can be stored.
 * Hooks of an emulated program stay, and their records count as lost. */
static void leave_if_full(sj_recording *recording)
{
    const sj_program *program = recording->pipeline->options.program;
    sj_frame_writer_counters counters;
    sj_frame_writer_get_counters(recording->pipeline->writer, &counters);
    if (!counters.reached_max_bytes || atomic_load(&recording->is_full) ||
        (program != NULL && program->agent != NULL)) {
        return;
    }
    atomic_store(&recording->is_full, true);
    recording->pipeline->summary.full_after_ns =
        sj_clock_ns(CLOCK_MONOTONIC) - recording->pipeline->start_clock.monotonic_ns;
    if (recording->pipeline->options.attach_pid == 0) {
        suspend_budget(recording);
        sj_left_processes_leave(recording->pipeline, false);
    }
}

/* Does the periodic work while a program is recorded. */
static void do_periodic_work(sj_recording *recording, due_times *due)
{
    if (sj_clock_ns(CLOCK_MONOTONIC) >= due->next_pair_ns) {
        due->next_pair_ns += SJ_CLOCK_PAIR_NS;
        sj_pipeline_send_clock(recording->pipeline);
    }
    sj_tracee_free_left();
    relieve_memory(recording, &due->next_relief_ns);
    leave_if_full(recording);
    if (!atomic_load(&recording->is_full)) {
        sj_late_hooks_apply(recording->pipeline);
    }
    report_progress(recording, SJ_PHASE_RECORDING);
}

static void wait_for_program(sj_recording *recording)
{
    due_times due = first_due_times();
    const int pidfd = (int)syscall(SYS_pidfd_open, recording->launch.pid, 0);
    while (!reap(recording, pidfd)) {
        wait_for_event(recording, pidfd, TICK_MS);
        handle_signals(recording);
        sj_policy_change_apply(recording->pipeline);
        if (recording->interrupts >= 2) {
            recording->pipeline->summary.program_left = !reap(recording, pidfd);
            break;
        }
        do_periodic_work(recording, &due);
    }
    if (pidfd >= 0) {
        close(pidfd);
    }
    recording->has_program_ended = !recording->pipeline->summary.program_left;
}

static bool do_other_programs_run(sj_recording *recording)
{
    sj_drain_counters counters;
    sj_drain_get_counters(recording->pipeline->drain, &counters);
    return counters.other_programs != 0;
}

/* True if other processes of the program exist. Checks twice, because a process that is being
 * forked or executes a program is invisible for a moment. With until_all_end, programs that are not
 * recorded count, too. */
static bool do_others_exist(sj_recording *recording)
{
    if (sj_left_processes_exist(recording->pipeline)) {
        return true;
    }
    wait_for_event(recording, -1, LAST_CHECK_MS);
    return sj_left_processes_exist(recording->pipeline) ||
           (recording->pipeline->options.until_all_end && do_other_programs_run(recording));
}

/* Records the other processes of a program whose first process has ended. With until_all_end, waits
 * until they end; else at most LAST_MS, for processes that are about to end or join. */
static void wait_for_others(sj_recording *recording)
{
    const bool until_all_end = recording->pipeline->options.until_all_end;
    const uint64_t end_ns = sj_clock_ns(CLOCK_MONOTONIC) + LAST_MS * UINT64_C(1000000);
    const int interrupts = recording->interrupts;
    due_times due = first_due_times();
    while (recording->interrupts == interrupts &&
           (until_all_end || sj_clock_ns(CLOCK_MONOTONIC) < end_ns) && do_others_exist(recording)) {
        wait_for_event(recording, -1, until_all_end ? TICK_MS : LAST_TICK_MS);
        handle_signals(recording);
        sj_policy_change_apply(recording->pipeline);
        do_periodic_work(recording, &due);
    }
}

/* Detaches from the process and from its forked children. */
static void detach_processes(sj_recording *recording)
{
    enum { PROCESSES_MAX = 1024 };
    pid_t pids[PROCESSES_MAX];
    sj_recording_summary *summary = &recording->pipeline->summary;
    suspend_budget(recording);
    const size_t count =
        sj_registry_list_living(recording->pipeline->registry, pids, PROCESSES_MAX);
    for (size_t i = 0; i < count; i++) {
        sj_detach_process_report report;
        sj_error error = {0};
        sj_tracee_lock(); /* the stack sampler may trace the process */
        const sj_status status = sj_detach_process(pids[i], &report, &error);
        sj_tracee_unlock();
        if (status != SJ_OK) {
            snprintf(summary->detach_problem, sizeof(summary->detach_problem), "%.250s",
                     error.text);
        }
        sj_left_processes_note_overwritten(recording->pipeline, pids[i], &report);
        if (pids[i] == recording->pipeline->options.attach_pid) {
            summary->detach = report;
            summary->replaced =
                recording->is_attached && !report.had_agent && sj_detach_is_replaced(pids[i]);
        } else {
            summary->detach.left_bytes += report.left_bytes;
        }
    }
    uint64_t left_bytes;
    sj_tracee_lock();
    (void)sj_detach_orphans(&recording->pipeline->session, pids, count, &left_bytes);
    sj_tracee_unlock();
    summary->detach.left_bytes += left_bytes;
}

/* Ends the recording of the processes that outlive the program. */
static void leave_others(sj_recording *recording)
{
    if (!recording->pipeline->summary.program_left) {
        wait_for_others(recording);
    }
    if (sj_left_processes_exist(recording->pipeline)) {
        suspend_budget(recording);
        sj_left_processes_leave(recording->pipeline, true);
    }
}

/* True if the policy keeps freed objects, or freed blocks for a delayed free. */
static bool is_keeping_freed(const sj_recording *recording)
{
    if (recording->pipeline->zombies == NULL) {
        return false;
    }
    const sj_zombie_settings settings =
        sj_policy_zombies_of(recording->pipeline->options.policy, &recording->pipeline->session);
    return settings.objects.is_on != 0 || (settings.one_in != 0 && settings.delayed_kib != 0);
}

static sj_status join_process(sj_recording *recording, sj_error *error)
{
    sj_attach *attach = NULL;
    const pid_t pid = recording->pipeline->options.attach_pid;
    sj_drain_hold(recording->pipeline->drain, pid);
    sj_tracee_lock();
    sj_status status = sj_attach_begin(pid, recording->agent_path,
                                       recording->pipeline->runtime_directory, &attach, error);
    const uint64_t ticks = sj_clock_ticks();
    /* Without dispatch, bind before the commit: so the methods of a recorded process are always
     * recorded, too. With dispatch, bind after it, because dispatch leads to hooks. */
    const bool dispatches =
        sj_selection_dispatch_bits(&recording->pipeline->options.selection) != 0;
    /* Methods are not bound if calls are counted; the registry reports that. */
    if (status == SJ_OK && !dispatches && !recording->pipeline->may_count_calls &&
        sj_live_runtimes_are_bound(pid)) {
        status = sj_attach_bind(attach, error);
    }
    if (status == SJ_OK) {
        status = sj_attach_commit(attach, &recording->pipeline->summary.attach, error);
    }
    if (status == SJ_OK && dispatches) {
        status = sj_attach_bind(attach, error);
    }
    if (status == SJ_OK) {
        recording->is_attached = true;
        recording->pipeline->summary.open_calls = sj_open_calls_at_attach(
            attach, pid, atomic_load(&recording->pipeline->main_process),
            recording->pipeline->registry, recording->pipeline->drain, ticks);
    }
    sj_attach_free(attach);
    sj_tracee_unlock();
    if (status == SJ_OK && is_keeping_freed(recording)) {
        status = sj_heap_watch(pid, false, error);
    }
    if (status == SJ_OK && !recording->pipeline->may_count_calls &&
        sj_live_runtimes_are_joined(pid)) {
        bool is_joined = false;
        status = sj_jvm_join(pid, &is_joined, error);
        recording->pipeline->summary.jvm_unjoined = !is_joined && status != SJ_ECLOSED;
        status = status == SJ_ECLOSED ? SJ_OK : status;
    }
    if (status == SJ_OK) {
        sj_attach_end_joining(pid);
    } else {
        detach_processes(recording);
    }
    return status;
}

/* Returns the CPU time of a process until now; 0 if it does not exist. */
static uint64_t cpu_ns_of(pid_t pid)
{
    clockid_t clock;
    return clock_getcpuclockid(pid, &clock) == 0 ? sj_clock_ns(clock) : 0;
}

/* Stores the CPU time that an attached process used since it had `cpu_ns`. After its end, the last
 * stored value remains. */
static void note_cpu_since(sj_recording *recording, uint64_t cpu_ns)
{
    const uint64_t spent_ns = cpu_ns_of(recording->pipeline->options.attach_pid);
    if (spent_ns > cpu_ns) {
        recording->pipeline->summary.traced_cpu_ns = spent_ns - cpu_ns;
    }
}

/* Records an attached process until it ends or executes another program, a signal arrives, or the
 * duration is over. */
static void wait_for_process(sj_recording *recording)
{
    const pid_t pid = recording->pipeline->options.attach_pid;
    const int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    const uint64_t duration_ns = recording->pipeline->options.duration_ms * UINT64_C(1000000);
    const uint64_t start_ns = sj_clock_ns(CLOCK_MONOTONIC);
    due_times due = first_due_times();
    const uint64_t cpu_ns = cpu_ns_of(pid);
    recording->pipeline->summary.program_left = true;
    while (recording->interrupts == 0 && !atomic_load(&recording->is_full)) {
        note_cpu_since(recording, cpu_ns);
        const uint64_t now_ns = sj_clock_ns(CLOCK_MONOTONIC);
        uint64_t wait_ms = TICK_MS;
        if (duration_ns != 0) {
            if (now_ns - start_ns >= duration_ns) {
                break;
            }
            const uint64_t left_ms = (duration_ns - (now_ns - start_ns)) / 1000000 + 1;
            wait_ms = left_ms < wait_ms ? left_ms : wait_ms;
        }
        wait_for_event(recording, pidfd, (int)wait_ms);
        if (pidfd >= 0 ? has_ended(pidfd) : kill(pid, 0) != 0) {
            recording->pipeline->summary.program_left = false;
            break;
        }
        recording->pipeline->summary.replaced = sj_detach_is_replaced(pid);
        if (recording->pipeline->summary.replaced) {
            break;
        }
        handle_signals(recording);
        sj_policy_change_apply(recording->pipeline);
        do_periodic_work(recording, &due);
    }
    if (pidfd >= 0) {
        close(pidfd);
    }
    note_cpu_since(recording, cpu_ns);
    detach_processes(recording);
}

static const char *describe_end(const sj_recording_summary *summary)
{
    if (summary->program_left) {
        return summary->detach.had_agent || summary->replaced ? "completed" : "interrupted";
    }
    if (!WIFSIGNALED(summary->wait_status)) {
        return "completed";
    }
    switch (WTERMSIG(summary->wait_status)) {
    case SIGSEGV:
    case SIGBUS:
    case SIGILL:
    case SIGFPE:
    case SIGABRT:
    case SIGTRAP:
    case SIGSYS:
        return "crashed";
    case SIGINT:
    case SIGQUIT:
        return "interrupted";
    default:
        return "killed";
    }
}

/* Starts code samples, unless an emulator runs the program or the options forbid them. */
static void start_samples(sj_recording *recording)
{
    const sj_recording_options *options = &recording->pipeline->options;
    const bool is_emulated = options->program != NULL && options->program->agent != NULL;
    if (!is_emulated && !options->no_code_samples) {
        recording->samples = sj_code_samples_start(
            recording->pipeline->writer, recording->pipeline->registry, recording->pipeline->drain);
    }
}

static void stop_samples(sj_recording *recording)
{
    sj_code_samples_stop(recording->samples);
    recording->samples = NULL;
}

static void stop_components(sj_recording *recording)
{
    sj_link_server_counters link;
    stop_samples(recording);
    sj_pipeline_stop_collecting(recording->pipeline, &link);
    recording->pipeline->summary.agent_reported = link.ready != 0;
    if (!recording->pipeline->summary.program_left && !recording->is_attached) {
        const sj_process_end end = {.ended_ticks = sj_clock_ticks(),
                                    .has_status = true,
                                    .wait_status = recording->pipeline->summary.wait_status};
        sj_pipeline_end_main_process(recording->pipeline, &end);
    }
}

/* Waits for acknowledgements and reports the progress. Another Ctrl-C ends the wait. */
static void deliver(sj_recording *recording, const sj_recording_link *link)
{
    sj_recording_summary *summary = &recording->pipeline->summary;
    uint64_t start_ns = sj_clock_ns(CLOCK_MONOTONIC);
    uint64_t acknowledged = 0;
    bool is_answered = false;
    sj_uplink_status uplink;
    recording->is_delivering = true;
    for (;;) {
        const size_t waiting = sj_frame_writer_retry(recording->pipeline->writer);
        const sj_status status = sj_uplink_drain(recording->pipeline->uplink, TICK_MS);
        sj_uplink_get_status(recording->pipeline->uplink, &uplink);
        if (link->waits_from_last && uplink.acknowledged_frames != acknowledged) {
            start_ns = sj_clock_ns(CLOCK_MONOTONIC);
            acknowledged = uplink.acknowledged_frames;
        }
        if (status == SJ_OK && waiting == 0) {
            is_answered = true;
            break;
        }
        const int64_t waited_ms = (int64_t)((sj_clock_ns(CLOCK_MONOTONIC) - start_ns) / 1000000);
        const int interrupts = recording->interrupts;
        handle_signals(recording);
        const bool is_over =
            status == SJ_EPERM || (link->wait_ms >= 0 && waited_ms >= link->wait_ms);
        if (recording->interrupts > interrupts ||
            (is_over && (waiting == 0 || !link->stays_for_spool ||
                         access(recording->pipeline->spool_directory, F_OK) != 0))) {
            break;
        }
        report_progress(recording, SJ_PHASE_WAITING_FOR_COLLECTOR);
    }
    (void)sj_pipeline_set_delivered(recording->pipeline, is_answered);
    if (!is_answered) {
        snprintf(summary->undelivered_reason, sizeof(summary->undelivered_reason), "%s",
                 uplink.message);
    }
}

sj_status sj_recording_run(sj_recording *recording, const sj_recording_link *link,
                           sj_recording_summary *summary, int *exec_errno, sj_error *error)
{
    *exec_errno = 0;
    const sj_pipeline_options means = {.channel = &sj_channel_nng,
                                       .link = link,
                                       .takes_policies = true,
                                       .context = recording,
                                       .joined = process_joined};
    SJ_TRY(sj_pipeline_start(recording->pipeline, &means, error));
    if (recording->pipeline->options.attach_pid != 0) {
        SJ_TRY(join_process(recording, error));
        /* after the attach, so that the collector gets no session that failed */
        sj_uplink_release(recording->pipeline->uplink);
        start_samples(recording);
        wait_for_process(recording);
    } else {
        if (sj_launch_go(&recording->launch, exec_errno) != SJ_OK) {
            return sj_fail(error, SJ_EIO, "%s: %s", recording->pipeline->options.program->path,
                           strerror(*exec_errno));
        }
        sj_uplink_release(recording->pipeline->uplink);
        start_samples(recording);
        wait_for_program(recording);
        leave_others(recording);
    }
    stop_components(recording);
    sj_pipeline_summarize(recording->pipeline, describe_end(&recording->pipeline->summary));
    (void)!sj_pipeline_end_session(recording->pipeline);
    deliver(recording, link);
    sj_pipeline_close_spool(recording->pipeline);
    /* This process is the recorder: its CPU time includes planning, encoding, storing and
     * sending. */
    recording->pipeline->summary.cost.recorder_cpu_ns = sj_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    *summary = recording->pipeline->summary;
    return SJ_OK;
}

void sj_recording_free(sj_recording *recording)
{
    if (recording == NULL) {
        return;
    }
    sj_launch_abandon(&recording->launch);
    if (recording->signals >= 0) {
        close(recording->signals);
    }
    sj_pipeline_free(recording->pipeline);
    free(recording);
}
