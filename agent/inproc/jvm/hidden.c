/* Design notes
 *
 * All hidden classes are defined by JVM_LookupDefineClass, which the JDK's own library calls
 * through its table of imported functions: that is led to us. A class that is defined so can never
 * be transformed, and its probes stay in it. They return at once when the agent has left; for an
 * agent that comes later their functions' numbers are muted, and given to nobody else. */
#include "agent/inproc/jvm/hidden.h"

#include "agent/inproc/hooks/rebind.h"
#include "agent/inproc/jvm/hidden_before.h"
#include "agent/inproc/jvm/loaders.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <string.h>

enum { HIDDEN = 2 /* among the flags */ };

typedef jclass (*define_class)(JNIEnv *env, jclass host, const char *name, const jbyte *bytes,
                               jsize size, jobject domain, jboolean initialize, jint flags,
                               jobject data);

static _Atomic uint64_t real;
static _Atomic uint32_t first_unused;

/* Bytes with probes; NULL: the class stays as it is. */
typedef struct hidden_class {
    void *bytes;
    uint32_t size;
} hidden_class;

static void keep_number(uint32_t end)
{
    uint32_t known = atomic_load(&first_unused);
    while (known < end && !atomic_compare_exchange_weak(&first_unused, &known, end)) {
    }
}

static void take_answer(const sj_jvm_rewritten *answer, hidden_class *made)
{
    void *bytes = sj_sys_allocate(answer->size);
    if (bytes != NULL && sj_jvm_read_file(answer->file, bytes, answer->size)) {
        *made = (hidden_class){.bytes = bytes, .size = answer->size};
        keep_number(answer->first_function + answer->function_count);
        atomic_fetch_add(&sj_jvm.classes, 1);
    } else if (bytes != NULL) {
        (void)sj_sys_unmap(bytes, answer->size);
    }
    (void)sj_sys_close(answer->file);
}

static void ask(jobject loader, const char *name, sj_jvm_class *class, hidden_class *made)
{
    sj_jvm_rewritten answer = {.file = -1, .selection = SJ_CLASS_NOTHING};
    if (!sj_jvm_is_asked_for(name, loader, class)) {
        return;
    }
    sj_jvm_report_gone_loaders();
    if (!sj_jvm.options.rewrite(class, &answer)) {
        atomic_fetch_add(&sj_jvm.unanswered, 1);
    } else if (answer.size != 0) {
        take_answer(&answer, made);
        sj_jvm_follow_loader(loader, class->loader);
    }
}

/* Has the recorder put probes into a class, by its host. */
static void rewrite(JNIEnv *env, jclass host, const char *name, sj_jvm_class *class,
                    hidden_class *made)
{
    jvmtiEnv *jvmti = sj_jvm.jvmti;
    jobject loader = NULL;
    char *signature = NULL;
    if ((*jvmti)->GetClassLoader(jvmti, host, &loader) != JVMTI_ERROR_NONE) {
        return;
    }
    sj_jvm_identify(env, loader, class);
    if ((*jvmti)->GetClassSignature(jvmti, host, &signature, NULL) == JVMTI_ERROR_NONE) {
        const size_t bytes = strlen(signature); /* Lcom/acme/Host; */
        if (bytes > 2 && bytes - 2 <= SJ_LINK_CLASS_NAME_BYTES) {
            class->host = signature + 1;
            class->host_bytes = (uint32_t)bytes - 2;
            ask(loader, name, class, made);
        }
        (void)(*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
    }
    (*env)->DeleteLocalRef(env, loader);
}

static jclass define_counted(JNIEnv *env, jclass host, const char *name, const jbyte *bytes,
                             jsize size, jobject domain, jboolean initialize, jint flags,
                             jobject data)
{
    const define_class define = (define_class)(uintptr_t)atomic_load(&real);
    hidden_class made = {0};
    const bool is_asked_for = (flags & HIDDEN) != 0 && name != NULL && !sj_hidden_is_lambda(name) &&
                              bytes != NULL && size > 0 && sj_recorder_is_armed() &&
                              sj_recorder_may_call();
    if (is_asked_for && sj_jvm_begin_use()) {
        sj_jvm_class class = {.bytes = bytes, .size = (uint32_t)size};
        rewrite(env, host, name, &class, &made);
        sj_jvm_end_use();
    }
    if (made.bytes == NULL) {
        const jclass plain = define(env, host, name, bytes, size, domain, initialize, flags, data);
        if (is_asked_for && plain != NULL && sj_jvm_begin_use()) {
            sj_hidden_before_add(sj_jvm.jvmti, plain);
            sj_jvm_end_use();
        }
        return plain;
    }
    const jclass defined =
        define(env, host, name, made.bytes, (jsize)made.size, domain, initialize, flags, data);
    (void)sj_sys_unmap(made.bytes, made.size);
    return defined;
}

/* The class may be initialized by that, which is Java and takes any time; frames of the JVM cannot
 * be followed. */
static jclass define_hidden(JNIEnv *env, jclass host, const char *name, const jbyte *bytes,
                            jsize size, jobject domain, jboolean initialize, jint flags,
                            jobject data)
{
    atomic_fetch_add(&sj_jvm.options.agent_state->calling_out, 1);
    const jclass defined =
        define_counted(env, host, name, bytes, size, domain, initialize, flags, data);
    atomic_fetch_sub(&sj_jvm.options.agent_state->calling_out, 1);
    return defined;
}

static void rebind(bool restore)
{
    const sj_rebinding rebinding = {.name = "JVM_LookupDefineClass",
                                    .real = atomic_load(&real),
                                    .replacement = (uint64_t)(uintptr_t)define_hidden};
    (void)sj_rebind(&rebinding, 1, restore);
}

void sj_hidden_start(void)
{
    const uint64_t found = sj_rebind_find("JVM_LookupDefineClass");
    if (found != 0) {
        atomic_store(&real, found);
        rebind(false);
    }
}

uint32_t sj_hidden_stop(void)
{
    if (atomic_load(&real) != 0) {
        rebind(true);
    }
    return atomic_load(&first_unused);
}
