/* Addresses that sp_channel.c connects to: this machine's only. */
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

/* sj_sp_address_read reads tcp://127.0.0.1:PORT (any loopback address, [::1], localhost) or
 * ipc://PATH. No name is looked up. SJ_EINVAL with a sentence: everything else. */
SJ_MUST_CHECK sj_status sj_sp_address_read(const char *url, sj_sp_address *address,
                                           sj_error *error);

#endif
