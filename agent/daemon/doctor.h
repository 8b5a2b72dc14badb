/* Finds problems that keep this device from recording or delivering, and their remedies. */
#ifndef SJ_AGENT_DAEMON_DOCTOR_H
#define SJ_AGENT_DAEMON_DOCTOR_H

#include "agent/host/host_checks.h"

/* Checks the device and its collectors. Returns a list of checks (host_checks.h), which the caller
 * releases, or NULL if out of memory. Blocks for seconds if a collector does not reply. */
json_t *sj_device_doctor(void);

#endif
