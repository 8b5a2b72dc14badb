/* Design notes
 *
 * If anything fails, the program runs on unpatched. Nothing is patched before the recorder has
 * replied. If the first conversation breaks, all patches are undone. After it, the agent runs only
 * inside probes, forks and the loader's events. */
#include "agent/inproc/core/agent.h"

#include "agent/inproc/core/api_trampolines.h"
#include "agent/inproc/core/exec.h"
#include "agent/inproc/core/exec_check.h"
#include "agent/inproc/core/filters.h"
#include "agent/inproc/core/find_object.h"
#include "agent/inproc/core/limits.h"
#include "agent/inproc/core/modules.h"
#include "agent/inproc/core/monitor.h"
#include "agent/inproc/core/recorder_peer.h"
#include "agent/inproc/core/signals.h"
#include "agent/inproc/heap_guard/heap_guard.h"
#include "agent/inproc/hooks/definition.h"
#include "agent/inproc/hooks/dispatch.h"
#include "agent/inproc/hooks/hooks.h"
#include "agent/inproc/hooks/libc_calls.h"
#include "agent/inproc/hooks/module_walk.h"
#include "agent/inproc/jvm/jvm.h"
#include "agent/inproc/link/conversation.h"
#include "agent/inproc/objc_zombies/objc_zombies.h"
#include "agent/inproc/recorder/changes.h"
#include "agent/inproc/recorder/readable.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SJ_EXPORTED __attribute__((visibility("default")))
#define FORK_WAIT_NS UINT64_C(1000000000)
#define FORK_WALK_WAIT_NS UINT64_C(10000000000) /* walks do not wait for the recorder */

extern void *__dso_handle;
extern void __cxa_finalize(void *module);

static uint32_t follow_children;
static bool is_attached;
/* True while this thread forks and has the turn to talk with the recorder (conversation.h). So no
 * other thread is changing the tables of modules. */
static __thread bool holds_turn __attribute__((tls_model("initial-exec")));
/* True while this thread forks and keeps other threads of the agent from the loader's list. */
static __thread bool holds_walks __attribute__((tls_model("initial-exec")));

/* Prepares dispatched calls and the monitors. Plans must be applied afterwards, because their code
 * depends on both. */
static void prepare_for_plans(const sj_link *link)
{
    if ((link->runtimes & SJ_LINK_RUNTIME_LIBRARY_CALLS) != 0) {
        sj_hooks_expect_dispatch();
    }
    sj_monitors_prepare(link->runtimes);
}

static sj_status start_recorder(const char *arena_name, const sj_link_welcome *welcome)
{
    SJ_TRY(sj_recorder_start(sojourn_agent_state.runtime_directory, arena_name, welcome));
    sj_recorder_map_changes(sojourn_agent_state.runtime_directory);
    sojourn_agent_state.session = welcome->session;
    follow_children = welcome->follow_children;
    sj_monitors_choose(welcome->runtimes);
    return SJ_OK;
}

/* Joins the session: has the process's first conversation with the recorder, and starts recording.
 * Takes the loader's lock. */
static sj_status join(sj_link *link, sj_link_occasion occasion)
{
    sj_link_welcome welcome;
    const char *arena_name = sj_conversation_name_arena();
    SJ_TRY(sj_conversation_open(link, occasion, &welcome));
    prepare_for_plans(link);
    sj_recorder_note_program();
    SJ_TRY(start_recorder(arena_name, &welcome));
    SJ_TRY(sj_modules_announce(link, SJ_MODULES_LOADED));
    sj_recorder_set_state(SJ_ARENA_RECORDING);
    return sj_conversation_finish(link);
}

/* Joins the session in a forked child, which has its parent's patches already. Takes only locks
 * that fork resets: another thread of the parent may have held the loader's lock, which the child
 * would never get. */
static sj_status rejoin(sj_link *link)
{
    sj_link_welcome welcome;
    const char *arena_name = sj_conversation_name_arena();
    SJ_TRY(sj_conversation_open(link, SJ_OCCASION_FORK, &welcome));
    atomic_store(&sojourn_agent_state.is_joining, 0); /* copied from the parent's state */
    sj_monitors_rejoin(link->runtimes);
    SJ_TRY(start_recorder(arena_name, &welcome));
    sj_recorder_set_state(SJ_ARENA_RECORDING);
    return sj_conversation_finish(link);
}

/* Counts the coming child if it will not join. The count is in the parent's arena, which remains.
 * The child has this process's current user, root directory and filter. */
static void count_unfollowed(bool may_call)
{
    if ((follow_children & SJ_FOLLOW_FORK) == 0) {
        sj_recorder_count_unrecorded(SJ_UNRECORDED_UNFOLLOWED);
    } else if (may_call) {
        sj_recorder_count_unrecorded(sj_exec_check_reach(sojourn_agent_state.runtime_directory));
    } else {
        sj_recorder_count_unrecorded(SJ_UNRECORDED_FILTER);
    }
}

/* Waits until no thread changes the tables of modules, because a child inherits them, nor walks the
 * loader's list, because a child would inherit its lock. Waits for at most FORK_WAIT_NS for the
 * first, and FORK_WALK_WAIT_NS for the second. If the tables still change then, the child is not
 * recorded. */
static void before_fork(void)
{
    const bool may_call = sj_recorder_begin_calls();
    count_unfollowed(may_call);
    if (may_call) {
        holds_turn = sj_conversation_begin_within(FORK_WAIT_NS);
        (void)!sj_module_walk_begin_fork(FORK_WALK_WAIT_NS);
        holds_walks = true;
        sj_recorder_end_calls();
    }
    sj_recorder_park();
}

static void after_fork_in_parent(void)
{
    sj_recorder_unpark();
    if (holds_walks) {
        holds_walks = false;
        sj_module_walk_end_fork(false);
    }
    if (holds_turn) {
        holds_turn = false;
        sj_conversation_end();
    }
}

static void after_fork_in_child(void)
{
    const bool can_join = holds_turn && sj_recorder_is_armed() && sj_recorder_may_call();
    const uint64_t begun_ns = can_join ? sj_recorder_cpu_ns() : 0;
    sj_link link = {.socket = -1};
    holds_turn = false;
    holds_walks = false;
    sj_module_walk_end_fork(true);
    sj_recorder_unmap_changes();
    sj_recorder_after_fork();
    sj_monitors_after_fork();
    sj_signals_after_fork();
    sj_conversation_end();
    if (can_join && (follow_children & SJ_FOLLOW_FORK) != 0 && rejoin(&link) != SJ_OK) {
        sj_recorder_disarm(SJ_DISARM_NO_RECORDER);
    }
    sj_link_close(&link);
    if (can_join) {
        sj_recorder_count_cpu(begun_ns);
    }
}

static sj_status talk_about_modules(sj_link *link, sj_modules_moment moment)
{
    SJ_TRY(sj_conversation_open_again(link));
    prepare_for_plans(link);
    SJ_TRY(sj_modules_announce(link, moment));
    return sj_conversation_finish(link);
}

/* Binds the weak references of sojourn.h in modules that were loaded before the agent. Until then
 * they are 0. */
static void bind_api_calls(void)
{
    if (is_attached && sj_recorder_is_armed()) {
        sojourn_agent_state.api_trampoline_bytes = sj_api_trampolines_bind();
    }
}

/* Reports modules that were loaded or unloaded to the recorder. The caller has the turn to talk
 * with it. */
static void talk_in_loader(void)
{
    const uint64_t begun_ns = sj_recorder_cpu_ns();
    sj_link link = {.socket = -1};
    /* Does nothing in a child that was forked meanwhile. It would wait for the loader's lock, whose
     * owner is its parent's thread. */
    if (talk_about_modules(&link, SJ_MODULES_LOADING) != SJ_OK && sj_link_is_own(&link)) {
        sj_modules_forget_unloaded();
    }
    sj_link_close(&link);
    if (sj_recorder_is_armed()) {
        sj_monitors_on_modules();
    }
    bind_api_calls();
    sj_recorder_count_cpu(begun_ns);
}

/* Reports modules that were loaded or unloaded to the recorder. The caller holds the loader's lock.
 * Without a recorder, new modules stay unhooked. */
static void on_modules(void)
{
    if (!sj_recorder_begin_calls()) {
        return;
    }
    if (!sj_conversation_begin()) {
        sj_recorder_end_calls();
        return;
    }
    if (sj_modules_changed()) {
        talk_in_loader();
    }
    sj_conversation_end();
    sj_recorder_end_calls();
}

void sj_agent_on_initialisation(void)
{
    sj_modules_on_initialisation();
    sj_find_object_on_initialisation();
}

/* pthread_atfork calls this function. In glibc pthread_atfork itself is not in the shared
 * library. */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                             void *module) __attribute__((weak));

static bool is_glibc(void)
{
    return __register_atfork != NULL;
}

/* Registers the fork handlers with the function that the program's C library has. */
static bool meet_forks(void)
{
    int (*register_for_all)(void (*)(void), void (*)(void), void (*)(void));
    if (is_glibc()) {
        return __register_atfork(before_fork, after_fork_in_parent, after_fork_in_child,
                                 __dso_handle) == 0;
    }
    void *found = dlsym(RTLD_DEFAULT, "pthread_atfork");
    memcpy(&register_for_all, &found, sizeof(found));
    return found != NULL &&
           register_for_all(before_fork, after_fork_in_parent, after_fork_in_child) == 0;
}

/* Publishes the handle that tracers pass to dlclose. */
static void publish_handle(void)
{
    Dl_info info;
    struct link_map *map = NULL;
    if (dladdr1 != NULL &&
        dladdr1(&sojourn_agent_state, &info, (void **)&map, RTLD_DL_LINKMAP) != 0) {
        sojourn_agent_state.handle = (uint64_t)(uintptr_t)map;
    }
}

SJ_EXPORTED void sojourn_agent_bind(void)
{
    if (sj_recorder_is_armed()) {
        sj_monitors_start(true);
    }
}

/* True if a JVM has loaded the agent (-agentpath, jcmd) while its threads run. */
static bool is_loaded_by_jvm(void)
{
    enum { OWN_LINKS = 2 }; /* links of a folder; each thread adds one */
    struct stat status;
    const long failed = SJ_SYS(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &status, 0, 0, 0);
    return failed == 0 && status.st_nlink > OWN_LINKS + 1 &&
           sj_definition_find("JNI_GetCreatedJavaVMs", NULL) != 0;
}

/* Follows the modules that the loader maps later. musl calls its debug hook under a write lock that
 * its dl_iterate_phdr also takes. So later modules of a musl program are not recorded. */
static void follow_modules(sj_on_module *on_new_module)
{
    if (is_glibc()) {
        (void)!sj_modules_follow(on_modules, on_new_module);
    }
}

__attribute__((constructor)) static void start_agent(int argc, char **argv, char **environment)
{
    (void)argc;
    const uint64_t begun_ns = sj_recorder_cpu_ns();
    /* read it before the recorder starts its thread in this process, in direct mode */
    const bool is_late = is_loaded_by_jvm();
    publish_handle();
    sj_find_object_begin();
    if (!is_glibc()) { /* musl does not pass arguments to constructors */
        environment = environ;
    }
    if (!sj_recorder_peer_meet(argv, environment, sojourn_agent_state.runtime_directory,
                               sizeof(sojourn_agent_state.runtime_directory))) {
        return;
    }
    sj_link link;
    sj_modules_publish(&sojourn_agent_state);
    if (is_late) {
        sj_modules_pass_over();
    }
    sj_program_environment = environment;
    atomic_store(&sojourn_agent_state.is_joining, 1);
    atomic_store(&sojourn_agent_state.phase, SJ_AGENT_STATE_LAUNCHED);
    if (join(&link, SJ_OCCASION_START) != SJ_OK) {
        sj_modules_restore();
        sj_recorder_disarm(SJ_DISARM_NO_RECORDER);
    } else if (!meet_forks()) {
        sj_modules_restore();
        sj_recorder_disarm(SJ_DISARM_NO_MEMORY);
    } else {
        /* If one of these fails, only a part is missing: for example, modules that are loaded later
         * are not recorded. */
        follow_modules(NULL);
        (void)!sj_exec_follow(sojourn_agent_state.runtime_directory,
                              (follow_children & SJ_FOLLOW_EXEC) != 0 ? SJ_EXEC_ALL : SJ_EXEC_OWN);
        (void)!sj_filters_follow();
        (void)!sj_limits_follow();
        if (sj_signals_follow() == SJ_OK) {
            sj_signals_adopt();
        }
    }
    sj_link_close(&link);
    if (sj_recorder_is_armed()) {
        sj_monitors_start(false);
    }
    atomic_store(&sojourn_agent_state.is_joining, 0);
    sj_recorder_count_cpu(begun_ns);
}

/* Attaches for the first time. The text is not written. */
static sj_status attach_first(void)
{
    sj_link link = {.socket = -1};
    sj_modules_publish(&sojourn_agent_state);
    sojourn_agent_state.prepare_only = 1;
    atomic_store(&sojourn_agent_state.is_joining, 1);
    if (SJ_RETURN_IS_IN_SLOT != 0) {
        sojourn_agent_state.return_regions = (uint64_t)(uintptr_t)sj_return_regions;
        sojourn_agent_state.return_thunk = (uint64_t)(uintptr_t)&sj_arch_return_thunk;
    }
    is_attached = true;
    sj_find_object_bind(); /* do this before the slots are read for library calls */
    sj_hooks_avoid_page_crossings();
    /* Register the fork handlers first: a child forked from now on inherits the tables that are
     * made here. */
    if (!meet_forks()) {
        return SJ_ENOMEM;
    }
    const sj_status status = join(&link, SJ_OCCASION_ATTACH);
    sj_link_close(&link);
    if (status == SJ_OK) {
        follow_modules(sj_find_object_bind_later);
        (void)!sj_exec_follow(sojourn_agent_state.runtime_directory, SJ_EXEC_NONE);
        (void)!sj_filters_follow();
        (void)!sj_limits_follow();
        (void)!sj_signals_follow();
        bind_api_calls();
    }
    return status;
}

SJ_EXPORTED void sojourn_agent_attach(void)
{
    if (!sj_conversation_begin()) {
        atomic_store(&sojourn_agent_state.phase, SJ_AGENT_STATE_FAILED);
        return;
    }
    if (atomic_load(&sojourn_agent_state.phase) == SJ_AGENT_STATE_PREPARED) {
        sj_link link = {.socket = -1};
        (void)!talk_about_modules(&link, SJ_MODULES_LOADING);
        sj_link_close(&link);
    } else if (attach_first() == SJ_OK) {
        atomic_store(&sojourn_agent_state.phase, SJ_AGENT_STATE_PREPARED);
    } else {
        sj_recorder_disarm(SJ_DISARM_NO_RECORDER);
        atomic_store(&sojourn_agent_state.phase, SJ_AGENT_STATE_FAILED);
    }
    sj_conversation_end();
}

SJ_EXPORTED void sojourn_agent_transition(void)
{
    sj_link link = {.socket = -1};
    if (!sj_conversation_begin()) {
        return;
    }
    if (sj_conversation_open_again(&link) == SJ_OK) {
        prepare_for_plans(&link);
        if (sj_recorder_changes == NULL) { /* a table may have been made since */
            sj_recorder_map_changes(sojourn_agent_state.runtime_directory);
        }
        if (sj_modules_prepare_transition(&link) == SJ_OK) {
            (void)!sj_conversation_finish(&link);
        }
    }
    sj_link_close(&link);
    sj_conversation_end();
}

/* Prepares the monitor of freed memory in a running process, and starts the monitor of freed
 * objects. The calling thread does not hold a lock, and the other threads run. */
SJ_EXPORTED void sojourn_agent_watch_heap(void)
{
    if (sj_conversation_begin()) {
        sj_monitors_prepare(SJ_LINK_RUNTIME_ZOMBIES);
        sj_conversation_end();
        sj_monitors_start_late(SJ_LINK_RUNTIME_ZOMBIES);
        sj_monitors_start_late(SJ_LINK_RUNTIME_OBJC_ZOMBIES);
    }
}

SJ_EXPORTED void sojourn_agent_shrink_heap(void)
{
    sj_heap_guard_shrink();
    sj_objc_zombies_shrink();
}

SJ_EXPORTED void sojourn_agent_leave_heap(void)
{
    sj_heap_guard_detach();
}

SJ_EXPORTED void sojourn_agent_adopt_signals(void)
{
    sj_signals_adopt();
}

SJ_EXPORTED void sojourn_agent_leave_signals(void)
{
    sj_signals_leave();
}

SJ_EXPORTED void sojourn_agent_detach(void)
{
    sj_recorder_set_state(SJ_ARENA_ENDED);
    sj_signals_leave();
    sj_api_trampolines_close();
    sj_modules_forget_all();
    sj_heap_guard_release_code();
    sj_jvm_deinit();
    if (atomic_load(&sojourn_agent_state.binding) == SJ_AGENT_STATE_RELEASED) {
        sj_return_slots_release();
    }
    sj_recorder_unmap_changes();
    sj_recorder_unmap();
    atomic_store(&sojourn_agent_state.phase, SJ_AGENT_STATE_DETACHED);
}

/* Removes the fork handlers, as the C library does at the end of a module. dlclose does it
 * again. */
SJ_EXPORTED void sojourn_agent_unregister(void)
{
    if (is_attached) {
        sj_find_object_release();
    }
    __cxa_finalize(__dso_handle);
}

SJ_EXPORTED void sojourn_agent_unbind(void)
{
    const bool is_returned_to = sj_monitors_stop();
    sj_recorder_retire(); /* calls that return through the thunk are no longer recorded */
    atomic_store(&sojourn_agent_state.binding,
                 is_returned_to ? SJ_AGENT_STATE_RELEASED : SJ_AGENT_STATE_UNBOUND);
}

/* Reports hooks that the program has overwritten, if the process may still make system calls. */
static void report_overwritten(void)
{
    sj_overwritten found = {0};
    if (sj_recorder_begin_calls()) {
        if (sj_modules_find_overwritten(&found)) {
            sj_recorder_report_overwritten(&found);
        }
        sj_recorder_end_calls();
    }
}

__attribute__((destructor)) static void end_agent(void)
{
    sj_heap_guard_check_delayed();
    report_overwritten();
    sj_recorder_end();
    sj_recorder_peer_part();
}
