#include "agent/inproc/jvm/internal.h"

#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <string.h>

/* What the probes and the JVM itself stand on. */
static bool is_untouchable(const char *name)
{
    static const char *const prefixes[] = {"java/lang/", "jdk/internal/", "io/sojourn/"};
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0) {
            return true;
        }
    }
    return false;
}

static jobject call_static(JNIEnv *env, jclass class, const char *method)
{
    const jmethodID id = (*env)->GetStaticMethodID(env, class, method, "()Ljava/lang/ClassLoader;");
    jobject loader = id != NULL ? (*env)->CallStaticObjectMethod(env, class, id) : NULL;
    if ((*env)->ExceptionCheck(env)) {
        (*env)->ExceptionClear(env);
        loader = NULL;
    }
    return loader != NULL ? (*env)->NewGlobalRef(env, loader) : NULL;
}

void sj_jvm_find_loaders(JNIEnv *env)
{
    const jclass class = (*env)->FindClass(env, "java/lang/ClassLoader");
    if (class == NULL) {
        (*env)->ExceptionClear(env);
        return;
    }
    sj_jvm.app_loader = call_static(env, class, "getSystemClassLoader");
    sj_jvm.platform_loader = call_static(env, class, "getPlatformClassLoader");
    (*env)->DeleteLocalRef(env, class);
}

static void identify_loader(JNIEnv *env, jobject loader, sj_jvm_class *class)
{
    jint hash = 0;
    class->is_system =
        loader == NULL || (sj_jvm.platform_loader != NULL &&
                           (*env)->IsSameObject(env, loader, sj_jvm.platform_loader));
    if (!class->is_system &&
        !(sj_jvm.app_loader != NULL && (*env)->IsSameObject(env, loader, sj_jvm.app_loader)) &&
        (*sj_jvm.jvmti)->GetObjectHashCode(sj_jvm.jvmti, loader, &hash) == JVMTI_ERROR_NONE) {
        class->loader = (uint32_t)hash != 0 ? (uint32_t)hash : 1;
    }
}

static bool read_file(int file, unsigned char *bytes, uint32_t size)
{
    for (uint32_t at = 0; at < size;) {
        const long got = SJ_SYS(SYS_pread64, file, bytes + at, size - at, at, 0, 0);
        if (got <= 0) {
            return false;
        }
        at += (uint32_t)got;
    }
    return true;
}

/* Hands the rewritten class to the JVM, in its own memory. */
static void answer(const sj_jvm_rewritten *rewritten, jint *new_size, unsigned char **new_bytes)
{
    unsigned char *bytes = NULL;
    jvmtiEnv *jvmti = sj_jvm.jvmti;
    if ((*jvmti)->Allocate(jvmti, rewritten->size, &bytes) != JVMTI_ERROR_NONE) {
        return;
    }
    if (!read_file(rewritten->file, bytes, rewritten->size)) {
        (void)(*jvmti)->Deallocate(jvmti, bytes);
        return;
    }
    *new_bytes = bytes;
    *new_size = (jint)rewritten->size;
    atomic_fetch_add(&sj_jvm.classes, 1);
}

void JNICALL sj_jvm_on_class(jvmtiEnv *jvmti, JNIEnv *env, jclass redefined, jobject loader,
                             const char *name, jobject domain, jint size,
                             const unsigned char *bytes, jint *new_size, unsigned char **new_bytes)
{
    (void)jvmti;
    (void)redefined;
    (void)domain;
    if (atomic_load(&sj_jvm.enabled) == 0 || size <= 0 || name == NULL || env == NULL ||
        (loader == NULL && !sj_jvm.options.system_classes) || is_untouchable(name) ||
        !sj_recorder_is_armed() || !sj_recorder_may_call()) {
        return;
    }
    sj_jvm_class class = {.bytes = bytes, .size = (uint32_t)size};
    sj_jvm_rewritten rewritten = {.file = -1};
    identify_loader(env, loader, &class);
    if (class.is_system && !sj_jvm.options.system_classes) {
        return;
    }
    if (!sj_jvm.options.rewrite(&class, &rewritten)) {
        atomic_fetch_add(&sj_jvm.unanswered, 1);
        return;
    }
    if (rewritten.size != 0) {
        answer(&rewritten, new_size, new_bytes);
        (void)sj_sys_close(rewritten.file);
    }
}
