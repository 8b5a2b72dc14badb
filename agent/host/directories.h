/* Folders of the recorder: runtime (shared memory), state (spool, device id), cache (plans). They
 * have mode 0700, and are used only if they belong to this user. */
#ifndef SJ_AGENT_HOST_DIRECTORIES_H
#define SJ_AGENT_HOST_DIRECTORIES_H

#include "proto/base/error.h"
#include "proto/base/ids.h"

#include <stdbool.h>
#include <stddef.h>

/* A session id as text: 32 lower-case hexadecimal digits and the terminator. */
enum { SJ_SESSION_TEXT_BYTES = 2 * SJ_SESSION_ID_BYTES + 1 };

/* Writes the id as text into `text` (SJ_SESSION_TEXT_BYTES). */
void sj_session_text(const sj_session_id *session, char *text);

/* Returns the folder of the runtime directories of this user's sessions. That is
 * $XDG_RUNTIME_DIR/sojourn if it belongs to the user, for root /run/sojourn, else
 * /dev/shm/sojourn-UID. If another user has created that name, it is the user's cache directory. It
 * need not exist. Returns SJ_ELIMIT or SJ_EIO. */
SJ_MUST_CHECK sj_status sj_runtime_root(char *path, size_t capacity, sj_error *error);

/* Makes the runtime directory of one session in sj_runtime_root. Returns SJ_EIO, or SJ_EPERM if it
 * belongs to another user. */
SJ_MUST_CHECK sj_status sj_runtime_directory_make(const sj_session_id *session, char *path,
                                                  size_t capacity, sj_error *error);

/* Return, and make, $XDG_STATE_HOME/sojourn/NAME and $XDG_CACHE_HOME/sojourn/NAME, or their usual
 * places in the home directory. The home directory is HOME, or, if this user may not write there,
 * that of the list of users, or /var/tmp/sojourn-UID. Return SJ_EIO, SJ_EPERM (belongs to another
 * user) or SJ_ELIMIT. */
SJ_MUST_CHECK sj_status sj_state_directory(const char *name, char *path, size_t capacity,
                                           sj_error *error);
SJ_MUST_CHECK sj_status sj_cache_directory(const char *name, char *path, size_t capacity,
                                           sj_error *error);

/* Makes `path` and its missing parents with mode 0700, and checks its owner. */
SJ_MUST_CHECK sj_status sj_directory_make(const char *path, sj_error *error);

/* Deletes a directory and the files in it (no subdirectories). Ignores errors: files that cannot be
 * deleted stay. */
void sj_directory_remove(const char *path);

/* Finds libsojourn-agent.so, or for a program in an emulator `name`, the agent of its machine (else
 * NULL). Looks next to the running program: ../lib/sojourn, ../lib, or in `given` (may be NULL).
 * Returns SJ_ENOTFOUND, or SJ_EINVAL if LD_PRELOAD cannot hold its path. */
SJ_MUST_CHECK sj_status sj_agent_find(const char *given, const char *name, char *path,
                                      size_t capacity, sj_error *error);

/* Finds another of our libraries in the same places, like sj_agent_find. */
SJ_MUST_CHECK sj_status sj_library_find(const char *name, char *path, size_t capacity,
                                        sj_error *error);

#endif
