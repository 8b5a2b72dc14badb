/* Leaf probes: where the JVM is one that is known, calls of the probes from compiled code go to a
 * stub that records and returns, without the change of the thread's state that a native method
 * costs. Where the stub finds no room, the call goes on into the native method, where it may wait.
 */
#ifndef SJ_AGENT_INPROC_JVM_LEAF_H
#define SJ_AGENT_INPROC_JVM_LEAF_H

#include "agent/inproc/jvm/internal.h"

/* sj_jvm_is_known_version returns whether what is known of HotSpot's inside holds: it is of JDK 17.
 * From Agent_OnLoad on. */
bool sj_jvm_is_known_version(jvmtiEnv *jvmti);

/* sj_jvm_leaf_prepare finds what is needed of the JVM. False: it is not one that is known. Once,
 * after sj_jvm_define_probes. */
bool sj_jvm_leaf_prepare(jvmtiEnv *jvmti, JNIEnv *env, jclass probe_class);

/* sj_jvm_on_compiled is JVMTI's CompiledMethodLoad: leads the wrapper of a probe to its stub. */
void JNICALL sj_jvm_on_compiled(jvmtiEnv *jvmti, jmethodID method, jint size, const void *code,
                                jint map_size, const jvmtiAddrLocationMap *map, const void *info);

/* sj_jvm_leaf_close ends the work of the stubs: from here on they lead into the wrappers.
 * `is_proved`: no thread can come to them any more. */
void sj_jvm_leaf_close(bool is_proved);

/* sj_jvm_leaf_forget frees the stubs, if that was proved; else their page stays mapped. No thread
 * is in one. */
void sj_jvm_leaf_forget(void);

/* The machine's part. */
enum { SJ_LEAF_STUB_BYTES = 128 };

/* sj_arch_leaf_entry_bytes gives the size of the one instruction at the entry of a wrapper if it is
 * of the kind that can be replaced; 0: it is not. */
uint32_t sj_arch_leaf_entry_bytes(uint64_t entry);

/* sj_arch_leaf_emit writes the stub that records `kind` for the wrapper at `entry`, but of
 * functions that are muted by the table at `muted` (muted.h; 0: there is none) nothing. */
void sj_arch_leaf_emit(uint8_t stub[SJ_LEAF_STUB_BYTES], sj_record_kind kind, uint64_t muted,
                       uint64_t entry);

/* sj_arch_leaf_close makes a stub lead into its wrapper by one store; threads may run in it. */
void sj_arch_leaf_close(uint8_t stub[SJ_LEAF_STUB_BYTES]);

/* sj_arch_leaf_lead replaces the instruction at `entry` by a jump to `stub` with one store;
 * false when the stub is out of reach. */
bool sj_arch_leaf_lead(uint64_t entry, uint64_t stub);

#endif
