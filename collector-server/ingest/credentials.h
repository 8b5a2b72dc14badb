/* Credentials that a peer sends in the header of a frame. They are read without unpacking the
 * header, because strangers' frames must not be unpacked: 32,000 empty tags fit in a small
 * frame. */
#ifndef SJ_COLLECTOR_SERVER_INGEST_CREDENTIALS_H
#define SJ_COLLECTOR_SERVER_INGEST_CREDENTIALS_H

#include "proto/wire/frame.h"

/* Slices are borrowed from the frame. Missing fields are empty. */
typedef struct sj_credentials {
    sj_slice device_id;
    sj_slice token; /* not NUL-terminated */
    sj_slice session_secret;
} sj_credentials;

/* Reads the credentials of a frame HELLO, ENROL, POLL, RESULT, FETCH or CLAIM. Returns SJ_ECORRUPT
 * if the header is not a protobuf message, or the device id does not have exactly 16 bytes. Returns
 * SJ_EUNSUPPORTED for other frames. Thread-safe. */
SJ_MUST_CHECK sj_status sj_credentials_read(const sj_frame_view *frame,
                                            sj_credentials *credentials);

#endif
