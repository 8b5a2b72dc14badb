/* Reports the source lines of a Java class's methods, from its class file. Reports of the monitor
 * "first_lines" become rows of function_lines in the store. */
#ifndef SJ_AGENT_REGISTRY_CLASS_LINES_H
#define SJ_AGENT_REGISTRY_CLASS_LINES_H

#include "agent/registry/source_lines.h"
#include "agent/runtimes/jvm/class_file.h"
#include "agent/session/frame_writer.h"

/* Lists all lines of all methods. The token of a method is its index in the class. The caller owns
 * `*lines`. `*lines` is NULL if the class file has no source file name or no lines. Returns
 * SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_class_lines_read(const sj_class_file *file, sj_source_lines **lines);

/* Sends the first line of each method of the class, which is module number `module`. Sends nothing
 * if the class file has no source file name or no lines. Returns SJ_ENOMEM, or errors of
 * sj_frame_writer_report. */
SJ_MUST_CHECK sj_status sj_class_lines_report(const sj_class_file *file, sj_frame_writer *writer,
                                              uint32_t module, uint64_t now_ticks);

#endif
