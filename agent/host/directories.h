/* Where the recorder keeps its things: runtime (shared memory), state (spool, device id), cache
 * (plans). All made with mode 0700 and only ever used when they belong to this user. */
#ifndef SJ_AGENT_HOST_DIRECTORIES_H
#define SJ_AGENT_HOST_DIRECTORIES_H

#include "proto/base/error.h"
#include "proto/base/ids.h"

#include <stdbool.h>
#include <stddef.h>

/* A session id as text: 32 lower-case hexadecimal digits and the end. */
enum { SJ_SESSION_TEXT_BYTES = 2 * SJ_SESSION_ID_BYTES + 1 };

/* sj_session_text writes the id as text into `text` (SJ_SESSION_TEXT_BYTES). */
void sj_session_text(const sj_session_id *session, char *text);

/* sj_runtime_root returns the directory that holds the runtime directories of this user's sessions:
 * $XDG_RUNTIME_DIR/sojourn when that is the user's own, for root /run/sojourn, else
 * /dev/shm/sojourn-UID, or, where somebody else has put something of that name, the user's cache
 * directory. It need not exist. SJ_ELIMIT, SJ_EIO. */
SJ_MUST_CHECK sj_status sj_runtime_root(char *path, size_t capacity, sj_error *error);

/* sj_runtime_directory_make makes the runtime directory of one session in sj_runtime_root. SJ_EIO,
 * SJ_EPERM (belongs to another user). */
SJ_MUST_CHECK sj_status sj_runtime_directory_make(const sj_session_id *session, char *path,
                                                  size_t capacity, sj_error *error);

/* sj_state_directory and sj_cache_directory give (and make) $XDG_STATE_HOME/sojourn/NAME and
 * $XDG_CACHE_HOME/sojourn/NAME, or their usual places in the home directory: HOME, or, where this
 * user may not write, the one in the list of users, or /var/tmp/sojourn-UID. SJ_EIO, SJ_EPERM
 * (belongs to another user), SJ_ELIMIT. */
SJ_MUST_CHECK sj_status sj_state_directory(const char *name, char *path, size_t capacity,
                                           sj_error *error);
SJ_MUST_CHECK sj_status sj_cache_directory(const char *name, char *path, size_t capacity,
                                           sj_error *error);

/* sj_directory_make makes `path` and its missing parents, mode 0700, and checks its owner. */
SJ_MUST_CHECK sj_status sj_directory_make(const char *path, sj_error *error);

/* sj_directory_remove deletes a directory and the files in it (no subdirectories). Errors are
 * ignored: what cannot be deleted stays. */
void sj_directory_remove(const char *path);

/* sj_agent_find finds libsojourn-agent.so (for programs that an emulator runs: `name`, the one for
 * their machine; else NULL) beside the running program: ../lib/sojourn, ../lib, or where `given`
 * (may be NULL) says. SJ_ENOTFOUND; SJ_EINVAL when LD_PRELOAD cannot name it. */
SJ_MUST_CHECK sj_status sj_agent_find(const char *given, const char *name, char *path,
                                      size_t capacity, sj_error *error);

/* sj_library_find finds another library of ours in the same places. As sj_agent_find. */
SJ_MUST_CHECK sj_status sj_library_find(const char *name, char *path, size_t capacity,
                                        sj_error *error);

#endif
