/* The class table: the classes of the modules of recorded processes, as their files
 * describe them, and those met that programs made while they ran. Any thread. */
#ifndef SJ_AGENT_RUNTIMES_CLASS_TABLE_H
#define SJ_AGENT_RUNTIMES_CLASS_TABLE_H

#include "proto/base/cursor.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What is known of a class. */
typedef struct sj_known_class {
    const char *name;
    const char *super; /* NULL: a root class */
    bool is_system;    /* a system library defines it */
} sj_known_class;

/* Finds a class by name; false when nothing is known of it. */
typedef bool (*sj_class_find)(void *context, const char *name, sj_known_class *class);

typedef struct sj_class_table sj_class_table;

SJ_MUST_CHECK sj_status sj_class_table_new(sj_class_table **table);
void sj_class_table_free(sj_class_table *table); /* NULL is fine */

/* sj_class_table_read_process reads the files of the modules that process `number` of the session
 * has mapped, each file once, where `sysroot` (NULL: none) has none of that name. Files that cannot
 * be read have no classes. SJ_ENOMEM. Blocking: reads /proc and files. */
SJ_MUST_CHECK sj_status sj_class_table_read_process(sj_class_table *table, uint64_t number,
                                                    pid_t pid, const char *sysroot);

/* sj_class_table_find_isa finds the class that an isa pointer of a process means, or its metaclass
 * (`*is_meta`); false when no module that the process had mapped when it was read holds one there.
 */
bool sj_class_table_find_isa(sj_class_table *table, uint64_t process, uint64_t isa,
                             sj_known_class *class, bool *is_meta);

/* sj_class_table_meet does as sj_class_table_find_isa for a class that no module holds: it asks the
 * process, which must still live. What it learns is found by name from then on. */
bool sj_class_table_meet(sj_class_table *table, pid_t pid, uint64_t isa, sj_known_class *class,
                         bool *is_meta);

/* sj_class_table_add takes a class and the one that it extends (NULL: none or unknown), as a file
 * of a runtime's own kind describes them. SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_class_table_add(sj_class_table *table, const char *name,
                                           const char *super);

/* sj_class_table_learn takes a class and its ancestors, nearest first, as a process reports them:
 * NUL-terminated names, the last byte being a NUL. Names that are known stay as they are.
 * SJ_ENOMEM.
 */
SJ_MUST_CHECK sj_status sj_class_table_learn(sj_class_table *table, sj_slice lineage);

/* sj_class_table_find is a sj_class_find; `context` is the table. The texts live as long as the
 * table does. Of classes of one name, the one that was read first. */
bool sj_class_table_find(void *context, const char *name, sj_known_class *class);

#endif
