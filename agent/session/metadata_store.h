/* The control store: a file in the session's runtime directory with the metadata frames that child
 * sessions begin with, for the process that ships the last blocks of a recorder that was killed.
 * Gone with the directory. One writer. */
#ifndef SJ_AGENT_SESSION_METADATA_STORE_H
#define SJ_AGENT_SESSION_METADATA_STORE_H

#include "proto/base/cursor.h"
#include "proto/wire/frame.h"

typedef struct sj_metadata_store sj_metadata_store;

SJ_MUST_CHECK sj_status sj_metadata_store_new(const char *runtime_directory,
                                              sj_metadata_store **store);
void sj_metadata_store_free(sj_metadata_store *store); /* leaves the file; NULL is allowed */

/* sj_metadata_store_clear forgets all frames. */
void sj_metadata_store_clear(sj_metadata_store *store);

/* sj_metadata_store_add appends a frame. One that cannot be written is missing afterwards, and so
 * are all later ones: what could not be understood without it is not sent. */
void sj_metadata_store_add(sj_metadata_store *store, sj_frame_type type, sj_slice header,
                           sj_slice payload);

/* sj_metadata_store_read visits the whole frames of a store that a killed recorder left, in their
 * order, as long as `visit` returns SJ_OK. SJ_ENOTFOUND, SJ_EIO, SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_metadata_store_read(const char *runtime_directory, void *context,
                                               sj_status (*visit)(void *context, sj_frame_type type,
                                                                  sj_slice header,
                                                                  sj_slice payload));

#endif
