/* A class of GCC's Objective-C runtime as a living process has it: for classes that no file
 * describes, because the program makes them while it runs. */
#ifndef SJ_AGENT_CONTROL_LIVE_CLASS_H
#define SJ_AGENT_CONTROL_LIVE_CLASS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { SJ_LIVE_CLASS_BYTES = 256 };

typedef struct sj_live_class {
    char name[SJ_LIVE_CLASS_BYTES];
    char super[SJ_LIVE_CLASS_BYTES]; /* "": a root class, or not known */
    bool is_meta;                    /* it is the class of the class `name` */
} sj_live_class;

/* sj_live_class_read reads what lies at an address as a class; false when it is none: it cannot be
 * read, is not marked as one, or its name is none. Reads the memory of the process, which runs on.
 * Any thread. */
bool sj_live_class_read(pid_t pid, uint64_t address, sj_live_class *class);

#endif
