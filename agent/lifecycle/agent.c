/* Design notes
 *
 * Everything that can fail leaves the program as it was: nothing is patched before the companion
 * has welcomed us, and what was patched is restored when the first conversation breaks. After it,
 * the agent runs only inside probes, forks and the loader's events. */
#include "agent/lifecycle/agent.h"

#include "agent/hooks/hooks.h"
#include "agent/lifecycle/api_gates.h"
#include "agent/lifecycle/companion.h"
#include "agent/lifecycle/exec.h"
#include "agent/lifecycle/link_client.h"
#include "agent/lifecycle/loops.h"
#include "agent/lifecycle/modules.h"
#include "agent/lifecycle/objc.h"
#include "agent/recorder/recorder.h"
#include "agent/recorder/sys.h"
#include "agent/runtimes/objc/dispatch.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#define SJ_EXPORTED __attribute__((visibility("default")))
#define FORK_WAIT_NS UINT64_C(1000000000)

extern void *__dso_handle;
extern void __cxa_finalize(void *module);

SJ_EXPORTED sj_face sojourn_agent_face = {.magic = SJ_FACE_MAGIC, .version = SJ_FACE_VERSION};

static char arena_name[sizeof(((sj_link_hello *)NULL)->arena_name)];
static uint32_t follow_children;
static bool objc_dispatch;
static bool watch_loops;
static bool is_attached;
static _Atomic uint32_t conversation; /* tid of the thread that has one; 0: none */
/* This thread forks and has made the conversation its own for that time. */
static __thread bool holds_tables __attribute__((tls_model("initial-exec")));

static size_t append_number(char *text, size_t used, uint64_t number)
{
    char digits[20];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    while (count != 0) {
        text[used++] = digits[--count];
    }
    return used;
}

/* <pid>.<n>.arena, where n is the time: a pid may come again in the same directory. */
static void name_arena(void)
{
    static const char suffix[] = ".arena";
    size_t used = append_number(arena_name, 0, sj_sys_pid());
    arena_name[used++] = '.';
    used = append_number(arena_name, used, sj_sys_clock_ns(CLOCK_MONOTONIC));
    memcpy(arena_name + used, suffix, sizeof(suffix));
}

/* Says hello; `*welcome` is the answer. */
static sj_status greet(sj_link *link, sj_link_occasion occasion, sj_link_welcome *welcome)
{
    sj_link_hello hello = {.pid = sj_sys_pid(),
                           .tid = sj_sys_tid(),
                           .parent_pid = sj_sys_parent_pid(),
                           .occasion = occasion};
    memcpy(hello.arena_name, arena_name, sizeof(arena_name));
    memcpy(sj_link_make(link), &hello, sizeof(hello));
    SJ_TRY(sj_link_send(link, SJ_LINK_HELLO, sizeof(hello)));
    SJ_TRY(sj_link_receive(link));
    if (link->packet.type != SJ_LINK_WELCOME || link->packet.payload_bytes != sizeof(*welcome)) {
        return SJ_EPERM;
    }
    memcpy(welcome, link->payload, sizeof(*welcome));
    link->wants_imports = (welcome->runtimes & SJ_LINK_RUNTIME_LIBRARY_CALLS) != 0;
    if (link->wants_imports || (welcome->runtimes & SJ_LINK_RUNTIME_OBJC_DISPATCH) != 0) {
        sj_hooks_meet_dispatch();
    }
    return SJ_OK;
}

sj_status sj_agent_part(sj_link *link)
{
    SJ_TRY(sj_link_send(link, SJ_LINK_DONE, 0));
    SJ_TRY(sj_link_receive(link));
    return link->packet.type == SJ_LINK_DONE ? SJ_OK : SJ_ECORRUPT;
}

/* The first conversation of a process. A forked child has its parent's patches already. */
static sj_status join(sj_link *link, sj_link_occasion occasion)
{
    sj_link_welcome welcome;
    name_arena();
    SJ_TRY(sj_link_open(link, sojourn_agent_face.runtime_directory));
    SJ_TRY(greet(link, occasion, &welcome));
    SJ_TRY(sj_recorder_start(sojourn_agent_face.runtime_directory, arena_name, &welcome));
    sojourn_agent_face.session = welcome.session;
    follow_children = welcome.follow_children;
    objc_dispatch = (welcome.runtimes & SJ_LINK_RUNTIME_OBJC_DISPATCH) != 0;
    watch_loops = (welcome.runtimes & SJ_LINK_RUNTIME_LOOPS) != 0;
    if (occasion != SJ_OCCASION_FORK) {
        SJ_TRY(sj_modules_announce(link, false));
    }
    sj_recorder_set_state(SJ_ARENA_RECORDING);
    return sj_agent_part(link);
}

/* A child takes over the tables of modules as they are: a fork waits until nobody changes them, but
 * not for ever, and then its child is not recorded. */
static void before_fork(void)
{
    const uint64_t deadline_ns = sj_sys_clock_ns(CLOCK_MONOTONIC) + FORK_WAIT_NS;
    const uint32_t self = sj_sys_tid();
    uint32_t owner = 0;
    while (!atomic_compare_exchange_strong(&conversation, &owner, self) && owner != self &&
           sj_sys_clock_ns(CLOCK_MONOTONIC) < deadline_ns) {
        owner = 0;
        (void)SJ_SYS(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    }
    holds_tables = owner == 0;
    sj_recorder_park();
}

static void after_fork_in_parent(void)
{
    sj_recorder_unpark();
    if (holds_tables) {
        holds_tables = false;
        sj_agent_end_conversation();
    }
}

static void after_fork_in_child(void)
{
    const bool can_join = holds_tables && sj_recorder_is_armed() && sj_recorder_may_call();
    sj_link link = {.socket = -1};
    holds_tables = false;
    sj_recorder_after_fork();
    sj_objc_after_fork();
    sj_agent_end_conversation();
    if (can_join && (follow_children & SJ_FOLLOW_FORK) != 0 &&
        join(&link, SJ_OCCASION_FORK) != SJ_OK) {
        sj_recorder_disarm(SJ_DISARM_NO_COMPANION);
    }
    sj_link_close(&link);
}

bool sj_agent_begin_conversation(void)
{
    const uint32_t self = sj_sys_tid();
    for (;;) {
        uint32_t owner = 0;
        if (atomic_compare_exchange_strong(&conversation, &owner, self)) {
            return true;
        }
        if (owner == self) {
            return false;
        }
        (void)SJ_SYS(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    }
}

void sj_agent_end_conversation(void)
{
    atomic_store(&conversation, 0);
}

sj_status sj_agent_greet_again(sj_link *link)
{
    sj_link_welcome welcome;
    SJ_TRY(sj_link_open(link, sojourn_agent_face.runtime_directory));
    return greet(link, SJ_OCCASION_DLOPEN, &welcome);
}

static sj_status talk_about_modules(sj_link *link)
{
    SJ_TRY(sj_agent_greet_again(link));
    SJ_TRY(sj_modules_announce(link, true));
    return sj_agent_part(link);
}

/* Modules that were loaded before the agent, or without knowing it, found no sojourn.h answered. */
static void lead_api_calls(void)
{
    if (is_attached && sj_recorder_is_armed()) {
        sojourn_agent_face.api_gate_bytes = sj_api_gates_follow();
    }
}

void sj_agent_on_modules(void)
{
    if (!sj_recorder_may_call() || !sj_agent_begin_conversation()) {
        return;
    }
    sj_link link = {.socket = -1};
    if (talk_about_modules(&link) != SJ_OK) {
        sj_modules_forget_unloaded();
    }
    sj_link_close(&link);
    if (watch_loops && sj_recorder_is_armed()) {
        sj_loops_follow();
    }
    lead_api_calls();
    sj_agent_end_conversation();
}

/* Tells tracers what to pass to dlclose. */
static void show_handle(void)
{
    Dl_info info;
    struct link_map *map = NULL;
    if (dladdr1(&sojourn_agent_face, &info, (void **)&map, RTLD_DL_LINKMAP) != 0) {
        sojourn_agent_face.handle = (uint64_t)(uintptr_t)map;
    }
}

SJ_EXPORTED void sojourn_agent_bind(void)
{
    if (!objc_dispatch || !sj_recorder_is_armed()) {
        return;
    }
    /* First: whoever comes while references are being led to us must give them back. */
    atomic_store(&sojourn_agent_face.binding, SJ_FACE_BOUND);
    if (!sj_objc_attach()) {
        atomic_store(&sojourn_agent_face.binding, SJ_FACE_UNBOUND);
    }
}

__attribute__((constructor)) static void start_agent(int argc, char **argv, char **environment)
{
    (void)argc;
    show_handle();
    if (!sj_companion_meet(argv, environment, sojourn_agent_face.runtime_directory,
                           sizeof(sojourn_agent_face.runtime_directory))) {
        return;
    }
    sj_link link;
    sj_modules_show(&sojourn_agent_face);
    atomic_store(&sojourn_agent_face.phase, SJ_FACE_LAUNCHED);
    if (join(&link, SJ_OCCASION_START) != SJ_OK) {
        sj_modules_restore();
        sj_recorder_disarm(SJ_DISARM_NO_COMPANION);
    } else if (pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) != 0) {
        sj_modules_restore();
        sj_recorder_disarm(SJ_DISARM_NO_MEMORY);
    } else {
        /* Without them, modules loaded later and programs run are not recorded: no reason to give
         * up the rest. */
        (void)!sj_modules_follow();
        if ((follow_children & SJ_FOLLOW_EXEC) != 0) {
            (void)!sj_exec_follow(sojourn_agent_face.runtime_directory);
        }
    }
    sj_link_close(&link);
    sojourn_agent_bind();
    if (watch_loops && sj_recorder_is_armed()) {
        sj_loops_follow();
    }
}

/* Attaches for the first time; the text stays as it is whatever happens. */
static sj_status attach_first(void)
{
    sj_link link = {.socket = -1};
    sj_modules_show(&sojourn_agent_face);
    sojourn_agent_face.prepare_only = 1;
    is_attached = true;
    sj_hooks_spare_pages();
    /* First, because whoever forks from now on has a child with the tables that are made here. */
    if (pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) != 0) {
        return SJ_ENOMEM;
    }
    const sj_status status = join(&link, SJ_OCCASION_ATTACH);
    sj_link_close(&link);
    if (status == SJ_OK) {
        (void)!sj_modules_follow();
        lead_api_calls();
    }
    return status;
}

SJ_EXPORTED void sojourn_agent_attach(void)
{
    if (!sj_agent_begin_conversation()) {
        atomic_store(&sojourn_agent_face.phase, SJ_FACE_FAILED);
        return;
    }
    if (atomic_load(&sojourn_agent_face.phase) == SJ_FACE_PREPARED) {
        sj_link link = {.socket = -1};
        (void)!talk_about_modules(&link);
        sj_link_close(&link);
    } else if (attach_first() == SJ_OK) {
        atomic_store(&sojourn_agent_face.phase, SJ_FACE_PREPARED);
    } else {
        sj_recorder_disarm(SJ_DISARM_NO_COMPANION);
        atomic_store(&sojourn_agent_face.phase, SJ_FACE_FAILED);
    }
    sj_agent_end_conversation();
}

SJ_EXPORTED void sojourn_agent_review(void)
{
    sj_link link = {.socket = -1};
    if (!sj_agent_begin_conversation()) {
        return;
    }
    if (sj_agent_greet_again(&link) == SJ_OK && sj_modules_review(&link) == SJ_OK) {
        (void)!sj_agent_part(&link);
    }
    sj_link_close(&link);
    sj_agent_end_conversation();
}

SJ_EXPORTED void sojourn_agent_leave(void)
{
    sj_recorder_set_state(SJ_ARENA_ENDED);
    sj_api_gates_close();
    sj_modules_forget_all();
    sj_recorder_leave();
    atomic_store(&sojourn_agent_face.phase, SJ_FACE_LEFT);
}

/* What the C library does at the end of a module; dlclose does it again. */
SJ_EXPORTED void sojourn_agent_unregister(void)
{
    __cxa_finalize(__dso_handle);
}

SJ_EXPORTED void sojourn_agent_unbind(void)
{
    sj_objc_counters counters;
    sj_objc_stop();
    sj_recorder_retire(); /* stubs that the program kept go on at full speed */
    sj_objc_get_counters(&counters);
    sojourn_agent_face.message_stubs = counters.stubs;
    atomic_store(&sojourn_agent_face.binding, SJ_FACE_GIVEN_BACK);
}

__attribute__((destructor)) static void end_agent(void)
{
    sj_recorder_end();
    sj_companion_part();
}
