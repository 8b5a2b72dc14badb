/* The part of `sojourn policy` that speaks with a recording that goes on. */
#ifndef SJ_COLLECTOR_SERVER_CLI_POLICY_SET_H
#define SJ_COLLECTOR_SERVER_CLI_POLICY_SET_H

/* sj_policy_set_run is `policy set [OPTIONS] PID`; the arguments begin with "set". Returns the exit
 * code. */
int sj_policy_set_run(int argc, char **argv);

/* sj_policy_show_running prints the document that the recording of a process obeys. `pid` is a
 * text.
 */
int sj_policy_show_running(const char *pid);

#endif
