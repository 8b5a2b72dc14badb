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
    uint64_t start, end; /* from the module's first mapping to the end of its last one */
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

/* Opens a file of the folder as `source`. Writes its path to the PATH_MAX bytes of `path`, which
 * `source` borrows. Returns SJ_ENOTFOUND if the file does not exist, SJ_ELIMIT if the path is too
 * long, or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_uftrace_open(sj_uftrace *trace, const char *name, FILE **file,
                                        char path[]);

/* Closes the file of `source` and adds its bytes to the hash. Returns SJ_EIO if it could not be
 * read. */
SJ_MUST_CHECK sj_status sj_uftrace_close(sj_uftrace *trace, FILE *file);

/* Reads task.txt, and the maps and symbols that it names. Returns SJ_ECORRUPT if a line cannot be
 * read, SJ_ELIMIT, SJ_ENOMEM, or errors of sj_uftrace_open. */
SJ_MUST_CHECK sj_status sj_uftrace_read_tasks(sj_uftrace *trace);

/* Finds the function that was at an address of the task's process at a time, and adds it to the
 * log. A function without a symbol is named by its address. Returns errors of
 * sj_import_log_function. */
SJ_MUST_CHECK sj_status sj_uftrace_find(sj_uftrace *trace, const sj_uftrace_task *task,
                                        uint64_t at_ns, uint64_t address, uint32_t *function);

/* Frees what `trace` owns, with `source`. */
void sj_uftrace_deinit(sj_uftrace *trace);

#endif
