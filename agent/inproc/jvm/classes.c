#include "agent/inproc/jvm/internal.h"

#include "agent/inproc/jvm/class_marks.h"
#include "agent/inproc/jvm/loaders.h"
#include "agent/inproc/recorder/recorder.h"
#include "agent/inproc/recorder/sys.h"

#include <string.h>

/* True if the probes or the JVM itself need the class. */
static bool is_needed_by_probes(const char *name)
{
    static const char *const prefixes[] = {"java/lang/", "jdk/internal/", "java/sojourn/",
                                           "io/sojourn/"};
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

/* Sets the loader's name, cut to the capacity. */
static void set_loader_name(sj_jvm_class *class, const char *name, size_t bytes)
{
    const size_t capacity = sizeof(class->loader_name) - 1;
    bytes = bytes < capacity ? bytes : capacity;
    memcpy(class->loader_name, name, bytes);
    class->loader_name[bytes] = '\0';
}

static bool is_same(JNIEnv *env, jobject loader, jobject known)
{
    return known != NULL && (*env)->IsSameObject(env, loader, known);
}

/* Sets the loader's name to the name of its class, or to "" if JVMTI does not return the class. */
static void name_loader(JNIEnv *env, jobject loader, sj_jvm_class *class)
{
    jvmtiEnv *jvmti = sj_jvm.jvmti;
    char *signature = NULL;
    const jclass of = (*env)->GetObjectClass(env, loader);
    class->loader_name[0] = '\0';
    if ((*jvmti)->GetClassSignature(jvmti, of, &signature, NULL) == JVMTI_ERROR_NONE) {
        const size_t bytes = strlen(signature);
        if (bytes > 2) { /* For example "Lcom/acme/Loader;". */
            set_loader_name(class, signature + 1, bytes - 2);
        }
        (void)(*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
    }
    (*env)->DeleteLocalRef(env, of);
}

void sj_jvm_identify(JNIEnv *env, jobject loader, sj_jvm_class *class)
{
    jint hash = 0;
    const bool is_boot = loader == NULL;
    class->is_system = is_boot || is_same(env, loader, sj_jvm.platform_loader);
    if (class->is_system) {
        const char *name = is_boot ? "boot" : "platform";
        set_loader_name(class, name, strlen(name));
    } else if (is_same(env, loader, sj_jvm.app_loader)) {
        set_loader_name(class, "app", sizeof("app") - 1);
    } else {
        name_loader(env, loader, class);
        if ((*sj_jvm.jvmti)->GetObjectHashCode(sj_jvm.jvmti, loader, &hash) == JVMTI_ERROR_NONE) {
            class->loader = (uint32_t)hash != 0 ? (uint32_t)hash : 1;
        }
    }
}

uint64_t sj_jvm_class_key(const char *name, size_t bytes, uint64_t loader, bool is_system)
{
    return sj_class_marks_key(name, bytes, is_system ? UINT64_MAX : loader);
}

bool sj_jvm_is_asked_for(const char *name, jobject loader, const sj_jvm_class *class)
{
    return (!(loader == NULL || class->is_system) ||
            (sj_jvm.runtimes & SJ_LINK_RUNTIME_JVM_SYSTEM) != 0) &&
           !is_needed_by_probes(name);
}

bool sj_jvm_read_file(int file, unsigned char *bytes, uint32_t size)
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

/* Gives the rewritten class to the JVM, in memory that JVMTI allocates. Leaves the class unchanged
 * if JVMTI or the file fails. */
static void give_to_jvm(const sj_jvm_rewritten *rewritten, jint *new_size,
                        unsigned char **new_bytes)
{
    unsigned char *bytes = NULL;
    jvmtiEnv *jvmti = sj_jvm.jvmti;
    if ((*jvmti)->Allocate(jvmti, rewritten->size, &bytes) != JVMTI_ERROR_NONE) {
        return;
    }
    if (!sj_jvm_read_file(rewritten->file, bytes, rewritten->size)) {
        (void)(*jvmti)->Deallocate(jvmti, bytes);
        return;
    }
    *new_bytes = bytes;
    *new_size = (jint)rewritten->size;
    atomic_fetch_add(&sj_jvm.classes, 1);
}

/* Asks the recorder to rewrite a class. Marks the class with the recorder's selection. Gives the
 * JVM the rewritten class, if there is one. */
static void rewrite(const char *name, jobject loader, sj_jvm_class *class, jint *new_size,
                    unsigned char **new_bytes)
{
    /* Report collected loaders first: this loader may have the number of a collected one. */
    sj_jvm_report_collected_loaders();
    sj_jvm_rewritten rewritten = {.file = -1, .selection = SJ_CLASS_NOTHING};
    const bool has_reply = sj_jvm_rewrite_class(class, &rewritten);
    const uint64_t key = sj_jvm_class_key(name, strlen(name), class->loader, class->is_system);
    const bool is_marked =
        sj_class_marks_set(key, has_reply ? rewritten.selection : SJ_CLASS_UNASKED);
    /* Without a mark, the agent could not remove the probes of the class later. */
    if (!has_reply || !is_marked) {
        atomic_fetch_add(&sj_jvm.unanswered, 1);
    } else if (rewritten.size != 0) {
        give_to_jvm(&rewritten, new_size, new_bytes);
        sj_jvm_tag_loader(loader, class->loader);
    }
    if (rewritten.size != 0) {
        (void)sj_sys_close(rewritten.file);
    }
}

/* Marks a class as one without probes. The agent is detaching, and the JVM transforms the class
 * again, so the class loses its probes. Does nothing if the JVM defines the class now. */
static void forget_probes(JNIEnv *env, jclass redefined, jobject loader, const char *name)
{
    sj_jvm_class class = {0};
    if (redefined != NULL) {
        sj_jvm_identify(env, loader, &class);
        (void)sj_class_marks_set(
            sj_jvm_class_key(name, strlen(name), class.loader, class.is_system), SJ_CLASS_NOTHING);
    }
}

void JNICALL sj_jvm_on_class(jvmtiEnv *jvmti, JNIEnv *env, jclass redefined, jobject loader,
                             const char *name, jobject domain, jint size,
                             const unsigned char *bytes, jint *new_size, unsigned char **new_bytes)
{
    (void)jvmti;
    (void)domain;
    if (size <= 0 || name == NULL || env == NULL) {
        return;
    }
    atomic_fetch_add(&sj_jvm.users, 1);
    if (atomic_load(&sj_jvm.enabled) == 0) {
        forget_probes(env, redefined, loader, name);
    } else if (sj_recorder_is_armed() && sj_recorder_may_call()) {
        sj_jvm_class class = {.bytes = bytes, .size = (uint32_t)size};
        sj_jvm_identify(env, loader, &class);
        if (sj_jvm_is_asked_for(name, loader, &class)) {
            rewrite(name, loader, &class, new_size, new_bytes);
        }
    }
    atomic_fetch_sub(&sj_jvm.users, 1);
}
