#include "agent/uplink/tcp_state.h"

#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>

static bool is_same_address(const struct sockaddr *left, const struct sockaddr *right)
{
    if (left->sa_family != right->sa_family) {
        return false;
    }
    if (left->sa_family == AF_INET) {
        const struct sockaddr_in *a = (const void *)left;
        const struct sockaddr_in *b = (const void *)right;
        return a->sin_port == b->sin_port && a->sin_addr.s_addr == b->sin_addr.s_addr;
    }
    const struct sockaddr_in6 *a = (const void *)left;
    const struct sockaddr_in6 *b = (const void *)right;
    return left->sa_family == AF_INET6 && a->sin6_port == b->sin6_port &&
           memcmp(&a->sin6_addr, &b->sin6_addr, sizeof(a->sin6_addr)) == 0;
}

static bool is_over(int fd)
{
    struct tcp_info info;
    socklen_t size = sizeof(info);
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 &&
           (info.tcpi_state == TCP_CLOSE || info.tcpi_state == TCP_CLOSE_WAIT);
}

bool sj_tcp_is_over(const struct sockaddr *local)
{
    DIR *folder = opendir("/proc/self/fd");
    bool found = false;
    if (folder == NULL) {
        return false;
    }
    for (struct dirent *entry = readdir(folder); entry != NULL && !found; entry = readdir(folder)) {
        struct sockaddr_storage own;
        socklen_t size = sizeof(own);
        const int fd = (int)strtol(entry->d_name, NULL, 10);
        found = entry->d_name[0] != '.' && getsockname(fd, (struct sockaddr *)&own, &size) == 0 &&
                is_same_address((struct sockaddr *)&own, local) && is_over(fd);
    }
    closedir(folder);
    return found;
}
