/* Where the methods of a class are written: its attributes SourceFile and LineNumberTable. */
#ifndef SJ_AGENT_RUNTIMES_JVM_LINE_TABLE_H
#define SJ_AGENT_RUNTIMES_JVM_LINE_TABLE_H

#include "agent/runtimes/jvm/class_file.h"

/* sj_line_table_source gives the class's source file, without a folder; empty: it names none. */
sj_slice sj_line_table_source(const sj_class_file *file);

/* Called with each place in a method's code at which a line begins, and its number. */
typedef void (*sj_line_visitor)(void *context, uint32_t place, uint32_t line);

/* sj_line_table_visit visits a method's lines, in any order. */
void sj_line_table_visit(const sj_class_file *file, const sj_class_method *method, void *context,
                         sj_line_visitor visit);

/* sj_line_table_first gives the line of a method's first instruction; 0: it is not known. */
uint32_t sj_line_table_first(const sj_class_file *file, const sj_class_method *method);

#endif
