/* Design notes
 *
 * A tracer makes inferior calls on any thread of the process. That thread may run Java code, wait
 * for a safepoint, or hold a lock of the JVM. So it must not call the JVM, or wait for a thread
 * that does. It only starts another thread, which attaches itself to the JVM, does the task and
 * ends.
 *
 * A stack frame continues to run the code that its method had when it was entered. When the agent
 * attaches, methods that are running get no probes; methods that they call do. When the agent
 * detaches, methods that are running still call their exit probe, perhaps after the agent was
 * unloaded. So the JVM calls trampolines that stay in the process (hooks/lasting.h). */
#include "agent/inproc/jvm/class_marks.h"
#include "agent/inproc/jvm/commands.h"
#include "agent/inproc/jvm/hidden.h"
#include "agent/inproc/jvm/hidden_before.h"
#include "agent/inproc/jvm/internal.h"
#include "agent/inproc/jvm/leaf.h"
#include "agent/inproc/jvm/lines.h"
#include "agent/inproc/jvm/loaders.h"
#include "agent/inproc/jvm/muted.h"
#include "agent/inproc/jvm/natives.h"
#include "agent/inproc/jvm/own_values.h"
#include "agent/inproc/jvm/retransform.h"
#include "agent/inproc/jvm/stall.h"
#include "agent/inproc/jvm/threads.h"
#include "agent/inproc/jvm/tracer.h"
#include "agent/inproc/jvm/values.h"
#include "agent/inproc/jvm/virtual_threads.h"

#include "agent/inproc/hooks/definition.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#define LASTING_MAGIC UINT64_C(0x33004d564a4a53) /* "SJJVM" */
#define THREAD_NAME "sojourn"

typedef jint (*find_vms)(JavaVM **vms, jsize capacity, jsize *count);
typedef int (*create_thread)(pthread_t *thread, const pthread_attr_t *attributes,
                             void *(*start)(void *), void *argument);

static sj_jvm_task task;
static sj_lasting *lasting;

static JavaVM *find_vm(void)
{
    JavaVM *vm = NULL;
    jsize count = 0;
    find_vms find = (find_vms)(uintptr_t)sj_definition_find("JNI_GetCreatedJavaVMs", NULL);
    return find != NULL && find(&vm, 1, &count) == JNI_OK && count != 0 ? vm : NULL;
}

static bool find_or_create_trampolines(void)
{
    if (lasting == NULL) {
        lasting = sj_lasting_find(LASTING_MAGIC);
    }
    if (lasting == NULL) {
        lasting = sj_lasting_new(LASTING_MAGIC, SJ_JVM_ENTRIES);
    }
    return lasting != NULL;
}

static jvmtiEnv *open_jvmti(JavaVM *vm)
{
    jvmtiEnv *jvmti = NULL;
    jvmtiPhase phase = JVMTI_PHASE_DEAD;
    if ((*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_11) != JNI_OK) {
        return NULL;
    }
    if ((*jvmti)->GetPhase(jvmti, &phase) == JVMTI_ERROR_NONE && phase == JVMTI_PHASE_LIVE &&
        sj_jvm_get_capabilities(jvmti) && sj_jvm_set_callbacks(jvmti, lasting)) {
        return jvmti;
    }
    (void)(*jvmti)->DisposeEnvironment(jvmti);
    return NULL;
}

static void open_probe_trampolines(void)
{
    for (uint32_t i = SJ_JVM_ENTER; i <= SJ_JVM_UNWIND; i++) {
        sj_lasting_open(lasting, i, sj_jvm_probe_address(i));
    }
}

/* Defines our classes and native methods, and opens the trampolines of the probes. Returns false if
 * the JVM refuses. */
static bool enable_probes(jvmtiEnv *jvmti, JNIEnv *env)
{
    sj_muted_init(&sojourn_agent_state);
    /* Hidden classes of earlier agents keep their probes. */
    sj_jvm.least_function = (uint32_t)lasting->kept;
    sj_muted_add_below(&sojourn_agent_state, sj_jvm.least_function);
    sj_virtual_threads_init(env);
    const jclass probe_class = sj_jvm_define_probes(env);
    if (probe_class == NULL || !sj_jvm_define_values(env) || !sj_jvm_define_commands(jvmti, env)) {
        return false;
    }
    sj_jvm_find_loaders(env);
    const bool has_leaves = sj_jvm_leaf_prepare(jvmti, env, probe_class);
    atomic_store(&sj_jvm.is_unknown, has_leaves ? 0 : 1);
    atomic_store(&sj_jvm.enabled, 1);
    if (has_leaves) { /* The event has to be enabled before the JVM compiles a wrapper. */
        sj_jvm_enable(jvmti, JVMTI_EVENT_COMPILED_METHOD_LOAD);
    }
    open_probe_trampolines();
    const bool are_registered = sj_jvm_register_probes(env, probe_class, lasting, SJ_JVM_ENTER);
    (*env)->DeleteLocalRef(env, probe_class);
    return are_registered;
}

static bool attach(JavaVM *vm, JNIEnv *env, sj_jvm_figures *figures)
{
    if (!sj_recorder_is_armed() || !sj_jvm.is_wanted || !find_or_create_trampolines() ||
        !sj_class_marks_init()) {
        return false;
    }
    jvmtiEnv *jvmti = open_jvmti(vm);
    if (jvmti == NULL) {
        return false;
    }
    sj_jvm.jvmti = jvmti;
    sj_jvm.is_traced = false;
    if (!enable_probes(jvmti, env)) {
        return false;
    }
    sj_jvm_enable(jvmti, JVMTI_EVENT_CLASS_FILE_LOAD_HOOK);
    sj_jvm_enable(jvmti, JVMTI_EVENT_VM_DEATH);
    sj_jvm_enable(jvmti, JVMTI_EVENT_THREAD_START);
    sj_jvm_enable(jvmti, JVMTI_EVENT_THREAD_END);
    sj_jvm_enable(jvmti, JVMTI_EVENT_OBJECT_FREE);
    sj_jvm_enable_lineage(jvmti);
    sj_hidden_before_find(jvmti, env);
    sj_hidden_start();
    sj_hidden_before_list(jvmti, env, figures);
    sj_retransform_chosen(jvmti, env, false, figures);
    /* A class that was being defined when ClassFileLoadHook was enabled may appear only now. */
    sj_retransform_chosen(jvmti, env, true, figures);
    return true;
}

static void delete_reference(JNIEnv *env, jobject *reference)
{
    if (*reference != NULL) {
        (*env)->DeleteGlobalRef(env, *reference);
    }
    *reference = NULL;
}

/* Waits until no thread uses the JVM's references or asks the recorder. Returns false after a
 * timeout. */
static bool wait_for_replies(void)
{
    const uint64_t limit_ns = SJ_LINK_TIMEOUT_MS * UINT64_C(1000000);
    const uint64_t start_ns = sj_sys_clock_ns(CLOCK_MONOTONIC);
    while (atomic_load(&sj_jvm.users) != 0 &&
           sj_sys_clock_ns(CLOCK_MONOTONIC) - start_ns < limit_ns) {
        (void)SJ_SYS(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
    }
    return atomic_load(&sj_jvm.users) == 0;
}

/* Makes all threads of the JVM reach a safepoint. Afterwards, no thread that entered a wrapper
 * before is still in its stub, because stubs have no safepoint. Returns false if the JVM refuses.
 */
static bool pass_safepoint(jvmtiEnv *jvmti)
{
    jvmtiStackInfo *threads = NULL;
    jint count = 0;
    if ((*jvmti)->GetAllStackTraces(jvmti, 0, &threads, &count) != JVMTI_ERROR_NONE) {
        return false;
    }
    (void)(*jvmti)->Deallocate(jvmti, (unsigned char *)threads);
    return true;
}

/* Removes all probes. The order matters. First, it stops rewriting new classes. Second, it removes
 * the probes twice, because a class that was being defined may be listed only the second time.
 * Third, it registers native methods that do nothing, for probes of running methods. This also
 * makes the JVM discard the wrappers that jump to leaf stubs. */
static void remove_probes(jvmtiEnv *jvmti, JNIEnv *env, sj_jvm_figures *figures)
{
    const uint32_t stays_below = sj_hidden_stop();
    bool are_closed = false;
    sj_retransform_marked(jvmti, env, figures);
    sj_retransform_marked(jvmti, env, figures);
    const jclass probe_class = sj_jvm_define_probes(env);
    if (probe_class != NULL && find_or_create_trampolines()) {
        are_closed = sj_jvm_register_probes(env, probe_class, lasting, SJ_JVM_CLOSED_ENTER);
        lasting->kept = lasting->kept > stays_below ? lasting->kept : stays_below;
        (*env)->DeleteLocalRef(env, probe_class);
    }
    sj_jvm_leaf_close(are_closed && pass_safepoint(jvmti));
}

/* Removes all probes, and everything else that the agent has added to the JVM. */
static void detach(JNIEnv *env, sj_jvm_figures *figures)
{
    jvmtiEnv *jvmti = sj_jvm.jvmti;
    atomic_store(&sj_jvm.enabled, 0);
    sj_jvm_count_threads(env);
    sj_jvm_report_collected_loaders();
    sj_jvm_report_lines();
    /* With this bit, remove_probes also visits system classes. */
    sj_jvm.runtimes = SJ_LINK_RUNTIME_JVM_SYSTEM;
    sj_tracer_stop();
    const bool is_unused = wait_for_replies();
    if (!sj_jvm.is_traced) {
        remove_probes(jvmti, env, figures);
    }
    sj_virtual_threads_deinit(env);
    (void)(*jvmti)->DisposeEnvironment(jvmti);
    if (lasting != NULL) {
        sj_lasting_close(lasting, SJ_JVM_ENTRIES);
    }
    sj_jvm_close_natives();
    sj_jvm_stop_pauses();
    if (is_unused) { /* A leak of references does less harm than a use after free. */
        sj_jvm_describe_deinit(env);
        sj_jvm_own_values_deinit(env);
        delete_reference(env, &sj_jvm.app_loader);
        delete_reference(env, &sj_jvm.platform_loader);
    }
    sj_jvm.jvmti = NULL;
}

static void report_if_armed(sj_link_jvm_moment moment, const sj_jvm_figures *figures)
{
    if (sj_recorder_is_armed() && sj_recorder_may_call()) {
        sj_jvm_report(moment, figures);
    }
}

/* Applies a new policy. Keeps the bit for system classes meanwhile, so that system classes that the
 * new policy does not select lose their probes. */
static void select_classes(JNIEnv *env, sj_jvm_figures *figures)
{
    const uint32_t wanted = sj_jvm_ask_runtimes();
    sj_jvm.runtimes = wanted | (sj_jvm.runtimes & SJ_LINK_RUNTIME_JVM_SYSTEM);
    if (sj_tracer_is_on()) {
        sj_tracer_add_all(sj_jvm.jvmti, env, figures);
    } else {
        sj_jvm_enable_lineage(sj_jvm.jvmti);
        sj_hidden_before_list(sj_jvm.jvmti, env, figures);
        sj_retransform_chosen(sj_jvm.jvmti, env, false, figures);
    }
    sj_jvm.runtimes = wanted;
}

/* Does the task. Returns the new value of `jvm` in the agent's state. */
static uint32_t do_task(JavaVM *vm, JNIEnv *env)
{
    sj_jvm_figures figures = {0};
    const bool has_joined = sj_jvm.jvmti != NULL;
    if (task == SJ_JVM_DETACH) {
        if (has_joined) {
            detach(env, &figures);
            report_if_armed(SJ_JVM_LEFT, &figures);
        }
        return SJ_AGENT_JVM_NONE;
    }
    if (task == SJ_JVM_ATTACH && !has_joined) {
        const bool is_joined = attach(vm, env, &figures);
        if (!is_joined && sj_jvm.jvmti != NULL) {
            detach(env, &figures);
        }
        if (is_joined) {
            report_if_armed(SJ_JVM_JOINED, &figures);
        }
        return is_joined ? SJ_AGENT_JVM_JOINED : SJ_AGENT_JVM_NONE;
    }
    if (has_joined) {
        select_classes(env, &figures);
        report_if_armed(SJ_JVM_SELECTED, &figures);
    }
    return has_joined ? SJ_AGENT_JVM_JOINED : SJ_AGENT_JVM_NONE;
}

static void *run_task(void *unused)
{
    static char name[] = THREAD_NAME;
    JNIEnv *env = NULL;
    JavaVMAttachArgs arguments = {.version = JNI_VERSION_1_8, .name = name};
    uint32_t state = SJ_AGENT_JVM_NONE;
    sj_recorder_exempt();
    JavaVM *vm = find_vm();
    if (vm != NULL && (*vm)->AttachCurrentThreadAsDaemon(vm, (void **)&env, &arguments) == JNI_OK) {
        state = do_task(vm, env);
        (void)(*vm)->DetachCurrentThread(vm);
    }
    atomic_store(&sojourn_agent_state.jvm, state);
    return unused;
}

/* Starts a thread with all signals blocked. Looks up pthread_create, because before glibc 2.34 it
 * is in a separate library, which a program without threads does not load. */
static bool start_thread(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    const uint64_t all = UINT64_MAX;
    uint64_t before = 0;
    const create_thread create =
        (create_thread)(uintptr_t)sj_definition_find("pthread_create", NULL);
    if (create == NULL || pthread_attr_init(&attributes) != 0) {
        return false;
    }
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)SJ_SYS(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof(all), 0, 0);
    const bool is_started = create(&thread, &attributes, run_task, NULL) == 0;
    (void)SJ_SYS(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before), 0, 0);
    (void)pthread_attr_destroy(&attributes);
    return is_started;
}

void sj_jvm_start_task(sj_jvm_task wanted)
{
    if (!sj_jvm.is_wanted) {
        return; /* No policy has asked for Java methods. */
    }
    const uint32_t before = atomic_load(&sojourn_agent_state.jvm);
    if (before == SJ_AGENT_JVM_BUSY || before == SJ_AGENT_JVM_SELECTING) {
        return;
    }
    atomic_store(&sojourn_agent_state.jvm,
                 wanted == SJ_JVM_SELECT ? SJ_AGENT_JVM_SELECTING : SJ_AGENT_JVM_BUSY);
    task = wanted;
    if (!start_thread()) {
        atomic_store(&sojourn_agent_state.jvm,
                     before == SJ_AGENT_JVM_AWAITED ? SJ_AGENT_JVM_NONE : before);
    }
}

static bool is_busy(void)
{
    const uint32_t state = atomic_load(&sojourn_agent_state.jvm);
    return state == SJ_AGENT_JVM_BUSY || state == SJ_AGENT_JVM_SELECTING;
}

enum { JOIN_PAUSES = 1000 }; /* 10 s altogether. */

/* Called when a running JVM loads the agent (jcmd PID JVMTI.agent_load). Attaches and waits up to
 * 10 s for the result. The calling thread is in native state, so it may block. */
__attribute__((visibility("default"))) JNIEXPORT jint JNICALL Agent_OnAttach(JavaVM *vm,
                                                                             char *options,
                                                                             void *reserved)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    (void)vm;
    (void)options;
    (void)reserved;
    if (!sj_recorder_is_armed() || !sj_recorder_may_call() || !sj_jvm.is_wanted) {
        return JNI_ERR; /* No recorder is connected, or its policy does not select Java methods. */
    }
    sj_jvm_start_task(SJ_JVM_ATTACH);
    for (int left = JOIN_PAUSES; left > 0 && is_busy(); left--) {
        (void)SJ_SYS(SYS_nanosleep, &pause, NULL, 0, 0, 0, 0);
    }
    /* A task that takes longer continues. The report SJ_JVM_JOINED follows when it is done. */
    return is_busy() || atomic_load(&sojourn_agent_state.jvm) == SJ_AGENT_JVM_JOINED ? JNI_OK
                                                                                     : JNI_ERR;
}

void sj_jvm_after_fork(void)
{
    sj_jvm_pauses_after_fork();
    if (sj_jvm.is_wanted) {
        atomic_store(&sj_jvm.enabled, 0);
        atomic_store(&sojourn_agent_state.jvm, SJ_AGENT_JVM_NONE);
    }
}

void sj_jvm_deinit(void)
{
    sj_jvm_leaf_deinit();
    if (sj_jvm.is_wanted && sojourn_agent_state.leaf_stubs == 0) {
        sj_muted_deinit(
            &sojourn_agent_state); /* Leaf stubs that stay mapped would still read it. */
    }
    sj_tracer_deinit();
    sj_class_marks_deinit();
}
