#include "collector-server/ingest/complaints.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

enum { ADDRESS_BYTES = 80, LINE_BYTES = 512 };

void sj_complaints_init(sj_complaints *complaints, void (*tell)(void *, const char *),
                        void *context)
{
    *complaints = (sj_complaints){.tell = tell, .context = context};
    pthread_mutex_init(&complaints->lock, NULL);
}

void sj_complaints_deinit(sj_complaints *complaints)
{
    pthread_mutex_destroy(&complaints->lock);
}

static void write_address(nng_pipe peer, char text[ADDRESS_BYTES])
{
    char host[INET6_ADDRSTRLEN] = "?";
    nng_sockaddr address;
    if (nng_pipe_get_addr(peer, NNG_OPT_REMADDR, &address) != 0) {
        snprintf(text, ADDRESS_BYTES, "a peer that is gone");
    } else if (address.s_family == NNG_AF_INET) {
        inet_ntop(AF_INET, &address.s_in.sa_addr, host, sizeof(host));
        snprintf(text, ADDRESS_BYTES, "%s:%u", host, ntohs(address.s_in.sa_port));
    } else if (address.s_family == NNG_AF_INET6) {
        inet_ntop(AF_INET6, address.s_in6.sa_addr, host, sizeof(host));
        snprintf(text, ADDRESS_BYTES, "[%s]:%u", host, ntohs(address.s_in6.sa_port));
    } else {
        snprintf(text, ADDRESS_BYTES, "a peer on this machine");
    }
}

/* Takes one line of this second's; false: there are none left. */
static bool take_line(sj_complaints *complaints)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if ((uint64_t)now.tv_sec != complaints->second) {
        complaints->second = (uint64_t)now.tv_sec;
        complaints->told = 0;
    }
    return complaints->told++ < SJ_COMPLAINTS_A_SECOND;
}

void sj_complain(sj_complaints *complaints, nng_pipe peer, const char *what)
{
    char address[ADDRESS_BYTES];
    char line[LINE_BYTES];
    if (complaints->tell == NULL) {
        return;
    }
    pthread_mutex_lock(&complaints->lock);
    if (!take_line(complaints)) {
        complaints->suppressed++;
        pthread_mutex_unlock(&complaints->lock);
        return;
    }
    write_address(peer, address);
    if (complaints->suppressed != 0) {
        snprintf(line, sizeof(line), "%s: dropped a frame: %.300s (and %" PRIu64 " more before)",
                 address, what, complaints->suppressed);
    } else {
        snprintf(line, sizeof(line), "%s: dropped a frame: %.300s", address, what);
    }
    complaints->suppressed = 0;
    complaints->tell(complaints->context, line);
    pthread_mutex_unlock(&complaints->lock);
}
