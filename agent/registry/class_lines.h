/* Where the methods of a Java class are written, as the class file says: a report of the monitor
 * "first_lines", of which the store makes rows of function_lines. */
#ifndef SJ_AGENT_REGISTRY_CLASS_LINES_H
#define SJ_AGENT_REGISTRY_CLASS_LINES_H

#include "agent/registry/source_lines.h"
#include "agent/runtimes/jvm/class_file.h"
#include "agent/session/frame_writer.h"

/* sj_class_lines_read lists all lines of all methods, by their places in the class; `*lines` is
 * owned; NULL: it names no file or no lines. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_class_lines_read(const sj_class_file *file, sj_source_lines **lines);

/* sj_class_lines_report sends the first line of each method of module number `module`. Nothing is
 * sent of a class that names no file or no lines. SJ_ENOMEM, errors of sj_frame_writer_report. */
SJ_MUST_CHECK sj_status sj_class_lines_report(const sj_class_file *file, sj_frame_writer *writer,
                                              uint32_t module, uint64_t now_ticks);

#endif
