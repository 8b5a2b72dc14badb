#include "agent/inproc/jvm/commands.h"

#include "agent/inproc/jvm/natives.h"
#include "agent/inproc/jvm/stall.h"
#include "agent/inproc/jvm/values.h"
#include "agent/inproc/recorder/recorder.h"

#include <string.h>

enum { MARK_BYTES = SJ_ARENA_MARK_BYTES - 1 };

static void JNICALL record_mark(JNIEnv *env, jclass class, jstring name, jboolean is_end)
{
    sj_value_text text = {0};
    char bytes[SJ_ARENA_MARK_BYTES];
    (void)class;
    if (!sj_recorder_is_armed() || !sj_jvm_begin_use()) {
        return;
    }
    const bool is_text = sj_jvm_describe_string(env, name, &text);
    sj_jvm_end_use();
    if (!is_text) {
        return;
    }
    uint32_t used = text.used < MARK_BYTES ? text.used : (uint32_t)MARK_BYTES;
    while (used != 0 && used < text.used && (text.bytes[used] & 0xc0) == 0x80) {
        used--; /* Cuts before the first byte of a UTF-8 character. */
    }
    memcpy(bytes, text.bytes, used);
    bytes[used] = '\0';
    sj_recorder_mark(bytes, is_end != 0);
}

static void JNICALL send_request(JNIEnv *env, jclass class, jint number)
{
    (void)env;
    (void)class;
    if (number >= SJ_REQUEST_START && number <= SJ_REQUEST_VSYNC) {
        sj_recorder_request((sj_request)number);
    }
}

/* Sets Sojourn.isThere of a class that was initialised before the agent was attached. */
static void set_is_there(JNIEnv *env, jclass class)
{
    const jfieldID field = (*env)->GetStaticFieldID(env, class, "isThere", "Z");
    if (field != NULL) {
        (*env)->SetStaticBooleanField(env, class, field, JNI_TRUE);
    }
    if ((*env)->ExceptionCheck(env)) {
        (*env)->ExceptionClear(env);
    }
}

static void set_in_loaded_classes(jvmtiEnv *jvmti, JNIEnv *env)
{
    jclass *classes = NULL;
    jint count = 0;
    if ((*jvmti)->GetLoadedClasses(jvmti, &count, &classes) != JVMTI_ERROR_NONE) {
        return;
    }
    for (jint i = 0; i < count; i++) {
        char *signature = NULL;
        if ((*jvmti)->GetClassSignature(jvmti, classes[i], &signature, NULL) == JVMTI_ERROR_NONE) {
            if (strcmp(signature, "Lio/sojourn/Sojourn;") == 0) {
                set_is_there(env, classes[i]);
            }
            (void)(*jvmti)->Deallocate(jvmti, (unsigned char *)signature);
        }
        (*env)->DeleteLocalRef(env, classes[i]);
    }
    (void)(*jvmti)->Deallocate(jvmti, (unsigned char *)classes);
}

bool sj_jvm_define_commands(jvmtiEnv *jvmti, JNIEnv *env)
{
    static const sj_jvm_native methods[] = {
        {"mark", "(Ljava/lang/String;Z)V", (void *)record_mark},
        {"request", "(I)V", (void *)send_request},
        {"thread", "()I", (void *)sj_jvm_thread_id},
        {"posted", "()V", (void *)sj_jvm_posted},
        {"stalled", "(Ljava/lang/String;JLjava/lang/String;)V", (void *)sj_jvm_stalled}};
    if (!sj_jvm_define_natives(env, "java/sojourn/Commands", methods, SJ_JVM_COMMANDS,
                               SJ_JVM_COMMAND_NATIVES)) {
        return false;
    }
    set_in_loaded_classes(jvmti, env);
    return true;
}
