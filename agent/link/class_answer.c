#include "agent/link/class_answer.h"

#include "agent/host/clock.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

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
    const struct cmsghdr *head = got > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (head != NULL && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
        head->cmsg_len == CMSG_LEN(sizeof(int))) {
        memcpy(file, CMSG_DATA(head), sizeof(*file));
    }
    return got;
}

/* Reading or writing any other kind of file could block, or harm one of the user's. */
static bool is_memory_file(int file)
{
    return file >= 0 && fcntl(file, F_GET_SEALS) >= 0;
}

static bool read_all(int file, uint8_t *bytes, size_t size)
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

static bool write_all(int file, const uint8_t *bytes, size_t size)
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

static sj_status send_answer(int fd, sj_link_type type, const void *payload, size_t bytes)
{
    const sj_link_packet head = {
        .version = SJ_LINK_VERSION, .type = (uint16_t)type, .payload_bytes = (uint32_t)bytes};
    struct iovec parts[] = {{.iov_base = (void *)(uintptr_t)&head, .iov_len = sizeof(head)},
                            {.iov_base = (void *)(uintptr_t)payload, .iov_len = bytes}};
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)(sizeof(head) + bytes)
               ? SJ_OK
               : SJ_ECLOSED;
}

static sj_status answer(int file, int fd, const sj_class_answer *answer)
{
    sj_link_class_added added = {.first_function = answer->first_function,
                                 .count = answer->count,
                                 .rewritten = answer->rewritten,
                                 .class_bytes = (uint32_t)answer->size};
    if (answer->size > SJ_LINK_CLASS_BYTES || !write_all(file, answer->bytes, answer->size)) {
        added.rewritten = 0;
        added.class_bytes = 0;
    }
    return send_answer(fd, SJ_LINK_CLASS_ADDED, &added, sizeof(added));
}

sj_status sj_link_answer_class(sj_registry *registry, uint64_t process, sj_reader *reader, int file,
                               int fd)
{
    sj_link_class class;
    sj_class_answer made = {0};
    const uint8_t *head = sj_reader_take(reader, sizeof(class));
    if (head == NULL || !is_memory_file(file)) {
        return SJ_ECORRUPT;
    }
    memcpy(&class, head, sizeof(class));
    if (class.class_bytes == 0 || class.class_bytes > SJ_LINK_CLASS_BYTES) {
        return SJ_ECORRUPT;
    }
    uint8_t *bytes = malloc(class.class_bytes);
    if (bytes == NULL) {
        return SJ_ENOMEM;
    }
    sj_status status = SJ_ECORRUPT;
    if (read_all(file, bytes, class.class_bytes)) {
        const sj_slice slice = {.data = bytes, .size = class.class_bytes};
        status = sj_registry_add_class(registry, process, &class, slice, sj_clock_ticks(), &made);
    }
    free(bytes);
    if (status == SJ_EUNSUPPORTED || status == SJ_ELIMIT) {
        const sj_link_skip skip = {.reason = SJ_SKIP_MODULE};
        return send_answer(fd, SJ_LINK_SKIP, &skip, sizeof(skip));
    }
    if (status == SJ_OK) {
        status = answer(file, fd, &made);
    }
    free(made.bytes);
    return status;
}

sj_status sj_link_take_jvm_state(sj_registry *registry, uint64_t process, sj_reader *reader)
{
    sj_link_jvm_state state;
    const uint8_t *bytes = sj_reader_take(reader, sizeof(state));
    if (bytes == NULL) {
        return SJ_ECORRUPT;
    }
    memcpy(&state, bytes, sizeof(state));
    const sj_status status = sj_registry_report_jvm(registry, process, &state, sj_clock_ticks());
    return status == SJ_EFULL ? SJ_OK : status;
}
