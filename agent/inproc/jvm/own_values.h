/* Reads objects as values by their own classes, for rules that name no type. */
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
 * missing. Call it once, before any value is recorded. */
bool sj_jvm_own_values_init(JNIEnv *env);

/* Deletes these references. No thread may use them now (sj_jvm_begin_use). */
void sj_jvm_own_values_deinit(JNIEnv *env);

/* Reads an object without running code of the program. Writes a number for a boxed number or
 * boolean, and the characters of a String. Describes an array by its type, length and first
 * elements, a boxed character as a character, and other objects as sj_jvm_describe does. Writes the
 * note SJ_VALUE_NULL for NULL. Call it between sj_jvm_begin_use and sj_jvm_end_use. */
void sj_jvm_own_value_of(JNIEnv *env, jobject object, sj_jvm_own_value *value);

/* Calls `get`, GetFloatField or GetDoubleField of JNI, and returns the 64 bits of the register with
 * the result. The upper half is undefined for a float. */
uint64_t sj_arch_jvm_real_field(JNIEnv *env, jobject object, jfieldID field, void *get);

#endif
