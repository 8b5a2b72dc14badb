/* The JVMTI agent: what the JVM calls when it loads us. Whatever fails, it hears that all is
 * well: it would end the program otherwise. */
#include "agent/inproc/jvm/internal.h"
#include "agent/inproc/jvm/leaf.h"

#include "agent/inproc/recorder/recorder.h"

#define SJ_EXPORTED __attribute__((visibility("default")))

sj_jvm_state sj_jvm;

static void enable(jvmtiEnv *jvmti, jvmtiEvent event)
{
    (void)(*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, event, NULL);
}

static void JNICALL on_vm_init(jvmtiEnv *jvmti, JNIEnv *env, jthread thread)
{
    (void)thread;
    const jclass probe_class = sj_jvm_define_probes(env);
    if (probe_class == NULL) {
        return;
    }
    sj_jvm_find_loaders(env);
    const bool has_leaves = sj_jvm_leaf_prepare(jvmti, env, probe_class);
    (*env)->DeleteLocalRef(env, probe_class);
    atomic_store(&sj_jvm.enabled, 1);
    atomic_store(&sj_jvm.is_unknown, has_leaves ? 0 : 1);
    if (has_leaves) {
        enable(jvmti, JVMTI_EVENT_COMPILED_METHOD_LOAD);
    }
    enable(jvmti, JVMTI_EVENT_CLASS_FILE_LOAD_HOOK);
}

static void JNICALL on_vm_death(jvmtiEnv *jvmti, JNIEnv *env)
{
    (void)jvmti;
    (void)env;
    atomic_store(&sj_jvm.enabled, 0);
    if (sj_recorder_is_armed() && sj_recorder_may_call()) {
        sj_jvm.options.on_end();
    }
}

static void join_vm(JavaVM *vm)
{
    jvmtiEnv *jvmti = NULL;
    if (!sj_recorder_is_armed() || sj_jvm.options.rewrite == NULL ||
        (*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_11) != JNI_OK) {
        return;
    }
    const jvmtiCapabilities capabilities = {.can_generate_all_class_hook_events = 1,
                                            .can_retransform_classes = 1,
                                            .can_generate_compiled_method_load_events = 1};
    const jvmtiEventCallbacks callbacks = {.ClassFileLoadHook = sj_jvm_on_class,
                                           .CompiledMethodLoad = sj_jvm_on_compiled,
                                           .VMInit = on_vm_init,
                                           .VMDeath = on_vm_death};
    if ((*jvmti)->AddCapabilities(jvmti, &capabilities) != JVMTI_ERROR_NONE ||
        (*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof(callbacks)) != JVMTI_ERROR_NONE) {
        (void)(*jvmti)->DisposeEnvironment(jvmti);
        return;
    }
    sj_jvm.jvmti = jvmti;
    enable(jvmti, JVMTI_EVENT_VM_INIT);
    enable(jvmti, JVMTI_EVENT_VM_DEATH);
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

void sj_jvm_start(const sj_jvm_options *options)
{
    sj_jvm.options = *options;
    sj_jvm_watch_for_launch();
}

void sj_jvm_get_counters(sj_jvm_counters *counters)
{
    *counters = (sj_jvm_counters){.classes = atomic_load(&sj_jvm.classes),
                                  .unanswered = atomic_load(&sj_jvm.unanswered),
                                  .led = atomic_load(&sj_jvm.led),
                                  .unled = atomic_load(&sj_jvm.unled),
                                  .is_unknown = atomic_load(&sj_jvm.is_unknown) != 0};
}
