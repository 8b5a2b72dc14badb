#include "agent/link/container_reply.h"

#include "agent/host/clock.h"
#include "agent/objfile/system_library.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

_Static_assert(sizeof(sj_link_packet) + sizeof(sj_link_container_added) +
                       (SJ_LINK_CONTAINER_TOKENS + 7) / 8 <=
                   SJ_LINK_MAX_BYTES,
               "a reply without values fits into one packet");

/* Sends a packet with the payload `payload`, `rest`, `end`. Does not block. Returns SJ_ECLOSED if
 * the packet cannot be sent at once. */
static sj_status send_parts(int fd, sj_link_type type, const void *payload, size_t bytes,
                            const uint8_t *rest, size_t rest_bytes, const void *end,
                            size_t end_bytes)
{
    const sj_link_packet head = {.version = SJ_LINK_VERSION,
                                 .type = (uint16_t)type,
                                 .payload_bytes = (uint32_t)(bytes + rest_bytes + end_bytes)};
    struct iovec parts[] = {{.iov_base = (void *)(uintptr_t)&head, .iov_len = sizeof(head)},
                            {.iov_base = (void *)(uintptr_t)payload, .iov_len = bytes},
                            {.iov_base = (void *)(uintptr_t)rest, .iov_len = rest_bytes},
                            {.iov_base = (void *)(uintptr_t)end, .iov_len = end_bytes}};
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = 4};
    return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) ==
                   (ssize_t)(sizeof(head) + bytes + rest_bytes + end_bytes)
               ? SJ_OK
               : SJ_ECLOSED;
}

/* Reads a container and resolves its path (sj_real_module_path). Blocks on the file system. Returns
 * SJ_ECORRUPT. */
static sj_status read_container(sj_reader *reader, sj_link_container *container,
                                char path[PATH_MAX])
{
    const uint8_t *bytes = sj_read_bytes(reader, sizeof(*container));
    if (bytes == NULL) {
        return SJ_ECORRUPT;
    }
    memcpy(container, bytes, sizeof(*container));
    const uint8_t *text = sj_read_bytes(reader, container->path_bytes);
    if (text == NULL || container->path_bytes >= PATH_MAX || container->path_bytes == 0 ||
        container->id_bytes > SJ_BUILD_ID_MAX_BYTES || container->language >= SJ_LINK_LANGUAGES ||
        memchr(text, '\0', container->path_bytes) != NULL) {
        return SJ_ECORRUPT;
    }
    memcpy(path, text, container->path_bytes);
    path[container->path_bytes] = '\0';
    sj_real_module_path(path);
    return SJ_OK;
}

sj_status sj_link_reply_container(sj_registry *registry, uint64_t process, sj_reader *reader,
                                  int fd)
{
    sj_link_container container;
    char path[PATH_MAX];
    sj_container_reply reply = {0};
    SJ_TRY(read_container(reader, &container, path));
    sj_status status =
        sj_registry_add_container(registry, process, &container, path, sj_clock_ticks(), &reply);
    if (status == SJ_EUNSUPPORTED || status == SJ_ENOTFOUND) {
        const sj_link_skip skip = {.reason = status == SJ_ENOTFOUND ? SJ_SKIP_UNDECODABLE
                                                                    : SJ_SKIP_MODULE};
        return send_parts(fd, SJ_LINK_SKIP, &skip, sizeof(skip), NULL, 0, NULL, 0);
    }
    if (status == SJ_OK) {
        const sj_link_container_added added = {.has_lines = reply.has_lines ? 1 : 0,
                                               .first_function = reply.first_function,
                                               .count = reply.count,
                                               .value_count = reply.value_count};
        status = send_parts(fd, SJ_LINK_CONTAINER_ADDED, &added, sizeof(added), reply.wanted,
                            (reply.count + 7) / 8, reply.values,
                            reply.value_count * sizeof(*reply.values));
    }
    free(reply.wanted);
    return status;
}

static sj_status read_lines(sj_registry *registry, sj_reader *reader)
{
    sj_link_lines lines;
    uint32_t words[SJ_LINK_LINES_WORDS];
    const uint8_t *bytes = sj_read_bytes(reader, sizeof(lines));
    if (bytes == NULL) {
        return SJ_ECORRUPT;
    }
    memcpy(&lines, bytes, sizeof(lines));
    bytes = lines.word_count <= SJ_LINK_LINES_WORDS
                ? sj_read_bytes(reader, lines.word_count * sizeof(words[0]))
                : NULL;
    if (bytes == NULL) {
        return SJ_ECORRUPT;
    }
    memcpy(words, bytes, lines.word_count * sizeof(words[0]));
    return sj_registry_add_lines(registry, words, lines.word_count, lines.is_last != 0,
                                 sj_clock_ticks());
}

static sj_status read_no_lines(sj_registry *registry, uint64_t process, sj_reader *reader)
{
    sj_link_no_lines no_lines;
    const uint8_t *bytes = sj_read_bytes(reader, sizeof(no_lines));
    if (bytes == NULL) {
        return SJ_ECORRUPT;
    }
    memcpy(&no_lines, bytes, sizeof(no_lines));
    return sj_registry_report_no_lines(registry, process, (sj_no_lines)no_lines.reason,
                                       sj_clock_ticks());
}

static sj_status read_no_methods(sj_registry *registry, uint64_t process, sj_reader *reader)
{
    sj_link_no_methods no_methods;
    const uint8_t *bytes = sj_read_bytes(reader, sizeof(no_methods));
    if (bytes == NULL) {
        return SJ_ECORRUPT;
    }
    memcpy(&no_methods, bytes, sizeof(no_methods));
    return sj_registry_report_no_methods(registry, process, &no_methods, sj_clock_ticks());
}

sj_status sj_link_read_report(sj_registry *registry, uint64_t process, uint16_t type,
                              sj_reader *reader)
{
    const sj_status status = type == SJ_LINK_LINES ? read_lines(registry, reader)
                             : type == SJ_LINK_NO_LINES
                                 ? read_no_lines(registry, process, reader)
                                 : read_no_methods(registry, process, reader);
    /* If the spool is full, the frame writer has counted the report as dropped. */
    return status == SJ_EFULL ? SJ_OK : status;
}
