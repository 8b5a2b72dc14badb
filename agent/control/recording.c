/* Design notes
 *
 * prepare: session id, directories, fork. The child waits. Signals that concern both are then
 * blocked here (the child keeps what it inherited) and read through a signalfd, so that every
 * thread that starts later leaves them to this one.
 * run: spool -> uplink -> emitter -> roster -> drain -> link; go; wait; then the same backwards. */
#include "agent/control/recording_parts.h"

#include "agent/control/attach_check.h"
#include "agent/control/device.h"
#include "agent/control/directories.h"
#include "agent/control/launch.h"
#include "agent/control/link_server.h"
#include "agent/control/policy_frames.h"
#include "agent/control/preopen.h"
#include "agent/control/session_frames.h"
#include "agent/control/target.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TICK_MS = 250, CLOCK_PAIR_MS = 1000, DEFAULT_THREADS = 512, DEFAULT_BLOCK_MS = 100 };

static uint64_t read_monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static sj_status make_session_id(sj_recording *recording, sj_error *error)
{
    if (getrandom(recording->session.bytes, SJ_SESSION_ID_BYTES, 0) != SJ_SESSION_ID_BYTES) {
        return sj_fail(error, SJ_EIO, "no random numbers for the session: %s", strerror(errno));
    }
    sj_session_text(&recording->session, recording->session_text);
    return SJ_OK;
}

static sj_status choose_directories(sj_recording *recording, sj_error *error)
{
    const char *root = recording->options.spool_root;
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
    snprintf(recording->spool_directory, PATH_MAX, "%.4000s/%s", root, recording->session_text);
    snprintf(recording->destination_path, PATH_MAX, "%.4000s/%s.to", root, recording->session_text);
    if (!recording->options.no_plan_cache) {
        SJ_TRY(sj_cache_directory("plans", recording->cache_directory, PATH_MAX, error));
    }
    return sj_runtime_directory_make(&recording->session, recording->runtime_directory, PATH_MAX,
                                     error);
}

/* keep_destination writes where the frames belong and locks the file, so that `sojourn flush`
 * delivers what a killed recorder left and leaves living ones alone. */
static sj_status keep_destination(sj_recording *recording, sj_error *error)
{
    const char *address = recording->options.destination;
    char text[2 * PATH_MAX + 128];
    snprintf(text, sizeof(text), "%.4200s\n%.4000s\n%d\n", address != NULL ? address : "",
             recording->runtime_directory, (int)getpid());
    /* Locked and whole before anyone can find it under its name. */
    char fresh[PATH_MAX + 8];
    snprintf(fresh, sizeof(fresh), "%s.new", recording->destination_path);
    recording->destination = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (recording->destination < 0 || flock(recording->destination, LOCK_EX | LOCK_NB) != 0 ||
        write(recording->destination, text, strlen(text)) != (ssize_t)strlen(text) ||
        rename(fresh, recording->destination_path) != 0) {
        return sj_fail(error, SJ_EIO, "cannot write %s: %s", recording->destination_path,
                       strerror(errno));
    }
    return SJ_OK;
}

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
    recording->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return recording->signals >= 0
               ? SJ_OK
               : sj_fail(error, SJ_EIO, "cannot read signals: %s", strerror(errno));
}

static sj_status prepare_launch(sj_recording *recording, sj_error *error)
{
    const sj_recording_options *options = &recording->options;
    const sj_program *program = options->program;
    const sj_launch_options launch = {.path = program->path,
                                      .emulator =
                                          program->emulator[0] != '\0' ? program->emulator : NULL,
                                      .sysroot = program->sysroot,
                                      .arguments = options->arguments,
                                      .agent_path = recording->agent_path,
                                      .runtime_directory = recording->runtime_directory};
    return sj_launch_prepare(&launch, &recording->launch, error);
}

static sj_status prepare(sj_recording *recording, sj_error *error)
{
    const sj_recording_options *options = &recording->options;
    const bool is_emulated = options->program != NULL && options->program->emulator[0] != '\0';
    if (is_emulated) {
        sj_clock_follow_emulator();
    }
    sj_clock_take_pair(0, &recording->start_clock);
    SJ_TRY(sj_agent_find(options->agent_path, is_emulated, recording->agent_path, PATH_MAX, error));
    if (options->attach_pid != 0) {
        SJ_TRY(sj_attach_check(options->attach_pid, recording->agent_path, error));
    }
    SJ_TRY(make_session_id(recording, error));
    if (options->device != NULL) {
        recording->device = *options->device;
    } else {
        SJ_TRY(sj_device_read(&recording->device, error));
    }
    SJ_TRY(choose_directories(recording, error));
    if (options->attach_pid == 0) {
        SJ_TRY(prepare_launch(recording, error));
    }
    SJ_TRY(sj_journal_create(recording->runtime_directory, &recording->session, &recording->journal,
                             error));
    SJ_TRY(keep_destination(recording, error));
    return block_signals(recording, error);
}

sj_status sj_recording_prepare(const sj_recording_options *options, sj_recording **recording,
                               sj_error *error)
{
    sj_recording *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    made->options = *options;
    made->destination = -1;
    made->journal.fd = -1;
    made->signals = -1;
    made->launch = (sj_launch){.pid = -1, .go = -1, .failed = -1};
    sj_status status = sj_policy_changes_init(&made->changes, options->policy, error);
    if (status == SJ_OK) {
        status = prepare(made, error);
    }
    if (status != SJ_OK) {
        if (made->destination >= 0) {
            unlink(made->destination_path);
        }
        sj_recording_free(made);
        return status;
    }
    *recording = made;
    return SJ_OK;
}

const sj_session_id *sj_recording_session(const sj_recording *recording)
{
    return &recording->session;
}

static sj_status process_joined(void *context, const sj_link_process *process)
{
    sj_recording *recording = context;
    if (process->pid == recording->launch.pid || process->pid == recording->options.attach_pid) {
        atomic_store(&recording->main_process, process->number);
    } else if (recording->options.attach_pid != 0) {
        const sj_status status = sj_attach_commit_forked(process->pid, NULL);
        if (status != SJ_OK) {
            /* Or what it calls its number is that of another process, in another container. */
            const sj_process_end end = {.ended_ticks = sj_clock_ticks(),
                                        .disarm_reason = SJ_DISARM_NO_COMPANION};
            (void)!sj_roster_end_process(recording->roster, process->number, &end);
            return status;
        }
    }
    return sj_drain_add(recording->drain, process->number, process->pid, process->arena_name);
}

static sj_status mark_from_outside(void *context, const char *name, bool end)
{
    const sj_recording *recording = context;
    if (!end) {
        sj_drain_signal(recording->drain, SJ_TRIGGER_MARK, name);
    }
    return sj_emitter_mark(recording->emitter, name, end, sj_clock_ticks(), 0, "cli");
}

/* trigger_from_outside passes on what a trigger of the policy waits for. */
static sj_status trigger_from_outside(void *context, const char *name)
{
    sj_recording *recording = context;
    sj_status status = SJ_ENOTFOUND;
    pthread_mutex_lock(&recording->changes.mutex);
    const sj_policy *policy = recording->changes.policy;
    for (size_t i = 0; policy != NULL && i < policy->trigger_count; i++) {
        const sj_trigger *trigger = &policy->triggers[i];
        if (trigger->event == SJ_TRIGGER_COMMAND &&
            (trigger->subject.text == NULL || sj_pattern_matches(&trigger->subject, name))) {
            status = SJ_OK;
        }
    }
    pthread_mutex_unlock(&recording->changes.mutex);
    if (status == SJ_OK) {
        sj_drain_signal(recording->drain, SJ_TRIGGER_COMMAND, name);
    }
    return status;
}

static sj_status policy_from_outside(void *context, sj_slice document, int fd)
{
    return sj_policy_change_request(context, document, fd);
}

static void tell_policy(void *context, int fd)
{
    sj_recording *recording = context;
    pthread_mutex_lock(&recording->changes.mutex);
    const sj_policy *policy = recording->changes.policy;
    sj_link_answer(fd, policy != NULL ? SJ_LINK_DONE : SJ_LINK_REFUSED,
                   policy != NULL ? policy->document : "this recording has no policy");
    pthread_mutex_unlock(&recording->changes.mutex);
}

static sj_status start_uplink(sj_recording *recording, const sj_recording_link *link,
                              sj_error *error)
{
    const sj_spool_options spool = {.directory = recording->spool_directory,
                                    .budget_bytes = recording->options.spool_bytes,
                                    .root_budget_bytes = recording->options.spool_root_bytes};
    uint8_t *hello = NULL;
    size_t hello_bytes = 0;
    SJ_TRY(sj_spool_open(&spool, &recording->spool, error));
    if (sj_device_hello(&recording->device, link->token, &hello, &hello_bytes) != SJ_OK) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    const sj_uplink_options uplink = {.url = link->url,
                                      .hello = {.data = hello, .size = hello_bytes},
                                      .waits = true,
                                      .certificate = link->certificate};
    const sj_status status = sj_uplink_start(recording->spool, &uplink, &recording->uplink, error);
    free(hello);
    return status;
}

static double ns_per_tick(const sj_recording *recording)
{
    sj_clock_rate rate;
    sj_clock_rate_finish(&recording->start_clock, &rate);
    return (double)rate.numerator / (double)rate.denominator;
}

static sj_status start_rooms(sj_recording *recording, sj_error *error)
{
    const sj_policy *policy = recording->options.policy;
    const double tick_ns = policy != NULL ? ns_per_tick(recording) : 0;
    if (policy != NULL && sj_rules_new(policy, &recording->rules) != SJ_OK) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    if (policy != NULL &&
        sj_control_store_new(recording->runtime_directory, &recording->control) != SJ_OK) {
        return sj_fail(error, SJ_EIO, "cannot write to %s", recording->runtime_directory);
    }
    const sj_emitter_options emitter = {.session = recording->session,
                                        .spool = recording->spool,
                                        .uplink = recording->uplink,
                                        .journal = &recording->journal,
                                        .control_store = recording->control,
                                        .max_bytes = recording->options.max_bytes};
    if (sj_emitter_new(&emitter, &recording->emitter) != SJ_OK ||
        sj_class_table_new(&recording->classes) != SJ_OK) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    sj_class_filter *objc = &recording->options.selection.objc;
    objc->find = sj_class_table_find;
    objc->context = recording->classes;
    const sj_roster_options roster = {
        .emitter = recording->emitter,
        .classes = recording->classes,
        .selection = &recording->options.selection,
        .sysroot = recording->options.program != NULL ? recording->options.program->sysroot : NULL,
        .runtime_directory = recording->runtime_directory,
        .cache_directory =
            recording->cache_directory[0] != '\0' ? recording->cache_directory : NULL,
        .rules = recording->rules,
        .journal = &recording->journal};
    if (sj_roster_new(&roster, &recording->roster) != SJ_OK) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    const sj_drain_options drain = {.emitter = recording->emitter,
                                    .roster = recording->roster,
                                    .journal = &recording->journal,
                                    .policy = policy,
                                    .rules = recording->rules,
                                    .ns_per_tick = tick_ns,
                                    .call_ns = tick_ns * sj_clock_probe_ticks(),
                                    .runtime_directory = recording->runtime_directory};
    return sj_drain_start(&drain, &recording->drain, error);
}

/* list_runtimes: what the agent does besides applying plans. Loops are watched in programs that
 * were started with it only: what their calls were led through could not be taken out again. */
static uint32_t list_runtimes(const sj_recording_options *options)
{
    const bool watches_loops = options->policy != NULL && options->attach_pid == 0 &&
                               sj_policy_watches_loops(options->policy);
    return (options->selection.objc_dispatch ? (uint32_t)SJ_LINK_RUNTIME_OBJC_DISPATCH : 0) |
           (watches_loops ? (uint32_t)SJ_LINK_RUNTIME_LOOPS : 0);
}

static sj_status start_link(sj_recording *recording, sj_error *error)
{
    const sj_recording_options *options = &recording->options;
    const sj_link_server_options link = {
        .runtime_directory = recording->runtime_directory,
        .welcome = {.session = recording->session,
                    .runtimes = list_runtimes(options),
                    .max_threads =
                        options->max_threads != 0 ? options->max_threads : DEFAULT_THREADS,
                    .chunks_per_thread = options->chunks_per_thread != 0
                                             ? options->chunks_per_thread
                                             : SJ_ARENA_MAX_CHUNKS,
                    .full_policy = (uint32_t)options->full_policy,
                    .block_ms = options->block_ms != 0 ? options->block_ms : DEFAULT_BLOCK_MS,
                    .follow_children = options->children},
        .roster = recording->roster,
        .context = recording,
        .joined = process_joined,
        .mark = mark_from_outside,
        .trigger = trigger_from_outside,
        .policy = policy_from_outside,
        .tell_policy = tell_policy};
    return sj_link_server_start(&link, &recording->link, error);
}

/* join_arguments writes the command line as one text, cut when too long. */
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

static sj_status announce_session(sj_recording *recording, sj_error *error)
{
    char command[4096];
    const sj_policy *policy = recording->options.policy;
    sj_clock_rate_finish(&recording->start_clock, &recording->rate);
    recording->ns_per_tick =
        (double)recording->rate.numerator / (double)recording->rate.denominator;
    sj_clock_take_pair(recording->ns_per_tick, &recording->start_clock);
    recording->journal.data->ns_per_tick = recording->ns_per_tick;
    if (recording->options.attach_pid != 0) {
        snprintf(command, sizeof(command), "attached to %d", (int)recording->options.attach_pid);
    } else {
        join_arguments(recording->options.arguments, command, sizeof(command));
    }
    const sj_session_start start = {
        .device = &recording->device,
        .name = recording->options.name,
        .command = command,
        .mode = sj_policy_mode_text(policy != NULL ? policy->mode : SJ_POLICY_TRACE),
        .policy_version = policy != NULL ? policy->version : 0,
        .clock = recording->start_clock,
        .rate = recording->rate};
    sj_status status = sj_session_frame_send(recording->emitter, &start);
    if (status == SJ_OK && policy != NULL) {
        sj_policy_changes *changes = &recording->changes;
        const bool blind = recording->options.attach_pid != 0 && sj_policy_watches_loops(policy);
        changes->not_applied = blind ? strdup("[\"" SJ_POLICY_LOOPS_UNSEEN "\"]") : NULL;
        changes->ticks = recording->start_clock.ticks;
        status = sj_policy_frame_send(recording->emitter, 1, policy, changes->ticks,
                                      changes->not_applied != NULL ? changes->not_applied : "");
    }
    if (status == SJ_OK) {
        status =
            sj_clock_frame_send(recording->emitter, &recording->device, &recording->start_clock);
    }
    return status == SJ_OK ? SJ_OK
                           : sj_fail(error, status, "cannot begin the session in %s: %s",
                                     recording->spool_directory, sj_status_text(status));
}

static void tell_progress(sj_recording *recording, sj_recording_phase phase)
{
    sj_recording_progress progress = {.phase = phase};
    if (recording->options.progress == NULL) {
        return;
    }
    progress.elapsed_ns = read_monotonic_ns() - recording->start_clock.monotonic_ns;
    sj_drain_get_counters(recording->drain, &progress.drain);
    sj_emitter_get_counters(recording->emitter, &progress.emitter);
    sj_spool_get_counters(recording->spool, &progress.spool);
    sj_uplink_get_status(recording->uplink, &progress.uplink);
    recording->options.progress(recording->options.context, &progress);
}

/* take_signals forwards what reached only the recorder; what the terminal sends goes to the whole
 * process group, the program included. */
static void take_signals(sj_recording *recording)
{
    struct signalfd_siginfo info;
    while (read(recording->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        const bool from_terminal = info.ssi_code == SI_KERNEL;
        if (recording->options.attach_pid != 0 || recording->is_delivering) {
            /* An attached process is not ours to end: any signal here means leaving it. When the
             * program has ended its number may be another's: it means to wait no longer. */
            recording->interrupts += info.ssi_signo != SIGINT;
        } else if (!from_terminal && recording->launch.pid > 0) {
            kill(recording->launch.pid, (int)info.ssi_signo);
        }
        recording->interrupts += info.ssi_signo == SIGINT;
    }
}

static void send_clock_pair(sj_recording *recording)
{
    sj_clock_pair pair;
    sj_clock_take_pair(recording->ns_per_tick, &pair);
    (void)!sj_clock_frame_send(recording->emitter, &recording->device, &pair);
}

/* has_ended asks the pidfd: waiting for a program that runs would take the stops from the thread
 * that hooks and sets free its functions. */
static bool has_ended(int pidfd)
{
    struct pollfd polled = {.fd = pidfd, .events = POLLIN};
    return pidfd < 0 || poll(&polled, 1, 0) > 0;
}

/* reap takes the program's end; false when it still runs. */
static bool reap(sj_recording *recording, int pidfd)
{
    struct rusage usage;
    if (!has_ended(pidfd)) {
        return false;
    }
    const pid_t got =
        wait4(recording->launch.pid, &recording->summary.wait_status, WNOHANG, &usage);
    if (got != recording->launch.pid || WIFSTOPPED(recording->summary.wait_status)) {
        return false;
    }
    recording->summary.traced_cpu_ns =
        UINT64_C(1000000000) * (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
        UINT64_C(1000) * (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    return true;
}

/* wait_for_something waits for a signal, the program's end or a request, but not for long. */
static void wait_for_something(const sj_recording *recording, int pidfd, int timeout_ms)
{
    struct pollfd polled[] = {{.fd = recording->signals, .events = POLLIN},
                              {.fd = recording->changes.wake, .events = POLLIN},
                              {.fd = pidfd, .events = POLLIN}};
    (void)poll(polled, sizeof(polled) / sizeof(polled[0]), timeout_ms);
}

static void wait_for_program(sj_recording *recording)
{
    const int pidfd = (int)syscall(SYS_pidfd_open, recording->launch.pid, 0);
    uint64_t next_pair_ns = read_monotonic_ns() + CLOCK_PAIR_MS * UINT64_C(1000000);
    while (!reap(recording, pidfd)) {
        wait_for_something(recording, pidfd, TICK_MS);
        take_signals(recording);
        sj_policy_change_take(recording);
        if (recording->interrupts >= 2) {
            recording->summary.program_left = !reap(recording, pidfd);
            break;
        }
        if (read_monotonic_ns() >= next_pair_ns) {
            next_pair_ns += CLOCK_PAIR_MS * UINT64_C(1000000);
            send_clock_pair(recording);
        }
        tell_progress(recording, SJ_PHASE_RECORDING);
    }
    if (pidfd >= 0) {
        close(pidfd);
    }
}

/* leave_processes takes Sojourn out of the process and of the children that it has forked. */
static void leave_processes(sj_recording *recording)
{
    enum { PROCESSES_MAX = 1024 };
    pid_t pids[PROCESSES_MAX];
    sj_recording_summary *summary = &recording->summary;
    sj_drain_rest(recording->drain);
    const size_t count = sj_roster_list_living(recording->roster, pids, PROCESSES_MAX);
    for (size_t i = 0; i < count; i++) {
        sj_leave_report report;
        sj_error error = {0};
        sj_target_lock(); /* stacks may be taken */
        const sj_status status = sj_attach_leave(pids[i], &report, &error);
        sj_target_unlock();
        if (status != SJ_OK) {
            snprintf(summary->leave_problem, sizeof(summary->leave_problem), "%.250s", error.text);
        }
        if (pids[i] == recording->options.attach_pid) {
            summary->leave = report;
            summary->replaced =
                recording->is_attached && !report.had_agent && sj_attach_is_replaced(pids[i]);
        } else {
            summary->leave.left_bytes += report.left_bytes;
        }
    }
    (void)sj_attach_leave_strays(&recording->session, pids, count);
}

static sj_status join_process(sj_recording *recording, sj_error *error)
{
    sj_attach *attach = NULL;
    const pid_t pid = recording->options.attach_pid;
    sj_drain_hold(recording->drain, pid);
    sj_target_lock();
    sj_status status =
        sj_attach_begin(pid, recording->agent_path, recording->runtime_directory, &attach, error);
    const uint64_t ticks = sj_clock_ticks();
    if (status == SJ_OK) {
        status = sj_attach_commit(attach, &recording->summary.attach, error);
    }
    if (status == SJ_OK && recording->options.selection.objc_dispatch) {
        status = sj_attach_bind(attach, error);
    }
    if (status == SJ_OK) {
        recording->is_attached = true;
        recording->summary.open_calls =
            sj_preopen(attach, pid, atomic_load(&recording->main_process), recording->roster,
                       recording->drain, ticks);
    }
    sj_attach_free(attach);
    sj_target_unlock();
    if (status != SJ_OK) {
        leave_processes(recording);
    }
    return status;
}

/* wait_for_process records an attached process until it ends, a signal comes or the time is up. */
static void wait_for_process(sj_recording *recording)
{
    const pid_t pid = recording->options.attach_pid;
    const int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    const uint64_t duration_ns = recording->options.duration_ms * UINT64_C(1000000);
    const uint64_t start_ns = read_monotonic_ns();
    uint64_t next_pair_ns = start_ns + CLOCK_PAIR_MS * UINT64_C(1000000);
    recording->summary.program_left = true;
    while (recording->interrupts == 0) {
        const uint64_t now_ns = read_monotonic_ns();
        uint64_t wait_ms = TICK_MS;
        if (duration_ns != 0) {
            if (now_ns - start_ns >= duration_ns) {
                break;
            }
            const uint64_t left_ms = (duration_ns - (now_ns - start_ns)) / 1000000 + 1;
            wait_ms = left_ms < wait_ms ? left_ms : wait_ms;
        }
        wait_for_something(recording, pidfd, (int)wait_ms);
        if (pidfd >= 0 ? has_ended(pidfd) : kill(pid, 0) != 0) {
            recording->summary.program_left = false;
            break;
        }
        recording->summary.replaced = sj_attach_is_replaced(pid);
        if (recording->summary.replaced) {
            break;
        }
        take_signals(recording);
        sj_policy_change_take(recording);
        if (now_ns >= next_pair_ns) {
            next_pair_ns += CLOCK_PAIR_MS * UINT64_C(1000000);
            send_clock_pair(recording);
        }
        tell_progress(recording, SJ_PHASE_RECORDING);
    }
    if (pidfd >= 0) {
        close(pidfd);
    }
    leave_processes(recording);
}

static const char *describe_end(const sj_recording_summary *summary)
{
    if (summary->program_left) {
        return summary->leave.had_agent || summary->replaced ? "completed" : "interrupted";
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

static void stop_rooms(sj_recording *recording)
{
    sj_link_server_counters link;
    sj_drain_finish(recording->drain);
    sj_link_server_get_counters(recording->link, &link);
    recording->summary.agent_reported = link.ready != 0;
    sj_link_server_stop(recording->link);
    recording->link = NULL;
    const uint64_t main_process = atomic_load(&recording->main_process);
    if (main_process != 0 && !recording->summary.program_left && !recording->is_attached) {
        const sj_process_end end = {.ended_ticks = sj_clock_ticks(),
                                    .has_status = true,
                                    .wait_status = recording->summary.wait_status};
        (void)!sj_roster_end_process(recording->roster, main_process, &end);
    }
}

static void fill_summary(sj_recording *recording)
{
    sj_recording_summary *summary = &recording->summary;
    if (recording->rules != NULL) {
        sj_policy_change_settle(recording, summary->unmatched, sizeof(summary->unmatched));
    }
    summary->session = recording->session;
    summary->how = describe_end(summary);
    summary->elapsed_ns = read_monotonic_ns() - recording->start_clock.monotonic_ns;
    summary->ns_per_tick = recording->ns_per_tick;
    snprintf(summary->spool_directory, sizeof(summary->spool_directory), "%s",
             recording->spool_directory);
    sj_drain_get_counters(recording->drain, &summary->drain);
    sj_roster_get_counters(recording->roster, &summary->roster);
    sj_emitter_get_counters(recording->emitter, &summary->emitter);
    summary->lost_calls = summary->emitter.block_lost_calls + summary->emitter.gap_calls;
    summary->lost_events = summary->emitter.block_lost_events + summary->emitter.gap_events;
    summary->calls = summary->emitter.block_calls + summary->lost_calls;
    summary->estimated_probe_ns =
        (uint64_t)(sj_clock_probe_ticks() * summary->ns_per_tick *
                   (double)(summary->drain.records + summary->lost_events) / 2);
}

static sj_status end_session(sj_recording *recording)
{
    const sj_recording_summary *summary = &recording->summary;
    sj_session_finish finish = {.how = summary->how,
                                .records = summary->drain.records,
                                .calls = summary->calls,
                                .lost_calls = summary->lost_calls,
                                .lost_events = summary->lost_events,
                                .blocks = summary->emitter.blocks,
                                .traced_cpu_ns = summary->traced_cpu_ns,
                                .estimated_probe_ns = summary->estimated_probe_ns};
    sj_clock_take_pair(recording->ns_per_tick, &finish.clock);
    SJ_TRY(sj_clock_frame_send(recording->emitter, &recording->device, &finish.clock));
    return sj_session_end_frame_send(recording->emitter, &finish);
}

/* deliver waits for acknowledgements, telling what it waits for; another Ctrl-C ends the wait. */
static void deliver(sj_recording *recording, const sj_recording_link *link)
{
    sj_recording_summary *summary = &recording->summary;
    const uint64_t start_ns = read_monotonic_ns();
    sj_uplink_status uplink;
    recording->is_delivering = true;
    for (;;) {
        const size_t waiting = sj_emitter_retry(recording->emitter);
        const sj_status status = sj_uplink_drain(recording->uplink, TICK_MS);
        sj_uplink_get_status(recording->uplink, &uplink);
        if (status == SJ_OK && waiting == 0) {
            summary->delivered = uplink.rejected_frames == 0;
            break;
        }
        const int64_t waited_ms = (int64_t)((read_monotonic_ns() - start_ns) / 1000000);
        const int interrupts = recording->interrupts;
        take_signals(recording);
        const bool is_over =
            status == SJ_EPERM || (link->wait_ms >= 0 && waited_ms >= link->wait_ms);
        if (recording->interrupts > interrupts ||
            (is_over && (waiting == 0 || !link->stays_for_spool ||
                         access(recording->spool_directory, F_OK) != 0))) {
            break;
        }
        tell_progress(recording, SJ_PHASE_WAITING_FOR_COLLECTOR);
    }
    if (!summary->delivered) {
        snprintf(summary->undelivered_reason, sizeof(summary->undelivered_reason), "%s",
                 uplink.message);
    }
}

static void close_spool(sj_recording *recording)
{
    sj_uplink_stop(recording->uplink);
    recording->uplink = NULL;
    if (recording->summary.delivered && sj_spool_remove(recording->spool, NULL) == SJ_OK) {
        unlink(recording->destination_path);
    } else {
        recording->summary.delivered = false;
        sj_spool_close(recording->spool);
    }
    recording->spool = NULL;
}

sj_status sj_recording_run(sj_recording *recording, const sj_recording_link *link,
                           sj_recording_summary *summary, int *exec_errno, sj_error *error)
{
    *exec_errno = 0;
    SJ_TRY(start_uplink(recording, link, error));
    SJ_TRY(start_rooms(recording, error));
    SJ_TRY(start_link(recording, error));
    SJ_TRY(announce_session(recording, error));
    if (recording->options.attach_pid != 0) {
        SJ_TRY(join_process(recording, error));
        sj_uplink_release(recording->uplink); /* the lab hears of no session that is not */
        wait_for_process(recording);
    } else {
        if (sj_launch_go(&recording->launch, exec_errno) != SJ_OK) {
            return sj_fail(error, SJ_EIO, "%s: %s", recording->options.program->path,
                           strerror(*exec_errno));
        }
        sj_uplink_release(recording->uplink);
        wait_for_program(recording);
    }
    stop_rooms(recording);
    fill_summary(recording);
    (void)!end_session(recording);
    deliver(recording, link);
    close_spool(recording);
    *summary = recording->summary;
    return SJ_OK;
}

void sj_recording_free(sj_recording *recording)
{
    if (recording == NULL) {
        return;
    }
    sj_launch_abandon(&recording->launch);
    sj_link_server_stop(recording->link);
    sj_drain_free(recording->drain);
    sj_roster_free(recording->roster);
    sj_class_table_free(recording->classes);
    sj_rules_free(recording->rules);
    sj_policy_changes_deinit(&recording->changes);
    if (recording->uplink != NULL) {
        sj_uplink_stop(recording->uplink);
    }
    sj_emitter_free(recording->emitter);
    sj_control_store_free(recording->control);
    if (recording->spool != NULL) {
        sj_spool_close(recording->spool);
        sj_directory_remove(recording->spool_directory);
        unlink(recording->destination_path);
    }
    if (recording->signals >= 0) {
        close(recording->signals);
    }
    if (recording->destination >= 0) {
        close(recording->destination);
    }
    sj_journal_close(&recording->journal);
    if (recording->runtime_directory[0] != '\0') {
        sj_directory_remove(recording->runtime_directory);
    }
    free(recording);
}
