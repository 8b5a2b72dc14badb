/* The class table contains the classes of the modules of recorded processes, as their files
 * describe them. It also contains classes that programs created at run time, once they have been
 * met. Thread-safe. */
#ifndef SJ_AGENT_RUNTIMES_CLASS_TABLE_H
#define SJ_AGENT_RUNTIMES_CLASS_TABLE_H

#include "proto/base/cursor.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A class and its ancestor. */
typedef struct sj_known_class {
    const char *name;
    const char *super; /* NULL: a root class, or the ancestor is unknown. */
    bool is_system;    /* True if a system library defines it. */
} sj_known_class;

/* Finds a class by name. Returns false if the class is unknown. */
typedef bool (*sj_class_find)(void *context, const char *name, sj_known_class *class);

typedef struct sj_class_table sj_class_table;

SJ_MUST_CHECK sj_status sj_class_table_new(sj_class_table **table);
void sj_class_table_free(sj_class_table *table); /* NULL is allowed. */

/* Reads the files of the modules that process `number` of the session has mapped, each file once.
 * Paths are searched below `sysroot` first (NULL: none). A file that cannot be read has no classes.
 * Returns SJ_ENOMEM if out of memory. Blocking: reads /proc and files. */
SJ_MUST_CHECK sj_status sj_class_table_read_process(sj_class_table *table, uint64_t number,
                                                    pid_t pid, const char *sysroot);

/* Finds the class that an isa pointer of a process means. `*is_meta` is true if the pointer means
 * the metaclass. Returns false if no module that the process had mapped when it was read holds a
 * class at this address. */
bool sj_class_table_find_isa(sj_class_table *table, uint64_t process, uint64_t isa,
                             sj_known_class *class, bool *is_meta);

/* Does the same for a class that no module holds, by reading the memory of the process, which must
 * still run. The class can be found by name afterwards. */
bool sj_class_table_meet(sj_class_table *table, pid_t pid, uint64_t isa, sj_known_class *class,
                         bool *is_meta);

/* Adds a class and its ancestor (NULL: none or unknown), as a container of a runtime describes
 * them. Returns SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_class_table_add(sj_class_table *table, const char *name,
                                           const char *super);

/* Adds a class and its ancestors, nearest first, as a process reports them. `lineage` holds
 * NUL-terminated names; its last byte is a NUL. Classes that are known do not change. Returns
 * SJ_ENOMEM if out of memory. */
SJ_MUST_CHECK sj_status sj_class_table_learn(sj_class_table *table, sj_slice lineage);

/* An sj_class_find whose `context` is the table. The texts are borrowed until the table is freed.
 * If several classes have the name, it finds the one that was read first. */
bool sj_class_table_find(void *context, const char *name, sj_known_class *class);

#endif
