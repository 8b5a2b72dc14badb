#include "proto/base/socket_file.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static void remove_same(const char *path, dev_t device, ino_t inode)
{
    struct stat now;
    if (lstat(path, &now) == 0 && S_ISSOCK(now.st_mode) && now.st_dev == device &&
        now.st_ino == inode) {
        (void)unlink(path);
    }
}

/* Removes a socket file that has no server, as a killed server leaves it behind. The kernel refuses
 * a connection to any other kind of file in the same way. */
static void remove_stale(const struct sockaddr_un *address, int type)
{
    struct stat file;
    if (lstat(address->sun_path, &file) != 0 || !S_ISSOCK(file.st_mode)) {
        return;
    }
    const int probe = socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (probe >= 0) {
        if (connect(probe, (const struct sockaddr *)address, sizeof(*address)) != 0 &&
            errno == ECONNREFUSED) {
            remove_same(address->sun_path, file.st_dev, file.st_ino);
        }
        (void)close(probe);
    }
}

bool sj_socket_file_bind(sj_socket_file *file, int descriptor, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat made;
    int type = 0;
    socklen_t size = sizeof(type);
    *file = (sj_socket_file){0};
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &type, &size) != 0) {
        return false;
    }
    remove_stale(&address, type);
    if (bind(descriptor, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
        lstat(path, &made) != 0) {
        return false;
    }
    file->device = made.st_dev;
    file->inode = made.st_ino;
    memcpy(file->path, address.sun_path, sizeof(file->path));
    return true;
}

void sj_socket_file_remove(sj_socket_file *file)
{
    if (file->path[0] != '\0') {
        remove_same(file->path, file->device, file->inode);
    }
    *file = (sj_socket_file){0};
}
