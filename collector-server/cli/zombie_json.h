/* A finding about freed memory with its last report, as JSON. */
#ifndef SJ_COLLECTOR_SERVER_CLI_ZOMBIE_JSON_H
#define SJ_COLLECTOR_SERVER_CLI_ZOMBIE_JSON_H

#include "proto/base/error.h"

#include <jansson.h>
#include <sqlite3.h>
#include <stdint.h>

/* Reads a finding with its stacks, the history of its object, and the last `calls_before` calls
 * before each moment. The caller frees `*finding` with json_decref. Fails with SJ_ENOTFOUND if
 * there is no finding `id` with a report, SJ_EIO or SJ_ENOMEM. Blocks on the database. */
SJ_MUST_CHECK sj_status sj_zombie_json_read(sqlite3 *database, int64_t id, int calls_before,
                                            json_t **finding, sj_error *error);

#endif
