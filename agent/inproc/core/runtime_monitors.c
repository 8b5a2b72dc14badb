/* The monitors of language runtimes, and the tasks that a tracer has them do. */
#include "agent/inproc/core/modules.h"
#include "agent/inproc/core/monitor.h"
#include "agent/inproc/core/runtime_tasks.h"
#include "agent/inproc/hooks/hooks.h"
#include "agent/inproc/jvm/jvm.h"
#include "agent/inproc/mono/mono.h"
#include "agent/inproc/objc/dispatch.h"
#include "agent/inproc/objc/monitor.h"
#include "agent/inproc/objc/replaced_methods.h"
#include "agent/inproc/recorder/recorder.h"

#define SJ_EXPORTED __attribute__((visibility("default")))

static bool start_dispatch(void)
{
    return sj_objc_monitor_start_dispatch(sj_modules_is_excluded);
}

const sj_monitor sj_monitor_objc = {.bit = SJ_LINK_RUNTIME_OBJC_DISPATCH,
                                    .name = "Objective-C dispatch",
                                    .prepare = sj_hooks_expect_dispatch,
                                    .start = start_dispatch,
                                    .after_fork = sj_objc_dispatch_after_fork,
                                    .stop = sj_objc_monitor_stop_dispatch,
                                    .has_thunk = true};

static bool start_replaced(void)
{
    return sj_objc_monitor_start_replaced(sj_modules_is_excluded);
}

const sj_monitor sj_monitor_objc_replaced = {.bit = SJ_LINK_RUNTIME_OBJC_REPLACED,
                                             .name = "replaced Objective-C methods",
                                             .start = start_replaced,
                                             .stop = sj_objc_replaced_stop};

static bool start_mono(void)
{
    return sj_mono_monitor_start(sj_monitors_chosen(), sj_modules_hook_generated);
}

static void start_mono_late(void)
{
    sj_monitors_start_late(SJ_LINK_RUNTIME_MONO);
}

static void watch_for_mono(void)
{
    sj_mono_monitor_on_modules(start_mono_late);
}

const sj_monitor sj_monitor_mono = {.bit = SJ_LINK_RUNTIME_MONO,
                                    .name = "Mono",
                                    .start = start_mono,
                                    .on_modules = watch_for_mono,
                                    .after_fork = sj_mono_after_fork,
                                    .stop = sj_mono_stop,
                                    .waits_for_module = true};

const sj_monitor sj_monitor_mono_anew = {.bit = SJ_LINK_RUNTIME_MONO_ANEW,
                                         .name = "Mono, methods compiled ahead of time",
                                         .prepare = sj_mono_want_precompiled};

SJ_EXPORTED void sojourn_agent_select_mono(void)
{
    sj_mono_monitor_select();
}

static bool start_jvm(void)
{
    sj_jvm_start(sj_monitors_chosen());
    return true;
}

const sj_monitor sj_monitor_jvm = {.bit = SJ_LINK_RUNTIME_JVM,
                                   .name = "Java methods",
                                   .start = start_jvm,
                                   .on_modules = sj_jvm_watch_for_launch,
                                   .after_fork = sj_jvm_after_fork};

/* True if the agent may start a thread. A seccomp filter might end the program for that. */
static bool may_start_thread(void)
{
    return sj_recorder_is_armed() && sj_recorder_may_call();
}

SJ_EXPORTED void sojourn_agent_join_jvm(void)
{
    if (may_start_thread()) {
        sj_jvm_set_runtimes(sj_monitors_chosen());
        sj_jvm_start_task(SJ_JVM_ATTACH);
    } else {
        atomic_store(&sojourn_agent_state.jvm, SJ_AGENT_JVM_NONE);
    }
}

SJ_EXPORTED void sojourn_agent_select_jvm(void)
{
    if (may_start_thread()) {
        sj_jvm_start_task(SJ_JVM_SELECT);
    }
}

SJ_EXPORTED void sojourn_agent_leave_jvm(void)
{
    sj_jvm_start_task(SJ_JVM_DETACH);
}
