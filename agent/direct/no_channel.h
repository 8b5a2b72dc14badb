/* A channel to nobody: what is recorded stays in its files. */
#ifndef SJ_AGENT_DIRECT_NO_CHANNEL_H
#define SJ_AGENT_DIRECT_NO_CHANNEL_H

#include "agent/uplink/channel.h"

extern const sj_channel_kind sj_channel_none;

#endif
