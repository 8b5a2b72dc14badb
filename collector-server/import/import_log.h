/* The import log: what an importer has read from a file of another tool. Functions, threads and the
 * sums of samples are in memory. Calls are in a nameless temporary file, because a file may have
 * more calls than fit into memory. import_writer.h makes a session from the log.
 *
 * Texts come from the file. They need not be valid UTF-8. Times are nanoseconds on any clock. Not
 * thread-safe. */
#ifndef SJ_COLLECTOR_SERVER_IMPORT_IMPORT_LOG_H
#define SJ_COLLECTOR_SERVER_IMPORT_IMPORT_LOG_H

#include "proto/base/cursor.h"
#include "proto/base/error.h"
#include "proto/base/hash_map.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    SJ_IMPORT_MOST_THREADS = 16 * 1024,
    SJ_IMPORT_MOST_FUNCTIONS = 4 * 1024 * 1024,
    /* the time to store them grows with the square of their number */
    SJ_IMPORT_MOST_MODULES = 2048,
    SJ_IMPORT_MOST_PATHS = 1 << 20, /* call paths of samples, as in one profile */
    SJ_IMPORT_TEXT_BYTES = 64 * 1024,
    SJ_IMPORT_NOTES = 16
};

/* The module of functions whose module the file does not name. */
#define SJ_IMPORT_MODULE "imported"

typedef enum sj_import_kind {
    SJ_IMPORT_ENTER,
    SJ_IMPORT_LEAVE,
    SJ_IMPORT_UNWIND,  /* a LEAVE by an exception */
    SJ_IMPORT_INTERVAL /* a whole call */
} sj_import_kind;

/* One record of the temporary file. */
typedef struct sj_import_record {
    uint32_t thread; /* index in `threads` */
    /* sj_import_kind in the top 2 bits, the function in the others; an exit has function 0 */
    uint32_t kind_and_function;
    int64_t at_ns;
    int64_t end_ns; /* the end of an SJ_IMPORT_INTERVAL */
} sj_import_record;

typedef struct sj_import_function {
    char *name;      /* owned; NULL: not named yet */
    uint32_t module; /* index in `modules` */
} sj_import_function;

typedef struct sj_import_thread {
    int64_t pid, tid;
    char *name;      /* owned; NULL: unknown */
    uint64_t depth;  /* open calls */
    int64_t last_ns; /* time of the latest entry or exit */
    bool has_events; /* it has entries and exits */
    bool has_intervals;
} sj_import_thread;

typedef struct sj_import_process {
    int64_t pid;
    char *name; /* owned; NULL: unknown */
} sj_import_process;

/* A call path of samples. */
typedef struct sj_import_path {
    uint32_t parent; /* 1 + index of the parent; 0: none */
    uint32_t function;
    uint64_t samples;     /* samples that end here */
    uint64_t weight;      /* sum of their weights */
    uint64_t least, most; /* the smallest and largest weight of a sample */
    uint64_t total;       /* weight of the path with all below it; 0: the sum over its children */
} sj_import_path;

typedef struct sj_import_log {
    FILE *records;
    sj_import_function *functions; /* ids are 1 + index */
    size_t function_count, function_capacity;
    char **modules;
    size_t module_count, module_capacity;
    bool has_more_modules; /* than SJ_IMPORT_MOST_MODULES */
    sj_import_thread *threads;
    size_t thread_count, thread_capacity;
    sj_import_process *processes;
    size_t process_count, process_capacity;
    sj_import_path *paths;
    size_t path_count, path_capacity;
    sj_hash_map by_name, by_module, by_thread, by_pid, by_path;
    char notes[SJ_IMPORT_NOTES][160]; /* each says what the file lacks, or what was left out */
    size_t note_count;
    size_t run_intervals;      /* whole calls that are sorted in memory; 0: about a million */
    int64_t first_ns, last_ns; /* valid if record_count is not 0 */
    uint64_t record_count;
    uint64_t samples;         /* sum over all paths */
    uint64_t weight;          /* sum over all paths */
    uint64_t unmatched_exits; /* exits without an open call, which are left out */
    uint64_t late_records;    /* entries and exits that got the later time of the one before them */
} sj_import_log;

/* Opens a log whose temporary file is in the folder of the file `beside`. Returns SJ_EIO if that
 * file cannot be created. */
SJ_MUST_CHECK sj_status sj_import_log_init(sj_import_log *log, const char *beside, sj_error *error);

/* Frees what the log owns, and its temporary file. A zeroed log is allowed. */
void sj_import_log_deinit(sj_import_log *log);

/* Finds or adds the function of that name and module, and writes its id. An empty module, and
 * one beyond SJ_IMPORT_MOST_MODULES, is SJ_IMPORT_MODULE. Copies the texts. Returns SJ_ELIMIT if a
 * text or the number of functions is too large, or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_import_log_function(sj_import_log *log, sj_slice name, sj_slice module,
                                               uint32_t *function);

/* sj_import_log_add_function adds a function whose name is not known yet.
 * sj_import_log_name_function names it later. Both return SJ_ELIMIT if a text or the number of
 * functions is too large, or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_import_log_add_function(sj_import_log *log, uint32_t *function);
SJ_MUST_CHECK sj_status sj_import_log_name_function(sj_import_log *log, uint32_t function,
                                                    sj_slice name, sj_slice module);

/* Finds or adds a thread and its process, and writes the thread's index. Returns SJ_ELIMIT if there
 * are too many, or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_import_log_thread(sj_import_log *log, int64_t pid, int64_t tid,
                                             uint32_t *thread);

/* Names a thread, or a process. A later name replaces an earlier one. Returns SJ_ELIMIT if the name
 * is too long or there are too many processes, or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_import_log_name_thread(sj_import_log *log, uint32_t thread,
                                                  sj_slice name);
SJ_MUST_CHECK sj_status sj_import_log_name_process(sj_import_log *log, int64_t pid, sj_slice name);

/* Adds an entry, an exit of the innermost open call, or a whole call. The caller adds entries and
 * exits of a thread in their true order, and whole calls in any order. An entry or exit that is
 * earlier than the one before it gets that one's time. An exit without an open call is counted and
 * left out. sj_import_log_interval returns SJ_EINVAL if a call ends before it begins. All return
 * SJ_EFULL or SJ_EIO if the temporary file cannot be written. */
SJ_MUST_CHECK sj_status sj_import_log_enter(sj_import_log *log, uint32_t thread, uint32_t function,
                                            int64_t at_ns);
SJ_MUST_CHECK sj_status sj_import_log_leave(sj_import_log *log, uint32_t thread, int64_t at_ns,
                                            bool is_thrown);
SJ_MUST_CHECK sj_status sj_import_log_interval(sj_import_log *log, uint32_t thread,
                                               uint32_t function, int64_t start_ns, int64_t end_ns);

/* Finds or adds the child of a call path. `parent` is 0 for an outermost function, else a path.
 * Paths are numbered from 1. Returns SJ_ELIMIT if there are too many, or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_import_log_path(sj_import_log *log, uint32_t parent, uint32_t function,
                                           uint32_t *path);

/* Adds `count` samples of `weight` each to a path. Returns SJ_ELIMIT if a sum gets too large. */
SJ_MUST_CHECK sj_status sj_import_log_sample(sj_import_log *log, uint32_t path, uint64_t count,
                                             uint64_t weight);

/* Adds `count` samples whose weights have the sum `sum`; `count` 0 means 1 if `sum` is not 0. The
 * samples get equal weights, up to a unit. Returns SJ_ELIMIT if a sum gets too large. */
SJ_MUST_CHECK sj_status sj_import_log_samples(sj_import_log *log, uint32_t path, uint64_t count,
                                              uint64_t sum);

/* Notes what the file lacks, or what was left out. Notes beyond SJ_IMPORT_NOTES are dropped. */
__attribute__((format(printf, 2, 3))) void sj_import_log_note(sj_import_log *log,
                                                              const char *format, ...);

/* Opens a nameless temporary file in the folder of the file `beside`. The caller closes it. Returns
 * NULL and sets errno if that fails. */
FILE *sj_import_temporary(const char *beside);

/* Returns what errno says after a write to a temporary file failed: SJ_EFULL or SJ_EIO. */
sj_status sj_import_write_failed(void);

/* Returns the kind of a record. */
static inline sj_import_kind sj_import_record_kind(const sj_import_record *record)
{
    return (sj_import_kind)(record->kind_and_function >> 30);
}

/* Returns the function of a record; 0 for an exit. */
static inline uint32_t sj_import_record_function(const sj_import_record *record)
{
    return record->kind_and_function & ((UINT32_C(1) << 30) - 1);
}

/* Returns a text as a slice. NULL gives an empty one. Borrows the text. */
static inline sj_slice sj_import_text(const char *text)
{
    return (sj_slice){.data = (const uint8_t *)text, .size = text != NULL ? strlen(text) : 0};
}

#endif
