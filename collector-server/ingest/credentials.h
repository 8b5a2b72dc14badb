/* Credentials: what a peer shows of itself in the header of a frame, read without unpacking it, as
 * nobody unpacks what strangers send (32,000 empty tags fit in a small frame). */
#ifndef SJ_COLLECTOR_SERVER_INGEST_CREDENTIALS_H
#define SJ_COLLECTOR_SERVER_INGEST_CREDENTIALS_H

#include "proto/wire/frame.h"

/* Slices are borrowed from the frame; what was not there is empty. */
typedef struct sj_credentials {
    sj_slice device_id;
    sj_slice token; /* not terminated */
    sj_slice session_secret;
} sj_credentials;

/* sj_credentials_read reads those of a HELLO, ENROL, POLL, RESULT or FETCH. SJ_ECORRUPT: the header
 * is no protobuf message, or the device id has not 16 bytes; SJ_EUNSUPPORTED: another frame. Any
 * thread. */
SJ_MUST_CHECK sj_status sj_credentials_read(const sj_frame_view *frame,
                                            sj_credentials *credentials);

#endif
