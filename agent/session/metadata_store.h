/* Metadata store: a file in the session's runtime directory with the metadata frames that child
 * sessions start with. The process that finishes the session of a killed recorder reads it. The
 * file is deleted with the directory. Only one process writes it. */
#ifndef SJ_AGENT_SESSION_METADATA_STORE_H
#define SJ_AGENT_SESSION_METADATA_STORE_H

#include "proto/base/cursor.h"
#include "proto/wire/frame.h"

typedef struct sj_metadata_store sj_metadata_store;

/* Makes an empty store in `runtime_directory`. Returns SJ_EIO if it cannot be created or exists
 * already, or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_metadata_store_new(const char *runtime_directory,
                                              sj_metadata_store **store);
void sj_metadata_store_free(sj_metadata_store *store); /* leaves the file; NULL is allowed */

/* Removes all frames. */
void sj_metadata_store_clear(sj_metadata_store *store);

/* Appends a frame. If a frame cannot be written, all later frames are dropped, too, because they
 * cannot be understood without it. */
void sj_metadata_store_add(sj_metadata_store *store, sj_frame_type type, sj_slice header,
                           sj_slice payload);

/* Visits the complete frames of a store that a killed recorder left, in order, while `visit`
 * returns SJ_OK. Returns SJ_ENOTFOUND, SJ_EIO or SJ_ENOMEM. */
SJ_MUST_CHECK sj_status sj_metadata_store_read(const char *runtime_directory, void *context,
                                               sj_status (*visit)(void *context, sj_frame_type type,
                                                                  sj_slice header,
                                                                  sj_slice payload));

#endif
