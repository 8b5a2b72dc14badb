/* Values of Java methods by their own classes: what a rule without a type records of an object. */
#ifndef SJ_AGENT_INPROC_JVM_OWN_VALUES_H
#define SJ_AGENT_INPROC_JVM_OWN_VALUES_H

#include "agent/inproc/jvm/values.h"

/* An object as a value. */
typedef struct sj_jvm_own_value {
    uint32_t kind; /* sj_value_kind; texts use `text`, other kinds `bits` */
    uint64_t bits;
    sj_value_text text;
} sj_jvm_own_value;

/* Creates the references that sj_jvm_own_value_of uses. Returns false if a class or field is
 * missing. */
bool sj_jvm_own_values_init(JNIEnv *env);

/* Deletes these references. No thread may use them now (sj_jvm_begin_use). */
void sj_jvm_own_values_deinit(JNIEnv *env);

/* Reads an object without running code of the program. A boxed number or boolean becomes a number,
 * and a String its characters. An array is its type, length and first elements. Other objects are
 * described by sj_jvm_describe. */
void sj_jvm_own_value_of(JNIEnv *env, jobject object, sj_jvm_own_value *value);

/* Calls `get`, GetFloatField or GetDoubleField of JNI, and returns the 64 bits of the register with
 * the result. The upper half is undefined for a float. */
uint64_t sj_arch_jvm_real_field(JNIEnv *env, jobject object, jfieldID field, void *get);

#endif
