/* What could keep this device from recording or delivering, and what to do about it. */
#ifndef SJ_AGENT_DAEMON_DOCTOR_H
#define SJ_AGENT_DAEMON_DOCTOR_H

#include "agent/host/host_checks.h"

/* sj_device_doctor examines the device and asks its collector, which takes seconds when that does
 * not answer. A list of checks (host_doctor.h), released by the caller; NULL when memory is short.
 */
json_t *sj_device_doctor(void);

#endif
