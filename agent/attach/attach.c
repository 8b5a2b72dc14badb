#include "agent/attach/attach.h"

#include "agent/attach/detach.h"
#include "agent/attach/live_runtimes.h"
#include "agent/attach/preflight.h"
#include "agent/attach/stop_clock.h"
#include "agent/host/clock.h"
#include "agent/host/directories.h"
#include "agent/livepatch/remote_agent.h"
#include "agent/ptrace/safepoint.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>

enum {
    LOAD_TIMEOUT_MS = 60000,
    COMMIT_ATTEMPTS = 50,
    CLEAN_ATTEMPTS = 50,
    BIND_ATTEMPTS = 50,
    PATIENT_ATTEMPTS = 4, /* These first attempts choose the hooks before the stop. */
    STACK_COPY_BYTES = 256 * 1024,
    FRAMES_MAX = 65536,
    PAUSE_NS = 1000000
};

struct sj_attach {
    sj_tracee target;
    sj_remote_agent agent;
    sj_remote_choice choice; /* All hooks that the agent has prepared. */
    sj_stack_copy *copies;
    size_t copy_count;
    sj_attach_report report;
};

static void sleep_a_little(void)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    nanosleep(&pause, NULL);
}

/* Refuses a process that is recorded already; the error names its session. If the recorder has
 * ended, removes the hooks and the agent that it left. */
static sj_status refuse_recorded(pid_t pid, sj_error *error)
{
    sj_recorded recorded;
    sj_detach_process_report left;
    char session[SJ_SESSION_TEXT_BYTES];
    SJ_TRY(sj_detach_find(pid, &recorded, error));
    if (!recorded.has_agent) {
        return SJ_OK;
    }
    if (recorded.is_silent) {
        sj_session_text(&recorded.session, session);
        return sj_fail(error, SJ_EEXIST,
                       "process %d is recorded already, as session %s, by a recorder that does not "
                       "answer; if that is stopped, `kill -CONT` it",
                       (int)pid, session);
    }
    if (recorded.recorder != 0) {
        sj_session_text(&recorded.session, session);
        return sj_fail(error, SJ_EEXIST,
                       "process %d is recorded already, as session %s, by process %d; "
                       "`sojourn detach %d` ends that",
                       (int)pid, session, (int)recorded.recorder, (int)pid);
    }
    /* If a thread is running code that must be removed, a later attempt can succeed. */
    for (uint32_t attempt = 0; attempt < CLEAN_ATTEMPTS; attempt++) {
        SJ_TRY(sj_detach_process(pid, &left, error));
        if (left.left_bytes == 0) {
            return SJ_OK;
        }
        if (left.stays || recorded.is_launched) {
            break;
        }
        sleep_a_little();
    }
    return sj_fail(
        error, left.stays ? SJ_EUNSUPPORTED : SJ_EAGAIN,
        recorded.is_launched ? "process %d was started by a `sojourn record` that has ended; its "
                               "hooks were removed; to record it, start it again"
        : left.stays
            ? "process %d keeps code of an earlier recording, which cannot be taken out; it has to "
              "be started again to be recorded again"
            : "a thread of process %d may still come to code of an earlier recording; "
              "try again later",
        (int)pid);
}

static sj_status load_agent(sj_attach *attach, size_t thread, const char *agent_path,
                            sj_error *error)
{
    sj_tracee *target = &attach->target;
    sj_inferior_call call = {.restorer = sj_remote_restorer_find(target),
                             .text = agent_path,
                             .arguments = {0, RTLD_NOW, 0}};
    if (call.restorer == 0 ||
        (sj_remote_function_find(target, "dlopen", &call.function) != SJ_OK &&
         sj_remote_function_find(target, "__libc_dlopen_mode", &call.function) != SJ_OK)) {
        return sj_fail(error, SJ_EUNSUPPORTED,
                       "an agent cannot be loaded with the C library of process %d",
                       (int)target->pid);
    }
    const uint64_t start_ns = sj_clock_ns(CLOCK_MONOTONIC);
    const sj_status status = sj_inferior_call_run(target, thread, &call, LOAD_TIMEOUT_MS);
    attach->report.loading_ns = sj_clock_ns(CLOCK_MONOTONIC) - start_ns;
    if (status != SJ_OK) {
        return sj_fail(error, status, "process %d could not load the agent: %s", (int)target->pid,
                       sj_status_text(status));
    }
    if (sj_remote_agent_find(target, &attach->agent) != SJ_OK) {
        return sj_fail(
            error, SJ_EUNSUPPORTED,
            "the loader of process %d refused %.200s (another C library, too little space for "
            "thread-local variables, or a security policy)",
            (int)target->pid, agent_path);
    }
    return SJ_OK;
}

/* Writes to the state of the agent: the runtime directory, the stubs of an earlier agent, and
 * whether the agent is to join a JVM. */
static sj_status prepare_agent(const sj_attach *attach, const char *runtime_directory)
{
    const sj_tracee *target = &attach->target;
    const uint64_t state = attach->agent.state_address;
    const size_t bytes = strlen(runtime_directory) + 1;
    sj_remote_module stubs;
    if (bytes > SJ_AGENT_STATE_PATH_BYTES) {
        return SJ_ELIMIT;
    }
    if (sj_remote_module_find(target->pid, SJ_AGENT_STATE_STUBS, &stubs) == SJ_OK) {
        SJ_TRY(sj_tracee_write(target, state + offsetof(sj_agent_state, kept_stubs),
                               &stubs.code_low, sizeof(stubs.code_low)));
    }
    if (sj_live_runtimes_are_joined(target->pid)) {
        const uint32_t awaited = SJ_AGENT_JVM_AWAITED;
        SJ_TRY(sj_tracee_write(target, state + offsetof(sj_agent_state, jvm), &awaited,
                               sizeof(awaited)));
    }
    return sj_tracee_write(target, state + offsetof(sj_agent_state, runtime_directory),
                           runtime_directory, bytes);
}

static sj_status join_session(sj_attach *attach, size_t thread, const char *runtime_directory,
                              sj_error *error)
{
    sj_tracee *target = &attach->target;
    sj_remote_agent *agent = &attach->agent;
    sj_status status = prepare_agent(attach, runtime_directory);
    if (status == SJ_OK) {
        status = sj_remote_agent_call(target, agent, thread, SJ_AGENT_STATE_ATTACH);
    }
    if (status == SJ_OK) {
        status = sj_remote_agent_reload(target, agent);
    }
    if (status == SJ_OK && atomic_load(&agent->state.phase) == SJ_AGENT_STATE_PREPARED) {
        return SJ_OK;
    }
    return sj_fail(error, status == SJ_OK ? SJ_EIO : status,
                   "the agent in process %d could not join the session%s%s", (int)target->pid,
                   status == SJ_OK ? "" : ": ", status == SJ_OK ? "" : sj_status_text(status));
}

/* Creates an unwinder, which knows the modules that the process has now. It is never kept for a
 * later moment, at which the process may have other modules. */
static sj_status new_unwinder(const sj_attach *attach, sj_unwinder **unwinder, sj_error *error)
{
    return sj_unwinder_new(&attach->target, unwinder) == SJ_OK
               ? SJ_OK
               : sj_fail(error, SJ_EIO, "the modules of process %d cannot be read",
                         (int)attach->target.pid);
}

static sj_status find_safepoint(sj_attach *attach, size_t *thread, sj_error *error)
{
    sj_unwinder *unwinder = NULL;
    SJ_TRY(new_unwinder(attach, &unwinder, error));
    const sj_status status = sj_safepoint_find(&attach->target, unwinder, thread);
    sj_unwinder_free(unwinder);
    switch (status) {
    case SJ_OK:
        return SJ_OK;
    case SJ_ETIMEDOUT:
        return sj_fail(error, status,
                       "no thread of process %d came to a point at which the agent can be loaded "
                       "(all in the loader, the allocator, or on very small stacks); try again",
                       (int)attach->target.pid);
    case SJ_EUNSUPPORTED:
        return sj_fail(
            error, status,
            "process %d was forked while another thread loaded a library, so its loader is locked "
            "for ever and cannot load the agent; start it with `sojourn record`",
            (int)attach->target.pid);
    case SJ_EPERM:
        return sj_fail(error, status,
                       "process %d is traced already, by something that began at the same time; "
                       "try again when it has left",
                       (int)attach->target.pid);
    default:
        return sj_fail(error, status, "process %d cannot be traced or has ended",
                       (int)attach->target.pid);
    }
}

/* Excludes other tracers of Sojourn by a lock on /proc/PID/mem. ptrace alone would not exclude two
 * tracers that begin with different threads. The kernel drops the lock when this process ends. */
static sj_status claim(const sj_tracee *target, sj_error *error)
{
    if (flock(target->memory, LOCK_EX | LOCK_NB) == 0) {
        return SJ_OK;
    }
    return sj_fail(error, SJ_EEXIST,
                   "process %d is being attached to already, by another sojourn; "
                   "`sojourn ps` shows the session that records it then",
                   (int)target->pid);
}

/* Replaces the error if the process has ended or executed another program. The original error would
 * mislead. */
static sj_status explain(const sj_attach *attach, sj_status status, sj_error *error)
{
    if (status == SJ_OK || attach->target.memory < 0 || sj_tracee_is_there(&attach->target)) {
        return status;
    }
    return sj_fail(error, SJ_ECLOSED, "process %d has ended or runs another program",
                   (int)attach->target.pid);
}

static sj_status begin(sj_attach *attach, pid_t pid, const char *agent_path,
                       const char *runtime_directory, sj_error *error)
{
    const uint64_t start_ns = sj_clock_ns(CLOCK_MONOTONIC);
    size_t thread = 0;
    SJ_TRY(sj_preflight_check(pid, agent_path, error));
    SJ_TRY(sj_tracee_open(pid, &attach->target, error));
    SJ_TRY(claim(&attach->target, error));
    SJ_TRY(refuse_recorded(pid, error));
    SJ_TRY(find_safepoint(attach, &thread, error));
    SJ_TRY(load_agent(attach, thread, agent_path, error));
    SJ_TRY(join_session(attach, thread, runtime_directory, error));
    sj_tracee_resume_all(&attach->target);
    attach->report.prepare_ns = sj_clock_ns(CLOCK_MONOTONIC) - start_ns;
    return SJ_OK;
}

sj_status sj_attach_begin(pid_t pid, const char *agent_path, const char *runtime_directory,
                          sj_attach **attach, sj_error *error)
{
    sj_detach_process_report left;
    sj_attach *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return sj_fail(error, SJ_ENOMEM, "out of memory");
    }
    made->target.memory = -1;
    const sj_status status =
        explain(made, begin(made, pid, agent_path, runtime_directory, error), error);
    if (status == SJ_OK) {
        *attach = made;
        return SJ_OK;
    }
    const bool is_loaded = made->agent.module.low != 0;
    sj_attach_free(made);
    if (is_loaded) {
        (void)!sj_detach_process(pid, &left, NULL);
    }
    return status;
}

/* Chooses all hooks that the agent has prepared now. Returns SJ_EAGAIN if the hooks change
 * meanwhile or the text cannot be read. */
static sj_status choose_current(sj_attach *attach)
{
    SJ_TRY(sj_remote_agent_reload(&attach->target, &attach->agent));
    const sj_status status =
        sj_remote_agent_choose(&attach->target, &attach->agent, true, NULL, NULL, &attach->choice);
    /* SJ_EIO: a module was unloaded, or the process has ended. The next attempt finds out. */
    return status == SJ_EIO ? SJ_EAGAIN : status;
}

/* Makes one thread report the modules that were loaded since the agent prepared. This thread stays
 * stopped; the other threads run. */
static sj_status announce_again(sj_attach *attach, sj_error *error)
{
    size_t thread = 0;
    SJ_TRY(find_safepoint(attach, &thread, error));
    const sj_status status =
        sj_remote_agent_call(&attach->target, &attach->agent, thread, SJ_AGENT_STATE_ATTACH);
    if (status == SJ_OK) {
        return SJ_OK;
    }
    sj_tracee_resume_all(&attach->target);
    return sj_fail(error, status, "the agent in process %d does not answer: %s",
                   (int)attach->target.pid, sj_status_text(status));
}

/* Stops all threads. Sets `*is_current` if the agent knows every module; otherwise resumes the
 * threads. If `choose` is true, chooses the hooks during the stop, and resumes if that fails. */
static sj_status stop_if_current(sj_attach *attach, bool choose, sj_stop_clock *clock,
                                 bool *is_current, sj_error *error)
{
    sj_stop_clock_start(clock);
    SJ_TRY(sj_tracee_stop_all(&attach->target, error));
    *is_current = (!choose || choose_current(attach) == SJ_OK) &&
                  sj_remote_agent_is_current(&attach->target, &attach->agent);
    if (!*is_current) {
        sj_tracee_resume_all(&attach->target);
    }
    return SJ_OK;
}

/* Chooses the hooks while the threads run, then stops all threads. If the agent does not know every
 * module by then, makes it report them and resumes the threads. */
static sj_status stop_chosen(sj_attach *attach, sj_stop_clock *clock, bool *is_current,
                             sj_error *error)
{
    const sj_status status = choose_current(attach);
    if (status == SJ_EAGAIN) {
        return SJ_OK;
    }
    if (status != SJ_OK) {
        return sj_fail(error, SJ_ECLOSED, "process %d has ended", (int)attach->target.pid);
    }
    SJ_TRY(stop_if_current(attach, false, clock, is_current, error));
    if (!*is_current) {
        SJ_TRY(announce_again(attach, error));
        sj_tracee_resume_all(&attach->target);
    }
    return SJ_OK;
}

/* Makes the agent report its modules, stops all threads at once, and chooses the hooks during the
 * stop. */
static sj_status stop_announced(sj_attach *attach, sj_stop_clock *clock, bool *is_current,
                                sj_error *error)
{
    SJ_TRY(announce_again(attach, error));
    return stop_if_current(attach, true, clock, is_current, error);
}

/* Chooses the hooks and stops all threads at a moment when the agent knows every module. */
static sj_status stop_current(sj_attach *attach, sj_stop_clock *clock, sj_error *error)
{
    for (uint32_t attempt = 0; attempt < COMMIT_ATTEMPTS; attempt++) {
        bool is_current = false;
        SJ_TRY(attempt < PATIENT_ATTEMPTS ? stop_chosen(attach, clock, &is_current, error)
                                          : stop_announced(attach, clock, &is_current, error));
        if (is_current) {
            return SJ_OK;
        }
        sleep_a_little();
    }
    return sj_fail(error, SJ_EAGAIN, "process %d loads modules all the time; try again",
                   (int)attach->target.pid);
}

static sj_status copy_stacks(sj_attach *attach)
{
    sj_tracee *target = &attach->target;
    attach->copies = calloc(target->count, sizeof(*attach->copies));
    if (attach->copies == NULL) {
        return SJ_ENOMEM;
    }
    for (size_t i = 0; i < target->count; i++) {
        SJ_TRY(sj_stack_copy_read(target, target->threads[i].tid, STACK_COPY_BYTES,
                                  &attach->copies[attach->copy_count]));
        attach->copy_count++;
    }
    return SJ_OK;
}

static sj_status write_hooks(sj_tracee *target, sj_remote_agent *agent, sj_remote_choice *choice,
                             sj_text_patch_report *done)
{
    const uint32_t off = 0;
    SJ_TRY(sj_remote_agent_toggle(target, agent, choice, done));
    /* From now on, the agent hooks each newly loaded module before its code runs. */
    return sj_tracee_write(target, agent->state_address + offsetof(sj_agent_state, prepare_only),
                           &off, sizeof(off));
}

static sj_status commit_stopped(sj_attach *attach)
{
    sj_text_patch_report done;
    sj_tracee *target = &attach->target;
    attach->report.threads = (uint32_t)target->count;
    SJ_TRY(write_hooks(target, &attach->agent, &attach->choice, &done));
    attach->report.patches = done.changed;
    attach->report.refused = done.refused;
    attach->report.moved = done.moved;
    (void)!sj_remote_agent_call_any(target, &attach->agent, SJ_AGENT_STATE_ADOPT_SIGNALS);
    return copy_stacks(attach);
}

static sj_status commit(sj_attach *attach, sj_attach_report *report, sj_error *error)
{
    sj_stop_clock clock = {0};
    sj_status status = SJ_EAGAIN;
    for (uint32_t attempt = 0; attempt < COMMIT_ATTEMPTS && status == SJ_EAGAIN; attempt++) {
        SJ_TRY(stop_current(attach, &clock, error));
        status = commit_stopped(attach);
        sj_tracee_resume_all(&attach->target);
        sj_stop_clock_read(&clock);
    }
    attach->report.stopped_ns = clock.wall_ns;
    attach->report.stopped_cpu_ns = clock.cpu_ns;
    *report = attach->report;
    return status == SJ_OK ? SJ_OK
                           : sj_fail(error, status, "the text of process %d cannot be written: %s",
                                     (int)attach->target.pid, sj_status_text(status));
}

sj_status sj_attach_commit(sj_attach *attach, sj_attach_report *report, sj_error *error)
{
    return explain(attach, commit(attach, report, error), error);
}

static sj_status call_bind(sj_attach *attach, sj_error *error)
{
    size_t thread = 0;
    SJ_TRY(find_safepoint(attach, &thread, error));
    sj_status status =
        sj_remote_agent_call(&attach->target, &attach->agent, thread, SJ_AGENT_STATE_BIND);
    sj_tracee_resume_all(&attach->target);
    if (status == SJ_OK) {
        /* SJ_EAGAIN: the tables of modules are changing. Only the state is needed here. */
        status = sj_remote_agent_reload(&attach->target, &attach->agent);
        status = status == SJ_EAGAIN ? SJ_OK : status;
    }
    return status;
}

static sj_status bind_references(sj_attach *attach, sj_error *error)
{
    sj_status status = call_bind(attach, error);
    for (uint32_t attempt = 0; status == SJ_OK && attempt < BIND_ATTEMPTS &&
                               atomic_load(&attach->agent.state.bind_again) != 0;
         attempt++) {
        sleep_a_little(); /* The next call may use another thread. */
        status = call_bind(attach, error);
    }
    if (status == SJ_OK && atomic_load(&attach->agent.state.binding) != SJ_AGENT_STATE_BOUND) {
        return sj_fail(error, SJ_EUNSUPPORTED,
                       "process %d has no dispatcher of messages that could be replaced, or a Mono "
                       "without profiler interface (before 6.0)",
                       (int)attach->target.pid);
    }
    return status == SJ_OK ? SJ_OK
                           : sj_fail(error, status, "the runtime in process %d: %s",
                                     (int)attach->target.pid, sj_status_text(status));
}

sj_status sj_attach_bind(sj_attach *attach, sj_error *error)
{
    return explain(attach, bind_references(attach, error), error);
}

void sj_attach_end_joining(pid_t pid)
{
    const uint32_t no = 0;
    sj_tracee target;
    sj_remote_agent agent = {0};
    if (sj_tracee_open(pid, &target, NULL) != SJ_OK) {
        return;
    }
    const sj_status status = sj_remote_agent_find(&target, &agent);
    if (status == SJ_OK || status == SJ_EAGAIN) { /* The tables of modules are not needed here. */
        (void)!sj_tracee_write(&target, agent.state_address + offsetof(sj_agent_state, is_joining),
                               &no, sizeof(no));
        /* The agent has not joined the JVM: the session does not record Java methods. */
        if (atomic_load(&agent.state.jvm) == SJ_AGENT_JVM_AWAITED) {
            const uint32_t none = SJ_AGENT_JVM_NONE;
            (void)!sj_tracee_write(&target, agent.state_address + offsetof(sj_agent_state, jvm),
                                   &none, sizeof(none));
        }
    }
    sj_remote_agent_deinit(&agent);
    sj_tracee_close(&target);
}

static sj_status commit_forked(sj_tracee *target, sj_remote_agent *agent, sj_error *error)
{
    sj_text_patch_report done;
    sj_status status = sj_remote_agent_find(target, agent);
    if (status == SJ_OK && agent->state.prepare_only != 0 &&
        atomic_load(&agent->state.is_detaching) == 0) {
        sj_remote_choice choice = {0};
        status = sj_remote_agent_choose(target, agent, true, NULL, NULL, &choice);
        if (status == SJ_OK) {
            status = sj_tracee_stop_all(target, error);
        }
        if (status == SJ_OK) {
            status = write_hooks(target, agent, &choice, &done);
        }
        if (status == SJ_OK) {
            (void)!sj_remote_agent_call_any(target, agent, SJ_AGENT_STATE_ADOPT_SIGNALS);
        }
        sj_tracee_resume_all(target);
        sj_remote_choice_deinit(&choice);
    }
    return status == SJ_OK ? SJ_OK
                           : sj_fail(error, status, "the forked process %d cannot be recorded: %s",
                                     (int)target->pid, sj_status_text(status));
}

sj_status sj_attach_commit_forked(pid_t pid, sj_error *error)
{
    sj_tracee target;
    sj_remote_agent agent = {0};
    SJ_TRY(sj_tracee_open(pid, &target, error));
    const sj_status status = commit_forked(&target, &agent, error);
    sj_remote_agent_deinit(&agent);
    sj_tracee_close(&target);
    return status;
}

static sj_status add_thread_calls(sj_unwinder *unwinder, const sj_stack_copy *copy,
                                  sj_native_frame *frames, sj_open_call **calls, size_t *count)
{
    const size_t found = sj_unwinder_walk(unwinder, copy, frames, FRAMES_MAX);
    sj_open_call *grown = realloc(*calls, (*count + found + 1) * sizeof(*grown));
    if (grown == NULL) {
        return SJ_ENOMEM;
    }
    *calls = grown;
    for (size_t i = found; i-- > 0;) {
        if (frames[i].stack != 0) {
            grown[(*count)++] = (sj_open_call){.tid = copy->tid,
                                               .pc = frames[i].pc,
                                               .stack = frames[i].stack,
                                               .is_next = frames[i].is_activation};
        }
    }
    return SJ_OK;
}

sj_status sj_attach_open_calls(sj_attach *attach, sj_open_call **calls, size_t *count)
{
    sj_native_frame *frames = malloc(FRAMES_MAX * sizeof(*frames));
    sj_unwinder *unwinder = NULL;
    sj_status status = frames != NULL ? new_unwinder(attach, &unwinder, NULL) : SJ_ENOMEM;
    *calls = NULL;
    *count = 0;
    for (size_t i = 0; i < attach->copy_count && status == SJ_OK; i++) {
        status = add_thread_calls(unwinder, &attach->copies[i], frames, calls, count);
    }
    free(frames);
    sj_unwinder_free(unwinder);
    if (status != SJ_OK) {
        free(*calls);
        *calls = NULL;
    }
    return status;
}

void sj_attach_free(sj_attach *attach)
{
    if (attach == NULL) {
        return;
    }
    for (size_t i = 0; i < attach->copy_count; i++) {
        sj_stack_copy_deinit(&attach->copies[i]);
    }
    free(attach->copies);
    sj_remote_choice_deinit(&attach->choice);
    sj_remote_agent_deinit(&attach->agent);
    sj_tracee_close(&attach->target);
    free(attach);
}
