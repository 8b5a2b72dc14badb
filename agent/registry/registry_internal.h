/* What the files of the registry share. */
#ifndef SJ_AGENT_REGISTRY_REGISTRY_INTERNAL_H
#define SJ_AGENT_REGISTRY_REGISTRY_INTERNAL_H

#include "agent/registry/late_plans.h"
#include "agent/registry/method_categories.h"
#include "agent/registry/method_code.h"
#include "agent/registry/method_names.h"
#include "agent/registry/put_in_methods.h"
#include "agent/registry/registry.h"
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

/* Of one process: looking through those of all processes would take longer with each fork. */
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
    uint64_t plan_wait_left_ns; /* that the process may still wait for plans, all together */
    bool ended;
    bool lacks[SJ_RUNTIMES]; /* it was reported that methods of these are not recorded */
    sj_mapping_list mappings;
} sj_registry_process;

typedef struct sj_registry_module {
    uint8_t build_id[SJ_BUILD_ID_MAX_BYTES];
    uint8_t build_id_bytes;
    bool is_main;      /* the map file belongs to the main program only */
    bool has_imports;  /* its plan was made with them, whether there are any or not */
    bool only_imports; /* of a module whose plan was made without */
    uint32_t first_function;
    uint32_t function_count;
    bool counted; /* its APPLIED went into the counters */
    char path[PATH_MAX];
    char plan_path[PATH_MAX];
    uint32_t skips[SJ_REGISTRY_SKIPS];
    void *mapped_plan; /* its file, once code of it was asked for; NULL: not yet */
    size_t mapped_bytes;
} sj_registry_module;

/* A container whose methods are functions; in the order of their numbers. */
typedef struct sj_registry_container {
    uint32_t language;
    bool is_main;                  /* the program itself */
    uint32_t module;               /* number */
    uint8_t *wanted;               /* a bit for each function; owned */
    sj_link_method_values *values; /* of those that record some; owned */
    uint32_t value_count;
    sj_source_lines *lines; /* NULL: they are not asked for, or not known; owned */
} sj_registry_container;

/* A method that one process does not record for its cost. */
typedef struct sj_left_out {
    uint64_t process;
    uint32_t method;  /* in its class */
    bool is_muted;    /* its probes record nothing */
    bool keeps_probe; /* so that its class need not be transformed */
} sj_left_out;

/* A Java class that was seen. */
typedef struct sj_registry_class {
    uint64_t id[2];        /* of its bytes and its loader */
    uint64_t path_hash;    /* of its module's path */
    uint32_t module;       /* number; 0: none of its methods has been wanted */
    uint32_t selection;    /* sj_class_selection that its functions were sent with */
    uint32_t name_count;   /* of its methods */
    char *names;           /* each '+' with code or '-' without, and terminated; owned */
    bool is_hidden;        /* the JVM changes it no more */
    bool is_listed;        /* it has no probes: others record its calls, or nobody */
    sj_left_out *left_out; /* owned */
    size_t left_out_count;
    size_t left_out_capacity;
    sj_source_lines *lines; /* NULL: they are not asked for, or it has none; owned */
} sj_registry_class;

/* A function that stands for the code of another one, under a method's name. */
typedef struct sj_named_function {
    uint32_t function;
    uint32_t named;
    char *name; /* owned */
} sj_named_function;

struct sj_registry {
    sj_registry_options options;
    pthread_mutex_t mutex;          /* guards everything below */
    sj_registry_process *processes; /* number - 1 */
    size_t process_count;
    size_t process_capacity;
    sj_living_process *living; /* those that have not ended, by number */
    size_t living_count;
    size_t living_capacity;
    sj_late_plans late_plans;
    sj_registry_module *modules; /* number - 1 */
    size_t module_count;
    size_t module_capacity;
    sj_mapping_list unknown_mappings; /* of processes that are not in the table */
    sj_registry_container *containers;
    size_t container_count;
    size_t container_capacity;
    sj_registry_class *classes;
    size_t class_count;
    size_t class_capacity;
    uint64_t *descendants; /* path_hash of classes that were chosen by what they descend from */
    size_t descendant_count;
    size_t descendant_capacity;
    uint32_t generated_count; /* plans of generated code */
    sj_method_code method_code;
    uint32_t next_function;
    sj_method_names method_names; /* of methods that record their receivers */
    sj_method_categories categories;
    sj_hash_map receiver_functions; /* by class (its name's address, + 1: metaclass) and method */
    sj_put_in_methods put_in;
    sj_named_function *named;
    size_t named_count;
    size_t named_capacity;
    sj_renamed_function *renamed;
    _Atomic size_t renamed_count;
    size_t renamed_capacity;
    sj_registry_counters counters;
    uint64_t reviewed; /* process that may ask for more functions; 0: none */
    uint8_t *renewed;  /* [renewed_count] sj_renewal: what not all processes have followed; owned */
    uint32_t renewed_count;
    const uint8_t *prepared;
    uint32_t prepared_count;
};

/* sj_registry_find_file returns the file of a module: an emulator leads the program to the files of
 * its own machine where there are some. */
const char *sj_registry_find_file(const sj_registry *registry, const char *path,
                                  char in_root[PATH_MAX]);

/* sj_registry_keep_types gives what debug data say of functions of a module to the rules that they
 * are recorded by, and reports it; what was known before stays. SJ_ENOMEM, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_registry_keep_types(const sj_registry *registry,
                                               const sj_registry_module *entry,
                                               const sj_plan_header *plan, sj_value_rules *values,
                                               sj_found_types *types);

/* sj_registry_select_container marks the methods of a container anew, by its file; one that cannot
 * be read any more, or has changed, stays as it is. Sets states (sj_function_state) by id. The
 * caller holds the mutex. SJ_ENOMEM, SJ_ELIMIT, errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_select_container(sj_registry *registry, size_t place,
                                                     const sj_selection *selection,
                                                     sj_function_rules *rules, uint8_t *states);

/* sj_registry_read_lines reads and reports where a new container's methods are written, if that is
 * asked for; NULL: it is not, or not known. SJ_ENOMEM, errors of the frame writer. The caller holds
 * the mutex. */
SJ_MUST_CHECK sj_status sj_registry_read_lines(sj_registry *registry,
                                               const sj_link_container *container, const char *path,
                                               uint64_t now_ticks, sj_source_lines **lines);

/* sj_registry_read_classes is called before anything is decided by class, without the mutex: a
 * class may descend from one of a module that is named later. `path` NULL: not for a module. Errors
 * of sj_class_table_read_process. */
SJ_MUST_CHECK sj_status sj_registry_read_classes(sj_registry *registry, uint64_t process,
                                                 const sj_link_module *module, const char *path);

/* sj_registry_report_uncounted reports a runtime whose file a process of a recording that counts
 * calls has loaded: its methods are not recorded. Once for each process. Errors of the frame
 * writer. The caller holds the mutex. */
SJ_MUST_CHECK sj_status sj_registry_report_uncounted(sj_registry *registry,
                                                     const sj_plan_request *request);

/* sj_registry_mappings_of returns the mappings of a process; borrowed until a process is added. The
 * caller holds the mutex, here and below. */
const sj_mapping_list *sj_registry_mappings_of(const sj_registry *registry, uint64_t process);

/* sj_registry_has_mapping returns true if a process has a module mapped. */
bool sj_registry_has_mapping(const sj_registry *registry, uint64_t process, uint32_t module);

/* sj_registry_inherit_mappings gives a forked child the hooked modules of its parent, which it does
 * not name itself. SJ_ENOMEM, errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_inherit_mappings(sj_registry *registry, uint64_t parent,
                                                     uint64_t child, uint64_t now_ticks);

/* sj_registry_add_mapping keeps and sends one mapping; a known one is not changed.
 * SJ_ENOMEM, errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_add_mapping(sj_registry *registry,
                                                const sj_registry_mapping *mapping);

/* sj_registry_end_mapping ends the mappings of a module in a process, if it has any. Errors of the
 * frame writer. */
SJ_MUST_CHECK sj_status sj_registry_end_mapping(sj_registry *registry, uint64_t process,
                                                uint32_t module, uint64_t now_ticks);

/* sj_registry_add_group makes a module called `path` of functions that a runtime has, with the
 * mapping of a process. SJ_ELIMIT, SJ_ENOMEM, errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_add_group(sj_registry *registry,
                                              const sj_registry_mapping *mapping,
                                              const sj_plan_header *group, const char *path,
                                              uint32_t *first_function);

/* sj_registry_share_function reports a function that another process made in this one, too. Errors
 * as sj_registry_add_mapping. */
SJ_MUST_CHECK sj_status sj_registry_share_function(sj_registry *registry, uint64_t process,
                                                   uint32_t function, uint64_t now_ticks);

/* sj_registry_inherit_put_in gives a forked child the names that its parent's code has. SJ_ENOMEM.
 */
SJ_MUST_CHECK sj_status sj_registry_inherit_put_in(sj_registry *registry, uint64_t parent,
                                                   uint64_t child, uint64_t now_ticks);

/* sj_registry_name_classes tells the present rules the names of the methods of Java classes. */
void sj_registry_name_classes(sj_registry *registry);

/* sj_registry_note_plan_failure counts a module that could not be planned. */
void sj_registry_note_plan_failure(sj_registry *registry, const char *path, const sj_error *error);

/* sj_registry_send_unhooked reports which functions of a module (places in it) a
 * process has no hooks of. Errors of the frame writer. */
SJ_MUST_CHECK sj_status sj_registry_send_unhooked(sj_registry *registry, uint64_t process,
                                                  const sj_registry_module *entry,
                                                  const sj_link_failure *failures, size_t count);

/* sj_registry_plan_locked is sj_registry_plan_module; `*planned` is the entry. */
SJ_MUST_CHECK sj_status sj_registry_plan_locked(sj_registry *registry,
                                                const sj_plan_request *request,
                                                sj_registry_module **planned);

/* sj_registry_plan_imports_locked does so for the imports of a module whose plan has none.
 * SJ_EUNSUPPORTED also where it has, or where calls of libraries are not wanted. */
SJ_MUST_CHECK sj_status sj_registry_plan_imports_locked(sj_registry *registry,
                                                        const sj_plan_request *request,
                                                        sj_registry_module **planned);

#endif
