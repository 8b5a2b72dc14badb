/* Design notes
 *
 * First the text is restored while all threads are stopped. From then on no thread enters a stub. A
 * thread in a stub leaves it within nanoseconds. So all threads are stopped again a few moments
 * later. If none is in a stub or in the agent, the agent gives its memory back. Then its fork
 * handlers are unregistered, and then it is unloaded. One thread makes each of these calls while
 * all others are stopped and none is about to enter the agent (quiescence.h).
 *
 * Unregistering and unloading are two steps. Between attempts the other threads run, because one of
 * them may hold a lock that the call needs. fork copies a handler's address, releases its lock and
 * calls the handler, and dlclose both unregisters and unmaps. A thread may stay in a stub or in the
 * agent, for example if a signal handler interrupted it and blocks. Then the agent, its stubs and
 * its arena stay mapped and harmless. They are counted, and a later attach or detach removes
 * them. */
#include "agent/attach/detach.h"
#include "agent/attach/quiescence.h"
#include "agent/attach/return_slots.h"
#include "agent/attach/space_waiters.h"
#include "agent/attach/stop_clock.h"
#include "agent/host/clock.h"
#include "agent/livepatch/jvm_request.h"
#include "agent/livepatch/remote_agent.h"
#include "agent/ptrace/proc_status.h"
#include "agent/ptrace/safepoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    ATTEMPTS = 200,
    LEAST_ATTEMPTS = 10,
    PAUSE_NS = 2000000,
    CALL_TIMEOUT_MS = 30000,
    ALONE_MS = 10,
    ENDING_ATTEMPTS = 50
};

#define SECOND_NS UINT64_C(1000000000)
#define RESTORE_NS (10 * SECOND_NS)
#define LEAVE_NS (2 * SECOND_NS)  /* For each step. */
#define SLOW_NS (10 * SECOND_NS)  /* For LEAST_ATTEMPTS of a step, on a busy machine. */
#define SPACE_NS (10 * SECOND_NS) /* Longest wait of a thread for space in its buffer. */
#define ENDING_NS (10 * SECOND_NS)

typedef struct detaching {
    sj_tracee target;
    sj_remote_agent agent;
    sj_remote_choice choice;
    sj_unwinder *unwinder;
    sj_quiescence_regions regions;
    uint64_t last_stop_ns;
    sj_detach_process_report *report;
} detaching;

/* Lets the threads run at least as long as they were just stopped. */
static void pause_between(const detaching *detach, uint32_t attempt)
{
    uint64_t pause_ns = attempt < 20 ? PAUSE_NS / 10 : PAUSE_NS;
    pause_ns = detach->last_stop_ns > pause_ns ? detach->last_stop_ns : pause_ns;
    const struct timespec pause = {.tv_sec = (time_t)(pause_ns / SECOND_NS),
                                   .tv_nsec = (long)(pause_ns % SECOND_NS)};
    nanosleep(&pause, NULL);
}

/* True if another attempt is due. There is at least one, and no further one if the process has
 * ended. */
static bool is_due(const detaching *detach, uint32_t attempt, uint64_t deadline_ns)
{
    return attempt == 0 || (attempt < ATTEMPTS && sj_clock_ns(CLOCK_MONOTONIC) < deadline_ns &&
                            sj_tracee_is_there(&detach->target));
}

/* Deadlines of one step of leaving. */
typedef struct leave_limits {
    uint64_t deadline_ns;
    uint64_t slow_ns;  /* Until then, a step has LEAST_ATTEMPTS, which may take longer. */
    uint64_t space_ns; /* Until then, threads that wait for space are given time to leave. */
    uint64_t grace_ns; /* End of that time. 0: no thread has waited for space. */
} leave_limits;

static leave_limits begin_step(void)
{
    const uint64_t now_ns = sj_clock_ns(CLOCK_MONOTONIC);
    return (leave_limits){.deadline_ns = now_ns + LEAVE_NS,
                          .slow_ns = now_ns + SLOW_NS,
                          .space_ns = now_ns + LEAVE_NS + SPACE_NS};
}

/* True if a step of leaving has another attempt. A thread that waited for space leaves the agent
 * some time after its wait. On a busy machine that may be after the next check. */
static bool may_leave(const detaching *detach, uint32_t attempt, leave_limits *limits)
{
    const uint64_t now_ns = sj_clock_ns(CLOCK_MONOTONIC);
    if (now_ns < limits->space_ns &&
        sj_space_waiters_exist(&detach->target, &detach->agent.state)) {
        limits->grace_ns = now_ns + LEAVE_NS;
    }
    const bool is_slow = attempt < LEAST_ATTEMPTS && now_ns < limits->slow_ns;
    return is_due(detach, attempt, limits->deadline_ns) ||
           ((is_slow || now_ns < limits->grace_ns) && sj_tracee_is_there(&detach->target));
}

static void record_stop(detaching *detach, sj_stop_clock *clock)
{
    const uint64_t stopped_ns = detach->target.resumed_ns - clock->wall_ns;
    detach->last_stop_ns = stopped_ns;
    sj_stop_clock_read(clock);
    if (stopped_ns > detach->report->stopped_ns) {
        detach->report->stopped_ns = stopped_ns;
        detach->report->stopped_cpu_ns = clock->cpu_ns;
    }
}

/* True except for the entries that free guarded blocks, which leave_heap handles. */
static bool is_not_heap_freeing(void *context, const sj_hook_change *change)
{
    (void)context;
    return change->function != SJ_HOOK_HEAP_FREEING;
}

static bool is_heap_freeing(void *context, const sj_hook_change *change)
{
    return !is_not_heap_freeing(context, change);
}

/* Restores the text while all threads are stopped. From then on the agent adds no hooks. Otherwise
 * a thread in the agent for a module that is being loaded could still add some. */
static sj_status restore_stopped(detaching *detach, sj_text_patch_report *done)
{
    const uint32_t yes = 1;
    if (!sj_remote_agent_is_unchanged(&detach->target, &detach->agent)) {
        return SJ_EAGAIN;
    }
    /* Removes the signal gates while the hook of sigaction still hides them from the program.
     * SJ_AGENT_STATE_DETACH removes gates that are left. */
    (void)!sj_remote_agent_call_any(&detach->target, &detach->agent, SJ_AGENT_STATE_LEAVE_SIGNALS);
    SJ_TRY(sj_remote_agent_toggle(&detach->target, &detach->agent, &detach->choice, done));
    detach->report->restored += done->changed;
    return sj_tracee_write(&detach->target,
                           detach->agent.state_address + offsetof(sj_agent_state, is_detaching),
                           &yes, sizeof(yes));
}

/* Lists the functions whose hooks the program has overwritten. Their stubs stay, because the
 * program may have copied jumps to them elsewhere. */
static void list_overwritten(detaching *detach)
{
    const sj_text_change *change = &detach->choice.change;
    detach->report->overwritten = (sj_overwritten){0};
    for (size_t i = 0; i < change->count; i++) {
        if (change->patches[i].is_foreign && change->patches[i].group < SJ_HOOK_REPLACED) {
            sj_overwritten_add(&detach->report->overwritten, change->patches[i].group);
        }
    }
}

/* Restores every change except the entries that free guarded blocks (is_not_heap_freeing). Counts
 * the changes that could not be restored. */
static sj_status restore_text(detaching *detach, sj_error *error)
{
    sj_text_patch_report done = {0};
    sj_status status = SJ_EAGAIN;
    const uint64_t deadline_ns = sj_clock_ns(CLOCK_MONOTONIC) + RESTORE_NS;
    for (uint32_t i = 0;
         is_due(detach, i, deadline_ns) && (status == SJ_EAGAIN || status == SJ_EIO); i++) {
        status = sj_remote_agent_reload(&detach->target, &detach->agent);
        if (status == SJ_OK) {
            status = sj_remote_agent_choose(&detach->target, &detach->agent, false,
                                            is_not_heap_freeing, NULL, &detach->choice);
        }
        if (status == SJ_OK) {
            sj_stop_clock clock;
            sj_stop_clock_start(&clock);
            SJ_TRY(sj_tracee_stop_all(&detach->target, error));
            status = restore_stopped(detach, &done);
            sj_tracee_resume_all(&detach->target);
            record_stop(detach, &clock);
            /* A thread that could not be moved out of a window may have left it a moment later. */
            status = status == SJ_OK && done.refused != done.foreign ? SJ_EAGAIN : status;
        }
        if (status != SJ_OK) {
            pause_between(detach, i);
        }
    }
    detach->report->kept = done.refused;
    list_overwritten(detach);
    return status == SJ_OK || done.refused != 0
               ? SJ_OK
               : sj_fail(error, status, "the text of process %d cannot be restored now: %s",
                         (int)detach->target.pid, sj_status_text(status));
}

static bool is_released(const detaching *detach)
{
    return atomic_load(&detach->agent.state.binding) == SJ_AGENT_STATE_RELEASED;
}

/* True if no thread is in the agent or will return to it. Calls that a dispatcher has recorded
 * return through its thunk, so they count as inside. */
static bool is_left(const detaching *detach)
{
    return sj_remote_agent_is_unchanged(&detach->target, &detach->agent) &&
           (!is_released(detach) ||
            sj_return_slots_restore(&detach->target, &detach->agent.state) == SJ_OK) &&
           sj_quiescence_is_left(&detach->target, &detach->agent, detach->unwinder);
}

/* Makes a thread call the function when no thread is in the agent. Reads the tables again if
 * threads have changed them meanwhile. Returns SJ_EAGAIN if there is always a thread in the
 * agent. */
static sj_status call_when_left(detaching *detach, const char *function)
{
    sj_tracee *target = &detach->target;
    sj_status status = SJ_EAGAIN;
    bool is_read = false;
    leave_limits limits = begin_step();
    for (uint32_t i = 0; status == SJ_EAGAIN && may_leave(detach, i, &limits); i++) {
        sj_stop_clock clock;
        pause_between(detach, i);
        is_read = (is_read && sj_remote_agent_is_unchanged(target, &detach->agent)) ||
                  sj_remote_agent_reload(target, &detach->agent) == SJ_OK;
        if (!is_read) {
            continue;
        }
        sj_stop_clock_start(&clock);
        SJ_TRY(sj_tracee_stop_all(target, NULL));
        if (is_left(detach)) {
            status = sj_remote_agent_call_any(target, &detach->agent, function);
        }
        sj_tracee_resume_all(target);
        record_stop(detach, &clock);
    }
    return status;
}

/* Restores the entries that free guarded blocks once no guarded block is live. */
static sj_status restore_freeing_entries(detaching *detach)
{
    sj_text_patch_report done = {0};
    sj_status status = SJ_EAGAIN;
    const uint64_t deadline_ns = sj_clock_ns(CLOCK_MONOTONIC) + LEAVE_NS;
    for (uint32_t i = 0; is_due(detach, i, deadline_ns) && status == SJ_EAGAIN; i++) {
        sj_stop_clock clock;
        pause_between(detach, i);
        if (sj_remote_agent_reload(&detach->target, &detach->agent) != SJ_OK ||
            atomic_load(&detach->agent.residue.live) != 0) {
            continue;
        }
        sj_stop_clock_start(&clock);
        SJ_TRY(sj_tracee_stop_all(&detach->target, NULL));
        status = sj_remote_agent_change(&detach->target, &detach->agent, false, is_heap_freeing,
                                        NULL, &done);
        sj_tracee_resume_all(&detach->target);
        record_stop(detach, &clock);
        status = status == SJ_OK && done.refused != 0 ? SJ_EAGAIN : status;
    }
    detach->report->restored += status == SJ_OK ? done.changed : 0;
    return status;
}

/* Detaches the agent from the heap. Live guarded blocks stay in the residue (abi/heap_residue.h),
 * and the entries that free them stay patched while one is live. */
static sj_status leave_heap(detaching *detach)
{
    if (detach->agent.state.heap_residue == 0) {
        return SJ_OK;
    }
    SJ_TRY(call_when_left(detach, SJ_AGENT_STATE_LEAVE_HEAP));
    SJ_TRY(sj_remote_agent_reload(&detach->target, &detach->agent));
    detach->report->heap_blocks = atomic_load(&detach->agent.residue.live);
    if (detach->report->heap_blocks == 0 && restore_freeing_entries(detach) != SJ_OK) {
        SJ_TRY(sj_remote_agent_reload(&detach->target, &detach->agent));
    }
    return SJ_OK;
}

/* Makes a thread call a function that takes locks of the C library. The thread holds none of them,
 * all others are stopped, and none is in the agent. Returns SJ_EAGAIN if a thread always is.
 * Returns SJ_EIO if the calling thread has crashed in the function or is still in it. Also returns
 * errors of sj_safepoint_find. */
static sj_status call_quietly(detaching *detach, const sj_inferior_call *call)
{
    sj_tracee *target = &detach->target;
    sj_status status = SJ_EAGAIN;
    leave_limits limits = begin_step();
    for (uint32_t i = 0; status == SJ_EAGAIN && may_leave(detach, i, &limits); i++) {
        size_t thread = 0;
        sj_stop_clock clock;
        pause_between(detach, i);
        SJ_TRY(sj_safepoint_find(target, detach->unwinder, &thread));
        const pid_t tid = target->threads[thread].tid;
        sj_stop_clock_start(&clock);
        SJ_TRY(sj_tracee_stop_all(target, NULL));
        if (sj_quiescence_is_reached(target, &detach->agent, detach->unwinder, &detach->regions) &&
            sj_tracee_stop_one(target, tid, &thread) == SJ_OK) {
            status = sj_inferior_call_run(target, thread, call, CALL_TIMEOUT_MS);
            status = status == SJ_ETIMEDOUT ? SJ_EIO : status;
        }
        sj_tracee_resume_all(target);
        record_stop(detach, &clock);
    }
    return status;
}

static sj_status unload(detaching *detach)
{
    /* A tracer that was killed may have left the agent in the middle of its loading. */
    const uint64_t deadline_ns = sj_clock_ns(CLOCK_MONOTONIC) + LEAVE_NS;
    for (uint32_t i = 0; is_due(detach, i, deadline_ns) && detach->agent.state.handle == 0; i++) {
        pause_between(detach, i);
        (void)!sj_remote_agent_reload(&detach->target, &detach->agent);
    }
    if (detach->agent.state.handle == 0) {
        return SJ_EUNSUPPORTED; /* The process was forked in the middle of the loading. */
    }
    sj_inferior_call unregistering = {.restorer = detach->agent.restorer, .alone_ms = ALONE_MS};
    sj_inferior_call unloading = {.restorer = detach->agent.restorer,
                                  .alone_ms = ALONE_MS,
                                  .arguments = {detach->agent.state.handle, 0, 0}};
    SJ_TRY(sj_remote_symbol(&detach->target, &detach->agent.module, SJ_AGENT_STATE_UNREGISTER,
                            &unregistering.function));
    SJ_TRY(sj_remote_function_find(&detach->target, "dlclose", &unloading.function));
    sj_quiescence_find_regions(&detach->target, &detach->regions);
    SJ_TRY(call_quietly(detach, &unregistering));
    return call_quietly(detach, &unloading);
}

/* Restores the modules' references to the dispatcher, and the runtimes' callbacks. As for dlclose,
 * no thread may be in the loader. */
static sj_status unbind(detaching *detach, sj_error *error)
{
    size_t thread = 0;
    if (atomic_load(&detach->agent.state.binding) != SJ_AGENT_STATE_BOUND) {
        return SJ_OK;
    }
    sj_status status = sj_safepoint_find(&detach->target, detach->unwinder, &thread);
    if (status == SJ_OK) {
        status =
            sj_remote_agent_call(&detach->target, &detach->agent, thread, SJ_AGENT_STATE_UNBIND);
        sj_tracee_resume_all(&detach->target);
    }
    if (status == SJ_OK) {
        status = sj_remote_agent_reload(&detach->target, &detach->agent);
        detach->report->message_stubs = detach->agent.state.message_stubs;
    }
    return status == SJ_OK
               ? SJ_OK
               : sj_fail(error, status,
                         "the dispatcher or the runtime of process %d cannot be restored now: %s",
                         (int)detach->target.pid, sj_status_text(status));
}

/* Returns the memory of the mappings of the session's files, in bytes. */
static uint64_t count_resident(const detaching *detach)
{
    char path[64];
    char line[PATH_MAX + 128];
    uint64_t kib = 0;
    bool is_ours = false;
    const char *directory = detach->agent.state.runtime_directory;
    const size_t length = strnlen(directory, SJ_AGENT_STATE_PATH_BYTES);
    snprintf(path, sizeof(path), "/proc/%d/smaps", (int)sj_proc_living(detach->target.pid));
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        unsigned long number;
        unsigned long high;
        const char *name = strchr(line, '/');
        if (sscanf(line, "%lx-%lx", &number, &high) == 2) {
            is_ours = length != 0 && name != NULL && strncmp(name, directory, length) == 0 &&
                      name[length] == '/';
        } else if (is_ours && sscanf(line, "Rss: %lu", &number) == 1) {
            kib += number;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kib * 1024;
}

/* Sums the memory that is still mapped. The arena is sparse, so only its resident memory counts. */
static uint64_t count_left(const detaching *detach, bool given_back)
{
    sj_remote_module module;
    if (sj_remote_module_find(detach->target.pid, "libsojourn-agent", &module) != SJ_OK) {
        return 0; /* The agent was unloaded, or the process has ended. */
    }
    uint64_t bytes = module.high - module.low + count_resident(detach);
    for (size_t i = 0; i < detach->agent.table_count && !given_back; i++) {
        bytes += detach->agent.tables[i].module.stubs_bytes +
                 detach->agent.tables[i].module.changes_bytes;
    }
    return bytes;
}

/* True if the detach has gone as far as it can. The report then says what stays, and whether it
 * stays forever. */
static bool is_final(sj_status status)
{
    return status == SJ_OK || status == SJ_EAGAIN || status == SJ_ETIMEDOUT ||
           status == SJ_EUNSUPPORTED || status == SJ_ECLOSED;
}

/* Removes everything that the agent has, then the agent. */
static sj_status remove_agent(detaching *detach, bool *given_back)
{
    const uint32_t phase = atomic_load(&detach->agent.state.phase);
    /* A preloaded agent stays forever, because its thread-local variables may not be initialised
     * again. An agent also stays if calls return through its thunk and their slots cannot be
     * read. */
    if (phase != SJ_AGENT_STATE_DETACHED) {
        SJ_TRY(leave_heap(detach));
    }
    if (phase == SJ_AGENT_STATE_LAUNCHED ||
        (is_released(detach) && detach->agent.state.return_regions == 0)) {
        return SJ_EUNSUPPORTED;
    }
    if (detach->report->kept != 0) {
        return SJ_EAGAIN;
    }
    if (phase != SJ_AGENT_STATE_DETACHED) {
        SJ_TRY(call_when_left(detach, SJ_AGENT_STATE_DETACH));
        (void)!sj_remote_agent_reload(&detach->target, &detach->agent); /* Nothing is in it now. */
    }
    *given_back = true;
    return unload(detach);
}

static sj_status detach_process(detaching *detach, sj_error *error)
{
    bool given_back = false;
    detach->report->had_agent = true;
    detach->report->api_trampoline_bytes = detach->agent.state.api_trampoline_bytes;
    if (atomic_load(&detach->agent.state.phase) != SJ_AGENT_STATE_DETACHED) {
        SJ_TRY(restore_text(detach, error));
    }
    if (sj_unwinder_new(&detach->target, &detach->unwinder) != SJ_OK) {
        return sj_fail(error, SJ_EIO, "the modules of process %d cannot be read",
                       (int)detach->target.pid);
    }
    SJ_TRY(unbind(detach, error));
    sj_status status = sj_jvm_leave(&detach->target, &detach->agent, error);
    if (status != SJ_OK && status != SJ_ECLOSED) {
        return status;
    }
    status = remove_agent(detach, &given_back);
    detach->report->stays = status == SJ_EUNSUPPORTED;
    detach->report->left_bytes = count_left(detach, given_back);
    return is_final(status)
               ? SJ_OK
               : sj_fail(error, status, "the agent in process %d cannot be unloaded: %s",
                         (int)detach->target.pid, sj_status_text(status));
}

/* Waits for the end of a process that could not be left or that keeps memory of the agent: a
 * moment, because it may be about to end, and longer if it ends already. */
static bool has_ended(const sj_tracee *target)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    const uint64_t deadline_ns = sj_clock_ns(CLOCK_MONOTONIC) + ENDING_NS;
    for (int i = 0; sj_tracee_is_there(target) &&
                    (i < ENDING_ATTEMPTS || (sj_proc_is_ending(target->pid) &&
                                             sj_clock_ns(CLOCK_MONOTONIC) < deadline_ns));
         i++) {
        nanosleep(&pause, NULL);
    }
    return !sj_tracee_is_there(target);
}

/* Clears what stays, because the process has ended. */
static void forget_rest(sj_detach_process_report *report)
{
    report->kept = 0;
    report->left_bytes = 0;
    report->message_stubs = 0;
    report->heap_blocks = 0;
    report->stays = false;
}

bool sj_detach_is_replaced(pid_t pid)
{
    sj_remote_module agent;
    sj_proc_status facts;
    /* The order matters: a process that ends first loses its modules, and a moment later its
     * life. */
    return sj_remote_module_find(pid, "libsojourn-agent", &agent) == SJ_ENOTFOUND &&
           sj_proc_status_read(pid, &facts) == SJ_OK && !facts.is_ending && sj_proc_is_alive(pid);
}

sj_status sj_detach_process(pid_t pid, sj_detach_process_report *report, sj_error *error)
{
    detaching detach = {.report = report};
    *report = (sj_detach_process_report){0};
    if (!sj_proc_is_alive(pid)) {
        return SJ_OK;
    }
    sj_status status = sj_tracee_open(pid, &detach.target, error);
    if (status != SJ_OK) {
        return status != SJ_ENOTFOUND && sj_proc_is_alive(pid) ? status : SJ_OK;
    }
    status = sj_remote_agent_find(&detach.target, &detach.agent);
    if (status == SJ_OK || status == SJ_EAGAIN) {
        status = detach_process(&detach, error);
    } else if (status == SJ_ENOTFOUND) {
        status = SJ_OK;
    } else {
        status = sj_fail(error, status, "the agent in process %d cannot be read: %s", (int)pid,
                         sj_status_text(status));
    }
    const bool is_clean = status == SJ_OK && report->left_bytes == 0;
    if (is_clean ? !sj_tracee_is_there(&detach.target) : has_ended(&detach.target)) {
        status = SJ_OK;
        forget_rest(report);
    }
    sj_unwinder_free(detach.unwinder);
    sj_remote_choice_deinit(&detach.choice);
    sj_remote_agent_deinit(&detach.agent);
    sj_tracee_close(&detach.target);
    return status;
}

/* Returns the process that listens on the session's socket; 0: none. Sets `*is_silent` if the
 * listener accepts no connections: it may be stopped, with a full queue. Does not wait. */
static pid_t find_recorder(const char *runtime_directory, bool *is_silent)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct ucred peer = {0};
    socklen_t bytes = sizeof(peer);
    const int folder = open(runtime_directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/control", folder);
    if (folder < 0 || fd < 0 ||
        connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        *is_silent = folder >= 0 && fd >= 0 && errno == EAGAIN;
    } else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) {
        peer.pid = 0;
    }
    if (fd >= 0) {
        close(fd);
    }
    if (folder >= 0) {
        close(folder);
    }
    return peer.pid;
}

static bool has_written(const sj_remote_agent *agent)
{
    for (size_t i = 0; i < agent->table_count; i++) {
        for (uint32_t j = 0; j < agent->tables[i].module.change_count; j++) {
            const sj_hook_change *change = &agent->tables[i].changes[j];
            if (change->written != 0 && is_not_heap_freeing(NULL, change)) {
                return true;
            }
        }
    }
    return false;
}

sj_status sj_detach_find(pid_t pid, sj_recorded *recorded, sj_error *error)
{
    sj_tracee target;
    sj_remote_agent agent;
    *recorded = (sj_recorded){0};
    SJ_TRY(sj_tracee_open(pid, &target, error));
    sj_status status = sj_remote_agent_find(&target, &agent);
    if (status == SJ_OK || status == SJ_EAGAIN) {
        agent.state.runtime_directory[SJ_AGENT_STATE_PATH_BYTES - 1] = '\0';
        recorded->has_agent = true;
        /* Tables change if a module is being loaded or, before the hooks are written, during an
         * attach. */
        const uint32_t phase = atomic_load(&agent.state.phase);
        const bool is_committed = phase != SJ_AGENT_STATE_IDLE && agent.state.prepare_only == 0;
        const uint32_t jvm = atomic_load(&agent.state.jvm);
        recorded->is_active = jvm >= SJ_AGENT_JVM_JOINED ||
                              (jvm == SJ_AGENT_JVM_NONE &&
                               ((status == SJ_EAGAIN && is_committed) || has_written(&agent)));
        recorded->is_joining = atomic_load(&agent.state.is_joining) != 0;
        recorded->is_launched = phase == SJ_AGENT_STATE_LAUNCHED;
        recorded->recorder =
            agent.state.runtime_directory[0] != '\0'
                ? find_recorder(agent.state.runtime_directory, &recorded->is_silent)
                : 0;
        recorded->session = agent.state.session;
    }
    sj_remote_agent_deinit(&agent);
    sj_tracee_close(&target);
    return status != SJ_EVERSION
               ? SJ_OK
               : sj_fail(error, status,
                         "in process %d is the agent of another version of Sojourn, whose `sojourn "
                         "detach` takes it out",
                         (int)pid);
}
