/* What could keep this machine from recording or storing, and what to do about it. A check is
 * {"check": NAME, "ok": BOOL, "found": TEXT, "advice": TEXT or ""}. */
#ifndef SJ_AGENT_HOST_HOST_CHECKS_H
#define SJ_AGENT_HOST_HOST_CHECKS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* sj_doctor_add appends one check; `advice` is kept when it is not ok only. */
void sj_doctor_add(json_t *checks, const char *check, bool ok, const char *found,
                   const char *advice);

/* The checks: processes may be traced; open files; the counter and the calendar; room on the disk
 * of a directory; the agent is installed beside this program. */
void sj_doctor_check_ptrace(json_t *checks);
void sj_doctor_check_files(json_t *checks, uint64_t wanted);
void sj_doctor_check_clock(json_t *checks);
void sj_doctor_check_room(json_t *checks, const char *check, const char *directory);
void sj_doctor_check_agent(json_t *checks);

/* sj_doctor_check_refused checks that no collector has refused frames of the spools in `spool_root`
 * for good; names the session, their number and the reason. */
void sj_doctor_check_refused(json_t *checks, const char *spool_root);

/* sj_doctor_check_reach tries the TCP address of a collector without speaking, three seconds at
 * most for each of its addresses; true when it answers, and when the URL has none. */
bool sj_doctor_check_reach(json_t *checks, const char *url);

/* sj_doctor_print writes the checks as text, or as JSON with the checks as "rows"; true when all
 * are ok. */
bool sj_doctor_print(const json_t *checks, bool as_json, FILE *output);

#endif
