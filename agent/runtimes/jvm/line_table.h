/* Where the methods of a class are written: its attributes SourceFile and LineNumberTable. */
#ifndef SJ_AGENT_RUNTIMES_JVM_LINE_TABLE_H
#define SJ_AGENT_RUNTIMES_JVM_LINE_TABLE_H

#include "agent/runtimes/jvm/class_file.h"

/* sj_line_table_source gives the class's source file, without a folder; empty: it names none. */
sj_slice sj_line_table_source(const sj_class_file *file);

/* sj_line_table_first gives the line of a method's first instruction; 0: it is not known. */
uint32_t sj_line_table_first(const sj_class_file *file, const sj_class_method *method);

#endif
