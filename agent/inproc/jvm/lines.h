/* Stores which lines of Java methods ran. A probe before each line stores the line's bytecode
 * index. */
#ifndef SJ_AGENT_INPROC_JVM_LINES_H
#define SJ_AGENT_INPROC_JVM_LINES_H

#include <jni.h>

/* Implements the native method java.sojourn.Values.line. `place` is a bytecode index. */
void JNICALL sj_jvm_line(JNIEnv *env, jclass class, jint place, jint function);

/* Reports all lines to the recorder, if any ran. May block. Not thread-safe. */
void sj_jvm_report_lines(void);

#endif
