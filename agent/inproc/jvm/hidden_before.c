/* Design notes
 *
 * JVMTI's GetLoadedClasses returns hidden classes, but the JVM neither transforms them nor shows
 * their bytes (IsModifiableClass is false). JVMTI returns the names of their methods, which is
 * enough to list them. This file tags these classes. The tag distinguishes them from later hidden
 * classes, which have probes. */
#include "agent/inproc/jvm/hidden_before.h"

#include "agent/inproc/jvm/loaders.h"
#include "agent/inproc/jvm/method_list.h"
#include "agent/inproc/recorder/sys.h"

#include <string.h>

#define TAG (INT64_C(1) << 32) /* The tag of a loader is its number, which is smaller. */

/* Until JDK 20, a `$` and a number follow `$$Lambda` in the name. */
bool sj_hidden_is_lambda(const char *name)
{
    return strstr(name, "$$Lambda") != NULL;
}

void sj_hidden_before_add(jvmtiEnv *jvmti, jclass class)
{
    (void)(*jvmti)->SetTag(jvmti, class, TAG);
}

/* True for a hidden class that does not belong to a lambda. The signature of a hidden class has a
 * dot before its suffix, for example "Lcom/acme/Made.0x0000000800c01000;". */
static bool is_hidden(const char *signature)
{
    return signature[0] == 'L' && strchr(signature, '.') != NULL && !sj_hidden_is_lambda(signature);
}

static void add_hidden(jvmtiEnv *jvmti, jclass class)
{
    char *signature = NULL;
    if ((*jvmti)->GetClassSignature(jvmti, class, &signature, NULL) == JVMTI_ERROR_NONE) {
        if (is_hidden(signature)) {
            sj_hidden_before_add(jvmti, class);
        }
        (void)(*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
    }
}

void sj_hidden_before_find(jvmtiEnv *jvmti, JNIEnv *env)
{
    jint count = 0;
    jclass *classes = NULL;
    if ((*jvmti)->GetLoadedClasses(jvmti, &count, &classes) != JVMTI_ERROR_NONE) {
        return;
    }
    for (jint i = 0; i < count; i++) {
        add_hidden(jvmti, classes[i]);
        (*env)->DeleteLocalRef(env, classes[i]);
    }
    (void)(*jvmti)->Deallocate(jvmti, (unsigned char *)classes);
}

/* Returns a local reference to the class's nest host. Returns one to the class itself if the JVM
 * does not know nest hosts or throws an exception. */
static jclass host_of(JNIEnv *env, jclass class)
{
    jobject host = NULL;
    const jclass of = (*env)->GetObjectClass(env, class);
    const jmethodID get = (*env)->GetMethodID(env, of, "getNestHost", "()Ljava/lang/Class;");
    if (get != NULL) {
        host = (*env)->CallObjectMethod(env, class, get);
    }
    if ((*env)->ExceptionCheck(env)) {
        (*env)->ExceptionClear(env);
        host = NULL;
    }
    (*env)->DeleteLocalRef(env, of);
    return host != NULL ? host : (*env)->NewLocalRef(env, class);
}

/* Sends the methods of a class to the recorder. Ignores the recorder's reply, because these classes
 * cannot be transformed. */
static void list_methods(jvmtiEnv *jvmti, jclass class, const char *signature,
                         sj_jvm_class *described)
{
    jmethodID *methods = NULL;
    jint count = 0;
    sj_method_list list;
    sj_jvm_rewritten reply = {.file = -1};
    if ((*jvmti)->GetClassMethods(jvmti, class, &count, &methods) != JVMTI_ERROR_NONE) {
        return; /* If the class is not prepared, none of its methods can have run. */
    }
    if (sj_method_list_init(jvmti, signature + 1, strlen(signature) - 2, methods, count, &list)) {
        described->listing = SJ_CLASS_FIXED;
        described->bytes = list.bytes;
        described->size = list.used;
        if (sj_jvm_rewrite_class(described, &reply) && reply.size != 0) {
            (void)sj_sys_close(reply.file);
        }
    }
    sj_method_list_deinit(jvmti, &list);
    (void)(*jvmti)->Deallocate(jvmti, (unsigned char *)methods);
}

/* Lists a class under the name of its nest host. Leaves out the suffix if the host is hidden,
 * too. */
static void list_with_host(jvmtiEnv *jvmti, JNIEnv *env, jclass class, const char *signature,
                           sj_jvm_class *described)
{
    char *name = NULL;
    const jclass host = host_of(env, class);
    if ((*jvmti)->GetClassSignature(jvmti, host, &name, NULL) == JVMTI_ERROR_NONE) {
        const size_t bytes = strcspn(name, ".;");
        if (bytes > 1 && bytes - 1 <= SJ_LINK_CLASS_NAME_BYTES) {
            described->host = name + 1;
            described->host_bytes = (uint32_t)bytes - 1;
            list_methods(jvmti, class, signature, described);
        }
        (void)(*jvmti)->Deallocate(jvmti, (unsigned char *)name);
    }
    (*env)->DeleteLocalRef(env, host);
}

/* Lists a class if it has TAG and the recorder is to be asked about it. Returns true if so. */
static bool list_one(jvmtiEnv *jvmti, JNIEnv *env, jclass class)
{
    jlong tag = 0;
    jobject loader = NULL;
    char *signature = NULL;
    sj_jvm_class described = {0};
    if ((*jvmti)->GetTag(jvmti, class, &tag) != JVMTI_ERROR_NONE || tag != TAG ||
        (*jvmti)->GetClassLoader(jvmti, class, &loader) != JVMTI_ERROR_NONE) {
        return false;
    }
    sj_jvm_identify(env, loader, &described);
    bool is_listed = false;
    if ((*jvmti)->GetClassSignature(jvmti, class, &signature, NULL) == JVMTI_ERROR_NONE) {
        is_listed = sj_jvm_is_asked_for(signature + 1, loader, &described);
        if (is_listed) {
            list_with_host(jvmti, env, class, signature, &described);
            sj_jvm_tag_loader(loader, described.loader);
        }
        (void)(*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
    }
    (*env)->DeleteLocalRef(env, loader);
    return is_listed;
}

void sj_hidden_before_list(jvmtiEnv *jvmti, JNIEnv *env, sj_jvm_figures *figures)
{
    jint count = 0;
    jclass *classes = NULL;
    if ((*jvmti)->GetLoadedClasses(jvmti, &count, &classes) != JVMTI_ERROR_NONE) {
        return;
    }
    for (jint i = 0; i < count; i++) {
        figures->fixed += list_one(jvmti, env, classes[i]) ? 1 : 0;
        (*env)->DeleteLocalRef(env, classes[i]);
    }
    (void)(*jvmti)->Deallocate(jvmti, (unsigned char *)classes);
}
