/* Design notes
 *
 * libjvm exports JVM_GetManagement, which returns a table of functions. One of them returns the
 * bytes that a thread has allocated, without running Java code. Its index in the table differs
 * between versions. So only the version that was tested (JDK 17) is used, and the table has to
 * confirm its own version. */
#include "agent/inproc/jvm/management.h"

#include "agent/inproc/hooks/definition.h"

enum { VERSION = 0x20030000, GET_VERSION = 2, GET_ALLOCATED = 9, GET_NUMBER = 12 };
enum { NUMBER_STOPS = 105, NUMBER_STOPPED_MS = 107 };

typedef void **(*get_management)(jint version);
typedef jint (*get_version)(JNIEnv *env);
/* Returns bytes, or -1 if not known. `thread` 0 means the calling thread. */
typedef jlong (*get_allocated)(JNIEnv *env, jlong thread);

typedef jlong (*get_number)(JNIEnv *env, jobject about, int number); /* -1 if not known. */

/* NULL if the JVM's table is not known. */
static get_allocated get_thread_allocated;
static get_number get_jvm_number;

static bool is_known_specification(JNIEnv *env)
{
    enum { JAVA_17 = 0x000a0000 };
    return (*env)->GetVersion(env) == JAVA_17;
}

void sj_jvm_find_management(JNIEnv *env)
{
    const get_management find =
        (get_management)(uintptr_t)sj_definition_find("JVM_GetManagement", NULL);
    void **table = find != NULL && is_known_specification(env) ? find(VERSION) : NULL;
    const bool is_known = table != NULL && table[GET_VERSION] != NULL &&
                          table[GET_ALLOCATED] != NULL && table[GET_NUMBER] != NULL &&
                          ((get_version)table[GET_VERSION])(env) == VERSION;
    get_thread_allocated = is_known ? (get_allocated)table[GET_ALLOCATED] : NULL;
    get_jvm_number = is_known ? (get_number)table[GET_NUMBER] : NULL;
}

bool sj_jvm_allocated(JNIEnv *env, int64_t thread, uint64_t *bytes)
{
    const jlong counted = get_thread_allocated != NULL ? get_thread_allocated(env, thread) : -1;
    *bytes = counted >= 0 ? (uint64_t)counted : 0;
    return counted >= 0;
}

bool sj_jvm_count_stops(JNIEnv *env, sj_jvm_stops *stops)
{
    const jlong count = get_jvm_number != NULL ? get_jvm_number(env, NULL, NUMBER_STOPS) : -1;
    const jlong stopped = count >= 0 ? get_jvm_number(env, NULL, NUMBER_STOPPED_MS) : -1;
    *stops = (sj_jvm_stops){.count = (uint64_t)count, .milliseconds = (uint64_t)stopped};
    return stopped >= 0;
}
