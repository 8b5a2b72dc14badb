/* The channel without threads (sj_channel_sp, channel.h): one socket of our own to a collector on
 * this machine, over tcp or ipc (sp_address.h), speaking SP's REQ (sp_wire.h).
 *
 * All calls come from one thread, and only `wait` blocks; `take` does the reading and writing. When
 * the connection breaks, what was asked fails and has to be asked again. A collector that answers
 * what no REP would, or nothing for `resend_ms`, loses the connection. */
#ifndef SJ_AGENT_UPLINK_SP_CHANNEL_H
#define SJ_AGENT_UPLINK_SP_CHANNEL_H

#include "agent/uplink/channel.h"

extern const sj_channel_kind sj_channel_sp;

#endif
