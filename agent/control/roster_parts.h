/* What the files of the roster share. */
#ifndef SJ_AGENT_CONTROL_ROSTER_PARTS_H
#define SJ_AGENT_CONTROL_ROSTER_PARTS_H

#include "agent/control/method_names.h"
#include "agent/control/pair_map.h"
#include "agent/control/roster.h"

#include <limits.h>
#include <pthread.h>

enum { SJ_ROSTER_COMMAND_BYTES = 4096 };

typedef struct sj_roster_process {
    pid_t pid;
    uint64_t parent;
    uint64_t started_ticks;
    char how[12];
    char executable[PATH_MAX];
    char command[SJ_ROSTER_COMMAND_BYTES];
    sj_process_end end;
    bool ended;
} sj_roster_process;

typedef struct sj_roster_module {
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
    uint32_t skips[SJ_ROSTER_SKIPS];
} sj_roster_module;

typedef struct sj_roster_mapping {
    uint64_t process;
    uint64_t bias;
    uint64_t loaded_ticks;
    uint32_t module;
} sj_roster_mapping;

struct sj_roster {
    sj_roster_options options;
    pthread_mutex_t mutex;        /* guards everything below */
    sj_roster_process *processes; /* number - 1 */
    size_t process_count;
    sj_roster_module *modules; /* number - 1 */
    size_t module_count;
    sj_roster_mapping *mappings;
    size_t mapping_count;
    uint32_t next_function;
    sj_method_names method_names;   /* of methods that record their receivers */
    sj_pair_map receiver_functions; /* by class (its name's address, + 1: metaclass) and method */
    sj_roster_counters counters;
    uint64_t reviewed; /* process that may ask for more functions; 0: none */
    const uint8_t *prepared;
    uint32_t prepared_count;
};

/* sj_roster_find_file returns the file of a module: an emulator leads the program to the files of
 * its own machine where there are some. */
const char *sj_roster_find_file(const sj_roster *roster, const char *path, char in_root[PATH_MAX]);

/* sj_roster_read_classes is called before anything is decided by class, without the mutex: a class
 * may descend from one of a module that is named later. `path` NULL: not for a module. Errors of
 * sj_class_table_read_process. */
SJ_MUST_CHECK sj_status sj_roster_read_classes(sj_roster *roster, uint64_t process,
                                               const sj_link_module *module, const char *path);

/* sj_roster_add_mapping keeps and sends one mapping; one that is known already is left as it is.
 * SJ_ENOMEM, errors of the emitter. The caller holds the mutex, here and below. */
SJ_MUST_CHECK sj_status sj_roster_add_mapping(sj_roster *roster, const sj_roster_mapping *mapping);

/* sj_roster_add_group makes a module called `path` of functions that a runtime has, with the
 * mapping of a process. SJ_ELIMIT, SJ_ENOMEM, errors of the emitter. */
SJ_MUST_CHECK sj_status sj_roster_add_group(sj_roster *roster, const sj_roster_mapping *mapping,
                                            const sj_plan_header *group, const char *path,
                                            uint32_t *first_function);

/* sj_roster_send_unhooked tells the collector which functions of a module (places in it) a process
 * has no hooks of. Errors of the emitter. */
SJ_MUST_CHECK sj_status sj_roster_send_unhooked(sj_roster *roster, uint64_t process,
                                                const sj_roster_module *entry,
                                                const sj_link_failure *failures, size_t count);

/* sj_roster_plan_locked is sj_roster_plan_module; `*planned` is the entry. */
SJ_MUST_CHECK sj_status sj_roster_plan_locked(sj_roster *roster, uint64_t process,
                                              const sj_link_module *module, const char *module_path,
                                              uint64_t now_ticks, sj_roster_module **planned);

/* sj_roster_plan_imports_locked does so for the imports of a module whose plan has none.
 * SJ_EUNSUPPORTED also where it has, or where calls of libraries are not wanted. */
SJ_MUST_CHECK sj_status sj_roster_plan_imports_locked(sj_roster *roster, uint64_t process,
                                                      const sj_link_module *module,
                                                      const char *module_path, uint64_t now_ticks,
                                                      sj_roster_module **planned);

#endif
