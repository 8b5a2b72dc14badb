#include "agent/link/link_requests.h"

#include "proto/base/cursor.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* Returns the socket, or -1. */
static int connect_session(const char *root, const char *session)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval limit = {.tv_sec = SJ_LINK_TIMEOUT_MS / 1000};
    const int written =
        snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s/control", root, session);
    if (written < 0 || (size_t)written >= sizeof(address.sun_path)) {
        return -1;
    }
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) != 0 ||
        connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    return fd;
}

static bool is_session_name(const char *name, const char *prefix)
{
    return strlen(name) == SJ_SESSION_TEXT_BYTES - 1 &&
           strspn(name, "0123456789abcdef") == SJ_SESSION_TEXT_BYTES - 1 &&
           strncmp(name, prefix, strlen(prefix)) == 0;
}

sj_status sj_link_peer_find(const char *prefix, sj_link_peers *list, sj_error *error)
{
    char root[PATH_MAX];
    *list = (sj_link_peers){0};
    SJ_TRY(sj_runtime_root(root, sizeof(root), error));
    DIR *directory = opendir(root);
    if (directory == NULL) {
        return SJ_OK;
    }
    for (struct dirent *entry = readdir(directory);
         entry != NULL && list->count < SJ_LINK_PEERS_MAX; entry = readdir(directory)) {
        const int fd =
            is_session_name(entry->d_name, prefix) ? connect_session(root, entry->d_name) : -1;
        if (fd >= 0) {
            close(fd);
            memcpy(list->sessions[list->count++], entry->d_name, SJ_SESSION_TEXT_BYTES);
        }
    }
    closedir(directory);
    return SJ_OK;
}

static sj_status receive_reply(int fd, char *text, size_t capacity, sj_error *error)
{
    uint8_t packet[SJ_LINK_MAX_BYTES];
    sj_link_packet head;
    const ssize_t got = recv(fd, packet, sizeof(packet), 0);
    if (got < (ssize_t)sizeof(head)) {
        return sj_fail(error, SJ_EIO, "the recorder gave no answer");
    }
    memcpy(&head, packet, sizeof(head));
    const int bytes = (int)(got - (ssize_t)sizeof(head));
    const char *reply = (const char *)packet + sizeof(head);
    if (head.type != SJ_LINK_DONE) {
        return sj_fail(error, SJ_EPERM, "refused: %.*s", bytes, reply);
    }
    if (capacity != 0) {
        snprintf(text, capacity, "%.*s", bytes, reply);
    }
    return SJ_OK;
}

sj_status sj_link_request(const char *session, sj_link_type type, const void *payload,
                          size_t payload_bytes, const char *text, char *reply, size_t capacity,
                          sj_error *error)
{
    char root[PATH_MAX];
    uint8_t packet[SJ_LINK_MAX_BYTES];
    sj_writer writer = sj_writer_of(packet, sizeof(packet));
    const size_t text_bytes = strlen(text);
    const sj_link_packet head = {.version = SJ_LINK_VERSION,
                                 .type = (uint16_t)type,
                                 .payload_bytes = (uint32_t)(payload_bytes + text_bytes)};
    SJ_TRY(sj_runtime_root(root, sizeof(root), error));
    sj_write_bytes(&writer, &head, sizeof(head));
    sj_write_bytes(&writer, payload, payload_bytes);
    sj_write_bytes(&writer, text, text_bytes);
    const size_t size = sj_writer_used(&writer);
    if (writer.bad) {
        return sj_fail(error, SJ_ELIMIT, "the request is too long");
    }
    const int fd = connect_session(root, session);
    if (fd < 0) {
        return sj_fail(error, SJ_ENOTFOUND, "session %s is not being recorded", session);
    }
    const sj_status status =
        send(fd, packet, size, MSG_NOSIGNAL) == (ssize_t)size
            ? receive_reply(fd, reply, capacity, error)
            : sj_fail(error, SJ_EIO, "cannot reach the recorder: %s", strerror(errno));
    close(fd);
    return status;
}
