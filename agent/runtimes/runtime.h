/* Runtimes of languages whose functions have better names than their symbols.
 *
 * Each runtime is a constant descriptor in the table of runtime.c. A new runtime needs a folder
 * here and a line in that table. Its code in the traced program, if any, is a component in
 * agent/inproc. The planner asks every runtime for the functions in a module's file; these are
 * patched like other functions. A policy has one part for each runtime, under the runtime's name.
 * Thread-safe: the functions have no state. */
#ifndef SJ_AGENT_RUNTIMES_RUNTIME_H
#define SJ_AGENT_RUNTIMES_RUNTIME_H

#include "agent/abi/link.h"
#include "agent/objfile/elf_view.h"

#include <stdbool.h>
#include <sys/types.h>

enum {
    SJ_RUNTIMES = SJ_LINK_LANGUAGES, /* Rows of sj_runtimes. */
    SJ_LIVE_CLASS_BYTES = 256,
    SJ_METHOD_PART_BYTES = 1024
};

/* A function from the runtime's tables in a file. */
typedef struct sj_runtime_function {
    uint64_t address; /* Module offset. */
    const char *name; /* Borrowed for the call. */
    uint8_t receiver; /* Number of the argument that is the receiver, from 1; 0 if not known. */
} sj_runtime_function;

typedef sj_status (*sj_runtime_sink)(void *context, const sj_runtime_function *function);

/* A class from the runtime's tables in a file. Texts are borrowed for the call. */
typedef struct sj_runtime_class {
    uint64_t address; /* Module offset that an instance's isa points to. */
    uint64_t meta;    /* Module offset of the metaclass. */
    const char *name;
    const char *super; /* NULL if it is a root class. */
} sj_runtime_class;

typedef sj_status (*sj_runtime_class_sink)(void *context, const sj_runtime_class *class);

/* A class from the memory of a process, for classes that are in no file. */
typedef struct sj_live_class {
    char name[SJ_LIVE_CLASS_BYTES];
    char super[SJ_LIVE_CLASS_BYTES]; /* "" if it is a root class, or if not known. */
    bool is_meta;                    /* True for the metaclass of the class `name`. */
} sj_live_class;

/* The two parts of a method's name that filters match. */
typedef struct sj_method_parts {
    /* The receiver's class if the name contains it, else the class that defines the method. */
    char class[SJ_METHOD_PART_BYTES];
    char selector[SJ_METHOD_PART_BYTES];
} sj_method_parts;

/* Copies `bytes` bytes of a name to a part. Returns false if `bytes` is 0 or too large. */
bool sj_method_part_copy(char part[SJ_METHOD_PART_BYTES], const char *from, size_t bytes);

/* Receives one method. Tokens come in ascending order from 1, without gaps. `name` is borrowed for
 * the call. `has_code` is false for methods that cannot be recorded (abstract, native). */
typedef sj_status (*sj_container_sink)(void *context, uint32_t token, const char *name,
                                       bool has_code);

/* Receives a class and its superclass, which may be NULL. Both are borrowed for the call. */
typedef sj_status (*sj_container_class_sink)(void *context, const char *name, const char *super);

/* A position in a method's code and its source line. */
typedef struct sj_container_line {
    uint32_t token;   /* Token of the method, as for sj_container_sink. */
    uint32_t offset;  /* Offset in the method's bytecode. Ascending within a method. */
    uint32_t line;    /* From 1. */
    const char *file; /* Borrowed for the call. */
} sj_container_line;

typedef sj_status (*sj_container_line_sink)(void *context, const sj_container_line *line);

/* Describes a runtime. Function pointers may be NULL if the runtime does not need them. */
typedef struct sj_runtime {
    const char *name;   /* Key of its part of a policy. */
    const char *prefix; /* Prefix of the names of its method groups. */

    /* Prefixes of the file names of the runtime's own code. Ends with NULL. */
    const char *const *files;
    /* Paths at which the runtime's main file may lie, relative to the folder of its other
     * libraries. Ends with NULL. If this is NULL, a copy of the runtime inside an application is
     * recorded as native code. */
    const char *const *main_files;
    /* File names of programs that launch other programs in the runtime. Ends with NULL. */
    const char *const *launchers;
    /* True if the runtime's monitor also runs in attached processes, even if the policy does not
     * ask for it. */
    bool binds_attached;
    bool joins_attached; /* True if a thread of the agent joins the runtime after an attach. */

    /* Each member that ends with _bit is a bit of sj_link_runtime. */
    uint32_t monitor_bit;  /* Starts the runtime's monitor. Set in every recording. */
    uint32_t patched_bit;  /* Set if methods are patched, not if dispatches are recorded. */
    uint32_t dispatch_bit; /* Records dispatches. 0 if the runtime has no dispatches. */
    /* Set if system libraries are recorded, or modules whose names contain one of `endings`. */
    uint32_t system_bit;
    uint32_t lines_bit; /* Reports which lines run. 0 if that is not possible. */
    /* Selects the second engine: the agent patches methods' code or the runtime's own tracing
     * functions. 0 if the runtime has only one engine. */
    uint32_t in_place_bit;
    /* Names of the engines in a policy: the default engine, the second engine. */
    const char *engines[2];
    /* Why the second engine cannot keep an overhead budget. NULL if it can. */
    const char *budget_obstacle;
    uint32_t lineage_bit;       /* Set if classes are chosen by their superclasses. */
    const char *const *endings; /* Parts of module names, see `system_bit`. Ends with NULL. */

    /* True if filters of this runtime choose classes before the classes' methods are known.
     * "system" in a policy is then a list of patterns. */
    bool filters_classes;
    /* True if each of the runtime's method groups is the lineage of a receiver's class: its name,
     * its superclass's name and so on. */
    bool has_lineages;

    /* Passes every function in the runtime's tables of the file to `sink`. Returns SJ_OK even if
     * there are no tables, or if they are damaged: entries that cannot be read are left out.
     * Returns SJ_ENOMEM, or the error of the sink. */
    sj_status (*find_functions)(const sj_elf *elf, sj_runtime_sink sink, void *context);
    /* Passes every class to `sink`, with errors like find_functions. */
    sj_status (*find_classes)(const sj_elf *elf, sj_runtime_class_sink sink, void *context);

    /* True if a name has the form of this runtime's method names. */
    bool (*is_method)(const char *name);
    /* Splits the name of a method. Returns false if the name is damaged or too long. */
    bool (*split_method)(const char *name, sj_method_parts *parts);
    /* True if `name` is the name of a system class. Used for classes whose module is not known. */
    bool (*is_system_class)(const char *name);
    /* Reads the class at an address of a running process. Returns false if no class is there. */
    bool (*read_live_class)(pid_t pid, uint64_t address, sj_live_class *class);

    /* Passes every method of the container at `path` to `sink`. A container is a file with methods
     * that are compiled at run time, for example an assembly. Its content is not trusted. Returns
     * SJ_ENOTFOUND or SJ_EIO if it cannot be read. Returns SJ_ECORRUPT if it is not a container or
     * is damaged, and SJ_EVERSION if its module id is not `id`. Returns SJ_ELIMIT if it has too
     * many methods, SJ_ENOMEM, or the error of the sink. */
    sj_status (*read_container)(const char *path, sj_slice id, sj_container_sink sink,
                                void *context);
    /* Passes every class of the container to `sink`, with errors like read_container. */
    sj_status (*read_container_classes)(const char *path, sj_slice id, sj_container_class_sink sink,
                                        void *context);
    /* True if the container at `path` is a library of the runtime itself, in any folder. Returns
     * false if it cannot be read. */
    bool (*is_system_container)(const char *path, sj_slice id);
    /* Passes every position in the container's symbol file to `sink`. Returns SJ_ENOTFOUND if no
     * symbol file of this build exists, or errors like read_container. */
    sj_status (*read_container_lines)(const char *path, sj_slice id, sj_container_line_sink sink,
                                      void *context);
} sj_runtime;

/* All runtimes, in the order of sj_link_language. The parts of a policy and of a selection have the
 * same order. */
extern const sj_runtime *const sj_runtimes[SJ_RUNTIMES];

/* Returns the runtime of an sj_link_language, or NULL if the value is not valid. */
const sj_runtime *sj_runtime_of_language(uint32_t language);

/* True if `file_name` begins with one of the runtime's `files`. */
bool sj_runtime_has_file(const sj_runtime *runtime, const char *file_name);

/* True if the library at `path` belongs to a runtime with `main_files`: by its name, or because the
 * runtime's main file lies near it, as inside an application. Reads the file system. Returns false
 * for a path that is not absolute. */
bool sj_runtimes_have_library(const char *path);

/* Writes the index in sj_runtimes of the runtime whose method names have the form of `name`.
 * Returns false if no runtime's names do. */
bool sj_runtime_of_method(const char *name, size_t *index);

/* True if is_system_class of any runtime returns true. */
bool sj_runtimes_is_system_class(const char *name);

/* Calls read_live_class of all runtimes until one returns true. */
bool sj_runtimes_read_live_class(pid_t pid, uint64_t address, sj_live_class *class);

/* Calls find_functions of all runtimes. Returns the error of the first that fails. */
SJ_MUST_CHECK sj_status sj_runtimes_find_functions(const sj_elf *elf, sj_runtime_sink sink,
                                                   void *context);

/* Calls find_classes of all runtimes. Returns the error of the first that fails. */
SJ_MUST_CHECK sj_status sj_runtimes_find_classes(const sj_elf *elf, sj_runtime_class_sink sink,
                                                 void *context);

#endif
