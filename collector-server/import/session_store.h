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

/* Creates the database. Returns SJ_ENOMEM, or errors of sj_store_open. After an error, too, the
 * caller calls sj_session_store_close. */
SJ_MUST_CHECK sj_status sj_session_store_open(sj_session_store *target, const char *path,
                                              sj_error *error);

/* Stores one frame. If `message` is NULL, the frame has no header. Returns SJ_ELIMIT if the header
 * is too large, and errors of sj_store_apply and sj_store_commit. */
SJ_MUST_CHECK sj_status sj_session_store_put(sj_session_store *target, sj_frame_type type,
                                             const ProtobufCMessage *message, sj_slice payload);

/* Compresses the payload, then stores the frame. Returns SJ_ENOMEM, or errors of
 * sj_session_store_put. */
SJ_MUST_CHECK sj_status sj_session_store_put_packed(sj_session_store *target, sj_frame_type type,
                                                    const ProtobufCMessage *message, sj_slice raw);

/* Commits the frames that were stored. Returns errors of sj_store_commit. */
SJ_MUST_CHECK sj_status sj_session_store_commit(sj_session_store *target);

/* Drops frames that are not committed, and closes the database. A zeroed target is allowed. */
void sj_session_store_close(sj_session_store *target);

#endif
