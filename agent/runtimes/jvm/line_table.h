/* Reads the source lines of a class's methods from its attributes SourceFile and LineNumberTable.
 */
#ifndef SJ_AGENT_RUNTIMES_JVM_LINE_TABLE_H
#define SJ_AGENT_RUNTIMES_JVM_LINE_TABLE_H

#include "agent/runtimes/jvm/class_file.h"

/* Returns the name of the class's source file, without a folder. Returns an empty slice if the
 * class has no SourceFile. */
sj_slice sj_line_table_source(const sj_class_file *file);

/* Receives a line's number, and the offset in the method's code at which the line begins. */
typedef void (*sj_line_visitor)(void *context, uint32_t offset, uint32_t line);

/* Calls `visit` for each line of a method, in any order. */
void sj_line_table_visit(const sj_class_file *file, const sj_class_method *method, void *context,
                         sj_line_visitor visit);

/* Returns the line with the lowest offset in a method's code, or 0 if its lines are not known. */
uint32_t sj_line_table_first(const sj_class_file *file, const sj_class_method *method);

#endif
