/* Checks what could prevent recording or storing on this machine, and what to do about it. A check
 * is {"check": NAME, "ok": BOOL, "found": TEXT, "advice": TEXT or ""}. */
#ifndef SJ_AGENT_HOST_HOST_CHECKS_H
#define SJ_AGENT_HOST_HOST_CHECKS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Appends one check; stores `advice` only if `ok` is false. */
void sj_doctor_add(json_t *checks, const char *check, bool ok, const char *found,
                   const char *advice);

/* The checks: processes may be traced; open files; the counter and the calendar; free space on the
 * disk of a directory, with advice if there is less than 256 MB; the agent is installed next to
 * this program. */
void sj_doctor_check_ptrace(json_t *checks);
void sj_doctor_check_files(json_t *checks, uint64_t wanted);
void sj_doctor_check_clock(json_t *checks);
void sj_doctor_check_space(json_t *checks, const char *check, const char *directory,
                           const char *advice);
void sj_doctor_check_agent(json_t *checks);

/* Checks that no collector has refused frames of the spools in `spool_root` for good. Names the
 * session, their number and the reason. */
void sj_doctor_check_refused(json_t *checks, const char *spool_root);

/* Checks whether the collector accepts a TCP connection; sends nothing. Blocks up to 3 s per
 * address. Returns true if it accepts, or if the URL has no address. */
bool sj_doctor_check_reach(json_t *checks, const char *url);

/* Writes the checks as text, or as JSON with the checks as "rows". Returns true if all are ok. */
bool sj_doctor_print(const json_t *checks, bool as_json, FILE *output);

#endif
