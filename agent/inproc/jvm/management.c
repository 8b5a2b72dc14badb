/* Design notes
 *
 * libjvm gives its management library a table of functions by version. One of them counts the bytes
 * that a thread has allocated, including its unfinished buffer, without running Java code. Its
 * index in the table has changed between versions. So only the tested version is used, and the
 * table has to confirm it. */
#include "agent/inproc/jvm/management.h"

#include "agent/inproc/hooks/definition.h"

enum { VERSION = 0x20030000, GET_VERSION = 2, GET_ALLOCATED = 9, GET_NUMBER = 12 };
enum { NUMBER_STOPS = 105, NUMBER_STOPPED_MS = 107 };

typedef void **(*get_management)(jint version);
typedef jint (*get_version)(JNIEnv *env);
/* `thread` 0: the calling thread. -1: unknown. */
typedef jlong (*get_allocated)(JNIEnv *env, jlong thread);

typedef jlong (*get_number)(JNIEnv *env, jobject about, int number); /* -1: unknown. */

static get_allocated of_thread;  /* NULL: not known. */
static get_number number_of_jvm; /* NULL: not known. */

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
    of_thread = is_known ? (get_allocated)table[GET_ALLOCATED] : NULL;
    number_of_jvm = is_known ? (get_number)table[GET_NUMBER] : NULL;
}

bool sj_jvm_allocated(JNIEnv *env, int64_t thread, uint64_t *bytes)
{
    const jlong counted = of_thread != NULL ? of_thread(env, thread) : -1;
    *bytes = counted >= 0 ? (uint64_t)counted : 0;
    return counted >= 0;
}

bool sj_jvm_count_stops(JNIEnv *env, sj_jvm_stops *stops)
{
    const jlong count = number_of_jvm != NULL ? number_of_jvm(env, NULL, NUMBER_STOPS) : -1;
    const jlong stopped = count >= 0 ? number_of_jvm(env, NULL, NUMBER_STOPPED_MS) : -1;
    *stops = (sj_jvm_stops){.count = (uint64_t)count, .milliseconds = (uint64_t)stopped};
    return stopped >= 0;
}
