/* Design notes. A PING over a new connection also shows that the collector accepts connections. But
 * a close may never end in NNG 1.5.2 (socket_close.c), and then no later one of the process ends
 * either. Each would leave a thread and a connection behind: with a PING every 10 s, 8,640 of each
 * a day. So after a close that did not end, a probe keeps its connection. */
#include "collector-server/ingest/probe.h"

#include "agent/uplink/dial.h"
#include "agent/uplink/socket_close.h"
#include "proto/wire/frame.h"

#include <nng/nng.h>
#include <nng/protocol/reqrep0/req.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sj_probe {
    const char *url;
    const char *certificate;
    nng_socket socket;
    bool is_open;
    bool is_dialled;
    bool stays_open; /* a close did not end */
};

/* Returns the URL to dial, because "*" is only valid for listening. */
static const char *dialled(const char *url, char *text, size_t bytes)
{
    const char *star = strstr(url, "://*:");
    if (star == NULL) {
        return url;
    }
    snprintf(text, bytes, "%.*s127.0.0.1%s", (int)(star + 3 - url), url, star + 4);
    return text;
}

sj_probe *sj_probe_new(const char *url, const char *certificate)
{
    sj_probe *made = calloc(1, sizeof(*made));
    if (made != NULL) {
        made->url = url;
        made->certificate = certificate;
    }
    return made;
}

static bool open_socket(sj_probe *probe)
{
    char place[128];
    probe->is_open = probe->is_open || nng_req0_open(&probe->socket) == 0;
    probe->is_dialled =
        probe->is_open &&
        (probe->is_dialled || sj_dial(probe->socket, dialled(probe->url, place, sizeof(place)),
                                      probe->certificate) == 0);
    return probe->is_dialled;
}

static void close_socket(sj_probe *probe)
{
    if (probe->is_open) {
        probe->stays_open = !sj_socket_close(probe->socket);
        probe->is_open = probe->is_dialled = false;
    }
}

static bool ping(nng_socket socket, int timeout_ms)
{
    uint8_t frame[SJ_FRAME_PREFIX_BYTES];
    size_t size = 0;
    nng_msg *reply = NULL;
    const bool is_answered = sj_frame_write(SJ_FRAME_PING, (sj_slice){0}, (sj_slice){0}, frame,
                                            sizeof(frame), &size) == SJ_OK &&
                             nng_socket_set_ms(socket, NNG_OPT_SENDTIMEO, timeout_ms) == 0 &&
                             nng_socket_set_ms(socket, NNG_OPT_RECVTIMEO, timeout_ms) == 0 &&
                             nng_send(socket, frame, size, 0) == 0 &&
                             nng_recvmsg(socket, &reply, 0) == 0;
    if (reply != NULL) {
        nng_msg_free(reply);
    }
    return is_answered;
}

bool sj_probe_is_answered(sj_probe *probe, int timeout_ms)
{
    const bool is_answered = open_socket(probe) && ping(probe->socket, timeout_ms);
    if (!probe->stays_open) {
        close_socket(probe);
    }
    return is_answered;
}

void sj_probe_free(sj_probe *probe)
{
    if (probe != NULL) {
        close_socket(probe);
        free(probe);
    }
}
