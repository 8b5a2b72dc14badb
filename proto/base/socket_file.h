/* The file of a Unix socket. A server removes the file that it made, and leaves every other file
 * under the same name: another server's socket, or a file of another kind. */
#ifndef SJ_PROTO_BASE_SOCKET_FILE_H
#define SJ_PROTO_BASE_SOCKET_FILE_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/un.h>

typedef struct sj_socket_file {
    char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)]; /* "": none */
    dev_t device;
    ino_t inode;
} sj_socket_file;

/* Binds `descriptor` to a new file at `path`, which must be shorter than the member `path`.
 * Replaces a socket file that has no server. Returns false with errno, for example EADDRINUSE if
 * the path leads to any other file. Then `file` has no path. */
bool sj_socket_file_bind(sj_socket_file *file, int descriptor, const char *path);

/* Removes the file if `path` still leads to it. Call this before the descriptor is closed: until
 * then no other file can have the same inode. Removes nothing in a second call. */
void sj_socket_file_remove(sj_socket_file *file);

#endif
