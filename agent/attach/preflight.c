#include "agent/attach/preflight.h"

#include <stdio.h>
#include <string.h>

enum { CAPABILITY_DAC_OVERRIDE = 1, CAPABILITY_PTRACE = 19 };

static bool has_capability(const sj_preflight_facts *facts, int capability)
{
    return (facts->own_capabilities >> capability & 1) != 0;
}

static bool may_trace_all(const sj_preflight_facts *facts)
{
    return has_capability(facts, CAPABILITY_PTRACE);
}

/* Writes a command that attaches as the user of the process. If the process has changed its user,
 * its memory belongs to root, so SYS_PTRACE alone is not enough. */
static void advise_user(const sj_preflight_facts *facts, char *advice, size_t capacity)
{
    const uint32_t user = facts->process.effective_user;
    const char *capabilities = facts->is_closed ? "+sys_ptrace,+dac_override" : "+sys_ptrace";
    if (!may_trace_all(facts) && (!facts->is_closed || facts->own_user == 0)) {
        snprintf(advice, capacity, "sudo -u '#%u' sojourn attach %d", user, (int)facts->pid);
        return;
    }
    snprintf(advice, capacity,
             "%ssetpriv --reuid=%u --clear-groups --inh-caps=%s --ambient-caps=%s sojourn "
             "attach %d",
             facts->own_user != 0 ? "sudo " : "", user, capabilities, capabilities,
             (int)facts->pid);
}

/* Checks the user: the agent works as the user of its process, and reaches only that user's
 * session. */
static sj_status check_user(const sj_preflight_facts *facts, sj_error *error)
{
    const uint32_t user = facts->process.effective_user;
    char advice[256];
    advise_user(facts, advice, sizeof(advice));
    if (user != facts->own_user) {
        return sj_fail(error, SJ_EPERM,
                       "process %d belongs to user %u, whose files its recorder must share; become "
                       "that user: %s",
                       (int)facts->pid, user, advice);
    }
    if (facts->is_closed && may_trace_all(facts) && facts->own_user != 0 &&
        !has_capability(facts, CAPABILITY_DAC_OVERRIDE)) {
        return sj_fail(error, SJ_EPERM,
                       "process %d has changed its user, or forbids inspection "
                       "(PR_SET_DUMPABLE), so that its memory belongs to root; give sojourn "
                       "DAC_OVERRIDE, too: %s",
                       (int)facts->pid, advice);
    }
    return SJ_OK;
}

static sj_status check_permission(const sj_preflight_facts *facts, sj_error *error)
{
    if (facts->yama == 3) {
        return sj_fail(error, SJ_EPERM,
                       "this kernel forbids ptrace until it is restarted "
                       "(kernel.yama.ptrace_scope is 3); use `sojourn record` instead");
    }
    SJ_TRY(check_user(facts, error));
    if (may_trace_all(facts)) {
        return SJ_OK;
    }
    if (facts->yama == 2) {
        return sj_fail(error, SJ_EPERM,
                       "Yama allows ptrace with the capability SYS_PTRACE only "
                       "(kernel.yama.ptrace_scope is 2); attach as root");
    }
    if (facts->yama != 0) {
        return sj_fail(error, SJ_EPERM,
                       "Yama forbids attaching to processes that are not descendants; as root, "
                       "`sysctl kernel.yama.ptrace_scope=0` allows it until the next restart");
    }
    if ((facts->process.capabilities & ~facts->own_capabilities) != 0) {
        return sj_fail(error, SJ_EPERM,
                       "process %d has capabilities that sojourn lacks; give sojourn SYS_PTRACE "
                       "(in a container: --cap-add=SYS_PTRACE)",
                       (int)facts->pid);
    }
    if (facts->is_closed) {
        return sj_fail(error, SJ_EPERM,
                       "process %d has changed its user, or forbids inspection "
                       "(PR_SET_DUMPABLE); give sojourn SYS_PTRACE (in a container: "
                       "--cap-add=SYS_PTRACE)",
                       (int)facts->pid);
    }
    return SJ_OK;
}

static sj_status check_tracer(const sj_preflight_facts *facts, sj_error *error)
{
    const int tracer = (int)facts->process.tracer;
    if (tracer == 0) {
        return SJ_OK;
    }
    if (strncmp(facts->tracer_name, "sojourn", strlen("sojourn")) == 0) {
        return sj_fail(error, SJ_EEXIST,
                       "process %d is recorded already, by process %d (%s), which attaches or "
                       "leaves right now; `sojourn detach %d` ends that",
                       (int)facts->pid, tracer, facts->tracer_name, (int)facts->pid);
    }
    return sj_fail(error, SJ_EEXIST,
                   "process %d is already traced by process %d (%s), which must detach first",
                   (int)facts->pid, tracer, facts->tracer_name);
}

static sj_status check_life(const sj_preflight_facts *facts, sj_error *error)
{
    const sj_proc_status *process = &facts->process;
    const int pid = (int)facts->pid;
    if ((process->state == 'Z' || process->state == 'X') && process->threads > 1) {
        return sj_fail(error, SJ_EUNSUPPORTED,
                       "the first thread of process %d has ended before the others, so that it "
                       "cannot be looked at; start it with `sojourn record` instead",
                       pid);
    }
    if (process->state == 'Z' || process->state == 'X') {
        return sj_fail(error, SJ_ENOTFOUND,
                       "process %d has ended, but its parent %d has not waited for it yet", pid,
                       (int)process->parent);
    }
    if (process->is_ending) {
        return sj_fail(error, SJ_ENOTFOUND, "process %d is ending", pid);
    }
    if (process->is_kernel) {
        return sj_fail(error, SJ_EUNSUPPORTED, "process %d is a thread of the kernel", pid);
    }
    return SJ_OK;
}

static sj_status check_state(const sj_preflight_facts *facts, sj_error *error)
{
    const int pid = (int)facts->pid;
    SJ_TRY(check_life(facts, error));
    SJ_TRY(check_tracer(facts, error));
    if (facts->process.state == 'T' || facts->process.state == 't') {
        return sj_fail(error, SJ_EUNSUPPORTED,
                       "process %d is stopped; `kill -CONT %d` lets it run, then attach", pid, pid);
    }
    if (facts->process.is_confined) {
        return sj_fail(error, SJ_EUNSUPPORTED,
                       "process %d has a seccomp filter, which may kill it for the system calls "
                       "that attaching needs; start it with `sojourn record` instead",
                       pid);
    }
    return SJ_OK;
}

static sj_status check_program(const sj_preflight_facts *facts, sj_error *error)
{
    const int pid = (int)facts->pid;
    switch (facts->program) {
    case SJ_PROGRAM_FITS:
        return SJ_OK;
    case SJ_PROGRAM_UNREADABLE:
        return sj_fail(error, SJ_EPERM, "the program of process %d cannot be read; attach as root",
                       pid);
    case SJ_PROGRAM_FOREIGN:
        return sj_fail(error, SJ_EUNSUPPORTED,
                       "process %d runs a program for another machine than this sojourn; use a "
                       "sojourn for that machine",
                       pid);
    case SJ_PROGRAM_EMULATOR:
        return sj_fail(error, SJ_EUNSUPPORTED,
                       "process %d is an emulator (%s); start its program with `sojourn record` "
                       "instead of attaching",
                       pid, facts->process.name);
    case SJ_PROGRAM_STATIC:
        break;
    }
    return sj_fail(error, SJ_EUNSUPPORTED,
                   "process %d runs a statically linked program, which cannot load the agent; "
                   "link it dynamically",
                   pid);
}

sj_status sj_preflight_decide(const sj_preflight_facts *facts, sj_error *error)
{
    const int pid = (int)facts->pid;
    if (pid == 1) {
        return sj_fail(error, SJ_EUNSUPPORTED, "refusing to attach to PID 1 (init)");
    }
    if (facts->pid == facts->own_pid) {
        return sj_fail(error, SJ_EUNSUPPORTED, "a process cannot attach to itself");
    }
    if (facts->process.leader != 0 && facts->process.leader != facts->pid) {
        return sj_fail(error, SJ_EUNSUPPORTED,
                       "%d is a thread of process %d; `sojourn attach %d` records all of them", pid,
                       (int)facts->process.leader, (int)facts->process.leader);
    }
    SJ_TRY(check_state(facts, error));
    SJ_TRY(check_permission(facts, error));
    SJ_TRY(check_program(facts, error));
    if (facts->has_direct) {
        return sj_fail(error, SJ_EEXIST,
                       "process %d has loaded libsojourn-direct.so, which excludes another agent; "
                       "let it record itself (SOJOURN_DIRECT), or start it without the library",
                       pid);
    }
    if (facts->is_agent_hidden) {
        return sj_fail(error, SJ_EUNSUPPORTED,
                       "process %d does not see the agent's file: it lives in another container or "
                       "root directory; run sojourn inside of it, where it is process %d",
                       pid, (int)facts->pid_inside);
    }
    return SJ_OK;
}

sj_status sj_preflight_check(pid_t pid, const char *agent_path, sj_error *error)
{
    sj_preflight_facts facts;
    if (pid <= 0 || sj_preflight_facts_read(pid, agent_path, &facts) != SJ_OK) {
        return sj_fail(error, SJ_ENOTFOUND,
                       "there is no process %d; `sojourn ps` lists those that are there", (int)pid);
    }
    return sj_preflight_decide(&facts, error);
}
