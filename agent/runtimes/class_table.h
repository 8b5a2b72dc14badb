/* A table of the classes in the modules of recorded processes, read from the modules' files.
 * Classes that programs created at run time are added when a record refers to them
 * (sj_class_table_meet). Thread-safe. */
#ifndef SJ_AGENT_RUNTIMES_CLASS_TABLE_H
#define SJ_AGENT_RUNTIMES_CLASS_TABLE_H

#include "proto/base/cursor.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* A class and its superclass. */
typedef struct sj_known_class {
    const char *name;
    const char *super; /* NULL if it is a root class, or if the superclass is not known. */
    bool is_system;    /* True if a system library defines it. */
} sj_known_class;

/* Finds a class by name. Returns false if the class is not known. */
typedef bool (*sj_class_find)(void *context, const char *name, sj_known_class *class);

typedef struct sj_class_table sj_class_table;

/* Creates an empty table. Returns SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_class_table_new(sj_class_table **table);

/* Frees the table. `table` may be NULL. */
void sj_class_table_free(sj_class_table *table);

/* Adds the classes of the modules that a process has mapped. `number` is the process's number in
 * the session. Reads each file once. Reads the file below `sysroot` if it exists there; `sysroot`
 * may be NULL. Ignores files that cannot be read. Returns SJ_ENOMEM. Blocks while it reads /proc
 * and files. */
SJ_MUST_CHECK sj_status sj_class_table_read_process(sj_class_table *table, uint64_t number,
                                                    pid_t pid, const char *sysroot);

/* Finds the class or metaclass at the address `isa` of a process. Sets `*is_meta` to true if it is
 * a metaclass. Returns false if no module that sj_class_table_read_process found has a class there.
 */
bool sj_class_table_find_isa(sj_class_table *table, uint64_t process, uint64_t isa,
                             sj_known_class *class, bool *is_meta);

/* Reads the class at the address `isa` from the memory of a running process, for classes that are
 * in no module. Adds the class to the table by name. Returns false if no class is at that address,
 * if `pid` is 0, or if out of memory. */
bool sj_class_table_meet(sj_class_table *table, pid_t pid, uint64_t isa, sj_known_class *class,
                         bool *is_meta);

/* Adds a class and its superclass, which a container of a runtime describes. `super` is NULL if the
 * class has no superclass or its superclass is not known. Returns SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_class_table_add(sj_class_table *table, const char *name,
                                           const char *super);

/* Adds a class, its superclass and so on, which a process has reported. `lineage` contains their
 * NUL-terminated names in this order. Its last byte is a NUL. Does not change known classes.
 * Returns SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_class_table_learn(sj_class_table *table, sj_slice lineage);

/* Finds a class by name, as an sj_class_find. `context` is the table. The texts are borrowed until
 * the table is freed. If several classes have the name, finds the class that was added first. */
bool sj_class_table_find(void *context, const char *name, sj_known_class *class);

#endif
