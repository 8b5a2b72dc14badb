/* Values of Java methods: native methods that the recorder's code in methods calls
 * (agent/abi/java_values.h). They are called in native state, where a thread may wait without
 * delaying a safepoint. */
#ifndef SJ_AGENT_INPROC_JVM_VALUES_H
#define SJ_AGENT_INPROC_JVM_VALUES_H

#include "agent/inproc/jvm/internal.h"

#include "agent/abi/java_values.h"
#include "agent/inproc/recorder/value_text.h"

/* Defines java.sojourn.Values and its native methods. Returns false if the JVM refuses: then no
 * class may record values. No exception is pending afterwards. */
bool sj_jvm_define_values(JNIEnv *env);

/* Finds what is needed of the JVM's classes. Returns false if a class or field is missing. */
bool sj_jvm_describe_init(JNIEnv *env);

/* Frees these references. No thread uses them (sj_jvm_begin_use). */
void sj_jvm_describe_deinit(JNIEnv *env);

/* Writes the text of a String. Returns false if `object` is not one. */
bool sj_jvm_describe_string(JNIEnv *env, jobject object, sj_value_text *text);

/* Describes an object: "text", the constant of an enum, type[length], or Class@identity. */
void sj_jvm_describe(JNIEnv *env, jobject object, sj_value_text *text);

/* Writes the class of an object. */
void sj_jvm_describe_class(JNIEnv *env, jobject object, sj_value_text *text);

/* Writes a boolean, a character or a whole number as Java does. */
void sj_jvm_describe_number(sj_java_type type, int64_t number, sj_value_text *text);

/* Creates an exception of the named class. Returns NULL if there is no such class, or if it is not
 * a Throwable. No exception is pending afterwards. */
jthrowable sj_jvm_new_exception(JNIEnv *env, const char *class_name);

#endif
