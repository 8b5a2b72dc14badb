#include "agent/daemon/session_list.h"

#include "agent/recording/recovery.h"
#include "agent/uplink/spool_aside.h"
#include "agent/uplink/spool_quota.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* Reads the recorder's pid from the third line of a .to file. */
static pid_t read_recorder(int file)
{
    char text[2 * PATH_MAX] = "";
    if (pread(file, text, sizeof(text) - 1, 0) <= 0) {
        return 0;
    }
    const char *line = strchr(text, '\n');
    line = line != NULL ? strchr(line + 1, '\n') : NULL;
    return line != NULL ? (pid_t)strtol(line + 1, NULL, 10) : 0;
}

static void describe(const char *spool_root, const char *name, sj_listed_session *session)
{
    char directory[PATH_MAX];
    *session = (sj_listed_session){0};
    memcpy(session->session, name, SJ_SESSION_TEXT_BYTES - 1);
    snprintf(session->path, sizeof(session->path), "%.3000s/%.64s", spool_root, name);
    snprintf(directory, sizeof(directory), "%.3000s/%s", spool_root, session->session);
    session->spool_bytes = sj_spool_directory_bytes(directory);
    const int file = open(session->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file >= 0) {
        session->is_recording = flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
        session->recorder = session->is_recording ? read_recorder(file) : 0;
        close(file);
    }
    sj_spool_aside aside;
    if (sj_spool_aside_read(directory, &aside)) {
        session->is_set_aside = !session->is_recording && session->spool_bytes == 0;
        session->spool_bytes += aside.bytes;
    }
}

sj_status sj_session_list(const char *spool_root,
                          bool (*visit)(void *context, const sj_listed_session *session),
                          void *context, sj_error *error)
{
    DIR *folder = opendir(spool_root);
    bool may_continue = true;
    if (folder == NULL) {
        return errno == ENOENT ? SJ_OK
                               : sj_fail(error, errno == ENOMEM ? SJ_ENOMEM : SJ_EIO,
                                         "cannot read %s: %s", spool_root, strerror(errno));
    }
    for (struct dirent *entry = readdir(folder); entry != NULL && may_continue;
         entry = readdir(folder)) {
        sj_listed_session session;
        if (sj_recovery_is_claim_name(entry->d_name)) {
            describe(spool_root, entry->d_name, &session);
            may_continue = visit(context, &session);
        }
    }
    closedir(folder);
    return SJ_OK;
}
