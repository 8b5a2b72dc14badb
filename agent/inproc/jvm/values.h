/* Values of Java methods: what the code that the recorder puts into methods calls
 * (agent/abi/java_values.h). Called in native state, where a thread may wait without delaying a
 * safepoint. */
#ifndef SJ_AGENT_INPROC_JVM_VALUES_H
#define SJ_AGENT_INPROC_JVM_VALUES_H

#include "agent/inproc/jvm/internal.h"

#include "agent/abi/java_values.h"
#include "agent/inproc/recorder/value_text.h"

/* sj_jvm_define_values defines java.sojourn.Values and its native methods. False: the JVM refused;
 * no class may be given values then. No exception is pending afterwards. */
bool sj_jvm_define_values(JNIEnv *env);

/* sj_jvm_describe_prepare finds what is needed of the JVM's classes. False: it is not there. */
bool sj_jvm_describe_prepare(JNIEnv *env);

/* sj_jvm_describe_forget gives back what that holds. No thread uses it (sj_jvm_begin_use). */
void sj_jvm_describe_forget(JNIEnv *env);

/* sj_jvm_describe_string gives the text of a String; false: `object` is another one. */
bool sj_jvm_describe_string(JNIEnv *env, jobject object, sj_value_text *text);

/* sj_jvm_describe names an object: "text", CONSTANT of an enum, type[length], Class@identity. */
void sj_jvm_describe(JNIEnv *env, jobject object, sj_value_text *text);

/* sj_jvm_describe_class names the class of an object. */
void sj_jvm_describe_class(JNIEnv *env, jobject object, sj_value_text *text);

/* sj_jvm_describe_number writes a boolean, a character or a whole number as Java does. */
void sj_jvm_describe_number(sj_java_type type, int64_t number, sj_value_text *text);

/* sj_jvm_make_exception makes an exception of a class by its name; NULL: there is no such class, or
 * it is none of an exception. No exception is pending afterwards. */
jthrowable sj_jvm_make_exception(JNIEnv *env, const char *class_name);

#endif
