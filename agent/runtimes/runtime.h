/* Runtimes: what Sojourn knows of languages whose functions have better names than their symbols.
 *
 * Each runtime is one constant descriptor in the table of runtime.c; a new one is a folder here, a
 * line in that table and, where it has a part in the traced program, a room in agent/inproc. The
 * planner asks every runtime for the functions that it finds in a module's file: they are hooked
 * like any other function, in place, at no extra cost. The policy has one part for each runtime,
 * under the runtime's name. Thread-safe: no state. */
#ifndef SJ_AGENT_RUNTIMES_RUNTIME_H
#define SJ_AGENT_RUNTIMES_RUNTIME_H

#include "agent/abi/link.h"
#include "agent/objfile/elf_view.h"

#include <stdbool.h>
#include <sys/types.h>

enum {
    SJ_RUNTIMES = SJ_LINK_LANGUAGES, /* rows of sj_runtimes */
    SJ_LIVE_CLASS_BYTES = 256,
    SJ_METHOD_PART_BYTES = 1024
};

/* A function as the tables of a file describe it. */
typedef struct sj_runtime_function {
    uint64_t address; /* module offset */
    const char *name; /* borrowed for the call */
    uint8_t receiver; /* which argument is the object that the method is of, from 1; 0: unknown */
} sj_runtime_function;

typedef sj_status (*sj_runtime_sink)(void *context, const sj_runtime_function *function);

/* A class as the tables of a file describe it. Texts are borrowed for the call. */
typedef struct sj_runtime_class {
    uint64_t address; /* module offset: what an instance's isa points to */
    uint64_t meta;    /* the same of the class itself */
    const char *name;
    const char *super; /* NULL: a root class */
} sj_runtime_class;

typedef sj_status (*sj_runtime_class_sink)(void *context, const sj_runtime_class *class);

/* A class as a living process has it: for classes that no file describes. */
typedef struct sj_live_class {
    char name[SJ_LIVE_CLASS_BYTES];
    char super[SJ_LIVE_CLASS_BYTES]; /* "": a root class, or not known */
    bool is_meta;                    /* it is the class of the class `name` */
} sj_live_class;

/* The two parts of a method's name that filters match. */
typedef struct sj_method_parts {
    char class[SJ_METHOD_PART_BYTES]; /* the receiver's where the name has it, else the owner's */
    char selector[SJ_METHOD_PART_BYTES];
} sj_method_parts;

/* sj_method_part_copy sets a part to `bytes` of a name; false when they are none or too many. */
bool sj_method_part_copy(char part[SJ_METHOD_PART_BYTES], const char *from, size_t bytes);

/* Takes the name of the method with this token. Tokens come in order, from 1, none left out; the
 * name is borrowed for the call. One without code of its own (abstract, native) cannot be recorded.
 */
typedef sj_status (*sj_container_sink)(void *context, uint32_t token, const char *name,
                                       bool has_code);

/* Takes a class and the one that it extends; NULL: none. Borrowed for the call. */
typedef sj_status (*sj_container_class_sink)(void *context, const char *name, const char *super);

/* A place in a method's code, and where it is written. */
typedef struct sj_container_line {
    uint32_t token;   /* of the method, as sj_container_sink has it */
    uint32_t offset;  /* in its code, as the container has it; rising within a method */
    uint32_t line;    /* from 1 */
    const char *file; /* borrowed for the call */
} sj_container_line;

typedef sj_status (*sj_container_line_sink)(void *context, const sj_container_line *line);

/* Every function may be NULL: the runtime has nothing of the kind. */
typedef struct sj_runtime {
    const char *name;   /* key of its part of a policy */
    const char *prefix; /* of its groups of methods */

    /* How the file names of its own code begin, and the file names of programs that run others';
     * both end with NULL. */
    const char *const *files;
    const char *const *launchers;
    bool binds_attached; /* its monitor runs in attached processes whatever the policy asks for */
    bool joins_attached; /* it is joined by a thread of the agent's after an attach */

    /* Bits of sj_link_runtime: its monitor, which every recording has; one that methods patched in
     * place need, and dispatches do not; where it records dispatches, 0: it cannot; what is added
     * when system libraries are recorded, or modules whose names have one of `endings` in them
     * (ends with NULL). */
    uint32_t monitor_bit;
    uint32_t patched_bit;
    uint32_t dispatch_bit;
    uint32_t system_bit;
    uint32_t lines_bit;    /* where it tells which lines run; 0: it cannot */
    uint32_t in_place_bit; /* for the second of its engines: its code, or its own tracing functions,
                              are hooked in place; 0: it has one engine */
    const char *engines[2];      /* what a policy calls them: the default, the second */
    const char *budget_obstacle; /* why the second keeps no budget; NULL: it does */
    uint32_t lineage_bit;        /* what is added when its classes are chosen by ancestor */
    const char *const *endings;

    /* Its filter chooses classes before they have methods: a policy's "system" is a list of
     * patterns. */
    bool filters_classes;
    /* Groups of its methods are lineages of a receiver's class. */
    bool has_lineages;

    /* Hands every function that the runtime's own tables in the file describe to `sink`. SJ_OK also
     * when there are none or the tables are damaged: what cannot be read is left out. SJ_ENOMEM, or
     * what the sink returned. */
    sj_status (*find_functions)(const sj_elf *elf, sj_runtime_sink sink, void *context);
    /* Hands every class to `sink`, as find_functions does functions. */
    sj_status (*find_classes)(const sj_elf *elf, sj_runtime_class_sink sink, void *context);

    /* Whether a name is that of one of its methods. */
    bool (*is_method)(const char *name);
    /* Splits the name of a method; false when it is damaged or too long. */
    bool (*split_method)(const char *name, sj_method_parts *parts);
    /* Guesses from its name whether a class of unknown origin belongs to the system. */
    bool (*is_system_class)(const char *name);
    /* Reads what lies at an address of a process, which runs on, as a class; false when it is none.
     */
    bool (*read_live_class)(pid_t pid, uint64_t address, sj_live_class *class);

    /* Its functions come at run time, in containers that files describe: read_container hands every
     * method that the container at `path` has to `sink`. The file may be anything. SJ_ENOTFOUND,
     * SJ_EIO; SJ_ECORRUPT: it is no such file, or damaged; SJ_EVERSION: not the one with this
     * module id; SJ_ELIMIT too many methods; SJ_ENOMEM; or what the sink returned. */
    sj_status (*read_container)(const char *path, sj_slice id, sj_container_sink sink,
                                void *context);
    /* Hands every class that the container has to `sink`, as read_container does methods. */
    sj_status (*read_container_classes)(const char *path, sj_slice id, sj_container_class_sink sink,
                                        void *context);
    /* Whether the container at `path`, wherever it lies, is one of the runtime's own; false also
     * when it cannot be read. */
    bool (*is_system_container)(const char *path, sj_slice id);
    /* Hands every place that the container's symbol file knows to `sink`. SJ_ENOTFOUND: it has no
     * symbol file of this build; else as read_container. */
    sj_status (*read_container_lines)(const char *path, sj_slice id, sj_container_line_sink sink,
                                      void *context);
} sj_runtime;

/* The rows, in the order of sj_link_language, as a policy's parts and a selection's are. */
extern const sj_runtime *const sj_runtimes[SJ_RUNTIMES];

/* sj_runtime_of_language returns the row of a language that an agent names; NULL: there is none. */
const sj_runtime *sj_runtime_of_language(uint32_t language);

/* sj_runtime_has_file returns whether a file is the runtime's own code, by its file name. */
bool sj_runtime_has_file(const sj_runtime *runtime, const char *file_name);

/* sj_runtime_of_method returns the place in sj_runtimes of the runtime that a method's name belongs
 * to; false: it is no method's. */
bool sj_runtime_of_method(const char *name, size_t *place);

/* sj_runtimes_is_system_class asks every runtime for its guess. */
bool sj_runtimes_is_system_class(const char *name);

/* sj_runtimes_read_live_class asks every runtime until one knows the class. */
bool sj_runtimes_read_live_class(pid_t pid, uint64_t address, sj_live_class *class);

/* sj_runtimes_find_functions asks every runtime. As find_functions. */
SJ_MUST_CHECK sj_status sj_runtimes_find_functions(const sj_elf *elf, sj_runtime_sink sink,
                                                   void *context);

/* sj_runtimes_find_classes asks every runtime. As find_classes. */
SJ_MUST_CHECK sj_status sj_runtimes_find_classes(const sj_elf *elf, sj_runtime_class_sink sink,
                                                 void *context);

#endif
