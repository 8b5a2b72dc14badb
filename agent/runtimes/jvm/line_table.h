/* Source lines of the methods of a class, from its attributes SourceFile and LineNumberTable. */
#ifndef SJ_AGENT_RUNTIMES_JVM_LINE_TABLE_H
#define SJ_AGENT_RUNTIMES_JVM_LINE_TABLE_H

#include "agent/runtimes/jvm/class_file.h"

/* Returns the class's source file, without a folder, or an empty slice if it names none. */
sj_slice sj_line_table_source(const sj_class_file *file);

/* Called with each position in a method's code at which a line begins, and the line's number. */
typedef void (*sj_line_visitor)(void *context, uint32_t place, uint32_t line);

/* Visits a method's lines, in any order. */
void sj_line_table_visit(const sj_class_file *file, const sj_class_method *method, void *context,
                         sj_line_visitor visit);

/* Returns the line of a method's first instruction, or 0 if it is unknown. */
uint32_t sj_line_table_first(const sj_class_file *file, const sj_class_method *method);

#endif
