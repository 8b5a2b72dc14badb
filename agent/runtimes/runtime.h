/* Runtimes: descriptions of languages whose functions have better names than their symbols.
 *
 * Each runtime is a constant descriptor in the table of runtime.c. A new runtime needs a folder
 * here and a line in that table. If it has a part in the traced program, that is a component in
 * agent/inproc. The planner asks every runtime for the functions in a module's file. These are
 * hooked in place like any other function, at no extra cost. The policy has one part for each
 * runtime, under the runtime's name. Thread-safe: there is no state. */
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

/* A function as the tables of a file describe it. */
typedef struct sj_runtime_function {
    uint64_t address; /* Module offset. */
    const char *name; /* Borrowed for the call. */
    uint8_t receiver; /* Number of the argument that is the method's object, from 1. 0: unknown. */
} sj_runtime_function;

typedef sj_status (*sj_runtime_sink)(void *context, const sj_runtime_function *function);

/* A class as the tables of a file describe it. Texts are borrowed for the call. */
typedef struct sj_runtime_class {
    uint64_t address; /* Module offset that an instance's isa points to. */
    uint64_t meta;    /* Module offset of the metaclass. */
    const char *name;
    const char *super; /* NULL: a root class. */
} sj_runtime_class;

typedef sj_status (*sj_runtime_class_sink)(void *context, const sj_runtime_class *class);

/* A class in the memory of a process. It is used for classes that no file describes. */
typedef struct sj_live_class {
    char name[SJ_LIVE_CLASS_BYTES];
    char super[SJ_LIVE_CLASS_BYTES]; /* "": a root class, or unknown. */
    bool is_meta;                    /* True for the metaclass of the class `name`. */
} sj_live_class;

/* The two parts of a method's name that filters match. */
typedef struct sj_method_parts {
    /* The receiver's class if the name has it, else the owner's. */
    char class[SJ_METHOD_PART_BYTES];
    char selector[SJ_METHOD_PART_BYTES];
} sj_method_parts;

/* Copies `bytes` of a name to a part. Returns false if `bytes` is 0 or too many. */
bool sj_method_part_copy(char part[SJ_METHOD_PART_BYTES], const char *from, size_t bytes);

/* Receives the name of the method with this token. Tokens come in order, from 1, without gaps. The
 * name is borrowed for the call. A method without code of its own (abstract, native) cannot be
 * recorded. */
typedef sj_status (*sj_container_sink)(void *context, uint32_t token, const char *name,
                                       bool has_code);

/* Receives a class and the class that it extends (NULL: none). Both are borrowed for the call. */
typedef sj_status (*sj_container_class_sink)(void *context, const char *name, const char *super);

/* A position in a method's code and its source line. */
typedef struct sj_container_line {
    uint32_t token;   /* Token of the method, as in sj_container_sink. */
    uint32_t offset;  /* Offset in the container's code of the method. It rises within a method. */
    uint32_t line;    /* From 1. */
    const char *file; /* Borrowed for the call. */
} sj_container_line;

typedef sj_status (*sj_container_line_sink)(void *context, const sj_container_line *line);

/* A function is NULL if the runtime has nothing of its kind. */
typedef struct sj_runtime {
    const char *name;   /* Key of its part of a policy. */
    const char *prefix; /* Prefix of the names of its method groups. */

    /* Beginnings of the file names of the runtime's own code, and file names of programs that
     * launch others. Both lists end with NULL. */
    const char *const *files;
    const char *const *launchers;
    /* True if its monitor always runs in attached processes, whatever the policy asks for. */
    bool binds_attached;
    bool joins_attached; /* True if a thread of the agent joins the runtime after an attach. */

    /* Bits of sj_link_runtime. `monitor_bit`: its monitor, which every recording has.
     * `patched_bit`: what methods patched in place need, and dispatches do not. `dispatch_bit`: it
     * records dispatches; 0: it cannot. `system_bit`: added if system libraries are recorded, or
     * modules whose names contain one of `endings`, which ends with NULL. */
    uint32_t monitor_bit;
    uint32_t patched_bit;
    uint32_t dispatch_bit;
    uint32_t system_bit;
    uint32_t lines_bit; /* It reports which lines run. 0: it cannot. */
    /* Selects the second of its engines, which hooks its code, or its own tracing functions, in
     * place. 0: it has one engine. */
    uint32_t in_place_bit;
    /* Names of the engines in a policy: the default, the second. */
    const char *engines[2];
    const char *budget_obstacle; /* Why the second keeps no budget. NULL: it does. */
    uint32_t lineage_bit;        /* Added if its classes are chosen by ancestor. */
    const char *const *endings;

    /* True if its filter chooses classes before they have methods. The "system" of a policy is then
     * a list of patterns. */
    bool filters_classes;
    /* True if groups of its methods are lineages of a receiver's class. */
    bool has_lineages;

    /* Passes every function that the runtime's own tables in the file describe to `sink`. Returns
     * SJ_OK also if there are none, or if the tables are damaged: entries that cannot be read are
     * left out. Returns SJ_ENOMEM if out of memory, or what the sink returned. */
    sj_status (*find_functions)(const sj_elf *elf, sj_runtime_sink sink, void *context);
    /* Passes every class to `sink`, like find_functions. */
    sj_status (*find_classes)(const sj_elf *elf, sj_runtime_class_sink sink, void *context);

    /* True if a name is that of one of its methods. */
    bool (*is_method)(const char *name);
    /* Splits the name of a method. Returns false if the name is damaged or too long. */
    bool (*split_method)(const char *name, sj_method_parts *parts);
    /* Guesses by its name whether a class of unknown origin belongs to the system. */
    bool (*is_system_class)(const char *name);
    /* Reads the class at an address of a running process. Returns false if there is none. */
    bool (*read_live_class)(pid_t pid, uint64_t address, sj_live_class *class);

    /* Passes every method of the container at `path` to `sink`, for runtimes whose functions come
     * at run time. The content of the file is not trusted. Returns SJ_ENOTFOUND or SJ_EIO if it
     * cannot be read. Returns SJ_ECORRUPT if it is not a container or is damaged, and SJ_EVERSION
     * if its module id is not `id`. Returns SJ_ELIMIT if it has too many methods, SJ_ENOMEM, or
     * what the sink returned. */
    sj_status (*read_container)(const char *path, sj_slice id, sj_container_sink sink,
                                void *context);
    /* Passes every class of the container to `sink`, like read_container. */
    sj_status (*read_container_classes)(const char *path, sj_slice id, sj_container_class_sink sink,
                                        void *context);
    /* True if the container at `path` is one of the runtime's own, in whatever folder it is.
     * Returns false also if it cannot be read. */
    bool (*is_system_container)(const char *path, sj_slice id);
    /* Passes every position that the container's symbol file knows to `sink`. Returns SJ_ENOTFOUND
     * if there is no symbol file of this build. Other errors are those of read_container. */
    sj_status (*read_container_lines)(const char *path, sj_slice id, sj_container_line_sink sink,
                                      void *context);
} sj_runtime;

/* The rows, in the order of sj_link_language. The parts of a policy and of a selection have the
 * same order. */
extern const sj_runtime *const sj_runtimes[SJ_RUNTIMES];

/* Returns the row of a language that an agent names, or NULL if there is none. */
const sj_runtime *sj_runtime_of_language(uint32_t language);

/* True if a file is the runtime's own code, judged by its file name. */
bool sj_runtime_has_file(const sj_runtime *runtime, const char *file_name);

/* Finds the index in sj_runtimes of the runtime that a method's name belongs to. Returns false if
 * the name is not a method's. */
bool sj_runtime_of_method(const char *name, size_t *place);

/* True if a runtime guesses that the class belongs to the system. */
bool sj_runtimes_is_system_class(const char *name);

/* Asks every runtime until one knows the class. */
bool sj_runtimes_read_live_class(pid_t pid, uint64_t address, sj_live_class *class);

/* Asks every runtime, like find_functions. */
SJ_MUST_CHECK sj_status sj_runtimes_find_functions(const sj_elf *elf, sj_runtime_sink sink,
                                                   void *context);

/* Asks every runtime, like find_classes. */
SJ_MUST_CHECK sj_status sj_runtimes_find_classes(const sj_elf *elf, sj_runtime_class_sink sink,
                                                 void *context);

#endif
