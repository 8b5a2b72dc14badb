/* The descriptor of Objective-C (runtime.h). */
#ifndef SJ_AGENT_RUNTIMES_OBJC_OBJC_H
#define SJ_AGENT_RUNTIMES_OBJC_OBJC_H

#include "agent/runtimes/runtime.h"

extern const sj_runtime sj_runtime_objc;

/* Implement the functions of the descriptor, with their errors (runtime.h). */
sj_status sj_objc_find_functions(const sj_elf *elf, sj_runtime_sink sink, void *context);
sj_status sj_objc_find_classes(const sj_elf *elf, sj_runtime_class_sink sink, void *context);
bool sj_objc_read_live_class(pid_t pid, uint64_t address, sj_live_class *class);

#endif
