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

/* Writes the path of the folder that holds the runtime directories of this user's sessions. The
 * folder may not exist yet. It is the first possible one of:
 * - $XDG_RUNTIME_DIR/sojourn, if only this user may write to $XDG_RUNTIME_DIR
 * - /run/sojourn, if the user is root and /run is in memory
 * - /dev/shm/sojourn-UID, unless another user owns that name
 * - sj_cache_directory("run").
 * Returns SJ_ELIMIT or an error of sj_cache_directory. */
SJ_MUST_CHECK sj_status sj_runtime_root(char *path, size_t capacity, sj_error *error);

/* Makes the runtime directory of one session in sj_runtime_root, and writes its path. Returns
 * SJ_EIO, SJ_ELIMIT, or SJ_EPERM if the directory belongs to another user. */
SJ_MUST_CHECK sj_status sj_runtime_directory_make(const sj_session_id *session, char *path,
                                                  size_t capacity, sj_error *error);

/* Make $XDG_STATE_HOME/sojourn/NAME or $XDG_CACHE_HOME/sojourn/NAME, and write its path. If the
 * variable is not set, they use ~/.local/state or ~/.cache. There, ~ is the first folder that this
 * user may write to: $HOME, the home in the password database, or /var/tmp/sojourn-UID. Return
 * SJ_EIO, SJ_ELIMIT, or SJ_EPERM if the folder belongs to another user. */
SJ_MUST_CHECK sj_status sj_state_directory(const char *name, char *path, size_t capacity,
                                           sj_error *error);
SJ_MUST_CHECK sj_status sj_cache_directory(const char *name, char *path, size_t capacity,
                                           sj_error *error);

/* Makes `path` and its missing parents with mode 0700. Returns SJ_EPERM if `path` belongs to
 * another user, SJ_EINVAL if it is empty or too long, else SJ_EIO. */
SJ_MUST_CHECK sj_status sj_directory_make(const char *path, sj_error *error);

/* Deletes a directory and the files in it. Does not delete subdirectories. Ignores errors. */
void sj_directory_remove(const char *path);

/* Writes the absolute path of the agent. That is the file `given`; if `given` is NULL, the library
 * `name`, which sj_library_find finds; if both are NULL, libsojourn-agent.so. A program in an
 * emulator needs the agent `name` of its own machine. Returns errors like sj_library_find. */
SJ_MUST_CHECK sj_status sj_agent_find(const char *given, const char *name, char *path,
                                      size_t capacity, sj_error *error);

/* Writes the absolute path of one of our libraries. Looks in ../lib/sojourn, ../lib and the folder
 * of the running program. Returns SJ_ENOTFOUND, SJ_ELIMIT, or SJ_EINVAL if LD_PRELOAD cannot hold
 * the path. */
SJ_MUST_CHECK sj_status sj_library_find(const char *name, char *path, size_t capacity,
                                        sj_error *error);

#endif
