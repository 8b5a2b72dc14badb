/* Checks what could prevent recording or storing on this machine, and what to do about it. A check
 * is {"check": NAME, "ok": BOOL, "found": TEXT, "advice": TEXT or ""}. */
#ifndef SJ_AGENT_HOST_HOST_CHECKS_H
#define SJ_AGENT_HOST_HOST_CHECKS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Appends one check; stores `advice` only if `ok` is false. A check whose result cannot be stored
 * is not ok. */
void sj_doctor_add(json_t *checks, const char *check, bool ok, const char *found,
                   const char *advice);

/* Checks that this user may attach to processes that it has not started (kernel.yama.ptrace_scope).
 */
void sj_doctor_check_ptrace(json_t *checks);

/* Checks that the hard limit lets this process open at least `wanted` files. */
void sj_doctor_check_files(json_t *checks, uint64_t wanted);

/* Appends two checks: that the kernel uses the processor's counter as its clock source, and that
 * the date is set. */
void sj_doctor_check_clock(json_t *checks);

/* Checks that the file system of `directory` has 256 MB of free space. `check` is the check's name;
 * `advice` is added if there is less. */
void sj_doctor_check_space(json_t *checks, const char *check, const char *directory,
                           const char *advice);

/* Checks that the agent of this installation is found (sj_agent_find). */
void sj_doctor_check_agent(json_t *checks);

/* Checks that no collector has refused frames of the spools in `spool_root` for good. Else the
 * check says which session, how many sessions, and why. */
void sj_doctor_check_refused(json_t *checks, const char *spool_root);

/* Checks whether the collector accepts a TCP connection; sends nothing. Blocks up to 3 s per
 * address. Returns true if it accepts, or without a check if the URL has no tcp:// address. */
bool sj_doctor_check_reach(json_t *checks, const char *url);

/* Writes the checks as text, or as JSON with the checks as "rows". Returns true if all are ok. */
bool sj_doctor_print(const json_t *checks, bool as_json, FILE *output);

#endif
