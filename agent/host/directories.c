#include "agent/host/directories.h"

#include "agent/host/own_program.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

void sj_session_text(const sj_session_id *session, char *text)
{
    for (size_t i = 0; i < SJ_SESSION_ID_BYTES; i++) {
        snprintf(text + 2 * i, 3, "%02x", session->bytes[i]);
    }
}

static sj_status check_owner(const char *path, sj_error *error)
{
    struct stat status;
    if (lstat(path, &status) != 0) {
        return sj_fail(error, SJ_EIO, "cannot look at %s: %s", path, strerror(errno));
    }
    if (!S_ISDIR(status.st_mode) && !S_ISLNK(status.st_mode)) {
        return sj_fail(error, SJ_EIO, "%s is in the way: it is not a directory", path);
    }
    if (status.st_uid != geteuid()) {
        return sj_fail(error, SJ_EPERM,
                       "%s belongs to another user; remove it or choose another "
                       "place",
                       path);
    }
    return SJ_OK;
}

sj_status sj_directory_make(const char *path, sj_error *error)
{
    char partial[PATH_MAX];
    if (path[0] == '\0' || strlen(path) >= sizeof(partial)) {
        return sj_fail(error, SJ_EINVAL, "the path of a directory is empty or too long");
    }
    snprintf(partial, sizeof(partial), "%s", path);
    for (char *slash = strchr(partial + 1, '/');; slash = strchr(slash + 1, '/')) {
        if (slash != NULL) {
            *slash = '\0';
        }
        if (mkdir(partial, 0700) != 0 && errno != EEXIST) {
            return sj_fail(error, SJ_EIO, "cannot make the directory %s: %s", partial,
                           strerror(errno));
        }
        if (slash == NULL) {
            return check_owner(partial, error);
        }
        *slash = '/';
    }
}

static sj_status join_path(char *path, size_t capacity, sj_error *error, const char *root,
                           const char *middle, const char *name)
{
    const int written =
        snprintf(path, capacity, "%s%s%s%s", root, middle, name[0] != '\0' ? "/" : "", name);
    if (written < 0 || (size_t)written >= capacity) {
        return sj_fail(error, SJ_ELIMIT, "the path %s%s/%s is too long", root, middle, name);
    }
    return SJ_OK;
}

/* True if `path` is a directory of this user in which no other user may create files. */
static bool is_own(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0 && S_ISDIR(about.st_mode) && about.st_uid == geteuid() &&
           (about.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* True if this user may write to the nearest existing folder of `path`. Checks by access(2), which
 * ignores the capabilities of users other than root. With capabilities, the process could write to
 * another user's home. */
static bool may_make(const char *path)
{
    char partial[PATH_MAX];
    snprintf(partial, sizeof(partial), "%s", path);
    for (;;) {
        if (access(partial, W_OK) == 0) {
            return true;
        }
        if (errno != ENOENT) {
            return errno != EACCES;
        }
        char *slash = strrchr(partial, '/');
        if (slash == NULL || slash[1] == '\0') {
            return true; /* mkdir reports the error later. */
        }
        slash[slash == partial ? 1 : 0] = '\0';
    }
}

/* Sets `*home` to the first folder in which this user may make usual/sojourn: $HOME, the home in
 * the password database, or /var/tmp/sojourn-UID. $HOME may belong to another user, and the home of
 * a server's user may belong to root. `own` is the buffer for /var/tmp/sojourn-UID. */
static sj_status find_home(const char *usual, char *own, size_t capacity, const char **home,
                           sj_error *error)
{
    char path[PATH_MAX];
    const struct passwd *user = NULL;
    *home = getenv("HOME");
    for (int i = 0; i < 2; i++) {
        if (*home != NULL && (*home)[0] == '/') {
            SJ_TRY(join_path(path, sizeof(path), error, *home, usual, "sojourn"));
            if (may_make(path)) {
                return SJ_OK;
            }
        }
        user = i == 0 ? getpwuid(geteuid()) : NULL;
        *home = user != NULL ? user->pw_dir : NULL;
    }
    /* Every user may write to /var/tmp, so an existing folder of this name must belong to us. */
    snprintf(own, capacity, "/var/tmp/sojourn-%u", (unsigned)geteuid());
    *home = own;
    return mkdir(own, 0700) == 0 || is_own(own)
               ? SJ_OK
               : sj_fail(error, SJ_EIO, "user %u may write to no home directory; set HOME to one",
                         (unsigned)geteuid());
}

static sj_status user_directory(const char *variable, const char *usual, const char *name,
                                char *path, size_t capacity, sj_error *error)
{
    const char *root = getenv(variable);
    char home_root[PATH_MAX];
    char own[64];
    if (root == NULL || root[0] != '/') {
        const char *home = NULL;
        SJ_TRY(find_home(usual, own, sizeof(own), &home, error));
        SJ_TRY(join_path(home_root, sizeof(home_root), error, home, usual, ""));
        root = home_root;
    }
    SJ_TRY(join_path(path, capacity, error, root, "/sojourn", name));
    return sj_directory_make(path, error);
}

sj_status sj_state_directory(const char *name, char *path, size_t capacity, sj_error *error)
{
    return user_directory("XDG_STATE_HOME", "/.local/state", name, path, capacity, error);
}

sj_status sj_cache_directory(const char *name, char *path, size_t capacity, sj_error *error)
{
    return user_directory("XDG_CACHE_HOME", "/.cache", name, path, capacity, error);
}

/* True if a folder is in memory. On some machines, /run is on a disk. */
static bool is_memory(const char *path)
{
    struct statfs about;
    return statfs(path, &about) == 0 && about.f_type == TMPFS_MAGIC;
}

sj_status sj_runtime_root(char *path, size_t capacity, sj_error *error)
{
    const char *root = getenv("XDG_RUNTIME_DIR");
    char user[32];
    char shared[64];
    if (root != NULL && root[0] == '/' && is_own(root)) {
        return join_path(path, capacity, error, root, "/sojourn", "");
    }
    if (geteuid() == 0 && is_own("/run") && is_memory("/run")) {
        return join_path(path, capacity, error, "/run", "/sojourn", "");
    }
    /* Every user may write to /dev/shm, so an existing folder of this name must belong to us. */
    snprintf(user, sizeof(user), "/sojourn-%u", (unsigned)geteuid());
    snprintf(shared, sizeof(shared), "/dev/shm%s", user);
    if (is_own(shared) || (access(shared, F_OK) != 0 && errno == ENOENT)) {
        return join_path(path, capacity, error, "/dev/shm", user, "");
    }
    return sj_cache_directory("run", path, capacity, error);
}

sj_status sj_runtime_directory_make(const sj_session_id *session, char *path, size_t capacity,
                                    sj_error *error)
{
    char text[SJ_SESSION_TEXT_BYTES];
    char parent[PATH_MAX];
    sj_session_text(session, text);
    SJ_TRY(sj_runtime_root(parent, sizeof(parent), error));
    /* Another user may have made the folder since sj_runtime_root chose it: then choose again. */
    if (sj_directory_make(parent, error) != SJ_OK) {
        SJ_TRY(sj_runtime_root(parent, sizeof(parent), error));
        SJ_TRY(sj_directory_make(parent, error));
    }
    SJ_TRY(join_path(path, capacity, error, parent, "", text));
    return sj_directory_make(path, error);
}

void sj_directory_remove(const char *path)
{
    DIR *directory = opendir(path);
    if (directory == NULL) {
        return;
    }
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            unlinkat(dirfd(directory), entry->d_name, 0);
        }
    }
    closedir(directory);
    rmdir(path);
}

static sj_status check_agent(const char *path, sj_error *error)
{
    if (strpbrk(path, " :") != NULL) {
        return sj_fail(error, SJ_EINVAL,
                       "the agent's path \"%s\" has a blank or a colon, which LD_PRELOAD cannot "
                       "name; install Sojourn elsewhere",
                       path);
    }
    return SJ_OK;
}

sj_status sj_library_find(const char *name, char *path, size_t capacity, sj_error *error)
{
    static const char *const places[] = {"/../lib/sojourn/", "/../lib/", "/"};
    sj_own_program self;
    char candidate[PATH_MAX];
    char real[PATH_MAX];
    SJ_TRY(sj_own_program_find(&self, error));
    *strrchr(self.path, '/') = '\0';
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        SJ_TRY(join_path(candidate, sizeof(candidate), error, self.path, places[i], name));
        if (realpath(candidate, real) != NULL) {
            SJ_TRY(join_path(path, capacity, error, real, "", ""));
            return check_agent(path, error);
        }
    }
    return sj_fail(error, SJ_ENOTFOUND,
                   "%s is not in %s/../lib; reinstall Sojourn or name the agent with --agent", name,
                   self.path);
}

sj_status sj_agent_find(const char *given, const char *name, char *path, size_t capacity,
                        sj_error *error)
{
    char real[PATH_MAX];
    if (given == NULL) {
        return sj_library_find(name != NULL ? name : "libsojourn-agent.so", path, capacity, error);
    }
    if (realpath(given, real) == NULL) {
        return sj_fail(error, SJ_ENOTFOUND, "%s: %s", given, strerror(errno));
    }
    SJ_TRY(join_path(path, capacity, error, real, "", ""));
    return check_agent(path, error);
}
