/* Stores the frames of one session in a database, without a network. Commits now and then. */
#ifndef SJ_COLLECTOR_SERVER_IMPORT_SESSION_STORE_H
#define SJ_COLLECTOR_SERVER_IMPORT_SESSION_STORE_H

#include "collector-server/store/store.h"
#include "proto/wire/sojourn.pb-c.h"

typedef struct sj_session_store {
    sj_store *store;
    uint8_t *frame; /* the latest frame */
    uint8_t *header;
    uint32_t uncommitted;
    bool is_open; /* a batch is open */
    sj_error *error;
} sj_session_store;

/* Creates the database. Errors: as sj_store_open. */
SJ_MUST_CHECK sj_status sj_session_store_open(sj_session_store *target, const char *path,
                                              sj_error *error);

/* Stores one frame. `message` NULL: it has no header. Errors: as sj_store_apply. */
SJ_MUST_CHECK sj_status sj_session_store_put(sj_session_store *target, sj_frame_type type,
                                             const ProtobufCMessage *message, sj_slice payload);

/* Compresses the payload, then stores the frame. */
SJ_MUST_CHECK sj_status sj_session_store_put_packed(sj_session_store *target, sj_frame_type type,
                                                    const ProtobufCMessage *message, sj_slice raw);

/* Commits what was stored. */
SJ_MUST_CHECK sj_status sj_session_store_commit(sj_session_store *target);
void sj_session_store_close(sj_session_store *target); /* A zeroed one is allowed */

#endif
