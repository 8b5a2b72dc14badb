/* Joins a JVM that starts, as a JVMTI agent, and handles the JVM's start and end. Agent_OnLoad
 * reports success even if joining fails, because otherwise the JVM would end the program. */
#include "agent/inproc/jvm/class_marks.h"
#include "agent/inproc/jvm/commands.h"
#include "agent/inproc/jvm/hidden.h"
#include "agent/inproc/jvm/internal.h"
#include "agent/inproc/jvm/leaf.h"
#include "agent/inproc/jvm/lines.h"
#include "agent/inproc/jvm/loaders.h"
#include "agent/inproc/jvm/muted.h"
#include "agent/inproc/jvm/retransform.h"
#include "agent/inproc/jvm/threads.h"
#include "agent/inproc/jvm/tracer.h"
#include "agent/inproc/jvm/values.h"
#include "agent/inproc/jvm/virtual_threads.h"
#include "agent/inproc/recorder/recorder.h"

#include <string.h>

#define SJ_EXPORTED __attribute__((visibility("default")))

sj_jvm_state sj_jvm;

void sj_jvm_enable(jvmtiEnv *jvmti, jvmtiEvent event)
{
    (void)(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, event, NULL);
}

void sj_jvm_enable_lineage(jvmtiEnv *jvmti)
{
    const bool is_asked = (sj_jvm.runtimes & SJ_LINK_RUNTIME_JVM_LINEAGE) != 0;
    (void)(*jvmti)->SetEventNotificationMode(jvmti, is_asked ? JVMTI_ENABLE : JVMTI_DISABLE,
                                             JVMTI_EVENT_CLASS_PREPARE, NULL);
}

/* Defines the probes and what they need. No class gets probes yet. Returns false if the JVM
 * refuses. */
static bool prepare_probes(jvmtiEnv *jvmti, JNIEnv *env)
{
    sj_muted_init(&sojourn_agent_state);
    sj_virtual_threads_init(env);
    const jclass probe_class = sj_jvm_define_probes(env);
    if (probe_class == NULL || !sj_jvm_register_probes(env, probe_class, NULL, 0) ||
        !sj_jvm_define_values(env)) {
        return false;
    }
    const bool has_leaves = sj_jvm_leaf_prepare(jvmti, env, probe_class);
    (*env)->DeleteLocalRef(env, probe_class);
    atomic_store(&sj_jvm.is_unknown, has_leaves ? 0 : 1);
    if (has_leaves) {
        sj_jvm_enable(jvmti, JVMTI_EVENT_COMPILED_METHOD_LOAD);
    }
    return true;
}

static void JNICALL on_vm_init(jvmtiEnv *jvmti, JNIEnv *env, jthread thread)
{
    (void)thread;
    const bool is_traced = sj_tracer_is_on();
    if (!sj_recorder_is_armed()) { /* The agent was detached meanwhile. A later attach may join. */
        (void)(*jvmti)->DisposeEnvironment(jvmti);
        sj_jvm.jvmti = NULL;
        return;
    }
    sj_jvm.is_traced = is_traced;
    if (!sj_jvm_define_commands(jvmti, env) || (!is_traced && !prepare_probes(jvmti, env))) {
        return;
    }
    sj_jvm_find_loaders(env);
    atomic_store(&sj_jvm.enabled, 1);
    sj_jvm_enable(jvmti, is_traced ? JVMTI_EVENT_CLASS_PREPARE : JVMTI_EVENT_CLASS_FILE_LOAD_HOOK);
    sj_jvm_enable(jvmti, JVMTI_EVENT_THREAD_START);
    sj_jvm_enable(jvmti, JVMTI_EVENT_THREAD_END);
    sj_jvm_enable(jvmti, JVMTI_EVENT_OBJECT_FREE);
    if (!is_traced) {
        sj_jvm_enable_lineage(jvmti);
        sj_hidden_start();
    }
    atomic_store(&sojourn_agent_state.jvm, SJ_AGENT_JVM_JOINED);
}

/* Handles JVMTI's VMDeath: sends the last reports about threads, class loaders and lines, and then
 * reports the end of the JVM. */
static void JNICALL on_vm_death(jvmtiEnv *jvmti, JNIEnv *env)
{
    static const sj_jvm_figures none;
    (void)jvmti;
    atomic_store(&sj_jvm.enabled, 0);
    sj_jvm_count_threads(env);
    sj_jvm_report_collected_loaders();
    sj_jvm_report_lines();
    if (sj_recorder_is_armed() && sj_recorder_may_call()) {
        sj_jvm_report(SJ_JVM_ENDED, &none);
    }
}

bool sj_jvm_get_capabilities(jvmtiEnv *jvmti)
{
    const jvmtiCapabilities capabilities = {.can_generate_all_class_hook_events = 1,
                                            .can_retransform_classes = 1,
                                            .can_generate_compiled_method_load_events = 1,
                                            .can_tag_objects = 1,
                                            .can_generate_object_free_events = 1};
    return (*jvmti)->AddCapabilities(jvmti, &capabilities) == JVMTI_ERROR_NONE;
}

/* Asks for the capabilities that the tracer (tracer.h) needs. Returns false if the JVM refuses. */
static bool get_tracing_capabilities(jvmtiEnv *jvmti)
{
    const jvmtiCapabilities capabilities = {.can_tag_objects = 1,
                                            .can_generate_object_free_events = 1};
    return (*jvmti)->AddCapabilities(jvmti, &capabilities) == JVMTI_ERROR_NONE;
}

/* Asks for the tracer's capabilities if the tracer is on, otherwise for the capabilities that
 * probes need. Stops the tracer first if this JVM does not suit it. Returns false if the JVM
 * refuses. */
static bool get_capabilities(jvmtiEnv *jvmti)
{
    if (sj_tracer_is_on() &&
        (!sj_jvm_is_known_version(jvmti) || !get_tracing_capabilities(jvmti))) {
        sj_tracer_stop();
    }
    return sj_tracer_is_on() || sj_jvm_get_capabilities(jvmti);
}

/* Returns the address that the JVM calls: `target`, or with `lasting` a trampoline to `target`. */
static uint64_t callback_address(sj_lasting *lasting, sj_jvm_entry entry, uint64_t target)
{
    if (lasting == NULL) {
        return target;
    }
    sj_lasting_open(lasting, entry, target);
    return sj_lasting_address(lasting, entry);
}

bool sj_jvm_set_callbacks(jvmtiEnv *jvmti, sj_lasting *lasting)
{
    jvmtiEventCallbacks callbacks = {.VMInit = lasting == NULL ? on_vm_init : NULL};
    uint64_t address =
        callback_address(lasting, SJ_JVM_ON_CLASS, (uint64_t)(uintptr_t)sj_jvm_on_class);
    memcpy(&callbacks.ClassFileLoadHook, &address, sizeof(address));
    address =
        callback_address(lasting, SJ_JVM_ON_COMPILED, (uint64_t)(uintptr_t)sj_jvm_on_compiled);
    memcpy(&callbacks.CompiledMethodLoad, &address, sizeof(address));
    address = callback_address(lasting, SJ_JVM_ON_PREPARE, (uint64_t)(uintptr_t)sj_jvm_on_prepare);
    memcpy(&callbacks.ClassPrepare, &address, sizeof(address));
    address = callback_address(lasting, SJ_JVM_ON_DEATH, (uint64_t)(uintptr_t)on_vm_death);
    memcpy(&callbacks.VMDeath, &address, sizeof(address));
    address = callback_address(lasting, SJ_JVM_ON_THREAD_START,
                               (uint64_t)(uintptr_t)sj_jvm_on_thread_start);
    memcpy(&callbacks.ThreadStart, &address, sizeof(address));
    address =
        callback_address(lasting, SJ_JVM_ON_THREAD_END, (uint64_t)(uintptr_t)sj_jvm_on_thread_end);
    memcpy(&callbacks.ThreadEnd, &address, sizeof(address));
    address = callback_address(lasting, SJ_JVM_ON_LOADER_COLLECTED,
                               (uint64_t)(uintptr_t)sj_jvm_on_loader_collected);
    memcpy(&callbacks.ObjectFree, &address, sizeof(address));
    return (*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof(callbacks)) == JVMTI_ERROR_NONE;
}

static void join_vm(JavaVM *vm)
{
    jvmtiEnv *jvmti = NULL;
    if (!sj_recorder_is_armed() || !sj_jvm.is_wanted || !sj_class_marks_init() ||
        (*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_11) != JNI_OK) {
        return;
    }
    if (!get_capabilities(jvmti) || !sj_jvm_set_callbacks(jvmti, NULL)) {
        (void)(*jvmti)->DisposeEnvironment(jvmti);
        return;
    }
    sj_jvm.jvmti = jvmti;
    sj_jvm_enable(jvmti, JVMTI_EVENT_VM_INIT);
    sj_jvm_enable(jvmti, JVMTI_EVENT_VM_DEATH);
}

SJ_EXPORTED JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
    (void)options;
    (void)reserved;
    atomic_store(&sj_jvm.is_loaded, 1);
    if (sj_jvm.jvmti == NULL) {
        join_vm(vm);
    }
    return JNI_OK;
}

void sj_jvm_set_runtimes(uint32_t runtimes)
{
    sj_jvm.runtimes = runtimes;
    sj_jvm.is_wanted = true;
}

void sj_jvm_start(uint32_t runtimes)
{
    sj_jvm_set_runtimes(runtimes);
    sj_jvm_watch_for_launch();
}
