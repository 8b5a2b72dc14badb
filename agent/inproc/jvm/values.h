/* Records values of Java methods: defines the native methods that the code added by the recorder
 * calls (agent/abi/java_values.h). They run in native state, so a thread may wait in them without
 * delaying a safepoint. */
#ifndef SJ_AGENT_INPROC_JVM_VALUES_H
#define SJ_AGENT_INPROC_JVM_VALUES_H

#include "agent/inproc/jvm/internal.h"

#include "agent/abi/java_values.h"
#include "agent/inproc/recorder/value_text.h"

/* Defines java.sojourn.Values and its native methods. Returns false if the JVM refuses; then no
 * class may record values. No exception is pending afterwards. */
bool sj_jvm_define_values(JNIEnv *env);

/* Creates the references that the sj_jvm_describe functions use. Returns false if a class or field
 * is missing. */
bool sj_jvm_describe_init(JNIEnv *env);

/* Deletes the references that sj_jvm_describe_init created. No thread may use them now
 * (sj_jvm_begin_use). */
void sj_jvm_describe_deinit(JNIEnv *env);

/* Appends the characters of a String. For NULL, sets the note SJ_VALUE_NULL. Returns false if
 * `object` is not a String. */
bool sj_jvm_describe_string(JNIEnv *env, jobject object, sj_value_text *text);

/* Appends a description of an object: "characters", the name of an enum constant, type[length], or
 * Class@identity_hash. For NULL, sets the note SJ_VALUE_NULL. */
void sj_jvm_describe(JNIEnv *env, jobject object, sj_value_text *text);

/* Appends the class name of an object. */
void sj_jvm_describe_class(JNIEnv *env, jobject object, sj_value_text *text);

/* Appends a boolean, a character in quotes, or an integer. */
void sj_jvm_describe_number(sj_java_type type, int64_t number, sj_value_text *text);

/* Returns a new exception of the named class. Returns NULL if the program has no class of this
 * name, or if it is not a Throwable. No exception is pending afterwards. */
jthrowable sj_jvm_new_exception(JNIEnv *env, const char *class_name);

#endif
