#include "agent/link/memory_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The kernel also fills the padding after the space for one descriptor. */
enum { FILES_MAX = (CMSG_SPACE(sizeof(int)) - CMSG_LEN(0)) / sizeof(int) };

/* Sets `*file` to the descriptor of a packet if there is exactly one. Closes several descriptors,
 * and the descriptor of an empty packet: the caller takes an empty packet for the end of the
 * connection. */
static void receive_file(const struct cmsghdr *head, bool is_empty, int *file)
{
    int files[FILES_MAX];
    const size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(files[0]);
    memcpy(files, CMSG_DATA(head), count * sizeof(files[0]));
    if (count == 1 && !is_empty) {
        *file = files[0];
        return;
    }
    for (size_t i = 0; i < count; i++) {
        close(files[i]);
    }
}

ssize_t sj_link_receive_file(int socket, void *packet, size_t capacity, int *file)
{
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int))];
    struct iovec part = {.iov_base = packet, .iov_len = capacity};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    *file = -1;
    const ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *head = got >= 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (head != NULL && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
        receive_file(head, got == 0, file);
    }
    return got;
}

/* Reading or writing any other kind of file could block, or damage a file of the user. */
bool sj_memory_file_is(int file)
{
    return file >= 0 && fcntl(file, F_GET_SEALS) >= 0;
}

bool sj_memory_file_read(int file, uint8_t *bytes, size_t size)
{
    for (size_t at = 0; at < size;) {
        const ssize_t got = pread(file, bytes + at, size - at, (off_t)at);
        if (got <= 0) {
            return false;
        }
        at += (size_t)got;
    }
    return true;
}

bool sj_memory_file_write(int file, const uint8_t *bytes, size_t size)
{
    for (size_t at = 0; at < size;) {
        const ssize_t put = pwrite(file, bytes + at, size - at, (off_t)at);
        if (put <= 0) {
            return false;
        }
        at += (size_t)put;
    }
    return true;
}
