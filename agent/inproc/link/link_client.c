#include "agent/inproc/link/link_client.h"

#include "agent/inproc/recorder/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>

enum { NS_PER_MS = 1000000, US_PER_MS = 1000 };

/* One packet, aligned. There is only one conversation at a time. */
static _Alignas(16) uint8_t packet_buffer[SJ_LINK_MAX_BYTES];

size_t sj_link_append_number(char *text, size_t used, uint64_t number)
{
    char digits[20];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    while (count != 0) {
        text[used++] = digits[--count];
    }
    return used;
}

static sj_status set_timeouts(int socket)
{
    const struct timeval limit = {.tv_sec = SJ_LINK_TIMEOUT_MS / 1000,
                                  .tv_usec = SJ_LINK_TIMEOUT_MS % 1000 * US_PER_MS};
    const bool set =
        SJ_SYS(SYS_setsockopt, socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit), 0) == 0 &&
        SJ_SYS(SYS_setsockopt, socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit), 0) == 0;
    return set ? SJ_OK : SJ_EIO;
}

static const char suffix[] = "/control";

/* Connects to the socket in a directory. The directory's name has `used` bytes, so that the
 * socket's name fits after it. */
static sj_status connect_in(int socket, struct sockaddr_un *address, size_t used)
{
    memcpy(address->sun_path + used, suffix, sizeof(suffix));
    long result;
    do {
        result = SJ_SYS(SYS_connect, socket, address, sizeof(*address), 0, 0, 0);
    } while (result == -EINTR);
    return result == 0 ? SJ_OK : SJ_ECLOSED;
}

/* Connects to the recorder. A socket address holds only short names, so a long one is replaced by
 * the directory's descriptor. */
static sj_status connect_to(int socket, const char *runtime)
{
    static const char prefix[] = "/proc/self/fd/";
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const size_t length = strlen(runtime);
    if (length + sizeof(suffix) <= sizeof(address.sun_path)) {
        memcpy(address.sun_path, runtime, length);
        return connect_in(socket, &address, length);
    }
    const long directory = sj_sys_open_at(AT_FDCWD, runtime, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (directory < 0) {
        return SJ_ENOTFOUND;
    }
    memcpy(address.sun_path, prefix, sizeof(prefix));
    const size_t used =
        sj_link_append_number(address.sun_path, sizeof(prefix) - 1, (uint64_t)directory);
    const sj_status status = connect_in(socket, &address, used);
    (void)sj_sys_close((int)directory);
    return status;
}

sj_status sj_link_open(sj_link *link, const char *runtime)
{
    *link = (sj_link){
        .socket = -1, .process = sj_sys_pid(), .payload = packet_buffer + sizeof(sj_link_packet)};
    const long socket = SJ_SYS(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, 0, 0, 0);
    sj_status status = SJ_EIO;
    if (socket >= 0) {
        link->socket = (int)socket;
        status = set_timeouts((int)socket);
        if (status == SJ_OK) {
            status = connect_to((int)socket, runtime);
        }
    }
    if (status != SJ_OK) {
        sj_link_close(link);
    }
    return status;
}

uint8_t *sj_link_payload(sj_link *link)
{
    return link->payload;
}

bool sj_link_is_own(const sj_link *link)
{
    return link->process == sj_sys_pid();
}

sj_status sj_link_send(sj_link *link, sj_link_type type, uint32_t bytes)
{
    const sj_link_packet packet = {
        .version = SJ_LINK_VERSION, .type = (uint16_t)type, .payload_bytes = bytes};
    memcpy(packet_buffer, &packet, sizeof(packet));
    long result = -EINTR;
    while (result == -EINTR && sj_link_is_own(link)) {
        result = SJ_SYS(SYS_sendto, link->socket, packet_buffer, sizeof(packet) + bytes,
                        MSG_NOSIGNAL, 0, 0);
    }
    if (result < 0) {
        return result == -EAGAIN ? SJ_ETIMEDOUT : SJ_ECLOSED;
    }
    return SJ_OK;
}

sj_status sj_link_send_file(sj_link *link, sj_link_type type, uint32_t bytes, int file)
{
    const sj_link_packet packet = {
        .version = SJ_LINK_VERSION, .type = (uint16_t)type, .payload_bytes = bytes};
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {.iov_base = packet_buffer, .iov_len = sizeof(packet) + bytes};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &file, sizeof(file));
    memcpy(packet_buffer, &packet, sizeof(packet));
    long result = -EINTR;
    while (result == -EINTR && sj_link_is_own(link)) {
        result = SJ_SYS(SYS_sendmsg, link->socket, &message, MSG_NOSIGNAL, 0, 0, 0);
    }
    if (result < 0) {
        return result == -EAGAIN ? SJ_ETIMEDOUT : SJ_ECLOSED;
    }
    return SJ_OK;
}

sj_status sj_link_receive(sj_link *link)
{
    uint64_t deadline_ns = 0; /* set at the first interruption */
    if (!sj_link_is_own(link)) {
        return SJ_ECLOSED;
    }
    long result = SJ_SYS(SYS_recvfrom, link->socket, packet_buffer, sizeof(packet_buffer), 0, 0, 0);
    while (result == -EINTR) {
        if (!sj_link_is_own(link)) {
            return SJ_ECLOSED;
        }
        const uint64_t now_ns = sj_sys_clock_ns(CLOCK_MONOTONIC);
        deadline_ns =
            deadline_ns != 0 ? deadline_ns : now_ns + (uint64_t)SJ_LINK_TIMEOUT_MS * NS_PER_MS;
        if (now_ns >= deadline_ns) {
            break;
        }
        result = SJ_SYS(SYS_recvfrom, link->socket, packet_buffer, sizeof(packet_buffer), 0, 0, 0);
    }
    if (result <= 0) {
        return result == 0 || result == -ECONNRESET ? SJ_ECLOSED : SJ_ETIMEDOUT;
    }
    if ((size_t)result < sizeof(link->packet)) {
        return SJ_ECORRUPT;
    }
    memcpy(&link->packet, packet_buffer, sizeof(link->packet));
    return link->packet.version == SJ_LINK_VERSION &&
                   link->packet.payload_bytes == (size_t)result - sizeof(link->packet)
               ? SJ_OK
               : SJ_ECORRUPT;
}

void sj_link_close(sj_link *link)
{
    if (link->socket >= 0) {
        (void)sj_sys_close(link->socket);
        link->socket = -1;
    }
}
