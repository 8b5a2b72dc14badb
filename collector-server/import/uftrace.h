/* The sessions of a uftrace data folder: which module was where in which process, and its symbols.
 * Not thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_IMPORT_UFTRACE_H
#define SJ_COLLECTOR_SERVER_IMPORT_UFTRACE_H

#include "collector-server/import/import_log.h"
#include "collector-server/import/source.h"

typedef struct sj_uftrace_symbol {
    uint64_t address;  /* in its module */
    uint32_t function; /* 0: not used yet */
    bool is_code;
    char *name;
} sj_uftrace_symbol;

typedef struct sj_uftrace_module {
    char *name;                 /* file name without its folder */
    sj_uftrace_symbol *symbols; /* by rising address */
    size_t count, capacity;
} sj_uftrace_module;

typedef struct sj_uftrace_mapping {
    uint64_t start, end; /* `end`: of the module's first mapping that holds code */
    size_t module;
} sj_uftrace_mapping;

/* A program that a process has executed. */
typedef struct sj_uftrace_session {
    int64_t pid;
    uint64_t since_ns;
    char *program; /* file name */
    sj_uftrace_mapping *mappings;
    size_t count, capacity;
} sj_uftrace_session;

typedef struct sj_uftrace_task {
    int64_t pid, tid;
    int64_t parent; /* the process that forked it; 0: none */
} sj_uftrace_task;

typedef struct sj_uftrace {
    const char *folder;
    sj_import_log *log;
    sj_source *source; /* reused for each file */
    sj_error *error;
    uint64_t hash[2]; /* hash of all files */
    sj_uftrace_module *modules;
    size_t module_count, module_capacity;
    sj_uftrace_session *sessions;
    size_t session_count, session_capacity;
    sj_uftrace_task *tasks;
    size_t task_count, task_capacity;
    uint64_t left_out_events, lost;
} sj_uftrace;

/* Opens a file of the folder as `source`. The caller closes the file with sj_uftrace_close, which
 * adds its bytes to the hash. Returns SJ_ENOTFOUND if it does not exist. */
SJ_MUST_CHECK sj_status sj_uftrace_open(sj_uftrace *trace, const char *name, FILE **file,
                                        char path[]);
SJ_MUST_CHECK sj_status sj_uftrace_close(sj_uftrace *trace, FILE *file);

/* Reads task.txt, and the maps and symbols that it names. */
SJ_MUST_CHECK sj_status sj_uftrace_read_tasks(sj_uftrace *trace);

/* Finds the function at an address of a process at a time. Adds it to the log. */
SJ_MUST_CHECK sj_status sj_uftrace_find(sj_uftrace *trace, const sj_uftrace_task *task,
                                        uint64_t at_ns, uint64_t address, uint32_t *function);
void sj_uftrace_deinit(sj_uftrace *trace);

#endif
