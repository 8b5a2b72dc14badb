/* Internal header of the registry; not included outside this folder. */
#ifndef SJ_AGENT_REGISTRY_REGISTRY_INTERNAL_H
#define SJ_AGENT_REGISTRY_REGISTRY_INTERNAL_H

#include "agent/registry/late_plans.h"
#include "agent/registry/method_categories.h"
#include "agent/registry/method_code.h"
#include "agent/registry/method_names.h"
#include "agent/registry/own_libraries.h"
#include "agent/registry/registry.h"
#include "agent/registry/replaced_methods.h"
#include "agent/registry/source_lines.h"
#include "proto/base/hash_map.h"

#include <limits.h>
#include <pthread.h>

enum { SJ_REGISTRY_COMMAND_BYTES = 4096 };

typedef struct sj_registry_mapping {
    uint64_t process;
    uint64_t bias;
    uint64_t loaded_ticks;
    uint32_t module;
} sj_registry_mapping;

/* The mappings of one process. A list of all processes' mappings would slow down with each fork. */
typedef struct sj_mapping_list {
    sj_registry_mapping *items; /* owned */
    size_t count;
    size_t capacity;
} sj_mapping_list;

typedef struct sj_living_process {
    pid_t pid;
    uint64_t number;
} sj_living_process;

typedef struct sj_registry_process {
    pid_t pid;
    uint64_t parent;
    uint64_t started_ticks;
    char how[12];
    char executable[PATH_MAX];
    char command[SJ_REGISTRY_COMMAND_BYTES];
    sj_process_end end;
    uint64_t plan_wait_left_ns; /* how long the process may still wait for plans, in total */
    bool ended;
    /* indexed by runtime; true after a report that the runtime's methods are not recorded */
    bool lacks[SJ_RUNTIMES];
    sj_mapping_list mappings;
} sj_registry_process;

typedef struct sj_registry_module {
    uint8_t build_id[SJ_BUILD_ID_MAX_BYTES];
    uint8_t build_id_bytes;
    bool is_main;     /* the program itself; the map file describes only this module */
    bool has_imports; /* its plan was made with imports, even if the module has none */
    /* contains only the imports of a module whose own plan was made without imports */
    bool only_imports;
    uint32_t first_function;
    uint32_t function_count;
    bool counted; /* the APPLIED message of the first process was added to the counters */
    char path[PATH_MAX];
    char plan_path[PATH_MAX];
    uint32_t skips[SJ_REGISTRY_SKIPS];
    /* its plan file, mapped when its generated code is first planned; NULL: not mapped yet */
    void *mapped_plan;
    size_t mapped_bytes;
} sj_registry_module;

/* A container whose methods are functions of a module. */
typedef struct sj_registry_container {
    uint32_t language;
    bool is_main;                  /* the program itself */
    uint32_t module;               /* number of its module */
    uint8_t *wanted;               /* one bit per function; owned */
    sj_link_method_values *values; /* values of the methods that record some; owned */
    uint32_t value_count;
    /* NULL: the selection asks for no lines, or they are not known; owned */
    sj_source_lines *lines;
} sj_registry_container;

/* A method that one process does not record because of its cost. */
typedef struct sj_left_out {
    uint64_t process;
    uint32_t method;  /* index in its class */
    bool is_muted;    /* its probes record nothing */
    bool keeps_probe; /* it may keep its probes, so its class need not be transformed */
} sj_left_out;

/* A Java class that a process has defined. */
typedef struct sj_registry_class {
    uint64_t id[2];      /* hash of its bytes and its loader */
    uint64_t path_hash;  /* hash of its module's path */
    uint32_t module;     /* number of its module; 0: none of its methods was wanted so far */
    uint32_t selection;  /* sj_class_selection with which its functions were sent */
    uint32_t name_count; /* number of its methods */
    char *names;         /* per method '+' (has code) or '-', then its name and a NUL; owned */
    bool is_hidden;      /* the JVM cannot change it */
    /* has no probes: the JVM's tracing functions record its calls, or nothing does */
    bool is_listed;
    sj_left_out *left_out; /* owned */
    size_t left_out_count;
    size_t left_out_capacity;
    sj_source_lines *lines; /* NULL: not asked for, or it has none; owned */
} sj_registry_class;

/* A function that stands for the code of another function, under a method's name. */
typedef struct sj_named_function {
    uint32_t function;
    uint32_t named;
    char *name; /* owned */
} sj_named_function;

struct sj_registry {
    sj_registry_options options;
    pthread_mutex_t mutex;          /* protects everything below */
    sj_registry_process *processes; /* indexed by number - 1 */
    size_t process_count;
    size_t process_capacity;
    sj_living_process *living; /* processes that have not ended, ordered by number */
    size_t living_count;
    size_t living_capacity;
    sj_late_plans late_plans;
    sj_registry_module *modules; /* indexed by number - 1 */
    size_t module_count;
    size_t module_capacity;
    sj_mapping_list unknown_mappings; /* mappings of processes that are not in the table */
    sj_registry_container *containers;
    size_t container_count;
    size_t container_capacity;
    sj_registry_class *classes;
    size_t class_count;
    size_t class_capacity;
    /* path_hash of the classes that were selected because of their superclasses */
    uint64_t *descendants;
    size_t descendant_count;
    size_t descendant_capacity;
    uint32_t generated_count; /* number of plans of generated code */
    sj_method_code method_code;
    uint32_t next_function;
    sj_method_names method_names; /* names of methods that record their receivers */
    sj_method_categories categories;
    /* key: class (its name's address * 2, + 1 for a metaclass) and method */
    sj_hash_map receiver_functions;
    sj_replaced_methods replaced_methods;
    sj_named_function *named;
    size_t named_count;
    size_t named_capacity;
    sj_renamed_function *renamed;
    _Atomic size_t renamed_count;
    size_t renamed_capacity;
    sj_own_libraries own_libraries;
    sj_registry_counters counters;
    uint64_t unrecorded_reported; /* number of processes and modules in the last such report */
    uint64_t reviewed; /* process that is being reviewed (sj_registry_begin_review); 0: none */
    /* [renewed_count] sj_renewal bits that not all processes have applied; owned */
    uint8_t *renewed;
    uint32_t renewed_count;
    const uint8_t *prepared;
    uint32_t prepared_count;
};

/* Returns the path of a module's file. For an emulated program, this is the file below the sysroot
 * if it exists there. The result is `path`, or is written to `in_root`. */
const char *sj_registry_find_file(const sj_registry *registry, const char *path,
                                  char in_root[PATH_MAX]);

/* True if a selection records a module of a process, by the module's path. The selection may want
 * the module itself, or the libraries that belong to the process's program. May read dpkg's
 * database. The caller holds the mutex. */
bool sj_registry_wants_module(sj_registry *registry, const sj_selection *selection,
                              uint64_t process, const char *path, bool is_main);

/* Adds the types of a module's functions, from debug data, to the value rules, and reports them.
 * Does not replace types that are already known. Returns SJ_ENOMEM or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_registry_keep_types(const sj_registry *registry,
                                               const sj_registry_module *entry,
                                               const sj_plan_header *plan, sj_value_rules *values,
                                               sj_found_types *types);

/* Decides again which methods of the container with index `place` are wanted, after reading its
 * file. If the file cannot be read any longer or has changed, the old decision stays. Writes the
 * sj_function_state of each method to `states`, indexed by function id. The caller holds the mutex.
 * Returns SJ_ENOMEM, SJ_ELIMIT, or errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_select_container(sj_registry *registry, size_t place,
                                                     const sj_selection *selection,
                                                     sj_function_rules *rules, uint8_t *states);

/* Reads and reports the source lines of a new container's methods, if the selection asks for lines.
 * `*lines` is NULL if the selection does not ask for lines or they are not known. The caller holds
 * the mutex. Returns SJ_ENOMEM, or errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_read_lines(sj_registry *registry,
                                               const sj_link_container *container, const char *path,
                                               uint64_t now_ticks, sj_source_lines **lines);

/* Reads the classes of a process into the class table, before functions are selected by class. All
 * modules are read, because a superclass may be in a later module. The caller does not hold the
 * mutex. `path` is NULL if the call is not for a module. Returns errors of
 * sj_class_table_read_process. */
SJ_MUST_CHECK sj_status sj_registry_read_classes(sj_registry *registry, uint64_t process,
                                                 const sj_link_module *module, const char *path);

/* If the requested module is a runtime whose methods are not recorded because the recording counts
 * calls, reports this, once per process and runtime. The caller holds the mutex. Returns errors of
 * the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_report_uncounted(sj_registry *registry,
                                                     const sj_plan_request *request);

/* Returns the mappings of a process, borrowed until a process is added. The caller of this function
 * and of all functions below holds the mutex. */
const sj_mapping_list *sj_registry_mappings_of(const sj_registry *registry, uint64_t process);

/* True if a process has a module mapped. */
bool sj_registry_has_mapping(const sj_registry *registry, uint64_t process, uint32_t module);

/* Copies the mappings of a parent to its forked child, because the child's agent does not report
 * them. Returns SJ_ENOMEM, or errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_inherit_mappings(sj_registry *registry, uint64_t parent,
                                                     uint64_t child, uint64_t now_ticks);

/* Stores and sends one mapping. Does nothing if the mapping is already known. Returns SJ_ENOMEM, or
 * errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_add_mapping(sj_registry *registry,
                                                const sj_registry_mapping *mapping);

/* Ends the mappings of a module in a process, if there are any. Returns errors of the frame writer.
 */
SJ_MUST_CHECK sj_status sj_registry_end_mapping(sj_registry *registry, uint64_t process,
                                                uint32_t module, uint64_t now_ticks);

/* Adds a module called `path` with the functions of a runtime, mapped in one process. Returns
 * SJ_ELIMIT, SJ_ENOMEM, or errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_add_group(sj_registry *registry,
                                              const sj_registry_mapping *mapping,
                                              const sj_plan_header *group, const char *path,
                                              uint32_t *first_function);

/* Reports that a process also has a function that another process has added. Returns the errors of
 * sj_registry_add_mapping. */
SJ_MUST_CHECK sj_status sj_registry_share_function(sj_registry *registry, uint64_t process,
                                                   uint32_t function, uint64_t now_ticks);

/* Copies to a forked child which code the parent has given to its methods (replaced_methods.h).
 * Returns SJ_ENOMEM or SJ_ELIMIT. */
SJ_MUST_CHECK sj_status sj_registry_inherit_replaced(sj_registry *registry, uint64_t parent,
                                                     uint64_t child, uint64_t now_ticks);

/* Passes the names of the methods of all Java classes to the current rules. */
void sj_registry_name_classes(sj_registry *registry);

/* Counts and reports a module that could not be planned. The caller holds the mutex. */
void sj_registry_note_plan_failure(sj_registry *registry, const char *path, const sj_error *error);

/* Reports which functions of a module (indices in it) have no hooks in a process. Returns errors of
 * the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_send_unhooked(sj_registry *registry, uint64_t process,
                                                  const sj_registry_module *entry,
                                                  const sj_link_failure *failures, size_t count);

/* Like sj_registry_plan_module; the caller holds the mutex. `*planned` is the module's entry.
 * Returns the same errors. */
SJ_MUST_CHECK sj_status sj_registry_plan_locked(sj_registry *registry,
                                                const sj_plan_request *request,
                                                sj_registry_module **planned);

/* Like sj_registry_plan_locked, for the imports of a module whose plan was made without imports.
 * Also returns SJ_EUNSUPPORTED if the module's plan includes the imports, or if library calls are
 * not wanted. */
SJ_MUST_CHECK sj_status sj_registry_plan_imports_locked(sj_registry *registry,
                                                        const sj_plan_request *request,
                                                        sj_registry_module **planned);

#endif
