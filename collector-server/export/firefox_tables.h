/* The tables that all threads of a Firefox Profiler file share: call stacks, functions, libraries
 * and texts. */
#ifndef SJ_COLLECTOR_SERVER_EXPORT_FIREFOX_TABLES_H
#define SJ_COLLECTOR_SERVER_EXPORT_FIREFOX_TABLES_H

#include "proto/base/error.h"
#include "proto/base/hash_map.h"

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A call stack is a function and the call stack of its caller. */
typedef struct sj_firefox_stack {
    uint32_t caller; /* 1 + index of the caller's stack; 0: none */
    uint32_t function;
} sj_firefox_stack;

typedef struct sj_firefox_function {
    int64_t function_id;
    int64_t line;    /* 0: unknown */
    uint32_t module; /* 1 + index in module_ids; 0: unknown */
    uint32_t file;   /* 1 + index of the file; 0: unknown */
} sj_firefox_function;

/* Zeroed: no stacks. */
typedef struct sj_firefox_tables {
    sj_hash_map known_stacks; /* function id, caller -> index of the stack */
    sj_firefox_stack *stacks;
    size_t stack_count, stack_capacity;
    sj_hash_map known_functions; /* function id -> index of the function */
    sj_firefox_function *functions;
    size_t function_count, function_capacity;
    sj_hash_map known_modules; /* module id -> index of the module */
    int64_t *module_ids;
    size_t module_count, module_capacity;
    uint32_t file_count;
} sj_firefox_tables;

/* The texts whose indexes do not depend on the session. */
enum { SJ_FIREFOX_TEXT_LOSS, SJ_FIREFOX_TEXTS };

/* Writes to `*stack` the index of the stack of a function that is called by `caller` (1 + index;
 * 0: none). Adds the stack if it is new. Fails with SJ_ENOMEM or SJ_ELIMIT. */
SJ_MUST_CHECK sj_status sj_firefox_tables_stack(sj_firefox_tables *tables, uint32_t caller,
                                                int64_t function_id, uint32_t *stack);

/* Writes the tables as the value of the key "shared". Fails with SJ_EIO, SJ_ENOMEM or SJ_ELIMIT.
 * Blocks on the database. */
SJ_MUST_CHECK sj_status sj_firefox_tables_write(sj_firefox_tables *tables, sqlite3 *database,
                                                FILE *output, sj_error *error);

void sj_firefox_tables_deinit(sj_firefox_tables *tables);

#endif
