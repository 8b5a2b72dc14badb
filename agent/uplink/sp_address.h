/* Addresses that sp_channel.c connects to. They are on this machine only. */
#ifndef SJ_AGENT_UPLINK_SP_ADDRESS_H
#define SJ_AGENT_UPLINK_SP_ADDRESS_H

#include "proto/base/error.h"

#include <stdbool.h>
#include <sys/socket.h>

typedef struct sj_sp_address {
    bool is_ipc;
    socklen_t bytes;
    struct sockaddr_storage socket;
} sj_sp_address;

/* Parses tcp://127.0.0.1:PORT (any loopback address, [::1], localhost) or ipc://PATH. Names are not
 * looked up. Returns SJ_EINVAL with a sentence for all other addresses. */
SJ_MUST_CHECK sj_status sj_sp_address_read(const char *url, sj_sp_address *address,
                                           sj_error *error);

#endif
