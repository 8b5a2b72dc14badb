/* The metadata of a CTF trace: the description of its bytes in TSDL, the language of CTF 1.8. */
#ifndef SJ_COLLECTOR_SERVER_EXPORT_CTF_METADATA_H
#define SJ_COLLECTOR_SERVER_EXPORT_CTF_METADATA_H

#include "proto/base/error.h"

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { SJ_CTF_UUID_BYTES = 16 };

/* The numbers of the events. */
enum { SJ_CTF_CALL_BEGIN, SJ_CTF_CALL_END };

typedef struct sj_ctf_trace {
    int64_t session_id;
    uint8_t uuid[SJ_CTF_UUID_BYTES];
    int64_t *function_ids; /* the functions of the events; owned */
    size_t function_count, function_capacity;
} sj_ctf_trace;

/* Reads the uuid of the session. Fails with SJ_EIO. */
SJ_MUST_CHECK sj_status sj_ctf_trace_read(sj_ctf_trace *trace, sqlite3 *database, sj_error *error);

/* Writes the description of the trace. Fails with SJ_EIO or SJ_ENOMEM. The caller checks `output`
 * for write errors. Blocks on the database. */
SJ_MUST_CHECK sj_status sj_ctf_metadata_write(const sj_ctf_trace *trace, sqlite3 *database,
                                              FILE *output, sj_error *error);

#endif
